"""Balls of matrices: bounded singular values, or a bounded sum of them."""

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
class _MatrixBall(WholeRegion):
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))

    def _check_shape(self, shape: Sequence[int]) -> None:
        super()._check_shape(shape)
        if len(shape) < 2:
            raise ValueError(
                f"{self} binds matrices, and a tensor of shape {tuple(shape)} is none: "
                "give vectors such as biases another region"
            )

    def _sides(self, shape: Sequence[int]) -> tuple[int, int]:
        """Rows and columns: a kernel (out, in, h, w) is the matrix (out, in·h·w)."""
        self._check_shape(shape)
        return shape[0], math.prod(shape[1:])

    def _points(self, x: Tensor, lead: int) -> Tensor:
        return x.reshape(x.shape[0] if lead else 1, x.shape[lead], -1)

    def _directions(self, matrices: Tensor, piece: Piece) -> Tensor:
        """The matrices scaled to largest entry 1, random signs in place of a zero matrix."""
        tops = matrices.abs().amax((-2, -1), keepdim=True)
        settled = tops != 0
        if decided(settled):
            return matrices / tops
        scaled = matrices / torch.where(settled, tops, 1)
        return torch.where(settled, scaled, piece.signs(matrices))

    def _recalls(self, points: Tensor) -> Tensor:
        # A decomposition of what is not finite is an error; the point itself is to show it.
        excess = self._excesses(points.nan_to_num(0.0, 0.0, 0.0)).clamp(min=0)
        return points / (1 + excess)[:, None, None]


@dataclass(frozen=True)
class SpectralBall(_MatrixBall):
    """Matrices whose singular values are at most the radius.

    Set: σ₁(V) ≤ τ. Vertex at X = UΣVᵀ: −τ UVᵀ over the nonzero singular values. Diameter:
    2τ √min(rows, columns). Projection: the singular values clipped. A kernel (out, in, h, w) counts
    as the matrix (out, in·h·w).
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ √min(rows, columns): from an orthogonal matrix to its negative."""
        return 2 * self.radius * math.sqrt(min(self._sides(shape)))

    def _vertices(self, points: Tensor, piece: Piece) -> Tensor:
        directions = self._directions(points, piece)
        left, values, right = torch.linalg.svd(directions, full_matrices=False)
        # Where X has no rank every choice is as good, and an SVD's is noise: take none there.
        least = values[:, :1] * (max(points.shape[-2:]) * torch.finfo(values.dtype).eps)
        return (left * (values > least)[:, None, :]) @ right * -self.radius

    def _excesses(self, points: Tensor) -> Tensor:
        return torch.linalg.matrix_norm(points, 2) / self.radius - 1

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.clip_singular_values(points, self.radius)


@dataclass(frozen=True)
class NuclearBall(_MatrixBall):
    """Matrices whose singular values sum to at most the radius: averages of rank-one matrices.

    Set: Σσᵢ(V) ≤ τ. Vertex at X: −τ u₁v₁ᵀ with the leading singular vectors of X. Diameter: 2τ.
    Projection: the singular values projected onto the simplex. A kernel (out, in, h, w) counts as
    the matrix (out, in·h·w).
    """

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ: from a rank-one matrix to its negative."""
        self._sides(shape)
        return 2 * self.radius

    def _vertices(self, points: Tensor, piece: Piece) -> Tensor:
        directions = self._directions(points, piece)
        left, values, right = torch.linalg.svd(directions, full_matrices=False)
        vertices = left[:, :, :1] @ right[:, :1, :] * -self.radius
        return torch.where(values[:, :1, None] > 0, vertices, 0)

    def _excesses(self, points: Tensor) -> Tensor:
        # In float32 the rounding of many small singular values would add up to an excess.
        wide = points if points.device.type == "mps" else points.double()
        return (torch.linalg.matrix_norm(wide, "nuc") / self.radius - 1).to(points.dtype)

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.project_singular_values_l1(points, self.radius)
