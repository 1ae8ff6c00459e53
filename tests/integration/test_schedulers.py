"""Every scheduler of torch drives every optimizer as it drives torch's own, momentum included."""

import copy
import inspect

import pytest
import torch
from torch.optim import lr_scheduler as schedulers
from torch.optim import swa_utils

import condgrad as cg
from optim.cases import (
    MEMBERS,
    Quadratic,
    asked_of_optimizers,
    build,
    mixture,
    parameters,
    same,
    step,
    values,
)

STEPS = 14
ABSTRACT = {"LRScheduler", "_LRScheduler"}
CYCLING = ("CyclicLR", "OneCycleLR")


def two(optimizer):
    """Two schedulers, of which the first ends before the second."""
    return [
        schedulers.ConstantLR(optimizer, factor=0.5, total_iters=2),
        schedulers.ExponentialLR(optimizer, gamma=0.8),
    ]


SCHEDULERS = {
    "LambdaLR": lambda o, **_: schedulers.LambdaLR(o, lambda t: 1 / (1 + t)),
    "MultiplicativeLR": lambda o, **_: schedulers.MultiplicativeLR(o, lambda t: 1 - 0.1 * (t % 3)),
    "StepLR": lambda o, **_: schedulers.StepLR(o, 3),
    "MultiStepLR": lambda o, **_: schedulers.MultiStepLR(o, [2, 7], 0.5),
    "ConstantLR": lambda o, **_: schedulers.ConstantLR(o, 0.3, 4),
    "LinearLR": lambda o, **_: schedulers.LinearLR(o, 0.1, 1.0, 6),
    "ExponentialLR": lambda o, **_: schedulers.ExponentialLR(o, 0.9),
    "SequentialLR": lambda o, **_: schedulers.SequentialLR(o, two(o), [5]),
    "ChainedScheduler": lambda o, **_: schedulers.ChainedScheduler(two(o)),
    "PolynomialLR": lambda o, **_: schedulers.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda o, **_: schedulers.CosineAnnealingLR(o, 9, 0.01),
    "CosineAnnealingWarmRestarts": lambda o, **_: schedulers.CosineAnnealingWarmRestarts(o, 4),
    "ReduceLROnPlateau": lambda o, **_: schedulers.ReduceLROnPlateau(o, factor=0.5, patience=2),
    "CyclicLR": lambda o, **cycle: schedulers.CyclicLR(o, 0.01, 0.1, 4, **cycle),
    "OneCycleLR": lambda o, **cycle: schedulers.OneCycleLR(o, 0.1, STEPS, **cycle),
    "SWALR": lambda o, **_: swa_utils.SWALR(o, 0.01, anneal_epochs=5),
}
every_scheduler = pytest.mark.parametrize("name", SCHEDULERS)
either_rate = pytest.mark.parametrize("rate", [float, torch.tensor], ids=["number", "tensor"])


def cycles(kind):
    """Whether the optimizer has a momentum, or a β₁, that a scheduler may cycle."""
    return bool({"momentum", "betas"} & set(inspect.signature(kind).parameters))


def scheduled(name, optimizer, kind):
    return SCHEDULERS[name](optimizer, **({} if cycles(kind) else {"cycle_momentum": False}))


def advance(scheduler, t):
    """One step of the scheduler; the metric that some ask for stops falling after a while."""
    plateau = isinstance(scheduler, schedulers.ReduceLROnPlateau)
    scheduler.step(*[max(1.0, 4.0 - t)] if plateau else [])


def settings(optimizer):
    """What a scheduler may have changed, as it is now."""
    names = ("lr", "momentum", "betas")
    return [
        {n: float(v) if n == "lr" else v for n, v in group.items() if n in names}
        for group in optimizer.param_groups
    ]


def problem(kind, rate=float):
    """A small problem of three groups, and an optimizer for it."""
    groups = mixture(members=[(cg.L2Ball(0.7), (3,)), (cg.LinfBall(0.2), (4,)), (cg.Free(), (2,))])
    return build(kind, groups, lr=rate(0.1)), Quadratic(parameters(groups))


def of_torch(kind, rate):
    """An optimizer of torch's own with as many groups and the same momentum, if any."""
    groups = [{"params": [torch.zeros(2, requires_grad=True)]} for _ in range(3)]
    ours = inspect.signature(kind).parameters
    if "betas" in ours:
        return torch.optim.Adam(groups, lr=rate(0.1), betas=ours["betas"].default)
    return torch.optim.SGD(groups, lr=rate(0.1), momentum=MEMBERS[kind].settings.get("momentum", 0))


def trail(optimizer, scheduler, move):
    """The settings at each step."""
    found = []
    for t in range(STEPS - 1):
        found.append(settings(optimizer))
        move(t)
        advance(scheduler, t)
    return found


def test_every_scheduler_of_torch_is_tried():
    kinds = {
        name
        for module in (schedulers, swa_utils)
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, schedulers.LRScheduler)
    }
    assert kinds - ABSTRACT == set(SCHEDULERS), "add the scheduler's line"


@asked_of_optimizers()
@every_scheduler
@either_rate
def test_it_drives_as_it_drives_torchs_own(kind, name, rate):
    optimizer, quadratic = problem(kind, rate)
    theirs = of_torch(kind, rate)
    expected = trail(theirs, scheduled(name, theirs, kind), lambda t: theirs.step())
    found = trail(
        optimizer, scheduled(name, optimizer, kind), lambda t: step(optimizer, quadratic, t)
    )
    for ours, torchs in zip(found, expected, strict=True):
        for group, other in zip(ours, torchs, strict=True):
            assert group == {setting: other[setting] for setting in group}
    assert any(each != found[0] for each in found), "it has changed nothing"
    # And what it sets is what counts: setting the same by hand leads to the same iterates.
    again, twin = problem(kind)
    for t, each in enumerate(found):
        for group, by_hand in zip(again.param_groups, each, strict=True):
            group.update(by_hand)
        step(again, twin, t)
    for a, b in zip(values(optimizer.param_groups), values(again.param_groups), strict=True):
        assert torch.equal(a, b) if rate is float else torch.allclose(a, b, 1e-12, 1e-14)


@asked_of_optimizers()
@pytest.mark.parametrize("name", CYCLING)
def test_momentum_is_cycled_where_there_is_one_and_torch_says_so_where_not(kind, name):
    optimizer, quadratic = problem(kind)
    if not cycles(kind):
        with pytest.raises(ValueError, match="must support momentum or beta1"):
            SCHEDULERS[name](optimizer)
        return
    found = trail(optimizer, SCHEDULERS[name](optimizer), lambda t: step(optimizer, quadratic, t))
    momenta = {g["betas"][0] if "betas" in g else g["momentum"] for each in found for g in each}
    assert len(momenta) > 4
    assert all(0.8 <= momentum <= 0.95 for momentum in momenta)


@asked_of_optimizers()
@every_scheduler
@either_rate
def test_a_checkpoint_of_both_resumes_the_run(kind, name, rate):
    optimizer, quadratic = problem(kind, rate)
    scheduler = scheduled(name, optimizer, kind)
    for t in range(5):
        step(optimizer, quadratic, t)
        advance(scheduler, t)
    saved = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    points = values(optimizer.param_groups)
    again, twin = problem(kind, rate)
    for p, point in zip(parameters(again.param_groups), points, strict=True):
        p.data.copy_(point)
    resumed = scheduled(name, again, kind)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    for t in range(5, STEPS - 1):
        for driven, by, each in ((optimizer, scheduler, quadratic), (again, resumed, twin)):
            step(driven, each, t)
            advance(by, t)
    assert settings(again) == settings(optimizer)
    assert same(values(again.param_groups), values(optimizer.param_groups))
