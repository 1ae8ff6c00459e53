"""SPIDER-FW follows its slow twin, and its corrections telescope."""

import pytest
import torch

import condgrad as cg
from members import asked_of
from optim.batches import (
    ONE_OF_EACH_KIND,
    PERIOD,
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
    p, problem = scenario(case)
    alpha = rates(case, rescale)
    settings = {"K": PERIOD, "alpha": alpha, "rescale": rescale}
    expected = twin_steps(twins.spider_fw, problem, case.twin, full=True, **settings)
    follow(cg.SPIDERFW([p], case.region, rescale=rescale), problem, expected, alpha)


def test_the_reference_is_the_iterate_before():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.SPIDERFW(groups, lr=0.05)
    optimizer.refresh(problem.pairs())
    for t in range(6):
        before = values(groups)
        optimizer.step(problem.closure(t))
        assert same([s["reference"] for s in optimizer.state.values()], before)
        if t == 3:
            optimizer.refresh(problem.pairs())
            assert same([s["reference"] for s in optimizer.state.values()], values(groups))


def test_on_whole_batches_the_corrections_telescope_to_the_full_gradient():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.SPIDERFW(groups, lr=0.05)
    optimizer.refresh(problem.pairs())
    for _ in range(8):
        optimizer.step(problem.closure(None))
    seen = directions(optimizer)
    optimizer.step(problem.closure(None))
    for place, p in enumerate(parameters(groups)):
        expected = problem.gradient(place, p.detach(), None)
        assert torch.allclose(seen[0][place].view(p.shape), expected, rtol=1e-12, atol=1e-13)


def test_the_first_step_of_a_period_goes_along_the_full_gradient_whatever_its_batch():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.SPIDERFW(groups, lr=0.05)
    for period in range(2):
        optimizer.refresh(problem.pairs())
        seen = directions(optimizer)
        optimizer.step(problem.closure(period))
        del optimizer._move
        for place, p in enumerate(parameters(groups)):
            expected = problem.gradient(place, p.detach(), None)
            assert torch.allclose(seen[0][place].view(p.shape), expected, rtol=1e-13, atol=1e-15)
        for t in range(3):
            optimizer.step(problem.closure(t))
