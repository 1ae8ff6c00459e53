"""Frank-Wolfe moves of many parameters at once, in a number of operations that stays the same.

Parameters whose regions are of one kind are answered together, whatever their sizes and radii: a
region of radius τ is τ times the region of radius one, so one call of the unit region's oracle
serves them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..regions import Free, PerFilter, PerRow, Region
from ..regions._base import VectorRegion, WholeRegion, working
from ..regions._batches import Ragged, Stack, on
from ..regions._measure import Norm
from ..regions._sparse import _Counting
from ..regions._spectral import _MatrixBall
from ._move import Work, move, over_diameter, recall, recall_due, slide


def move_many(works: Sequence[Work]) -> None:
    """Move all parameters; the same as `move` for each, up to rounding."""
    buckets: dict[Hashable, list[Work]] = {}
    for work in works:
        buckets.setdefault(_kind(work), []).append(work)
    for bucket in buckets.values():
        region = bucket[0].region
        if isinstance(region, Free):
            _slide_many(bucket)
        elif len(bucket) == 1 or isinstance(region, (PerRow, PerFilter)):
            for work in bucket:
                move(work)
        else:
            _move_alike(bucket)


def _kind(work: Work) -> Hashable:
    """What parameters must share to be answered together."""
    region, parameter = work.region, work.parameter
    if isinstance(region, WholeRegion):
        size: Any = tuple(parameter.shape)
    else:
        size = parameter.numel() if isinstance(region, _Counting) else None
    return _unit(region), size, parameter.dtype, parameter.device, work.rescale, work.draw is None


def _unit(region: Region) -> Region:
    """The region of the same kind with radius one."""
    if hasattr(region, "radius"):
        return dataclasses.replace(region, radius=1.0)  # pyright: ignore[reportCallIssue]
    return region


def _slide_many(works: Sequence[Work]) -> None:
    if any(isinstance(work.lr, Tensor) for work in works):
        for work in works:
            slide(work)
        return
    steps = torch._foreach_mul([w.direction for w in works], [-w.lr for w in works])  # pyright: ignore
    torch._foreach_add_([work.parameter for work in works], steps)


class _Batch:
    """Parameters of one kind as the points of one tensor."""

    def __init__(self, works: Sequence[Work]) -> None:
        first = works[0]
        self.works = works
        self.region = first.region
        self.device = first.parameter.device
        self.sizes = [work.parameter.numel() for work in works]
        draws = None if first.draw is None else [w.draw for w in works if w.draw is not None]
        self.dense = len(set(self.sizes)) == 1
        self.directions = self._joined([work.direction for work in works])
        self.starts = self._joined([work.parameter for work in works])
        if self.dense:
            self.piece: Stack | Ragged = Stack(self.directions, draws)
        else:
            self.piece = Ragged(self.directions, self.sizes, draws)

    def _joined(self, tensors: Sequence[Tensor]) -> Tensor:
        if isinstance(self.region, WholeRegion):
            return torch.cat([self.region._points(working(tensor), 0) for tensor in tensors])
        flat = torch.cat([working(tensor).reshape(-1) for tensor in tensors])
        return flat.view(len(self.works), -1) if self.dense else flat

    def spread(self, numbers: Sequence[float | Tensor]) -> Tensor:
        """One number a parameter, broadcastable against the entries."""
        dtype = self.directions.dtype
        if any(isinstance(number, Tensor) and not number.is_cpu for number in numbers):
            column = torch.stack([self._number(number) for number in numbers])
        else:
            column = on(self.device, torch.tensor([float(n) for n in numbers], dtype=dtype))
        if isinstance(self.piece, Ragged):
            return self.piece.spread(column)
        return column.view((-1,) + (1,) * (self.directions.ndim - 1))

    def _number(self, number: float | Tensor) -> Tensor:
        """One number on the device; one that is there is not waited for."""
        dtype = self.directions.dtype
        if isinstance(number, Tensor) and not number.is_cpu:
            return number.to(self.device, dtype).reshape(())
        return torch.full((), float(number), dtype=dtype, device=self.device)

    def norm(self, x: Tensor) -> Tensor:
        """The norm of each parameter's entries."""
        return self.piece.answer(Norm(x))

    def write(self, points: Tensor) -> None:
        """Give each parameter its entries."""
        pieces = points.unbind() if self.dense else points.split(self.sizes)
        parameters = [work.parameter for work in self.works]
        shaped = [new.reshape(p.shape) for new, p in zip(pieces, parameters, strict=True)]
        torch._foreach_copy_(parameters, shaped)


def _move_alike(works: Sequence[Work]) -> None:
    batch = _Batch(works)
    unit = _unit(works[0].region)
    assert isinstance(unit, (VectorRegion, WholeRegion))
    vertices = unit._answer(batch.directions, batch.piece)
    if hasattr(unit, "radius"):
        vertices = vertices * batch.spread([work.region.radius for work in works])  # pyright: ignore
    lengths = _lengths(batch, vertices)
    batch.write(torch.lerp(batch.starts, vertices, lengths))
    if isinstance(unit, _MatrixBall):
        _recall_matrices(works, unit)
    else:
        for work in works:
            recall(work, work.lr)


def _recall_matrices(works: Sequence[Work], unit: _MatrixBall) -> None:
    """The same as `recall` for each: bounding a norm takes hundreds of operations."""
    due = [work for work in works if recall_due(work.parameter, work.step)]
    if not due:
        return
    batch = _Batch(due)
    radii = batch.spread([work.region.radius for work in due])  # pyright: ignore
    eps = torch.finfo(due[0].parameter.dtype).eps
    factors = unit._factors(batch.starts / radii, eps)
    moved = batch.spread([work.lr for work in due]) > 0
    batch.write(batch.starts / torch.where(moved, factors, 1))


def _lengths(batch: _Batch, vertices: Tensor) -> Tensor:
    """The step lengths a, in [0, 1]."""
    works = batch.works
    if works[0].rescale == "gradient":
        reach = batch.spread([work.lr for work in works]) * batch.norm(batch.directions)
        gap = batch.norm(vertices - batch.starts)
        return torch.where(gap > 0, reach / gap, 1).clamp(max=1)
    if works[0].rescale == "diameter":
        rates = [over_diameter(work) for work in works]
    else:
        rates = [work.lr for work in works]
    return batch.spread(rates).clamp(max=1)
