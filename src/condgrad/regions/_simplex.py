"""The simplices: nonnegative tensors of bounded, or of given, sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import _projections
from ._base import VectorRegion, positive
from ._measure import (
    LOWEST,
    Choice,
    Max,
    Number,
    Piece,
    Program,
    Sum,
    decided,
    larger,
    largest,
    taken,
)


@dataclass(frozen=True)
class _Simplex(VectorRegion):
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        return (yield from largest(-x, 1, piece))

    def _spike(self, x: Tensor, choice: Choice, piece: Piece) -> Tensor:
        return taken(choice, piece).mul_(self.radius).add_(x, alpha=0)

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        return (yield Sum(x)) / self.radius


@dataclass(frozen=True)
class UnitSimplex(_Simplex):
    """Nonnegative tensors whose entries sum to at most the radius.

    Set: v ≥ 0, Σv ≤ τ. Vertex at x: τ eᵢ at the smallest xᵢ if that is negative, the origin if it
    is positive (if it is zero, one of those at random). Diameter: τ√2 (τ for a single entry).
    Projection: clip, or onto the face Σv = τ (Chen and Ye 2011).
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """τ√2, from one corner to another; τ for a single entry."""
        return self.radius * (math.sqrt(2) if self._entries(shape) > 1 else 1.0)

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        choice = yield from largest(-x, 1, piece)
        if choice.last is None and not decided(choice.threshold != 0):
            # The one smallest entry may be 0 and tie with the origin: its priority is wanted.
            ranks = torch.where(x == -choice.threshold, piece.priority(x), LOWEST)
            choice = choice._replace(last=(yield Max(ranks)))
        return choice

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        top, spike = measured.threshold, self._spike(x, measured, piece)
        if decided(top > 0):
            return spike
        wins = top > 0
        if not decided(top != 0):
            # The origin ties with the corners: it takes part in the draw as one entry more.
            wins = wins | ((top == 0) & (measured.last > piece.rank_of_none(x)))
        return torch.where(torch.as_tensor(wins), spike, spike * 0)

    def _excess(self, x: Tensor, piece: Piece) -> Program[Number]:
        total = (yield Sum(x)) / self.radius - 1
        return larger(total, (yield Max(-x)) / self.radius)

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.onto_unit_simplex(points, self.radius)


@dataclass(frozen=True)
class ProbabilitySimplex(_Simplex):
    """Nonnegative tensors whose entries sum to the radius: scaled probability vectors.

    Set: v ≥ 0, Σv = τ. Vertex at x: τ eᵢ at the smallest xᵢ. Diameter: τ√2 (0 for a single entry).
    Projection: sort and threshold (Wang and Carreira-Perpiñán 2013).
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """τ√2, from one corner to another; 0 for a single entry."""
        return self.radius * (math.sqrt(2) if self._entries(shape) > 1 else 0.0)

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        return self._spike(x, measured, piece)

    def _excess(self, x: Tensor, piece: Piece) -> Program[Number]:
        off = abs((yield Sum(x)) / self.radius - 1)
        return larger(off, (yield Max(-x)) / self.radius)

    def _pull(self, gauge: Number) -> Number:
        return gauge

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.onto_simplex(points, self.radius)
