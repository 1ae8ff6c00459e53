"""The norm balls: L1, L2, Lp and L-infinity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import _projections
from ._base import VectorRegion, largest_size, positive
from ._measure import (
    Choice,
    Max,
    Norm,
    Number,
    Piece,
    Program,
    Stature,
    Sum,
    decided,
    finite,
    largest,
    pick,
    safe_range,
    taken,
)


def signs(x: Tensor, piece: Piece) -> Tensor:
    """The sign of each entry, a random one where it is zero; NaN where x is not finite."""
    sign = x.sign()
    return piece.marked(piece.filled(sign) if piece.random else sign, x)


def signed(chosen: Tensor, x: Tensor, choice: Choice, piece: Piece) -> Tensor:
    """The sign of each chosen entry, zero elsewhere, not a number if x is nowhere near one."""
    if decided(finite(choice.threshold)) and decided(choice.threshold > 0):
        return x.sign().mul_(chosen)
    return signs(x, piece).mul_(chosen).add_(pick(finite(choice.threshold), 0.0, torch.nan))


@dataclass(frozen=True)
class _Ball(VectorRegion):
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))


@dataclass(frozen=True)
class L1Ball(_Ball):
    """Tensors whose absolute values sum to at most the radius.

    Set: ‖v‖₁ ≤ τ. Vertex at x: −τ sgn(xᵢ) eᵢ at one i of largest absolute value. Diameter: 2τ.
    Projection: soft thresholding (Duchi, Shalev-Shwartz, Singer, Chandra 2008).
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ: from a vertex to its opposite."""
        self._entries(shape)
        return 2 * self.radius

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        return (yield from largest(x.abs(), 1, piece))

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        chosen = taken(measured, piece)
        return signed(chosen, x, measured, piece).mul_(-self.radius)

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        return (yield Norm(x, 1)) / self.radius

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.onto_l1_ball(points, self.radius)


@dataclass(frozen=True)
class LpBall(VectorRegion):
    """Tensors of Lp norm at most the radius, for any 1 < p < ∞.

    Set: ‖v‖ₚ ≤ τ. Vertex at x: −τ sgn(x) |x|^(q/p) / ‖x‖_q^(q/p) with 1/p + 1/q = 1; at zero a
    point τ s n^(−1/p) with random signs s. Diameter: 2τ max(1, n^(1/2 − 1/p)). Projection: one
    root of a monotone function, by bracketed iteration.
    """

    p: float
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", positive(self.p, "p", type(self)))
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))
        if self.p <= 1:
            raise ValueError(f"`p` of LpBall must be above 1, got {self.p!r}: p = 1 is L1Ball")

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ max(1, n^(1/2 − 1/p)): along an axis for p < 2, a diagonal for p > 2."""
        n = self._entries(shape)
        return 2 * self.radius * max(1.0, n ** (0.5 - 1 / self.p))

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        # With s = |x|/max|x| the vertex is −τ sgn(x) s^(q−1) / (Σ s^q)^(1/p): one power for both.
        sizes = x.abs()
        if piece.joint:
            q = self.p / (self.p - 1)
            top, norm = yield Stature(sizes, q)
            return top, norm**q, (sizes / pick(top > 0, top, 1.0)).pow(q - 1)
        top = yield Max(sizes)
        shares = sizes / pick(top > 0, top, 1.0)
        powers = shares.pow(1 / (self.p - 1))
        return top, (yield Sum(shares * powers)), powers

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        top, total, powers = measured
        settled = top != 0
        norm = pick(settled, total, 1.0) ** (1 / self.p)
        vertex = (x.sign() * powers).mul_(-self.radius / norm)
        if not decided(settled):
            corner = piece.signs(x) * (self.radius * piece.size ** (-1 / self.p))
            vertex = pick(settled, vertex, corner)
        return vertex if decided(finite(top)) else vertex + top * 0

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        if piece.joint:
            return (yield Norm(x, self.p)) / self.radius
        top = yield from largest_size(x)
        shares = x / pick(top > 0, top, 1.0)
        return top * (yield Norm(shares, self.p)) / self.radius

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.onto_lp_ball(points, self.p, self.radius)


@dataclass(frozen=True)
class L2Ball(_Ball):
    """Tensors of Euclidean norm at most the radius.

    Set: ‖v‖₂ ≤ τ. Vertex at x: −τ x/‖x‖₂; at zero a point τ s/√n with random signs s. Diameter: 2τ.
    Projection: scaling.
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ: from any boundary point to its opposite."""
        self._entries(shape)
        return 2 * self.radius

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        if not isinstance(x, Tensor):  # a bundle, which answers with norms that are in range
            return None, (yield Norm(x))
        low, high = safe_range(x.dtype)
        if x.is_cpu:
            norm = yield Norm(x)
            if decided(norm > low) and decided(norm < high):
                return None, norm
        # A norm that cannot be looked at, or that x's format cannot hold.
        return (yield Stature(x.abs(), 2.0))

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        top, norm = measured
        if top is None:
            return x * (-self.radius / norm)
        settled = top != 0
        shares = x / pick(settled, top, 1.0)
        vertex = shares * (-self.radius / pick(settled, norm, 1.0))
        corner = piece.signs(x) * (self.radius * piece.size**-0.5)
        return pick(settled, vertex, corner)

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        return (yield Norm(x)) / self.radius

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.onto_l2_ball(points, self.radius)


@dataclass(frozen=True)
class LinfBall(_Ball):
    """Tensors whose every entry is at most the radius in absolute value: a hypercube.

    Set: ‖v‖_∞ ≤ τ. Vertex at x: −τ sgn(x), with a random sign where x is zero. Diameter: 2τ√n.
    Projection: clipping.
    """

    @property
    def _drifts(self) -> bool:
        return False

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ√n: from a corner to its opposite."""
        return 2 * self.radius * math.sqrt(self._entries(shape))

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        return signs(x, piece).mul_(-self.radius)

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        return (yield Max(x.abs())) / self.radius

    def _projected(self, points: Tensor) -> Tensor:
        return points.clamp(-self.radius, self.radius)
