"""Iterates never leave their region, however long, short, coarse or monotonous the steps are."""

import inspect
import itertools
import math

import pytest
import torch

import condgrad as cg
from condgrad.regions._base import SLACK, VectorRegion
from inputs import normal
from members import BOUNDED_ONE_EACH, SIMPLE, Case, asked_of
from optim.cases import (
    MEMBERS,
    MIXTURE,
    Quadratic,
    asked_of_optimizers,
    build,
    parameters,
    start,
    step,
    values,
)

RATES = (0.0, 0.1, 1.0, 50.0)
FORMATS = (torch.float32, torch.bfloat16)
WHOLE = [case for case in BOUNDED_ONE_EACH if type(case.region) in SIMPLE]
BLOCKS = [
    Case(cg.PerRow(cg.L1Ball(0.1)), (3, 4)),
    Case(cg.PerRow(cg.L2Ball(0.1)), (3, 4)),
    Case(cg.PerFilter(cg.KSparsePolytope(0.5, 0.1)), (3, 2, 2)),
    Case(cg.PerFilter(cg.SpectralBall(0.1)), (3, 2, 2)),
]


def every_rule(case):
    """A group for each format, step rule and rate; the rate as it is where no step exceeds 1."""
    return [
        {"params": [start(case.region, case.shape, 3, dtype)], "rescale": rescale, "lr": lr}
        for dtype in FORMATS
        for rescale in (None, "diameter", "gradient")
        for lr in RATES
    ]


def direction(case, t):
    """Noise at first, then no change, then nothing, then single entries."""
    if t < 80:
        return normal(case.shape, t)
    if t < 120:
        return normal(case.shape, 80)
    if t < 140:
        return torch.zeros(case.shape, dtype=torch.float64)
    single = torch.zeros(math.prod(case.shape), dtype=torch.float64)
    single[t % len(single)] = (-1.0) ** t
    return single.view(case.shape)


@asked_of(WHOLE + BLOCKS)
def test_iterates_never_leave(case):
    """At every step the violation is at most SLACK = 32 machine epsilons of the parameter's format.

    Every 16 steps (every step in 16-bit formats) a parameter is divided by what it has outgrown its
    region by, so that the rounding of steps never adds up.
    """
    groups = every_rule(case)
    before = values(groups)
    optimizer = cg.SFW(groups, case.region, momentum=0.5, foreach=True)
    for t in range(200):
        gradient = direction(case, t)
        for p in parameters(groups):
            p.grad = gradient.to(p.dtype)
        optimizer.step()
        if t % 10 == 9 or t < 3:
            for p in parameters(groups):
                assert case.region.violation(p) <= SLACK * torch.finfo(p.dtype).eps
    for group, p, first in zip(groups, parameters(groups), before, strict=True):
        assert group["lr"] or torch.equal(p, first), "it moved at rate zero"
        assert group["lr"] < 1 or not torch.equal(p, first), "it has not moved"
    cg.SFW(groups, case.region)  # takes the end as a start


@asked_of(BLOCKS + WHOLE[::8])
def test_iterates_never_leave_one_by_one(case):
    groups = every_rule(case)
    optimizer = cg.SFW(groups, case.region, momentum=0.5, foreach=False)
    for t in range(0, 200, 4):
        gradient = direction(case, t)
        for p in parameters(groups):
            p.grad = gradient.to(p.dtype)
        optimizer.step()
    for p in parameters(groups):
        assert case.region.violation(p) <= SLACK * torch.finfo(p.dtype).eps


@asked_of_optimizers(kind for kind in MEMBERS if kind is not cg.SFW)
@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_iterates_of_the_other_methods_never_leave(kind, dtype):
    """A region of each kind, the rules and rates shared out among them."""
    known = inspect.signature(kind).parameters
    rules = (None, "diameter", "gradient") if "rescale" in known else (None,)
    pairs = itertools.cycle(itertools.product(RATES, rules))
    groups = [
        {"params": [start(region, shape, 3, dtype)], "region": region, "lr": lr}
        | ({"rescale": rule} if "rescale" in known else {})
        for (region, shape), (lr, rule) in zip(MIXTURE, pairs, strict=False)
        if not isinstance(region, cg.Free)  # nothing would hold it at a rate of 50
    ]
    before = values(groups)
    optimizer = build(kind, groups, **({"inner": 2} if "inner" in known else {}))
    problem = Quadratic(parameters(groups), ties={50: torch.inf})
    for t in range(200):
        step(optimizer, problem, t)
        if t % 10 == 9 or t < 3:
            assert float(cg.violation(optimizer)) <= SLACK * torch.finfo(dtype).eps, f"step {t}"
    for group, p, first in zip(groups, parameters(groups), before, strict=True):
        assert group["lr"] or torch.equal(p, first), "it moved at rate zero"
        assert group["lr"] < 1 or not torch.equal(p, first), "it has not moved"


@asked_of(WHOLE + BLOCKS)
def test_what_is_not_finite_is_pulled_nowhere(case):
    """It stays with the user to see, and raises nothing after sixteen steps."""
    for poison in (math.nan, math.inf):
        parameter = start(case.region, case.shape, 3, torch.float32)
        optimizer = cg.SFW([parameter], case.region, lr=0.1)
        for t in range(17):
            parameter.grad = normal(case.shape, t).float()
            if t == 3:
                parameter.grad.view(-1)[0] = poison
            optimizer.step()
        assert not parameter.isfinite().all()


# ---- rounding that adds up


GROWING = {
    cg.L1Ball(1.0): (8,),
    cg.ProbabilitySimplex(1.0): (8,),
    cg.PerRow(cg.L1Ball(1.0)): (2, 8),
}
SHRINKING = {cg.ProbabilitySimplex(1.0): (8,), cg.PerRow(cg.ProbabilitySimplex(1.0)): (2, 8)}


def worst_drift(steps, points, lr, shapes):
    """The largest violation of each region, in machine epsilons, on the way to the first corner."""
    groups = [
        {"params": [points.expand(shape).clone().requires_grad_()], "region": region}
        for region, shape in shapes.items()
    ]
    optimizer = cg.SFW(groups, lr=lr, momentum=0.0, rescale=None)
    for p in parameters(groups):
        p.grad = torch.tensor([-1.0] + [0.0] * 7).expand_as(p)
    before, worst = values(groups), [0.0] * len(groups)
    for t in range(steps):
        optimizer.step()
        if t % 500 == 499:
            found = cg.violation(optimizer, per_parameter=True).values()
            worst = [max(a, float(b)) for a, b in zip(worst, found, strict=True)]
    assert not any(map(torch.equal, parameters(groups), before)), "it has not moved"
    return [excess / torch.finfo(torch.float32).eps for excess in worst]


def growth(steps, shapes=GROWING):
    """Entries that should shrink by a part of half a unit in their last place stay as they are.

    And the small one that grows gains something every time.
    """
    return worst_drift(steps, torch.tensor([1 / 64] + [9 / 64] * 7), 2e-8, shapes)


def loss(steps):
    """The large entry that should grow by a part of half a unit in its last place stays as it is.

    And the small ones that shrink lose something every time.
    """
    return worst_drift(steps, torch.tensor([0.9] + [0.1 / 7] * 7), 1e-7, SHRINKING)


@pytest.mark.slow
def test_a_hundred_thousand_tiny_steps_do_not_add_up():
    two = {region: GROWING[region] for region in (cg.L1Ball(1.0), cg.ProbabilitySimplex(1.0))}
    assert max(growth(100_000, two)) <= SLACK


@pytest.mark.parametrize("drift", [growth, loss])
def test_without_pulling_back_they_would(drift, monkeypatch):
    assert max(drift(3_000)) <= SLACK
    monkeypatch.setattr(VectorRegion, "_recalled", lambda self, x, lead=0: x)
    assert min(drift(3_000)) > 5 * SLACK


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_many_steps_do_not_add_up_in_any_format(dtype):
    """On a mixture of regions, with as many steps out and back as a batch of noise makes."""
    cases = WHOLE[::5]
    groups = [
        {"params": [start(case.region, case.shape, 3, dtype)], "region": case.region}
        for case in cases
    ]
    optimizer = cg.SFW(groups, lr=1e-3, momentum=0.5, rescale=None, foreach=True)
    for t in range(1000):
        for case, p in zip(cases, parameters(groups), strict=True):
            if t % 10 == 0:
                p.grad = normal(case.shape, t).to(dtype)
        optimizer.step()
        if t % 50 == 49:
            assert float(cg.violation(optimizer)) <= SLACK * torch.finfo(dtype).eps
