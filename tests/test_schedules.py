"""The schedules: the open loop's steps, the band rule's decisions, the theorem's constant."""

import itertools
import math
import random
from fractions import Fraction

import pytest
import torch

import condgrad as cg
from condgrad.schedules import BandRule, OpenLoop, theorem_step
from optim.cases import mixture

RATE = 0.1


def optimizer(lr=RATE, groups=3):
    return cg.SFW(mixture()[:groups], lr=lr)


def rates(optimizer):
    return [float(group["lr"]) for group in optimizer.param_groups]


# ---- the open loop


@pytest.mark.parametrize("scale", [1.0, 1.4])
def test_the_open_loop_takes_two_over_t_plus_two(scale):
    sfw = optimizer(groups=2)
    schedule = OpenLoop(sfw, scale=scale)
    for t in range(6):
        assert rates(sfw) == [scale * 2 / (t + 2)] * 2
        sfw.step()
        schedule.step()


def test_the_open_loop_can_be_taken_up():
    first, second = optimizer(), optimizer()
    schedule, again = OpenLoop(first), OpenLoop(second)
    for _ in range(4):
        first.step()
        schedule.step()
    second.step()
    again.load_state_dict(schedule.state_dict())
    again.step()
    schedule.step()
    assert rates(second) == rates(first) == [2 / 7] * 3


# ---- the band rule


def mean(losses):
    return sum(map(Fraction, losses)) / len(losses)


def banded(losses, lr, short=5, long=10, down=0.7, up=0.7 ** (-1 / 6)):
    """The rates after each epoch, as the paper words the rule."""
    for epoch in range(1, len(losses) + 1):
        recent = losses[max(0, epoch - short) : epoch]
        past = losses[max(0, epoch - long) : epoch]
        a, b = mean(recent), mean(past)
        lr *= down if a > b else up if a < b else 1.0
        yield lr


@pytest.mark.parametrize(
    "settings", [{}, {"short": 2, "long": 3}, {"down": 0.5, "up": 1.2}], ids=str
)
def test_the_band_rule_compares_the_last_five_with_the_last_ten(settings):
    rng = random.Random(0)
    losses = [rng.random() for _ in range(40)] + [0.3] * 12 + [1.0 + 0.1 * i for i in range(12)]
    sfw = optimizer(groups=2)
    rule = BandRule(sfw, **settings)
    for loss, expected in zip(losses, banded(losses, RATE, **settings), strict=True):
        rule.step(torch.tensor(loss, dtype=torch.float64))
        assert rates(sfw) == pytest.approx([expected] * 2, rel=1e-12)
        assert rule.get_last_lr() == [group["lr"] for group in sfw.param_groups]


def test_equal_losses_change_nothing():
    """A third of a tenth is no exact number; sums of it in another order differ in the last bit."""
    for loss in (0.1 / 3, 0.7, 1e-3 / 7):
        sfw = optimizer()
        rule = BandRule(sfw)
        for _ in range(25):
            rule.step(loss)
        assert rates(sfw) == [RATE] * 3


@pytest.mark.parametrize("loss", [math.inf, math.nan])
def test_a_loss_that_is_not_finite_changes_nothing(loss):
    """As long as both means are over it."""
    sfw = optimizer()
    rule = BandRule(sfw)
    for each in (1.0, 1.0, loss, 1.0):
        rule.step(each)
    assert rates(sfw) == [RATE] * 3


def test_rising_losses_shrink_the_rate_and_falling_ones_let_it_grow():
    for direction, factor in ((1, 0.7), (-1, 0.7 ** (-1 / 6))):
        sfw = optimizer()
        rule = BandRule(sfw)
        for epoch in range(6):
            rule.step(10 + direction * epoch)
        # Up to the fifth epoch both means are over the same losses.
        assert rates(sfw) == pytest.approx([RATE * factor] * 3, rel=1e-14)


@pytest.mark.parametrize("shared", [True, False])
def test_a_rate_in_a_tensor_is_changed_once_and_in_place(shared):
    lr = torch.tensor(RATE, dtype=torch.float64)
    sfw = optimizer(lr)
    if not shared:
        for group in sfw.param_groups[1:]:
            group["lr"] = lr.clone()
    before = [group["lr"] for group in sfw.param_groups]
    rule = BandRule(sfw)
    for epoch in range(6):
        rule.step(10 + epoch)
    assert rates(sfw) == pytest.approx([RATE * 0.7] * 3, rel=1e-14)
    assert all(group["lr"] is old for group, old in zip(sfw.param_groups, before, strict=True))


def test_the_band_rule_multiplies_what_others_set():
    sfw = optimizer()
    steps = torch.optim.lr_scheduler.StepLR(sfw, 4, 0.1)
    rule = BandRule(sfw)
    for epoch in range(6):
        sfw.step()
        steps.step()
        rule.step(epoch)
    assert rates(sfw) == pytest.approx([RATE * 0.1 * 0.7] * 3, rel=1e-13)


def test_the_band_rule_can_be_taken_up_anywhere():
    rng = random.Random(1)
    losses = [rng.random() for _ in range(30)]
    for pause in (3, 7, 15):
        first, second = optimizer(), optimizer()
        rule = BandRule(first)
        for loss in losses[:pause]:
            rule.step(loss)
        again = BandRule(second)
        for group, other in zip(second.param_groups, first.param_groups, strict=True):
            group["lr"] = other["lr"]
        again.load_state_dict(rule.state_dict())
        assert again.get_last_lr() == rates(first)
        for loss in losses[pause:]:
            rule.step(loss)
            again.step(loss)
        assert rates(second) == rates(first)
        assert again.get_last_lr() == rates(first)
        assert again.last_epoch == rule.last_epoch == 30


@pytest.mark.parametrize(("short", "long"), [(5, 5), (0, 10), (10, 5), (-1, 3)])
def test_wrong_bands_are_named(short, long):
    with pytest.raises(ValueError, match=f"`short` must lie below `long`, got {short} and {long}"):
        BandRule(optimizer(), short=short, long=long)


@pytest.mark.parametrize("name", ["down", "up"])
@pytest.mark.parametrize("value", [0, -0.7, math.nan, math.inf])
def test_wrong_factors_are_named(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be positive and finite, got {value!r}"):
        BandRule(optimizer(), **{name: value})


@pytest.mark.parametrize("value", [0, -1.0, math.nan])
def test_a_wrong_scale_is_named(value):
    with pytest.raises(ValueError, match=f"`scale` must be positive and finite, got {value!r}"):
        OpenLoop(optimizer(), scale=value)


# ---- the theorem's constant


def test_the_constant_step_is_the_theorems():
    found = theorem_step(64, excess=2.0, smoothness=3.0, diameter=1.5, beta=1.0)
    assert found == pytest.approx(math.sqrt(2.0 / (64 * 3.0 * 1.5**2 * 1.0)), rel=1e-15)
    least = 2 * 2.0 / (3.0 * 1.5**2)
    at_least = theorem_step(64, excess=2.0, smoothness=3.0, diameter=1.5, beta=least)
    assert at_least == pytest.approx(theorem_step(64), rel=1e-15)
    assert theorem_step(8) == 0.25


def test_wrong_constants_are_named():
    for steps in (0, math.nan):
        with pytest.raises(ValueError, match=f"`steps` must be at least 1, got {steps}"):
            theorem_step(steps)
    right = {"excess": 1.0, "smoothness": 1.0, "diameter": 1.0, "beta": 2.0}
    for name, value in itertools.product(right, (0, -1.0, math.nan)):
        with pytest.raises(ValueError, match=f"`{name}` must be positive and finite, got {value}"):
            theorem_step(8, **{**right, name: value})
    with pytest.raises(TypeError, match="with `beta`, give `excess`, `smoothness` and `diameter`"):
        theorem_step(8, beta=1.0, excess=1.0, smoothness=1.0)
    with pytest.raises(ValueError, match=r"`beta` must be at least 2·excess/\(M·D²\) = 2, got 1.9"):
        theorem_step(8, beta=1.9, excess=1.0, smoothness=1.0, diameter=1.0)
