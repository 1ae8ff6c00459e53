"""No constraint at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from ._base import Region, positive
from ._ties import Draw


@dataclass(frozen=True)
class Free(Region):
    """All of space: the parameter is not constrained.

    Set: every tensor. There is no vertex, the diameter is infinite, every point is its own
    projection. Under a Frank-Wolfe optimizer a free parameter takes the step of SGD with
    (averaged) momentum, of length lr times the norm of the direction.
    """

    @property
    def _drifts(self) -> bool:
        return False

    def diameter(self, shape: Sequence[int]) -> float:
        """Infinite, whatever the shape."""
        self._check_shape(shape)
        return math.inf

    @classmethod
    def from_diameter(cls, diameter: float, shape: Sequence[int], **kw: Any) -> Self:
        """All of space: the diameter asked for cannot matter."""
        positive(diameter, "diameter", cls)
        return cls(**kw)

    def _oracle(self, x: Tensor, draw: Draw | None, lead: int = 0) -> Tensor:
        raise ValueError("Free() has no vertices: an unbounded direction has no minimiser")

    def _projected(self, points: Tensor) -> Tensor:
        return points

    def _violation(self, x: Tensor, lead: int = 0) -> Tensor:
        return torch.zeros((), device=x.device)

    def _recalled(self, x: Tensor, lead: int = 0) -> Tensor:
        return x
