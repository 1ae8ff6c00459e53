"""What regions answer about tensors in pieces: as programs, to be led by `_lead.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from ._base import Region, VectorRegion, WholeRegion, working
from ._batches import Stack
from ._blocks import _Blocks
from ._box import Box
from ._exchange import Job, Whole
from ._free import Free
from ._lp import L2Ball, LinfBall
from ._measure import Dense, Max, Number, Piece, Program, decided, larger
from ._shards import Shard, numbered
from ._spectral import _MatrixBall
from ._ties import FIRST, Draw, scramble

_BY_ENTRY = (LinfBall, Box, Free)
"""The regions whose nearest point is found entry by entry."""


class Sharded(Piece):
    """The entries of one tensor that lie on this rank; the answers are about all of them."""

    joint = True

    def __init__(self, shard: Shard, draw: Draw | None) -> None:
        self.shard = shard
        self.size = shard.size
        self.random = draw is not None
        self._draw = draw

    def filled(self, sign: Tensor) -> Tensor:
        return sign if decided(sign != 0) else super().filled(sign)

    def ranks_at(self, places: Tensor) -> Tensor:
        """The priorities of the entries at these places of what lies here."""
        entries = self.shard.entries_at(places)
        return scramble(entries, self._key(entries)) if self.random else -entries

    def _entries(self, like: Tensor) -> Tensor:
        return self.shard.entries(like.device).view(like.shape)

    def _key(self, like: Tensor) -> Tensor:
        assert self._draw is not None
        return self._draw.key(like.device)

    def _points(self, like: Tensor) -> Tensor:
        return torch.zeros((), dtype=torch.int64, device=like.device)


class Rows(Dense):
    """Some rows of a tensor, each of them one point and whole; `rows` are their numbers."""

    def __init__(self, x: Tensor, rows: Tensor, draw: Draw | None) -> None:
        super().__init__(x, 1, draw)
        self._rows = rows

    def _entries(self, like: Tensor) -> Tensor:
        within = torch.arange(like[0].numel(), device=like.device).view(like.shape[1:])
        return self._points(like) * within.numel() + within

    def _points(self, like: Tensor) -> Tensor:
        return self._rows.view((-1,) + (1,) * (like.ndim - 1))


def _cost(region: Region, shape: Sequence[int]) -> float:
    """How long a whole tensor takes: decompositions of matrices, else a sort or so."""
    rows, columns = shape[0], math.prod(shape[1:])
    matrix = isinstance(region, _MatrixBall)
    return rows * columns * (min(rows, columns) if matrix else 1)


def row_vertices(region: Region, x: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
    """The vertices for rows of a tensor, each in a region of its own."""
    if isinstance(region, VectorRegion):
        return region._answer(x, Rows(x, rows, draw))
    assert isinstance(region, WholeRegion)
    points = region._points(x, 1)
    return region._answer(points, Rows(points, rows, draw)).reshape(x.shape)


class Vertices(Job):
    """The vertices of a region that needs its points whole."""

    def __init__(self, region: WholeRegion, draw: Draw | None) -> None:
        self._region = region
        self._draw = draw

    def kind(self, shape: Sequence[int]) -> Hashable:
        """Batches of one size, whatever the radii: a region of radius τ is τ times that of one."""
        return self._region._kind, tuple(shape), self._draw is None

    def cost(self, shape: Sequence[int]) -> float:
        return _cost(self._region, shape)

    def done(self, jobs: Sequence[Any], blocks: list[Tensor], firsts: list[int]) -> list[Tensor]:
        unit: Any = self._region._kind
        points = torch.cat([unit._points(working(block), 0) for block in blocks])
        draws = None if self._draw is None else [job._draw for job in jobs]
        vertices = unit._answer(points, Stack(points, draws))
        return [
            vertex.reshape(block.shape) * job._region.radius
            for vertex, block, job in zip(vertices, blocks, jobs, strict=True)
        ]


class RowVertices(Job):
    """The vertices of rows that are cut into pieces."""

    by_rows = True

    def __init__(self, region: _Blocks, draw: Draw | None) -> None:
        self._region = region.region
        self._draw = draw

    def done(self, jobs: Sequence[Any], blocks: list[Tensor], firsts: list[int]) -> list[Tensor]:
        x = working(blocks[0])
        rows = torch.arange(firsts[0], firsts[0] + len(x), device=x.device)
        return [row_vertices(self._region, x, rows, self._draw)]


class Mapped(Job):
    """Whatever a function makes of a whole tensor, or of some of its rows."""

    def __init__(self, region: Region, function: Callable[[Tensor], Tensor]) -> None:
        self._region = region
        self._function = function
        self.by_rows = isinstance(region, _Blocks)

    def cost(self, shape: Sequence[int]) -> float:
        return _cost(self._region, shape)

    def done(self, jobs: Sequence[Any], blocks: list[Tensor], firsts: list[int]) -> list[Tensor]:
        return [self._function(blocks[0])]


# ---- programs: for what lies here of a tensor with at least one dimension


def vertex(region: Region, x: Tensor, shard: Shard, draw: Draw | None) -> Program[Tensor]:
    """The vertex for a direction."""
    if isinstance(region, VectorRegion):
        x = working(x)
        piece = Sharded(shard, draw)
        measured = yield from region._measure(x, piece)
        return region._vertex(x, measured, piece)
    if isinstance(region, WholeRegion):
        return (yield Whole(x, shard, Vertices(region, draw)))
    assert isinstance(region, _Blocks)
    if not shard.rows_whole:
        return (yield Whole(x, shard, RowVertices(region, draw)))
    x = working(x)
    rows = numbered(shard.lines(shard.ranks.place)[0], x.device)
    return row_vertices(region.region, x, rows, draw) if x.numel() else x


def recalled(region: Region, x: Tensor, shard: Shard) -> Program[Tensor]:
    """What a point, inside up to rounding, becomes when it is pulled inside."""
    if isinstance(region, VectorRegion):
        wide = working(x)
        factor = region._pull((yield from region._gauge(wide, Sharded(shard, FIRST))))
        return x if decided(factor == 1) else (wide / factor).to(x.dtype)
    return (yield from _mapped(region, region._recalled, x, shard))


def nearest(region: Region, x: Tensor, shard: Shard) -> Program[Tensor]:
    """The nearest point of the region, for a tensor in a working dtype."""
    if isinstance(region, _BY_ENTRY):
        return region._nearest(x) if x.numel() else x
    if isinstance(region, L2Ball):
        return (yield from recalled(region, x, shard))
    return (yield from _mapped(region, region._nearest, x, shard))


def violation(region: Region, x: Tensor, shard: Shard) -> Program[Number]:
    """The largest relative excess over the points: at least 0."""
    if isinstance(region, Free):
        return 0.0
    if isinstance(region, VectorRegion):
        excess = yield from region._excess(working(x), Sharded(shard, FIRST))
        return larger(excess, 0.0)

    def everywhere(block: Tensor) -> Tensor:
        return region._violation(block).to(working(block).dtype).expand(block.shape)

    return (yield Max((yield from _mapped(region, everywhere, x, shard))))


def _mapped(
    region: Region, function: Callable[[Tensor], Tensor], x: Tensor, shard: Shard
) -> Program[Tensor]:
    """What a function makes of whole tensors, or of whole rows, of a region."""
    if isinstance(region, _Blocks) and shard.rows_whole:
        return function(x) if x.numel() else x
    return (yield Whole(x, shard, Mapped(region, function)))
