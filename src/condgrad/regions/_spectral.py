"""Balls of matrices: bounded singular values, or a bounded sum of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from . import _projections
from ._base import SLACK, WholeRegion, positive
from ._leading import krylov, leading
from ._measure import Piece, decided
from ._polar import polar

DOUBT = 1 / 16
"""By what share the Lanczos estimate of σ₁ may be too small before a pull inside is missed."""


@dataclass(frozen=True, repr=False)
class _MatrixBall(WholeRegion):
    radius: float
    method: str = "svd"

    _methods: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius", type(self)))
        if self.method not in self._methods:
            names = " or ".join(f'"{name}"' for name in self._methods)
            raise ValueError(
                f"`method` of {type(self).__name__} must be {names}, got {self.method!r}"
            )

    def __repr__(self) -> str:
        """The default is not named: checkpoints from before there were methods hold this text."""
        method = "" if self.method == "svd" else f", method={self.method!r}"
        return f"{type(self).__name__}(radius={self.radius!r}{method})"

    @property
    def _exact(self) -> _MatrixBall:
        return self if self.method == "svd" else dataclasses.replace(self, method="svd")

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

    # ---- without a decomposition

    def _answer(self, points: Tensor, piece: Piece) -> Tensor:
        if self.method == "svd":
            return super()._answer(points, piece)
        x, tops = _scaled(points, self._format(points))
        if not decided(tops != 0):
            _fill(x, tops == 0, piece)
        return self._approached(x)

    def _format(self, points: Tensor) -> torch.dtype:
        """The format of numbers to compute in."""
        return points.dtype

    def _approached(self, x: Tensor) -> Tensor:
        """Nearly the vertices, and never outside, for directions of largest entry 1."""
        raise NotImplementedError

    def _bounds(self, points: Tensor) -> Tensor:
        """About by how much each point outgrows the region, and rather more than less."""
        raise NotImplementedError

    def _drifts_by(self, points: Tensor) -> Tensor:
        """What an error of one unit in every entry adds to each point at most, in radii.

        Entries that should shrink by less than half a unit stay, and those errors add up indeed.
        """
        raise NotImplementedError

    def _recalls(self, points: Tensor, eps: float) -> Tensor:
        return points / self._factors(points, eps)

    def _factors(self, points: Tensor, eps: float) -> Tensor:
        """What each point is divided by to bring it back inside, (B, 1, 1)."""
        if self.method == "svd":
            factors = 1 + self._excesses(points).clamp(min=0)
        else:
            # No more than rounding may have added since the point was last known to be inside.
            most = 1 + SLACK * eps * self._drifts_by(points)
            factors = self._bounds(points).clamp(min=1).clamp(max=most)
        return factors.view(-1, 1, 1)


@dataclass(frozen=True, repr=False)
class SpectralBall(_MatrixBall):
    """Matrices whose singular values are at most the radius.

    Set: σ₁(V) ≤ τ. Vertex at X = UΣVᵀ: −τ UVᵀ over the nonzero singular values. Vertex by
    `method="polynomial"`: −τ U f(Σ/c) Vᵀ with f just below 1 but for least singular values, from
    products of matrices alone; at a zero matrix a random reflection. Diameter: 2τ √min(rows,
    columns). Projection: the singular values clipped. A kernel (out, in, h, w) counts as the matrix
    (out, in·h·w).
    """

    method: Literal["svd", "polynomial"] = "svd"

    _methods = ("svd", "polynomial")

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ √min(rows, columns): from an orthogonal matrix to its negative."""
        return 2 * self.radius * math.sqrt(min(self._sides(shape)))

    def _vertices(self, points: Tensor, piece: Piece) -> Tensor:
        directions = self._directions(points, piece)
        left, values, right = torch.linalg.svd(directions, full_matrices=False)
        # Where X has no rank every choice is as good, and an SVD's is noise: take none there.
        least = values[:, :1] * (max(points.shape[-2:]) * torch.finfo(values.dtype).eps)
        return (left * (values > least)[:, None, :]) @ right * -self.radius

    def _format(self, points: Tensor) -> torch.dtype:
        # There bfloat16 is several times as fast, and the polynomials are made for it.
        fast = points.is_cuda and points.dtype is not torch.float64
        return torch.bfloat16 if fast else points.dtype

    def _approached(self, x: Tensor) -> Tensor:
        return polar(x, -self.radius)

    def _bounds(self, points: Tensor) -> Tensor:
        x, tops = _scaled(points, points.dtype)
        return (leading(x).size * tops).flatten() * ((1 + DOUBT) / self.radius)

    def _drifts_by(self, points: Tensor) -> Tensor:
        return torch.linalg.vector_norm(points, dim=(1, 2)) / self.radius

    def _excesses(self, points: Tensor) -> Tensor:
        return torch.linalg.matrix_norm(points, 2) / self.radius - 1

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.clip_singular_values(points, self.radius)


@dataclass(frozen=True, repr=False)
class NuclearBall(_MatrixBall):
    """Matrices whose singular values sum to at most the radius: averages of rank-one matrices.

    Set: Σσᵢ(V) ≤ τ. Vertex at X: −τ u₁v₁ᵀ with the leading singular vectors of X. Vertex by
    `method="lanczos"`: −τ uwᵀ with unit vectors that come close to them. Diameter: 2τ. Projection:
    the singular values projected onto the simplex. A kernel (out, in, h, w) counts as the matrix
    (out, in·h·w).
    """

    method: Literal["svd", "lanczos"] = "svd"

    _methods = ("svd", "lanczos")

    def diameter(self, shape: Sequence[int]) -> float:
        """2τ: from a rank-one matrix to its negative."""
        self._sides(shape)
        return 2 * self.radius

    def _vertices(self, points: Tensor, piece: Piece) -> Tensor:
        directions = self._directions(points, piece)
        left, values, right = torch.linalg.svd(directions, full_matrices=False)
        vertices = left[:, :, :1] @ right[:, :1, :] * -self.radius
        return torch.where(values[:, :1, None] > 0, vertices, 0)

    def _approached(self, x: Tensor) -> Tensor:
        found = leading(x)
        return (found.left * -self.radius) @ found.right.mT

    def _bounds(self, points: Tensor) -> Tensor:
        """From the part of each point in a Krylov space, and the Euclidean norm of the rest."""
        x, tops = _scaled(points, points.dtype)
        x = x if x.shape[1] <= x.shape[2] else x.mT
        _, part = krylov(x)
        factor = polar(part)
        missing = part - factor @ (factor.mT @ part)  # σ(1 − f²), at least σ(1 − f)
        beside = x.square().sum((1, 2)) - part.square().sum((1, 2))
        most = (factor * part).sum((1, 2))
        most = most + math.sqrt(part.shape[2]) * torch.linalg.vector_norm(missing, dim=(1, 2))
        most = most + (beside.clamp(min=0) * x.shape[1]).sqrt()
        return most * tops.flatten() / self.radius

    def _drifts_by(self, points: Tensor) -> Tensor:
        rows = min(points.shape[1:])
        return torch.linalg.vector_norm(points, dim=(1, 2)) * (math.sqrt(rows) / self.radius)

    def _excesses(self, points: Tensor) -> Tensor:
        # In float32 the rounding of many small singular values would add up to an excess.
        wide = points if points.device.type == "mps" else points.double()
        return (torch.linalg.matrix_norm(wide, "nuc") / self.radius - 1).to(points.dtype)

    def _projected(self, points: Tensor) -> Tensor:
        return _projections.project_singular_values_l1(points, self.radius)


def _scaled(points: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The matrices divided by their largest entries, and those; zero matrices as they are."""
    tops = torch.linalg.vector_norm(points, torch.inf, dim=(1, 2), keepdim=True)
    x = points.new_empty(points.shape, dtype=dtype)
    return torch.div(points, torch.where(tops == 0, 1, tops), out=x), tops


def _fill(x: Tensor, empty: Tensor, piece: Piece) -> None:
    """Put a random reflection where a matrix is zero, with all singular values 1.

    Rows or columns of D(I − 2wwᵀ/n) with random signs w and on the diagonal of D: some signs for
    each row and column, where one for each entry would cost more than all the rest.
    """
    rows, columns = x.shape[1:]
    side = max(rows, columns)
    signs = piece.signs(x.new_empty(len(x), rows + side)) * empty.view(-1, 1)
    flips, mirror = signs[:, :rows], signs[:, rows:]
    outer = (flips * mirror[:, :rows]).unsqueeze(2)
    x.addcmul_(outer, mirror[:, None, :columns], value=-2 / side)
    x.diagonal(dim1=1, dim2=2).add_(flips[:, : min(rows, columns)])
