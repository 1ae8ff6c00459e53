"""The permutahedron: averages of all orderings of the numbers 1 to n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import _projections
from ._base import WholeRegion, positive
from ._measure import Piece, decided


@dataclass(frozen=True)
class Permutahedron(WholeRegion):
    """Averages of all permutations of (1, …, n), times a scale.

    Set: conv{τ π(1, …, n)}. Vertex at x: the largest value n goes to the smallest entry of x and so
    on, by sorting (rearrangement inequality). Diameter: τ √(n(n² − 1)/3). Projection: isotonic
    regression of the sorted differences (pool adjacent violators; Lim and Wright 2016).
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))

    def diameter(self, shape: Sequence[int]) -> float:
        """τ √(n(n² − 1)/3): from an ordering to its reverse."""
        n = self._entries(shape)
        return self.radius * math.sqrt(n * (n * n - 1) / 3)

    def _vertices(self, points: Tensor, piece: Piece) -> Tensor:
        n = points.shape[-1]
        order = points.sort(dim=-1, stable=True)
        indices = order.indices
        if piece.random and not decided(order.values.diff(dim=-1) > 0):
            # Shuffle, then sort stably: equal entries stay shuffled among themselves.
            shuffled = piece.noise(points).argsort(-1)
            again = points.gather(-1, shuffled).argsort(dim=-1, stable=True)
            indices = shuffled.gather(-1, again)
        places = torch.arange(n, 0, -1, dtype=points.dtype, device=points.device) * self.radius
        return torch.empty_like(points).scatter_(-1, indices, places.expand_as(points))

    def _totals(self, points: Tensor) -> tuple[Tensor, Tensor, float]:
        """The points about their mean, how much each outgrows the centred set, and the centre."""
        n = points.shape[-1]
        centred = points - points.mean(-1, keepdim=True)
        heads = centred.sort(-1, descending=True).values.cumsum(-1)[..., :-1]
        count = torch.arange(1, n, dtype=points.dtype, device=points.device)
        bounds = self.radius * count * (n - count) / 2
        outgrowth = (heads / bounds).amax(-1) if n > 1 else points.new_zeros(len(points))
        return centred, outgrowth, self.radius * (n + 1) / 2

    def _excesses(self, points: Tensor) -> Tensor:
        _, outgrowth, centre = self._totals(points)
        return torch.maximum(outgrowth - 1, (points.mean(-1) / centre - 1).abs())

    def _recalls(self, points: Tensor, eps: float) -> Tensor:
        centred, outgrowth, centre = self._totals(points)
        return centred / outgrowth.clamp(min=1).unsqueeze(-1) + centre

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.onto_permutahedron(points, self.radius)
