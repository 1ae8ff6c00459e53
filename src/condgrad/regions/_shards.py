"""Tensors that lie in pieces on several ranks: what lies where, and how the ranks talk."""

from __future__ import annotations

import functools
import math
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

_WHOLE = (Tensor, nn.Parameter)
Line = slice | Tensor
"""Which numbers along one dimension of a tensor a rank holds."""


def is_sharded(x: Any) -> bool:
    """Whether a tensor is a DTensor, which may lie in pieces on several ranks."""
    if type(x) in _WHOLE:
        return False
    # Where nobody has loaded the module there are no such tensors, and loading it takes a while.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(x, module.DTensor)


def local(x: Tensor) -> Tensor:
    """The part of a tensor that lies on this rank; an ordinary tensor is its own part."""
    if not is_sharded(x):
        return x
    if torch.is_grad_enabled():
        x = x.detach()
    return x.to_local()  # pyright: ignore[reportAttributeAccessIssue]


def part_of(x: Tensor, like: Any) -> Tensor:
    """The part of a tensor that belongs to the part of `like` here: a gradient's to a parameter."""
    if not is_sharded(like):
        return x
    found: Any = x
    if not is_sharded(found):
        shard = shard_of(like)
        return found[crossings(shard.lines(shard.ranks.place), found.device)]
    if found.placements != like.placements:  # such as a sum that is not yet added up
        found = found.redistribute(like.device_mesh, like.placements)
    return local(found)


def with_part(like: Tensor, part: Tensor) -> Tensor:
    """A tensor that lies on the ranks as `like` does, of which `part` lies here."""
    from torch.distributed.tensor import DTensor

    assert isinstance(like, DTensor)
    return DTensor.from_local(
        part,
        like.device_mesh,
        like.placements,
        run_check=False,
        shape=like.shape,
        stride=like.stride(),
    )


def put_away(model: Any) -> None:
    """Let FSDP2 put away the whole copies of parameters that it holds.

    A forward pass that no backward pass follows leaves them in the parameters' places, and the next
    one takes them for the parameters, whatever has become of these.
    """
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp is not None:
        for module in model.modules():
            if isinstance(module, fsdp.FSDPModule):
                module.reshard()


class Ranks:
    """The ranks that hold a tensor between them, and the place of this one among them."""

    def __init__(self, group: Any, numbers: tuple[int, ...], me: int, device_type: str) -> None:
        # Not the group itself: held beyond its destruction, it would abort the interpreter's end.
        self._group = None if group is None else weakref.ref(group)
        self._device_type = device_type
        self.numbers = numbers
        self.size = len(numbers)
        self.place = numbers.index(me)

    def total(self, numbers: Tensor) -> Tensor:
        """The sums over all ranks of int64 numbers: one all-reduce."""
        if self.size == 1:
            return numbers
        import torch.distributed as dist

        carried = numbers.to(self._device(numbers))
        self._said(dist.all_reduce, carried)
        return carried.to(numbers.device)

    def swap(self, values: Tensor, outgoing: list[int], incoming: list[int]) -> Tensor:
        """What the other ranks sent here, end to end: one all-to-all of so many values a rank."""
        if self.size == 1:
            return values
        import torch.distributed as dist

        carried = values.to(self._device(values))
        arrived = carried.new_empty(sum(incoming))
        self._said(dist.all_to_all_single, arrived, carried, incoming, outgoing)
        return arrived.to(values.device)

    def _device(self, x: Tensor) -> torch.device | str:
        """Where the process group can carry numbers: shards may wait on the host meanwhile."""
        return x.device if x.device.type == self._device_type else self._device_type

    def _said(self, collective: Callable[..., Any], *args: Any) -> None:
        group = self._group and self._group()
        if group is None:  # which torch would take for the group of all ranks
            raise RuntimeError(
                f"ranks {', '.join(map(str, self.numbers))} hold sharded parameters between them, "
                "and the process group in which they talked was destroyed: build mesh, model and "
                "optimizer anew after init_process_group"
            )
        try:
            collective(*args, group=group)
        except RuntimeError as error:
            raise RuntimeError(
                f"ranks {', '.join(map(str, self.numbers))} hold sharded parameters between them, "
                "and could not combine what they know: one has died, leaves this step out, or "
                "steps over other parameters, regions or gradients; every rank must take every "
                f"step. The process group says: {error}"
            ) from error


class Shard:
    """How a tensor of some shape lies in pieces on some ranks."""

    def __init__(
        self,
        shape: Sequence[int],
        ranks: Ranks,
        cut: Callable[[int], tuple[Line, ...]],
        *,
        rows_whole: bool,
    ) -> None:
        self.shape = torch.Size(shape)
        self.size = math.prod(shape)
        self.ranks = ranks
        self.rows_whole = rows_whole
        self.lines = functools.cache(cut)
        """What the rank at some place holds, along each dimension."""

    @functools.cached_property
    def part(self) -> tuple[int, ...]:
        """The shape of what this rank holds."""
        return tuple(length(line) for line in self.lines(self.ranks.place))

    def entries(self, device: torch.device) -> Tensor:
        """The number in the whole tensor of each entry that lies here."""
        numbers = torch.zeros((1,) * len(self.shape), dtype=torch.int64, device=device)
        step = 1
        for dim in reversed(range(len(self.shape))):
            line = numbered(self.lines(self.ranks.place)[dim], device) * step
            numbers = numbers + line.view((-1,) + (1,) * (len(self.shape) - dim - 1))
            step *= self.shape[dim]
        return numbers

    def entries_at(self, places: Tensor) -> Tensor:
        """The number in the whole tensor of the entries at these places of what lies here."""
        numbers, step = torch.zeros_like(places), 1
        for line, size in zip(
            reversed(self.lines(self.ranks.place)), reversed(self.shape), strict=True
        ):
            along, places = places % max(length(line), 1), places // max(length(line), 1)
            here = along + line.start if isinstance(line, slice) else line.to(along.device)[along]
            numbers, step = numbers + here * step, step * size
        return numbers


def length(line: Line) -> int:
    """How many numbers a line has."""
    return line.stop - line.start if isinstance(line, slice) else len(line)


def numbered(line: Line, device: torch.device) -> Tensor:
    """The numbers of a line."""
    if isinstance(line, slice):
        return torch.arange(line.start, line.stop, device=device)
    return line.to(device)


def crossings(lines: Sequence[Line], device: torch.device) -> Any:
    """The lines as an index of all their crossings."""
    if all(isinstance(line, slice) for line in lines):
        return tuple(lines)
    return tuple(
        numbered(line, device).view((-1,) + (1,) * (len(lines) - dim - 1))
        for dim, line in enumerate(lines)
    )


_notes: dict[int, dict[Any, Any]] = {}


def _notes_on(mesh: Any) -> dict[Any, Any]:
    """What is known of a mesh: by identity, since equal ones may have other process groups."""
    notes = _notes.get(id(mesh))
    if notes is None:
        notes = _notes[id(mesh)] = {}
        weakref.finalize(mesh, _notes.pop, id(mesh), None)
    return notes


def shard_of(x: Any) -> Shard:
    """How a DTensor lies on the ranks."""
    notes = _notes_on(x.device_mesh)
    key = (x.shape, x.placements)
    if key not in notes:
        notes[key] = _examined(x, notes)
    shard: Shard = notes[key]
    found = local(x).shape
    if found != shard.part:
        raise ValueError(
            f"rank {shard.ranks.numbers[shard.ranks.place]} holds {tuple(found)} of a parameter of "
            f"shape {tuple(x.shape)} placed as {x.placements}, where {shard.part} was expected: "
            "shard it with fully_shard, distribute_tensor or parallelize_module"
        )
    return shard


def _examined(x: Any, notes: dict[Any, Any]) -> Shard:
    mesh, placements = x.device_mesh, x.placements
    if any(placement.is_partial() for placement in placements):
        raise TypeError(
            f"a parameter of shape {tuple(x.shape)} is placed as {placements}: a sum that is not "
            "yet added up cannot be constrained; redistribute it first"
        )
    dims = tuple(
        dim
        for dim, placement in enumerate(placements)
        if not placement.is_replicate() and mesh.size(dim) > 1
    )
    if dims not in notes:
        notes[dims] = _ranks(mesh, dims)
    ranks: Ranks = notes[dims]
    sizes = mesh.shape
    coordinates = [(mesh.mesh == number).nonzero()[0].tolist() for number in ranks.numbers]

    shape = x.shape  # not x itself: what is known of a mesh outlives its tensors

    def cut(place: int) -> tuple[Line, ...]:
        lines = [torch.arange(size) for size in shape]
        for placement, size, at in zip(placements, sizes, coordinates[place], strict=True):
            if not placement.is_replicate():
                lines[placement.dim] = _share(lines[placement.dim], placement, size, at)
        return tuple(map(_straight, lines))

    rows_whole = all(placements[dim].dim == 0 for dim in dims)
    return Shard(shape, ranks, cut, rows_whole=rows_whole)


def _share(line: Tensor, placement: Any, count: int, number: int) -> Tensor:
    """The share of one of so many ranks along a dimension, as DTensor cuts it."""
    pieces = getattr(placement, "split_factor", 1)  # FSDP over tensor parallelism strides
    return torch.cat([_chunk(_chunk(line, pieces, each), count, number) for each in range(pieces)])


def _chunk(line: Tensor, count: int, number: int) -> Tensor:
    size = -(-len(line) // count)
    return line[number * size : (number + 1) * size]


def _straight(line: Tensor) -> Line:
    """The line as a slice, if it has no gaps."""
    if not len(line):
        return slice(0, 0)
    first, last = int(line[0]), int(line[-1])
    return slice(first, last + 1) if last - first == len(line) - 1 else line


def _ranks(mesh: Any, dims: tuple[int, ...]) -> Ranks:
    """The ranks that differ from this one along these dimensions of the mesh alone."""
    import torch.distributed as dist

    me, coordinate = dist.get_rank(), mesh.get_coordinate()
    if coordinate is None:
        raise ValueError(f"rank {me} holds nothing of a parameter on {mesh}: step on its ranks")
    if not dims:
        return Ranks(None, (me,), me, mesh.device_type)
    block = mesh.mesh[
        tuple(slice(None) if dim in dims else at for dim, at in enumerate(coordinate))
    ]
    numbers = block.flatten().tolist()
    group: Any
    if len(dims) == 1:
        group = mesh.get_group(dims[0])
    elif len(numbers) == dist.get_world_size():
        group = dist.group.WORLD
    else:
        group = _new_group(tuple(numbers))
    ordered = tuple(dist.get_process_group_ranks(group))
    return Ranks(group, ordered, me, mesh.device_type)


_groups: dict[tuple[int, ...], Any] = {}


def _new_group(numbers: tuple[int, ...]) -> Any:
    """A process group of these ranks: one for all meshes, as engines make a mesh a parameter."""
    import torch.distributed as dist

    known = _groups.get(numbers)
    group = known and known()
    if group is None:
        group = dist.new_group(list(numbers), use_local_synchronization=True)
        _groups[numbers] = weakref.ref(group)
    return group
