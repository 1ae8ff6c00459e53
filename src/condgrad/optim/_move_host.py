"""Frank-Wolfe moves of several parameters on the host, one call for all at each stage.

Small networks spend their time between the operations, not in them. Parameters whose regions are of
one kind share every operation here; those among which something special happens (a tie, a zero
direction, a number that is not finite) are moved one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..regions import (
    KSparsePolytope,
    L1Ball,
    L2Ball,
    LinfBall,
    LpBall,
    ProbabilitySimplex,
    UnitSimplex,
)
from ..regions._measure import Norm, safe_range
from ..regions._ties import Draw
from ..regions._together import Listed, Numbers, Tensors, Unsettled, norms_of
from ._move import RECALL_EVERY, Work, move, over_diameter, recall
from ._roster import Works

_SHARING = (L1Ball, L2Ball, LinfBall, LpBall, KSparsePolytope, UnitSimplex, ProbabilitySimplex)


def move_on_host(works: Works) -> None:
    """Move all parameters; the same as `move` for each, to the last bit but one."""
    if works.teams is None:
        works.teams = _formed(works)
    for team in works.teams:
        team.move()


def _formed(works: Sequence[Work]) -> list[Team]:
    teams: dict[Hashable, list[Work]] = {}
    for work in works:
        kind = work.region._kind, work.parameter.dtype, work.rescale, work.source is None
        teams.setdefault(kind, []).append(work)
    return [Team(each) for each in teams.values()]


class Team:
    """Parameters of one kind, which move together if they can."""

    def __init__(self, works: list[Work]) -> None:
        self._works = works
        first = works[0]
        self._rescale = first.rescale
        self._shares = isinstance(first.region, _SHARING) and first.parameter.element_size() >= 4
        self._region: Any = _with_radii([w.region for w in works]) if self._shares else None

    def move(self) -> None:
        """Move them all."""
        if not self._shares or not self._moved():
            for work in self._works:
                move(work)

    def _moved(self) -> bool:
        """Whether they could move together, and have."""
        works = self._works
        directions = Tensors(work.direction for work in works)
        parameters = [work.parameter for work in works]
        piece = Listed(directions, self._draw)
        try:
            sizes = self._sizes(piece, directions)
            vertices = self._region._answer(directions, piece)
            lengths = self._lengths(sizes, parameters, vertices)
        except Unsettled:
            return False
        torch._foreach_lerp_(parameters, vertices.each, lengths)
        if works[0].region._drifts and any(int(work.step) % RECALL_EVERY == 0 for work in works):
            for work, length in zip(works, lengths, strict=True):
                recall(work, length)
        return True

    def _draw(self, place: int) -> Draw | None:
        return self._works[place].draw

    def _sizes(self, piece: Listed, directions: Any) -> Numbers | None:
        """The norms of the directions, where the step lengths depend on them."""
        return piece.answer(Norm(directions)) if self._rescale == "gradient" else None

    def _lengths(
        self, sizes: Numbers | None, starts: list[Tensor], vertices: Tensors
    ) -> list[float]:
        """The step lengths a, in [0, 1]."""
        works = self._works
        rates = [float(work.lr) for work in works]
        if sizes is not None:
            gaps = norms_of(list(torch._foreach_sub(vertices.each, starts)))
            low, high = safe_range(starts[0].dtype)
            if not (low < min(gaps) and max(gaps) < high):  # too short, or too long, for a square
                raise Unsettled
            triples = zip(rates, sizes, gaps, strict=True)
            return [min(rate * size / gap, 1.0) for rate, size, gap in triples]
        if self._rescale == "diameter":
            rates = [float(over_diameter(work)) for work in works]
        return [min(rate, 1.0) for rate in rates]


def _with_radii(regions: Sequence[Any]) -> Any:
    """A region whose radius is one number a tensor; its formulas do not notice."""
    first = regions[0]
    bundle = object.__new__(type(first))
    bundle.__dict__.update(first.__dict__, radius=Numbers([region.radius for region in regions]))
    return bundle
