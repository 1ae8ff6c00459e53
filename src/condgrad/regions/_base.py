"""What every region is: the public questions, asked of any tensor, answered by two small halves."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import torch
from torch import Tensor

from ._measure import Dense, Max, Number, Piece, Program, decided, larger
from ._shards import is_sharded
from ._ties import FIRST, Draw

SLACK = 32.0
"""How many machine epsilons outside still count as inside: what rounding alone may do."""


def positive(value: float, name: str, owner: type | None = None) -> float:
    """The value as a float, if it is a positive finite number."""
    named = f"`{name}`" if owner is None else f"`{name}` of {owner.__name__}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{named} must be a number, got {value!r}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{named} must be positive and finite, got {value!r}")
    return float(value)


def working(x: Tensor) -> Tensor:
    """The tensor in the precision that reductions need: at least float32."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def check_dense(gradient: Tensor, owner: object) -> None:
    """Raise unless the gradient is a dense tensor, which all that `owner` does with it needs."""
    if gradient.layout is not torch.strided:
        raise TypeError(
            f"a gradient of layout {gradient.layout} was found: {type(owner).__name__} needs "
            "dense gradients (for an embedding: sparse=False)"
        )


_REAL = re.compile(r"(-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+)")


def is_printed(region: Region, text: Any) -> bool:
    """Whether a text is the region's printed form, up to rounding of its real numbers.

    A size that was measured on a start is not the same to the last bit on another number of ranks.
    """
    if not isinstance(text, str):
        return False
    mine, other = _REAL.split(repr(region)), _REAL.split(text)
    if len(mine) != len(other) or mine[::2] != other[::2]:
        return False
    pairs = zip(mine[1::2], other[1::2], strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-5) for a, b in pairs)


@dataclass(frozen=True)
class Region(abc.ABC):
    """A convex set for the entries of a tensor, free of any tensor's shape.

    `lmo` finds the vertex, `project` the nearest point, `diameter` the set's size for a shape,
    `violation` and `contains` whether a tensor lies inside.
    """

    # ---- the public questions

    def lmo(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """A vertex v that minimises <x, v> over the region, in x's shape, dtype and layout.

        Where several vertices do, one is drawn at random from `generator` (torch's default one
        for None). A direction that is not finite gives a vertex that is not finite.
        """
        if is_sharded(x):
            from ._answers import vertex_of

            return vertex_of(self, x, Draw.of(generator))
        point = self._checked(x)
        vertex = self._oracle(working(point), Draw.of(generator))
        return vertex.to(x.dtype).view(x.shape) if x.ndim == 0 else vertex.to(x.dtype)

    def project(self, x: Tensor) -> Tensor:
        """The point of the region that is nearest to x, in x's shape, dtype and layout."""
        if is_sharded(x):
            from ._answers import projection_of

            return projection_of(self, x)
        point = self._checked(x)
        nearest = self._nearest(working(point)).to(x.dtype)
        return nearest.view(x.shape) if x.ndim == 0 else nearest

    @abc.abstractmethod
    def diameter(self, shape: Sequence[int]) -> float:
        """The largest Euclidean distance of two points of the region in a tensor of this shape."""

    def violation(self, x: Tensor) -> float:
        """How far outside x lies, relative to the size of the region; 0 inside."""
        if is_sharded(x):
            from ._answers import violations

            return float(violations([(x, self)])[0])
        return float(self._violation(self._checked(x))) + 0.0  # never -0.0

    def contains(self, x: Tensor, *, tol: float | None = None) -> bool:
        """Whether x lies in the region, up to `tol` (by default: rounding)."""
        excess = self.violation(x)
        return excess <= (SLACK * torch.finfo(x.dtype).eps if tol is None else tol)

    @classmethod
    def from_diameter(cls, diameter: float, shape: Sequence[int], **kw: Any) -> Self:
        """The region of this kind with the given Euclidean diameter in a tensor of this shape."""
        wanted = positive(diameter, "diameter", cls)
        unit = cls(radius=1.0, **kw)  # pyright: ignore[reportCallIssue]
        size = unit.diameter(shape)
        if size == 0:
            raise ValueError(
                f"`shape` {tuple(shape)} makes every {cls.__name__} a single point: "
                "no radius gives it a diameter; name a radius, or another region"
            )
        return cls(radius=wanted / size, **kw)  # pyright: ignore[reportCallIssue]

    # ---- what optimizers ask; of a checked tensor whose first `lead` dimensions count points

    @abc.abstractmethod
    def _oracle(self, x: Tensor, draw: Draw | None, lead: int = 0) -> Tensor:
        """The vertex, for x in a working dtype; `draw` None takes the first of several."""

    @property
    def _drifts(self) -> bool:
        """Whether rounding can carry an average of two points outside."""
        return True

    @functools.cached_property
    def _diameters(self) -> dict[Sequence[int], float]:
        return {}

    def _diameter(self, shape: Sequence[int]) -> float:
        """The diameter, remembered: a step asks for the same ones again and again."""
        known = self._diameters.get(shape)
        if known is None:
            known = self._diameters[shape] = self.diameter(shape)
        return known

    @property
    def _exact(self) -> Region:
        """The same set with an oracle that is exact: what is measured is not estimated."""
        return self

    @functools.cached_property
    def _kind(self) -> Hashable:
        """What regions that differ in their radius alone have in common."""
        if "radius" not in self.__dict__:
            return self
        return dataclasses.replace(self, radius=1.0)  # pyright: ignore[reportCallIssue]

    @abc.abstractmethod
    def _violation(self, x: Tensor, lead: int = 0) -> Tensor:
        """The largest relative excess over the points of x: a 0-dim tensor, at least 0."""

    @abc.abstractmethod
    def _recalled(self, x: Tensor, lead: int = 0) -> Tensor:
        """What x, inside up to rounding, becomes when it is pulled inside; x itself if it was."""

    def _nearest(self, x: Tensor, lead: int = 0) -> Tensor:
        """The nearest point, for x in a working dtype."""
        nearest = self._projected(self._points(x, lead))
        return torch.empty_like(x).copy_(nearest.reshape(x.shape))

    @abc.abstractmethod
    def _projected(self, points: Tensor) -> Tensor:
        """The nearest points, for a batch of points (B, *point)."""

    # ---- shapes

    def _checked(self, x: Tensor) -> Tensor:
        """The tensor, at least one-dimensional, if the region can hold it."""
        if not isinstance(x, Tensor):
            raise TypeError(f"`x` must be a torch.Tensor, got {type(x).__name__}")
        if not x.is_floating_point() or x.layout is not torch.strided:
            raise TypeError(f"`x` must be a dense floating-point tensor, got {x.dtype}, {x.layout}")
        self._check_shape(x.shape)
        return x.detach() if x.ndim else x.detach().reshape(1)

    def _check_shape(self, shape: Sequence[int]) -> None:
        """Raise if a tensor of this shape has no point, or no such point."""
        if math.prod(shape) == 0:
            raise ValueError(f"`x` of shape {tuple(shape)} is empty: {self} needs an entry")

    def _points(self, x: Tensor, lead: int) -> Tensor:
        """The tensor as a batch of vectors (B, n)."""
        return x.reshape(x.shape[0] if lead else 1, -1)

    def _entries(self, shape: Sequence[int]) -> int:
        """The number of entries of a point, once the shape is known to be right."""
        self._check_shape(shape)
        return math.prod(shape)


class VectorRegion(Region):
    """A region whose oracle splits: a few numbers of a whole point, then an answer by entry.

    `_measure` asks for the numbers (see `_measure.py`), `_vertex` answers entry by entry. The same
    two halves serve one tensor, a batch of them, and a tensor in pieces.
    """

    def _measure(self, x: Tensor, piece: Piece) -> Program[Any]:
        """The numbers of the direction x that the vertex depends on."""
        return None
        yield

    @abc.abstractmethod
    def _vertex(self, x: Tensor, measured: Any, piece: Piece) -> Tensor:
        """The entries of the vertex, given x's numbers."""

    @abc.abstractmethod
    def _gauge(self, x: Tensor, piece: Piece) -> Program[Number]:
        """The factor by which each point outgrows the region: at most 1 inside."""

    def _excess(self, x: Tensor, piece: Piece) -> Program[Number]:
        """The relative excess of each point: at most 0 inside."""
        return (yield from self._gauge(x, piece)) - 1

    def _oracle(self, x: Tensor, draw: Draw | None, lead: int = 0) -> Tensor:
        return self._answer(x, Dense(x, lead, draw))

    def _answer(self, x: Tensor, piece: Piece) -> Tensor:
        """The entries of the vertices of the points that the piece says are in x."""
        return self._vertex(x, piece.run(self._measure(x, piece)), piece)

    def _violation(self, x: Tensor, lead: int = 0) -> Tensor:
        x = working(x)
        piece = Dense(x, lead, FIRST)
        excess = torch.as_tensor(piece.run(self._excess(x, piece)), dtype=x.dtype)
        return excess.amax().clamp(min=0)

    def _recalled(self, x: Tensor, lead: int = 0) -> Tensor:
        wide = working(x)
        piece = Dense(wide, lead, FIRST)
        factor = self._pull(piece.run(self._gauge(wide, piece)))
        return x if decided(factor == 1) else (wide / factor).to(x.dtype)

    def _pull(self, gauge: Number) -> Number:
        """What a point is divided by to bring it back inside."""
        return larger(gauge, 1.0)


class WholeRegion(Region):
    """A region whose oracle needs each point whole: a sort, a singular value decomposition.

    Everything is written for a batch of points (B, *point).
    """

    @abc.abstractmethod
    def _vertices(self, points: Tensor, piece: Piece) -> Tensor:
        """The vertices for finite directions."""

    @abc.abstractmethod
    def _excesses(self, points: Tensor) -> Tensor:
        """The relative excess of each point, one number a point."""

    @abc.abstractmethod
    def _recalls(self, points: Tensor, eps: float) -> Tensor:
        """The points, pulled back inside; they are kept in a format with this machine epsilon."""

    def _oracle(self, x: Tensor, draw: Draw | None, lead: int = 0) -> Tensor:
        points = self._points(x, lead)
        vertices = self._answer(points, Dense(points, 1, draw))
        return torch.empty_like(x).copy_(vertices.reshape(x.shape))

    def _answer(self, points: Tensor, piece: Piece) -> Tensor:
        """The vertices of a batch of directions; not a number for one that is not finite."""
        finite = _finite(points)
        vertices = self._vertices(torch.where(finite, points, 0), piece)
        return torch.where(finite, vertices, torch.nan)

    def _violation(self, x: Tensor, lead: int = 0) -> Tensor:
        points = self._points(working(x), lead)
        finite = _finite(points)
        excesses = self._excesses(torch.where(finite, points, 0))
        return torch.where(finite.view(-1), excesses, torch.inf).amax().clamp(min=0)

    def _recalled(self, x: Tensor, lead: int = 0) -> Tensor:
        points = self._points(working(x), lead)
        finite = _finite(points)  # no decomposition takes other numbers
        recalled = self._recalls(torch.where(finite, points, 0), torch.finfo(x.dtype).eps)
        points = torch.where(finite, recalled, points)
        return torch.empty_like(x).copy_(points.reshape(x.shape))


def _finite(points: Tensor) -> Tensor:
    """Which points of a batch have finite entries alone."""
    return points.isfinite().all(tuple(range(1, points.ndim)), keepdim=True)


def largest_size(x: Tensor) -> Program[Number]:
    """The largest absolute value of each point."""
    return (yield Max(x.abs()))
