"""Frank-Wolfe moves of parameters that lie in pieces on several ranks, all of them in step.

Each rank works on its parts; what depends on whole parameters travels in a few small messages for
all of them together: one for what the vertices depend on, one for the step lengths, and every
sixteenth step one for pulling back inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .._members import members
from ..regions import Free
from ..regions._base import working
from ..regions._lead import Task, lead, strangers
from ..regions._measure import Norm, Number, Program
from ..regions._sharded import recalled, vertex
from ..regions._shards import Ranks, Shard, is_sharded, local, shard_of, with_part
from ._move import Work, over_diameter, recall_due

Moved = tuple[Tensor, Number]
"""What a parameter becomes here, and the length of its step."""
_ABSENT = -1.0
"""In place of a learning rate: there is no gradient."""


class Parts(MutableMapping[str, Any]):
    """The state of a sharded parameter: its tensors come out as the parts that lie here.

    What goes in as a part is kept as a tensor that is sharded like the parameter.
    """

    def __init__(self, state: dict[str, Any], parameter: Tensor) -> None:
        self._state = state
        self._parameter = parameter

    def __getitem__(self, name: str) -> Any:
        return local(self._state[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._state[name] = with_part(self._parameter, value)

    def __delitem__(self, name: str) -> None:
        del self._state[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)


def parts_of_states(parameters: Sequence[Tensor], states: Sequence[dict[str, Any]]) -> list[Any]:
    """The states as they lie here."""
    return [
        Parts(state, parameter) if is_sharded(parameter) else state
        for parameter, state in zip(parameters, states, strict=True)
    ]


def is_idle(parameter: Tensor) -> bool:
    """Whether a parameter lies in pieces and should move, but has no gradient."""
    return is_sharded(parameter) and parameter.requires_grad and parameter.grad is None


def moved(work: Work, shard: Shard) -> Program[Moved]:
    """A program: where one parameter goes."""
    start, direction = local(work.parameter), work.direction
    if isinstance(work.region, Free):
        return _slid(work, start), 1.0
    towards = yield from vertex(work.region, direction, shard, work.draw)
    length = yield from _length(work, working(direction), towards, working(start))
    return torch.lerp(working(start), towards, length), length


def _slid(work: Work, start: Tensor) -> Tensor:
    if isinstance(work.lr, Tensor):
        return start - work.lr.to(start.device) * work.direction
    return torch.add(start, work.direction, alpha=-work.lr)


def _length(work: Work, direction: Tensor, towards: Tensor, start: Tensor) -> Program[Number]:
    """The step length a, in [0, 1]."""
    lr = work.lr
    if work.rescale != "gradient":
        if work.rescale == "diameter":
            lr = over_diameter(work)
        return lr.clamp(max=1) if isinstance(lr, Tensor) else min(lr, 1.0)
    size, gap = yield [Norm(direction), Norm(towards - start)]
    reach = lr * size
    if isinstance(reach, Tensor) or isinstance(gap, Tensor):
        gap = torch.as_tensor(gap, dtype=start.dtype, device=start.device)
        return torch.where(gap > 0, reach / gap, 1).clamp(max=1)
    return reach / gap if gap > reach else 1.0


def led(
    works: Mapping[int, Any],
    absent: Mapping[int, Any],
    program: Callable[[Any, Shard], Program[Any]],
    optimizer: Any,
) -> dict[int, Any]:
    """What the programs of all works return, by the numbers of their parameters in the optimizer.

    Absent are those without a gradient here, which must be so on every rank: they only listen.
    """

    def task(number: int) -> Task:
        work = works.get(number, absent.get(number))
        shard = shard_of(work.parameter)
        if not work.parameter.is_cpu:  # to look at notes there would be to wait
            return Task(shard.ranks, program(work, shard), listens=number in absent)
        note = _ABSENT if number in absent else float(work.lr)

        def heard(ranks: Sequence[int], notes: list[float]) -> None:
            if notes != notes[:1] * len(notes):
                names = [name for name, _, _ in members(optimizer.param_groups)]
                _differ(names[number], ranks, notes)

        return Task(shard.ranks, program(work, shard), note, heard, number in absent)

    numbers = sorted({*works, *absent})  # as on the other ranks
    # By optimizer: what another one has agreed on, it may have agreed on with some ranks alone.
    agreed = optimizer.__dict__.setdefault("_agreed", set())
    _agree({number: works.get(number, absent.get(number)) for number in numbers}, agreed)
    return dict(zip(numbers, lead([task(number) for number in numbers]), strict=True))


def move_sharded(
    works: Mapping[int, Any],
    absent: Mapping[int, Any],
    program: Callable[[Any, Shard], Program[Moved]],
    optimizer: Any,
) -> None:
    """Move the parameters to where `program` tells, given as for `led`."""
    moves: dict[int, Moved] = led(works, absent, program, optimizer)
    for number, work in works.items():
        local(work.parameter).copy_(moves[number][0])
    _recall([(work, moves[number][1]) for number, work in works.items()])


def _agree(works: Mapping[int, Any], agreed: set[Any]) -> None:
    """Make sure, once for each set of works, that it is the same on all ranks that share it."""
    circles: dict[tuple[int, ...], tuple[Ranks, list[Any]]] = {}
    for number, work in works.items():
        shard = shard_of(work.parameter)
        settings = (number, shard.shape, work.region, getattr(work, "rescale", None))
        found = circles.setdefault(shard.ranks.numbers, (shard.ranks, []))
        found[1].append((*settings, getattr(work, "inner", None)))
    for ranks, described in circles.values():
        key = (ranks.numbers, *described)
        if ranks.size > 1 and key not in agreed:
            if others := strangers(ranks, key):
                raise ValueError(
                    f"ranks {', '.join(map(str, others))} step over other parameters, regions or "
                    f"step rules than rank {ranks.numbers[0]}: build the model, its groups and the "
                    "optimizer alike on all ranks"
                )
            agreed.add(key)


def _differ(name: str, ranks: Sequence[int], notes: list[float]) -> None:
    """Say what the ranks do not agree on."""
    absent = [str(rank) for rank, note in zip(ranks, notes, strict=True) if note == _ABSENT]
    if absent:
        raise ValueError(
            f"parameter `{name}` has a gradient on some ranks but none on {', '.join(absent)}: "
            "every rank must run the same layers backward; give it a gradient of zeros there"
        )
    found = ", ".join(f"{note:g} on {rank}" for rank, note in zip(ranks, notes, strict=True))
    raise ValueError(
        f"`lr` of parameter `{name}` differs between the ranks ({found}): drive schedules by "
        "numbers that are the same on all of them, such as a loss averaged over the ranks"
    )


def _recall(moves: Sequence[tuple[Any, Number]]) -> None:
    """Pull those back inside whose time has come, and whose step had any length."""
    due = [
        (work, length)
        for work, length in moves
        if work.region._drifts
        and recall_due(work.parameter, work.step)
        and (isinstance(length, Tensor) or length != 0)
    ]
    points = [local(work.parameter) for work, _ in due]
    shards = [shard_of(work.parameter) for work, _ in due]
    tasks = [
        Task(shard.ranks, recalled(work.region, point, shard))
        for (work, _), point, shard in zip(due, points, shards, strict=True)
    ]
    for (_, length), point, inside in zip(due, points, lead(tasks), strict=True):
        point.copy_(
            torch.where(length > 0, inside, point) if isinstance(length, Tensor) else inside
        )
