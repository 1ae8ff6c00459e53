"""The same iterates on one rank and on many, however the parameters are laid out on them."""

import functools

import numpy as np
import pytest

import condgrad as cg
from distributed import choices, layouts, messages
from distributed.layouts import PLACED, WRAPPED, chosen, members
from optim.cases import MEMBERS, asked_of_optimizers

EXACT = (cg.SpectralBall, cg.NuclearBall)
"""Whose vertices have entries that rounding decides the sign of."""


@functools.cache
def expected(*args):
    return layouts.steps(None, *args)[1]


def agree(found, wanted, places=layouts.EVERY):
    """Raise unless all values are equal to 1e-10, and vertices in every sign."""
    for (region, shape, settings, _), a, b in zip(chosen(places), found, wanted, strict=True):
        for t, (here, there) in enumerate(zip(a, b, strict=True)):
            off = np.abs(here - there).max()
            assert off <= 1e-10, f"{region} on {shape}, {settings}, step {t}: off by {off}"
        inner = getattr(region, "region", region)
        if settings["lr"] == 1.0 and places is layouts.EVERY and not isinstance(inner, EXACT):
            assert np.array_equal(np.sign(a), np.sign(b)), f"{region} on {shape}: other vertices"


@pytest.mark.parametrize("layout", [*(name for name in PLACED if name != "cube"), *WRAPPED])
def test_iterates_are_those_of_a_single_process(team_of, layout):
    team = team_of(layouts.SIZES.get(layout, 4))
    agree(layouts.joined(team.ask(layouts.run, layout)), expected())


def test_so_are_those_on_a_cube_of_ranks(nursery):
    """Two teams that do the same, each of which shares rows and columns out."""
    team = nursery.team(8)
    found = layouts.joined(team.ask(layouts.run, "cube", cg.SFW, layouts.SOME), layouts.SOME)
    groups = team.ask(messages.groups, "cube", 3)
    team.close()
    agree(found, expected(cg.SFW, layouts.SOME), layouts.SOME)
    assert groups == [(0, [])] * 8, "a process group for every mesh, or groups that are held"


@pytest.mark.parametrize("layout", ["four", "grid", "hybrid"])
def test_process_groups_are_those_of_the_meshes_and_not_held(four, layout):
    """Held beyond their destruction they would abort the end of the process."""
    assert four.ask(messages.groups, layout, 2) == [(0, [])] * 4


@pytest.mark.parametrize("layout", ["four", "columns", "grid", "three"])
def test_most_ranks_may_have_nothing(team_of, layout):
    answers = team_of(layouts.SIZES.get(layout, 4)).ask(layouts.crumbs, layout)
    assert sum(empty for empty, *_ in answers) >= sum(count for _, count, _ in answers) / 3
    for *_, astray in answers:
        assert max(astray.values()) <= 1e-12, astray


@pytest.mark.parametrize("layout", ["four", "grid"])
def test_so_are_those_found_without_looking_at_numbers(four, layout):
    """The way of accelerators, tried on the host."""
    agree(layouts.joined(four.ask(choices.run_elsewhere, layout)), expected())


@pytest.mark.parametrize("layout", ["grid", "fsdp", "ddp"])
@asked_of_optimizers([kind for kind in MEMBERS if kind is not cg.SFW])
def test_every_optimizer_has_the_iterates_of_a_single_process(four, kind, layout):
    args = (kind, layouts.SOME)
    found = layouts.joined(four.ask(layouts.run, layout, *args), layouts.SOME)
    agree(found, expected(*args), layouts.SOME)


def test_the_rules_meet_vertices_ties_and_empty_shards():
    """Or the questions above ask less than they seem to."""
    shapes = {shape[0] for _, shape, _, _ in members() if shape}
    assert {1, 2, 3} <= shapes
    kinds = {type(region) for region, *_ in members()}
    assert kinds >= {getattr(cg.regions, name) for name in cg.regions.__all__} - {cg.Region}
