"""Settings belong to a group each, and may be changed at any time: they count at once."""

import copy
import inspect

import pytest

from members import scaled
from optim.cases import (
    MEMBERS,
    MIXTURE,
    Quadratic,
    asked_of_optimizers,
    build,
    mixture,
    parameters,
    run,
    same,
)

CHANGES = {
    "lr": 0.02,
    "momentum": 0.3,
    "rescale": "diameter",
    "maximize": True,
    "ties": "first",
    "seed": 5,
    "betas": (0.5, 0.6),
    "inner": 2,
    "delta": 0.5,
    "weight_decay": 0.3,
    "nesterov": True,
    "dampening": 0.5,
}
CHANGED = [
    (kind, name)
    for kind in MEMBERS
    for name in CHANGES
    if name in inspect.signature(kind).parameters
]
every_change = pytest.mark.parametrize(
    ("kind", "name"), CHANGED, ids=[f"{kind.__name__} {name}" for kind, name in CHANGED]
)


class Blind(Quadratic):
    """The first entry of a parameter matters to no batch: which way it goes is always drawn."""

    def gradient(self, place, theta, t):
        gradient = super().gradient(place, theta, t)
        gradient.view(-1)[0] = 0.0
        return gradient


@every_change
def test_each_group_moves_by_the_settings_of_its_own(kind, name):
    """As it does where all groups have them."""

    def moved(chosen):
        groups = mixture()
        for place, group in enumerate(groups):
            group.update({name: CHANGES[name]} if chosen(place) else {})
        return run(build(kind, groups, lr=0.1), Blind(parameters(groups)), 6)

    none, every, mixed = moved(lambda _: False), moved(lambda _: True), moved(lambda i: i % 2)
    assert not same(none, every), "the setting changes nothing"
    expected = [(none, every)[place % 2][place] for place in range(len(mixed))]
    assert same(mixed, expected)


@every_change
def test_a_setting_that_is_changed_on_the_way_counts_from_the_next_step_on(kind, name):
    """A copy, which remembers nothing but its state, goes on alike."""

    def moved(change, copied):
        groups = mixture()
        pair = build(kind, groups, lr=0.1), Blind(parameters(groups))
        run(*pair, 3)
        optimizer, problem = copy.deepcopy(pair) if copied else pair
        for group in optimizer.param_groups:
            group.update(change)
        return run(optimizer, problem, 4, begin=3)

    change = {name: CHANGES[name]}
    assert same(moved(change, copied=False), moved(change, copied=True))
    assert not same(moved(change, copied=False), moved({}, copied=False))


@asked_of_optimizers()
def test_a_region_that_is_changed_on_the_way_counts_from_the_next_step_on(kind):
    def moved(regions, copied):
        groups = mixture(members=MIXTURE[:3])
        pair = build(kind, groups, lr=0.1), Quadratic(parameters(groups))
        run(*pair, 3)
        optimizer, problem = copy.deepcopy(pair) if copied else pair
        for group, region in zip(optimizer.param_groups, regions, strict=True):
            group["region"] = region
        return run(optimizer, problem, 3, begin=3)

    larger = [scaled(region, 3.0) for region, _ in MIXTURE[:3]]
    assert same(moved(larger, copied=False), moved(larger, copied=True))
    assert not same(moved(larger, copied=False), moved([r for r, _ in MIXTURE[:3]], copied=False))
