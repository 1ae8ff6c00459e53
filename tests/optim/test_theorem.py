"""The paper's convergence theorem holds on a problem whose constants are known.

The problem, and the measurement, are those of ``examples/theorem.py``.
"""

import importlib.util
from pathlib import Path

import pytest
import torch

import condgrad as cg
from inputs import inside

SCRIPT = Path(__file__).parents[2] / "examples" / "theorem.py"
specification = importlib.util.spec_from_file_location("theorem", SCRIPT)
theorem = importlib.util.module_from_spec(specification)
specification.loader.exec_module(theorem)

HORIZONS = (16, 64, 256)
REGIONS = (
    cg.L2Ball(2.0),
    cg.L1Ball(2.0),
    cg.LinfBall(2.0),
    cg.KSparsePolytope(2, 2.0),
    cg.ProbabilitySimplex(4.0),
)
TRIED = pytest.mark.parametrize("region", REGIONS, ids=str)


def each_gradient(problem, theta):
    """∇ℓ_i(θ), a row for each point."""
    every = torch.eye(theorem.POINTS, dtype=torch.float64)
    return problem.gradient(theta.expand(theorem.POINTS, -1), every)


@TRIED
def test_the_constants_are_those_of_the_problem(region):
    problem = theorem.Problem.drawn(region)
    points = [inside(region, (theorem.FEATURES,), seed, share=1.0) for seed in range(15)]
    gradients = [each_gradient(problem, point) for point in points]
    for x, at_x in zip(points, gradients, strict=True):
        assert float(at_x.norm(dim=1).max()) <= theorem.STEEPNESS
        for y, at_y in zip(points, gradients, strict=True):
            change = (at_x - at_y).norm(dim=1).max()
            assert float(change) <= theorem.SMOOTHNESS * float((x - y).norm()) + 1e-15
            assert float((x - y).norm()) <= problem.diameter
        assert float(problem.loss(problem.start) - problem.loss(x)) <= problem.excess
    # They are no larger than need be: G is attained at the origin, M where σ bends most.
    zero = torch.zeros(theorem.FEATURES, dtype=torch.float64)
    assert abs(float(each_gradient(problem, zero)[0].norm()) - theorem.STEEPNESS) < 1e-15
    bend, short = 1.31696 * problem.z[0], 1e-5 * problem.z[0]
    change = (each_gradient(problem, bend + short) - each_gradient(problem, bend))[0].norm()
    assert abs(float(change) / 1e-5 / theorem.SMOOTHNESS - 1) < 1e-4


@TRIED
def test_the_problem_is_not_convex(region):
    """Half-way between two points the loss is above the mean of theirs, and elsewhere below."""
    problem = theorem.Problem.drawn(region)
    points = torch.stack([inside(region, (theorem.FEATURES,), seed) for seed in range(100)])
    middle = problem.loss((points[:50] + points[50:]) / 2)
    excess = middle - (problem.loss(points[:50]) + problem.loss(points[50:])) / 2
    assert excess.max() > 1e-3
    assert excess.min() < -1e-3


@TRIED
def test_the_gap_measured_is_the_librarys(region):
    problem = theorem.Problem.drawn(region)
    theta = torch.stack([inside(region, (theorem.FEATURES,), seed) for seed in range(5)])
    theta.requires_grad_()
    optimizer = cg.SFW([theta], cg.PerRow(region))
    problem.loss(theta).sum().backward()
    assert torch.allclose(problem.gap(theta.detach()).sum(), cg.fw_gap(optimizer), rtol=1e-12)


@TRIED
@pytest.mark.parametrize("beta", [None, 1.0])
def test_the_expected_gap_is_under_the_bound_and_falls_like_the_root(region, beta):
    problem, gaps = theorem.Problem.drawn(region), []
    for T in HORIZONS:
        a = problem.step(T, beta)
        assert 0 < a < 1
        found = theorem.mean_gaps(problem, T, length=a, runs=25)
        assert float(found.mean() + 4 * found.std() / 25**0.5) < problem.bound(T, beta)
        gaps.append(float(found.mean()))
    assert -0.65 < theorem.slope(HORIZONS, gaps) < -0.35  # eight seeds: -0.56 to -0.41


def test_it_does_not_fall_so_if_the_batches_do_not_grow():
    problem = theorem.Problem.drawn(cg.L2Ball(2.0))
    gaps = [float(theorem.mean_gaps(problem, T, size=1, runs=25).mean()) for T in HORIZONS]
    assert theorem.slope(HORIZONS, gaps) > -0.2  # eight seeds: -0.11 to -0.09
