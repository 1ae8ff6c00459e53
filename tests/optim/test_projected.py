"""Projected SGD: torch's SGD where nothing binds, the nearest point where something does."""

import numpy as np
import pytest
import torch

import condgrad as cg
from inputs import array, normal
from members import ONE_EACH, asked_of
from optim.cases import Quadratic, run, same, start
from reference import optimizers as twins

SETTINGS = {
    "plain": {},
    "heavy ball": {"momentum": 0.9},
    "Nesterov": {"momentum": 0.9, "nesterov": True},
    "decay": {"momentum": 0.5, "weight_decay": 0.1},
    "Nesterov with decay": {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1},
}
every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def precision(region):
    """How exactly the nearest point is known: general Lp balls by a numeric root."""
    inner = getattr(region, "region", region)
    return 1e-6 if isinstance(inner, cg.LpBall) and inner.p != 2 else 1e-12


@asked_of(ONE_EACH)
def test_the_slow_twin_is_followed(case):
    """The steps shrink, so that the region binds at first and not always."""
    steps = 100 if precision(case.region) < 1e-6 else 10  # the twin's numeric roots take their time
    for settings in SETTINGS.values():
        p = start(case.region, case.shape, seed=3)
        problem = Quadratic([p], seed=1)
        size = min(case.region.diameter(case.shape), 30.0)
        alpha = [0.5 * size / (1 + t) for t in range(steps)]

        def grad(theta, t, problem=problem):
            return [array(problem.gradient(0, torch.from_numpy(theta[0]), t))]

        expected = twins.projected_sgd([array(p)], [case.twin], grad, steps, alpha, **settings)
        optimizer = cg.ProjectedSGD([p], case.region, **settings)
        for t, (theta,) in enumerate(expected):
            optimizer.param_groups[0]["lr"] = alpha[t]
            problem.closure(t)()
            optimizer.step()
            size = max(np.abs(theta).max(), getattr(case.region, "radius", 0.0))
            assert np.abs(array(p) - theta).max() <= precision(case.region) * size, f"step {t}"


@every_setting
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dampening", [0.0, 0.3])
@pytest.mark.parametrize("region", [cg.Free(), cg.L2Ball(1e6), cg.Box(-1e6, 1e6)], ids=str)
def test_where_nothing_binds_it_is_torchs_sgd(settings, maximize, dampening, region):
    if settings.get("nesterov") and dampening:
        pytest.skip("neither allows both")
    settings = {**settings, "lr": 0.05, "maximize": maximize, "dampening": dampening}
    ours, theirs = (normal((3, 4), 0).requires_grad_() for _ in range(2))
    found = run(cg.ProjectedSGD([ours], region, **settings), Quadratic([ours]), 30)
    problem = Quadratic([theirs])
    sgd = torch.optim.SGD([theirs], **settings)
    for t in range(30):
        problem.closure(t)()
        sgd.step()
    assert torch.allclose(found[0], theirs, rtol=1e-13, atol=1e-15)


@asked_of([case for case in ONE_EACH if not isinstance(case.region, cg.Free)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_at_rate_zero_the_border_stays_as_it_is(case, dtype):
    """The nearest point of a point of the region is that point, to the last bit."""
    far = case.region.project(normal(case.shape, 2, 100.0)).to(dtype)
    for point in (far, case.region.lmo(normal(case.shape, 3).to(dtype))):
        p = point.clone().requires_grad_()
        cg.make_feasible([{"params": [p], "region": case.region}])
        before = p.detach().clone()
        optimizer = cg.ProjectedSGD([p], case.region, lr=0.0, momentum=0.9, weight_decay=0.1)
        run(optimizer, Quadratic([p]), 3)
        assert torch.equal(p, before)


@asked_of(ONE_EACH)
def test_it_finds_the_nearest_point_of_a_convex_problem(case):
    b = normal(case.shape, 4)
    p = start(case.region, case.shape)
    optimizer = cg.ProjectedSGD([p], case.region, lr=1.0)
    for _ in range(2):
        p.grad = p.detach() - b
        optimizer.step()
    expected = case.twin.project(array(b))
    close = precision(case.region) * max(1.0, np.abs(expected).max())
    assert np.abs(array(p) - expected).max() <= close


def test_the_state_is_torchs():
    p, q = start(cg.Free(), (3,)), start(cg.Free(), (3,))
    ours = cg.ProjectedSGD([p], cg.Free(), momentum=0.9)
    theirs = torch.optim.SGD([q], momentum=0.9)
    for optimizer, parameter in ((ours, p), (theirs, q)):
        parameter.grad = normal((3,), 0)
        optimizer.step()
    assert set(ours.state[p]) == set(theirs.state[q])
    assert same(ours.state[p].values(), theirs.state[q].values())
