"""Stochastic Frank-Wolfe follows its slow twin, settles ties by counters, and closes its gap."""

import numpy as np
import pytest
import torch

import condgrad as cg
from inputs import array, normal
from members import BOUNDED_ONE_EACH, ONE_EACH, asked_of, may_be_drawn, twin
from optim.cases import MIXTURE, Quadratic, mixture, parameters, run, same, start, values
from reference import optimizers as twins

RESCALES = [None, "diameter", "gradient"]
STEPS = 100


def rates(case, rescale):
    """A learning rate for each step: some percent of the way, now and then all of it."""
    shares = [0.02 + 0.05 * (t % 7) if t % 40 != 39 else 1.5 for t in range(STEPS)]
    if rescale is None or isinstance(case.region, cg.Free):
        return [min(share, 1.0) for share in shares]
    size = case.region.diameter(case.shape) or 1.0
    # Directions of norm about √n are rescaled to unit length by "gradient", not by "diameter".
    typical = size if rescale == "diameter" else size / np.sqrt(np.prod(case.shape))
    return [share * typical for share in shares]


def followed(problem, C, alpha, rho, rescale):
    """The iterates of the slow twin on the problem's only parameter."""

    def grad(theta, t):
        return [array(problem.gradient(0, torch.from_numpy(theta[0]), t))]

    return twins.sfw([array(problem.params[0])], [C], grad, STEPS, alpha, rho, rescale)


@asked_of(ONE_EACH)
@pytest.mark.parametrize("rescale", RESCALES, ids=str)
def test_the_slow_twin_is_followed(case, rescale):
    for momentum in (0.0, 0.9):
        p = start(case.region, case.shape, seed=3)
        # A curvature to the size of the region: steeper, and the iterates are driven to where the
        # oracle jumps, so that rounding decides.
        problem = Quadratic([p], seed=1, curvature=1 / max(1.0, float(p.detach().norm())))
        alpha = rates(case, rescale)
        expected = followed(problem, case.twin, alpha, 1 - momentum, rescale)
        optimizer = cg.SFW([p], case.region, lr=0.0, momentum=momentum, rescale=rescale)
        for t, (theta,) in enumerate(expected):
            optimizer.param_groups[0]["lr"] = alpha[t]
            problem.closure(t)()
            optimizer.step()
            size = max(np.abs(theta).max(), getattr(case.region, "radius", 0.0))
            assert np.abs(array(p) - theta).max() <= 1e-12 * size, f"step {t}"


@asked_of(BOUNDED_ONE_EACH)
def test_a_full_step_lands_on_a_vertex_and_stays_there(case):
    """There v = θ, and the gradient rule divides by their distance."""
    for rescale in RESCALES:
        p = start(case.region, case.shape, seed=3)
        optimizer = cg.SFW([p], case.region, lr=1e9, momentum=0.0, rescale=rescale)
        optimizer.param_groups[0]["lr"] = 1.0 if rescale is None else 1e9
        p.grad = normal(case.shape, 5)
        optimizer.step()
        landed = p.detach().clone()
        assert torch.allclose(landed, case.region.lmo(p.grad), rtol=1e-14, atol=1e-300)
        optimizer.step()
        assert torch.allclose(p, landed, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("rescale", RESCALES, ids=str)
def test_a_step_is_never_longer_than_to_the_vertex(rescale):
    for lr in (1.0, 3.0, 1e6, 1e300):
        p = start(cg.L2Ball(0.7), (5,))
        p.grad = normal((5,), 1)
        optimizer = cg.SFW([p], cg.L2Ball(0.7), lr=lr, momentum=0.0, rescale=rescale)
        if lr < 1.5 and rescale == "diameter":
            continue  # 1.0 / 1.4 is a step on the way
        optimizer.step()
        assert torch.allclose(p, cg.L2Ball(0.7).lmo(p.grad), rtol=1e-14)


def test_the_average_starts_at_zero_and_forgets():
    p = start(cg.Free(), (4,))
    optimizer = cg.SFW([p], cg.Free(), momentum=0.9)
    gradients = [normal((4,), t) for t in range(3)]
    expected = torch.zeros(4, dtype=torch.float64)
    for gradient in gradients:
        p.grad = gradient
        optimizer.step()
        expected = 0.9 * expected + 0.1 * gradient
    found = optimizer.state[p]["momentum_buffer"]
    assert torch.allclose(found, expected, rtol=1e-14, atol=0)


def test_momentum_may_be_switched_on_and_off():
    p, q = start(cg.L2Ball(0.7), (4,)), start(cg.L2Ball(0.7), (4,))
    optimizer = cg.SFW([p], cg.L2Ball(0.7), momentum=0.0)
    run(optimizer, Quadratic([p]), 2)
    optimizer.param_groups[0]["momentum"] = 0.5
    run(optimizer, Quadratic([p]), 2, begin=2)
    q.data.copy_(run(cg.SFW([q], cg.L2Ball(0.7), momentum=0.0), Quadratic([q]), 2)[0])
    expected = run(cg.SFW([q], cg.L2Ball(0.7), momentum=0.5), Quadratic([q]), 2, begin=2)
    assert same([p.detach()], expected)


# ---- ties


ZERO = dict.fromkeys(range(STEPS), torch.inf)


def drawn(groups, steps=4, **settings):
    """Where full steps along zero gradients lead: to drawn vertices."""
    optimizer = cg.SFW(groups, lr=1.0, rescale=None, momentum=0.0, **settings)
    problem = Quadratic(parameters(groups), ties=ZERO)
    return [run(optimizer, problem, 1, begin=t) for t in range(steps)]


BOUNDED = [each for each in MIXTURE if not isinstance(each[0], cg.Free)]


def test_zero_directions_draw_vertices_that_change_with_seed_step_and_parameter():
    two = [each for each in BOUNDED for _ in range(2)]
    first, again, other = (drawn(mixture(members=two), seed=seed) for seed in (0, 0, 1))
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    for place, (region, shape) in enumerate(two):
        for vertices in first:
            assert may_be_drawn(twin(region, shape), array(vertices[place]), 1e-9)
        steps = [vertices[place] for vertices in first]
        seeds = [vertices[place] for vertices in other]
        assert not same(steps, seeds), "another seed draws the same"
        assert not same(steps[1:], steps[:-1]), "every step draws the same"
        if place % 2:
            before = [vertices[place - 1] for vertices in first]
            assert not same(steps, before), "every parameter draws the same"


def test_a_draw_does_not_depend_on_what_else_has_gradients():
    everything = drawn(mixture(members=BOUNDED))[0]
    for place in range(len(BOUNDED)):
        groups = mixture(members=BOUNDED)
        optimizer = cg.SFW(groups, lr=1.0, rescale=None, momentum=0.0)
        parameters(groups)[place].grad = torch.zeros(BOUNDED[place][1], dtype=torch.float64)
        optimizer.step()
        assert torch.equal(parameters(groups)[place], everything[place])


def test_first_ties_draw_nothing():
    groups = mixture(members=BOUNDED)
    found = drawn(groups, ties="first")
    other = drawn(mixture(members=BOUNDED), ties="first", seed=5)
    assert all(same(a, found[0]) for a in found + other)


def test_the_gradient_rule_takes_no_step_along_zero():
    groups = mixture(members=BOUNDED)
    optimizer = cg.SFW(groups, lr=5.0, rescale="gradient")
    run(optimizer, Quadratic(parameters(groups), ties=ZERO), 3)
    assert same(values(groups), values(mixture(members=BOUNDED)))
