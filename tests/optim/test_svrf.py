"""SVRF follows its slow twin, and is plain Frank-Wolfe where the batches agree."""

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
from optim.cases import mixture, parameters, same
from reference import optimizers as twins


@asked_of(ONE_OF_EACH_KIND)
@pytest.mark.parametrize("rescale", RESCALES, ids=str)
def test_the_slow_twin_is_followed(case, rescale):
    p, problem = scenario(case)
    alpha = rates(case, rescale)
    settings = {"K": PERIOD, "alpha": alpha, "rescale": rescale}
    expected = twin_steps(twins.svrf, problem, case.twin, full=True, **settings)
    follow(cg.SVRF([p], case.region, rescale=rescale), problem, expected, alpha)


def test_the_reference_stays_at_the_snapshot_and_the_full_gradient_as_it_was():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.SVRF(groups, lr=0.05)
    optimizer.refresh(problem.pairs())
    kept = [s[name].clone() for s in optimizer.state.values() for name in ("reference", "estimate")]
    for t in range(5):
        optimizer.step(problem.closure(t))
    now = [s[name] for s in optimizer.state.values() for name in ("reference", "estimate")]
    assert same(kept, now)
    moved = [not torch.equal(s["reference"], p) for p, s in optimizer.state.items()]
    assert all(moved)


def test_a_whole_batch_gives_the_full_gradient():
    """On one batch of all data the correction is exact, wherever the snapshot was taken."""
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.SVRF(groups, lr=0.05)
    optimizer.refresh(problem.pairs())
    for t in range(4):
        optimizer.step(problem.closure(t))
    seen = directions(optimizer)
    optimizer.step(problem.closure(None))
    for place, p in enumerate(parameters(groups)):
        expected = problem.gradient(place, p.detach(), None)
        assert torch.allclose(seen[0][place].view(p.shape), expected, rtol=1e-12, atol=1e-14)


def test_the_mean_of_the_estimates_over_all_batches_is_the_full_gradient():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = cg.SVRF(groups, lr=0.05)
    optimizer.refresh(problem.pairs())
    for t in range(4):
        optimizer.step(problem.closure(t))
    seen = directions(optimizer)
    for i in range(len(problem.sizes)):
        optimizer.step(problem.closure(i))
    for place, p in enumerate(parameters(groups)):
        each = [s * d[place] for s, d in zip(problem.sizes, seen, strict=True)]
        found = torch.stack(each).sum(0).view(p.shape) / sum(problem.sizes)
        expected = problem.gradient(place, p.detach(), None)
        assert torch.allclose(found, expected, rtol=1e-12, atol=1e-14)
        assert not torch.allclose(seen[0][place], seen[1][place], rtol=1e-3)
