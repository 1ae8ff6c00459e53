"""A region for each row, or each filter, of a tensor on its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from ._base import Region, positive
from ._free import Free
from ._ties import Draw


@dataclass(frozen=True)
class _Blocks(Region):
    """The slices of a tensor along its first dimension, each in a region of its own."""

    region: Region

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.region, Region):
            raise TypeError(f"`region` of {name} must be a region, got {self.region!r}")
        if isinstance(self.region, (_Blocks, Free)):
            raise ValueError(f"`region` of {name} cannot be {self.region!r}: name the inner set")

    @property
    def _drifts(self) -> bool:
        return self.region._drifts

    @property
    def _exact(self) -> Region:
        inner = self.region._exact
        return self if inner is self.region else type(self)(inner)

    def diameter(self, shape: Sequence[int]) -> float:
        """√blocks times the diameter of one block's region."""
        self._check_shape(shape)
        return math.sqrt(shape[0]) * self.region.diameter(shape[1:])

    @classmethod
    def from_diameter(
        cls, diameter: float, shape: Sequence[int], *, region: type[Region] | None = None, **kw: Any
    ) -> Self:
        """Blocks in regions of the given kind, whose product has the given diameter."""
        if not (isinstance(region, type) and issubclass(region, Region)):
            raise TypeError(
                f"`region` of {cls.__name__}.from_diameter must be a region class such as L2Ball, "
                f"got {region!r}"
            )
        wanted = positive(diameter, "diameter", cls)
        blocks = max(math.prod(shape[:1]), 1)
        made = cls(region.from_diameter(wanted / math.sqrt(blocks), shape[1:], **kw))
        made._check_shape(shape)
        return made

    def _oracle(self, x: Tensor, draw: Draw | None, lead: int = 0) -> Tensor:
        return self.region._oracle(x, draw, 1)

    def _violation(self, x: Tensor, lead: int = 0) -> Tensor:
        return self.region._violation(x, 1)

    def _recalled(self, x: Tensor, lead: int = 0) -> Tensor:
        return self.region._recalled(x, 1)

    def _nearest(self, x: Tensor, lead: int = 0) -> Tensor:
        return self.region._nearest(x, 1)

    def _projected(self, points: Tensor) -> Tensor:
        return self.region._projected(points)


@dataclass(frozen=True)
class PerRow(_Blocks):
    """Every row of a matrix in a region of its own.

    Set: the product of one region for each slice along the first dimension; a kernel
    (out, in, h, w) is the matrix (out, in·h·w). Vertex and projection: row by row. Diameter: √rows
    times that of a row.
    """

    def _check_shape(self, shape: Sequence[int]) -> None:
        super()._check_shape(shape)
        if len(shape) < 2:
            raise ValueError(f"{self} binds rows, and a tensor of shape {tuple(shape)} has none")
        self.region._check_shape(shape[1:])


@dataclass(frozen=True)
class PerFilter(_Blocks):
    """Every filter of a convolution kernel in a region of its own.

    Set: the product of one region for each of the `out` filters of a kernel (out, in, …). Vertex
    and projection: filter by filter. Diameter: √filters times that of a filter.
    """

    def _check_shape(self, shape: Sequence[int]) -> None:
        super()._check_shape(shape)
        if not 3 <= len(shape) <= 5:
            raise ValueError(
                f"{self} binds the filters of convolution kernels (3 to 5 dimensions), and a "
                f"tensor of shape {tuple(shape)} is none; for rows of a matrix use PerRow"
            )
        self.region._check_shape(shape[1:])
