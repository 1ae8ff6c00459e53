"""Regions spanned by sparse vectors: the K-sparse polytope and the K-norm ball."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from . import _projections
from ._base import VectorRegion, largest_size, positive
from ._lp import signed, signs
from ._measure import (
    Choice,
    Kth,
    Largest,
    Max,
    Norm,
    Number,
    Piece,
    Program,
    Stature,
    Sum,
    decided,
    finite,
    larger,
    largest,
    mask,
    pick,
    taken,
)

Count = int | float | tuple[int, float]


def _counted(k: Any, owner: object) -> Count:
    """The count, if it is one: an int, a fraction in (0, 1], or a pair of both."""
    name = type(owner).__name__
    if isinstance(k, (tuple, list)):
        pair = [_counted(each, owner) for each in k]
        if [type(each) for each in pair] != [int, float]:
            raise TypeError(f"`k` of {name} as a pair must be (count, fraction), got {k!r}")
        return tuple(pair)  # pyright: ignore[reportReturnType]
    if isinstance(k, bool) or not isinstance(k, Real):
        raise TypeError(f"`k` of {name} must be a count, a fraction or a pair of both, got {k!r}")
    k = int(k) if isinstance(k, Integral) else float(k)  # as a checkpoint's text tells it
    if isinstance(k, int) and k < 1:
        raise ValueError(f"`k` of {name} must be at least 1, got {k!r}")
    if isinstance(k, float) and not 0 < k <= 1:
        raise ValueError(f"`k` of {name} as a fraction must lie in (0, 1], got {k!r}")
    return k


@dataclass(frozen=True)
class _Counting(VectorRegion):
    k: Count
    radius: float
    _whole: bool = field(init=False, repr=False)  # 1 and 1.0 are equal, one entry and all are not

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _counted(self.k, self))
        object.__setattr__(self, "_whole", isinstance(self.k, int))
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))

    def count(self, n: int) -> int:
        """K for a point of n entries.

        A count stands as it is and may not exceed n. A fraction f means f·n, rounded, and at least
        1. A pair (count, fraction) means the larger of both, and at most n.
        """
        if isinstance(self.k, tuple):
            return min(n, max(self.k[0], round(self.k[1] * n)))
        if isinstance(self.k, float):
            return max(1, round(self.k * n))
        if self.k > n:
            raise ValueError(
                f"`k` = {self.k} of {type(self).__name__} exceeds the {n} entries of a point; "
                f"a fraction, or a pair such as ({self.k}, 1e-9), adapts itself to small tensors"
            )
        return self.k

    def _check_shape(self, shape: Sequence[int]) -> None:
        super()._check_shape(shape)
        self.count(math.prod(shape))

    def _k(self, piece: Piece) -> int:
        return piece.counts(self.count)


@dataclass(frozen=True)
class KSparsePolytope(_Counting):
    """Averages of vectors with exactly K entries ±τ: bounded entries, and few large ones.

    Set: conv{v : K entries are ±τ, the rest 0} = {‖v‖₁ ≤ τK and ‖v‖_∞ ≤ τ}. `k` is a count, a
    fraction of the entries, or a pair (count, fraction) for the larger of both. Vertex at x:
    −τ sgn(xᵢ) at the K largest |xᵢ|. Diameter: 2τ√K. Projection: clipped soft thresholding, its
    threshold the root of a piecewise linear function.
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ√K: from a vertex to its opposite."""
        return 2 * self.radius * math.sqrt(self.count(self._entries(shape)))

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        sizes = x.abs()
        if piece.joint:
            return (yield [Max(sizes), Largest(sizes, self._k(piece), piece)])
        top = yield Max(sizes)  # a selection is blind to what is not a number: the maximum is not
        return top, (yield from largest(sizes, self._k(piece), piece))

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        top, choice = measured
        vertex = signed(taken(choice, piece), x, choice, piece).mul_(-self.radius)
        return vertex if decided(finite(top)) else vertex + top * 0

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        if piece.joint:
            total, top = yield [Norm(x, 1), Max(x.abs())]
        else:
            total = yield Norm(x, 1)
            top = yield from largest_size(x)
        total = total / (self.radius * self._k(piece))
        return larger(total, top / self.radius)

    def _projected(self, points: Tensor) -> Tensor:
        k = self.count(points.shape[-1])
        return _projections.onto_k_sparse(points, k, self.radius)


@dataclass(frozen=True)
class KNormBall(_Counting):
    """Tensors whose K largest absolute values sum to at most the radius.

    Set: {sum of the K largest |vᵢ| ≤ τ} = conv(B₁(τ) ∪ B_∞(τ/K)). `k` is a count, a fraction of the
    entries, or a pair (count, fraction) for the larger of both. Vertex at x: the better of
    −τ sgn(xᵢ) eᵢ at the largest |xᵢ| and −(τ/K) sgn(x). Diameter: max(2τ, 2τ√n/K). Projection:
    exact (Watson 1992 for the norm).
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """max(2τ, 2τ√n/K): along an axis, or along a diagonal of the cube."""
        n = self._entries(shape)
        return 2 * self.radius * max(1.0, math.sqrt(n) / self.count(n))

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        if piece.joint:
            sizes = x.abs()
            asked = [Norm(x, 1), Stature(sizes, 1.0), Largest(sizes, 1, piece)]
            total, (unit, shares), choice = yield asked
            if decided(finite(total)):
                return total, choice.threshold, choice
            return shares, choice.threshold / pick(unit > 0, unit, 1.0), choice
        total = yield Norm(x, 1)
        choice = yield from largest(x.abs(), 1, piece)
        top = choice.threshold
        if not decided(finite(total)):  # more than x's format holds, or out of sight
            top, total = yield Stature(x.abs(), 1.0)
            top = top / pick(top > 0, top, 1.0)
        return total, top, choice

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        total, top, choice = measured
        k = self._k(piece)
        prefers_cube = self._prefers_cube(x, total, k * top, piece)
        if not isinstance(prefers_cube, Tensor):
            return self._cube(x, k, piece) if prefers_cube else self._spike(x, choice, piece)
        vertex = torch.where(prefers_cube, self._cube(x, k, piece), self._spike(x, choice, piece))
        return vertex + total * 0

    def _prefers_cube(self, x: Tensor, cube: Number, spike: Number, piece: Piece) -> bool | Tensor:
        """Whether a corner of the cube is better than a spike; a coin decides between equals."""
        k = self._k(piece)
        if k == 1:  # a spike lies inside a face of the cube: it is no vertex
            return cube >= spike
        if k == piece.size or decided(cube != spike):  # the corners lie inside faces of the L1 ball
            return cube > spike
        coin = (piece.rank_of_none(x) & 2) != 0
        return (torch.as_tensor(cube == spike) & coin) | (cube > spike)

    def _cube(self, x: Tensor, k: int, piece: Piece) -> Tensor:
        return signs(x, piece).mul_(-self.radius / k)

    def _spike(self, x: Tensor, choice: Choice, piece: Piece) -> Tensor:
        return signed(taken(choice, piece), x, choice, piece).mul_(-self.radius)

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        sizes = x.abs()
        k = self._k(piece)
        threshold = yield Kth(sizes, k)
        above = mask(torch.ge, sizes, threshold)
        if piece.joint:
            total, count = yield [Sum(above * sizes), Sum(above)]
        else:
            total = yield Sum(above * sizes)
            count = yield Sum(above)
        return (total + (k - count) * threshold) / self.radius

    def _projected(self, points: Tensor) -> Tensor:
        k = self.count(points.shape[-1])
        return _projections.onto_k_norm(points, k, self.radius)
