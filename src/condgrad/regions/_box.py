"""Bounds on every entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import torch
from torch import Tensor

from ._base import VectorRegion, positive
from ._measure import Max, Number, Piece, Program, decided


@dataclass(frozen=True)
class Box(VectorRegion):
    """Tensors whose every entry lies between two bounds.

    Set: l ≤ v ≤ u. Vertex at x: l where x > 0, u where x < 0, either at random where x is zero.
    Diameter: (u − l)√n. Projection: clipping.
    """

    low: float
    high: float

    @property
    def _drifts(self) -> bool:
        return False

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(f"`{name}` of Box must be a number, got {value!r}")
            if not math.isfinite(value):
                raise ValueError(f"`{name}` of Box must be finite, got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.low >= self.high:
            raise ValueError(f"`low` of Box must be below `high`, got {self.low} and {self.high}")

    def diameter(self, shape: Sequence[int]) -> float:
        """(u − l)√n: from a corner to its opposite."""
        return (self.high - self.low) * math.sqrt(self._entries(shape))

    @classmethod
    def from_diameter(
        cls, diameter: float, shape: Sequence[int], *, center: float = 0.0, **kw: Any
    ) -> Self:
        """The box around `center` that has the given diameter in a tensor of this shape."""
        half = positive(diameter, "diameter", cls) / cls(-0.5, 0.5, **kw).diameter(shape) / 2
        return cls(center - half, center + half, **kw)

    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        down = x
        if not decided(x != 0):
            down = torch.where(x == 0, piece.signs(x), x)
        low, high = (torch.full((), bound, dtype=x.dtype, device=x.device) for bound in self._ends)
        return torch.where(down < 0, high, low) + x * 0

    @property
    def _ends(self) -> tuple[float, float]:
        return self.low, self.high

    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        return 1 + (yield from self._excess(x, piece))

    def _excess(self, x: Tensor, piece: Piece) -> Program[Number]:
        size = max(self.high - self.low, abs(self.low), abs(self.high))
        return (yield Max(torch.maximum(x - self.high, self.low - x))) / size

    def _projected(self, points: Tensor) -> Tensor:
        return points.clamp(self.low, self.high)

    def _recalled(self, x: Tensor, lead: int = 0) -> Tensor:
        return x.clamp(self.low, self.high)
