"""ORGFW follows its slow twin, carries its memory along, and is SFW where nothing moves."""

import pytest
import torch

import condgrad as cg
from members import asked_of
from optim.batches import (
    ONE_OF_EACH_KIND,
    RESCALES,
    Batches,
    directions,
    follow,
    rates,
    scenario,
    twin_steps,
)
from optim.cases import mixture, parameters, same, values
from reference import optimizers as twins


@asked_of(ONE_OF_EACH_KIND)
@pytest.mark.parametrize("rescale", RESCALES, ids=str)
def test_the_slow_twin_is_followed(case, rescale):
    for momentum in (0.0, 0.9):
        p, problem = scenario(case)
        alpha = rates(case, rescale)
        settings = {"alpha": alpha, "rho": 1 - momentum, "rescale": rescale}
        expected = twin_steps(twins.orgfw, problem, case.twin, **settings)
        optimizer = cg.ORGFW([p], case.region, momentum=momentum, rescale=rescale)
        follow(optimizer, problem, expected, alpha)


def test_the_reference_is_the_iterate_before():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.ORGFW(groups, lr=0.05)
    for t in range(6):
        before = values(groups)
        optimizer.step(problem.closure(t))
        assert same([s["reference"] for s in optimizer.state.values()], before)


def test_on_whole_batches_the_memory_is_the_full_gradient():
    """SFW's average lags behind there; this one is brought up to date before it is averaged."""
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.ORGFW(groups, lr=0.05, momentum=0.9)
    for _ in range(8):
        optimizer.step(problem.closure(None))
    seen = directions(optimizer)
    optimizer.step(problem.closure(None))
    for place, p in enumerate(parameters(groups)):
        expected = problem.gradient(place, p.detach(), None)
        assert torch.allclose(seen[0][place].view(p.shape), expected, rtol=1e-12, atol=1e-13)


def test_without_momentum_it_is_sfw_without_momentum():
    found = []
    for kind in (cg.ORGFW, cg.SFW):
        groups = mixture()
        problem = Batches(parameters(groups))
        optimizer = kind(groups, lr=0.05, momentum=0.0)
        for t in range(6):
            optimizer.step(problem.closure(t))
        found.append(values(groups))
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-14)


def test_the_momentum_may_be_scheduled():
    """As theory asks for: ρ = 1/(t + 1) makes the memory of a resting iterate a plain mean."""
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.ORGFW(groups, lr=0.0)
    for t in range(10):
        for group in optimizer.param_groups:
            group["momentum"] = 1 - 1 / (t + 1)
        optimizer.step(problem.closure(t % 5))
    for place, p in enumerate(parameters(groups)):
        each = [problem.gradient(place, p.detach(), i) for i in range(5)]
        mean = optimizer.state[p]["estimate"]
        assert torch.allclose(mean, torch.stack(each).mean(0), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("momentum", [-0.1, 1.0, float("nan")])
def test_a_momentum_out_of_range_is_refused(momentum):
    with pytest.raises(ValueError, match=r"`momentum` must lie in \[0, 1\), got"):
        cg.ORGFW([torch.zeros(2, requires_grad=True)], cg.Free(), momentum=momentum)
