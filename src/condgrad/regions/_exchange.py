"""Whole points for those who need them: gathered to one rank, answered there once, scattered."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._shards import Line, Ranks, Shard, crossings, length


class Job:
    """What is to be done to whole points, on the rank that has them for a while."""

    by_rows = False
    """Whether every row is a point on its own, so that the rows may go to different ranks."""

    def kind(self, shape: Sequence[int]) -> Hashable:
        """What jobs on blocks of this shape must have in common to be done in one call."""
        return id(self)

    def cost(self, shape: Sequence[int]) -> float:
        """How long it takes on a tensor of this shape, in any unit."""
        raise NotImplementedError

    def done(self, jobs: Sequence[Any], blocks: list[Tensor], firsts: list[int]) -> list[Tensor]:
        """What becomes of the blocks of jobs of this kind; each begins at the row in `firsts`."""
        raise NotImplementedError


class Whole(NamedTuple):
    """The part that lies here of what a job makes of a whole tensor, in a working dtype."""

    values: Tensor
    shard: Shard
    job: Job


Window = tuple[Line, tuple[Line, ...], tuple[int, ...]]


class _Block:
    """Rows of a tensor, and the place of the rank that is to have them whole."""

    def __init__(self, question: Whole, owner: int, first: int, last: int) -> None:
        self.question = question
        self.owner = owner
        self.first = first
        self.last = last
        self._windows: dict[int, Window] = {}

    def window(self, place: int) -> Window:
        """What the rank at this place has of the block: its own rows, where they go, the shape."""
        if place not in self._windows:
            self._windows[place] = self._seen_from(place)
        return self._windows[place]

    def _seen_from(self, place: int) -> Window:
        rows, *others = self.question.shard.lines(place)
        here: Line
        there: Line
        if isinstance(rows, slice):
            start = min(max(rows.start, self.first), self.last)
            stop = max(start, min(rows.stop, self.last))
            here = slice(start - rows.start, stop - rows.start)
            there = slice(start - self.first, stop - self.first)
        else:
            kept = (rows >= self.first) & (rows < self.last)
            here, there = kept.nonzero().view(-1), rows[kept] - self.first
        return here, (there, *others), (length(there), *map(length, others))

    def count(self, place: int) -> int:
        """How many entries of the block the rank at this place has."""
        return math.prod(self.window(place)[2])


def exchanged(ranks: Ranks, questions: Sequence[Whole]) -> list[Tensor]:
    """The answers to the questions: two all-to-alls for each dtype, however many there are."""
    formats: dict[torch.dtype, list[int]] = {}
    for place, question in enumerate(questions):
        formats.setdefault(question.values.dtype, []).append(place)
    answers: dict[int, Tensor] = {}
    for places in formats.values():
        answers.update(
            zip(places, _exchanged(ranks, [questions[place] for place in places]), strict=True)
        )
    return [answers[place] for place in range(len(questions))]


def _exchanged(ranks: Ranks, questions: list[Whole]) -> list[Tensor]:
    blocks = sorted(_dealt(questions, ranks.size), key=lambda block: block.owner)
    mine = [block for block in blocks if block.owner == ranks.place]
    everyone = range(ranks.size)
    outgoing = [0] * ranks.size
    for block in blocks:
        outgoing[block.owner] += block.count(ranks.place)
    incoming = [sum(block.count(place) for block in mine) for place in everyone]

    parts = [block.question.values[block.window(ranks.place)[0]] for block in blocks]
    values = questions[0].values
    arrived = ranks.swap(_joined(parts, values), outgoing, incoming)
    results = _done(mine, _assembled(mine, arrived, everyone))
    wide = values.new_empty(0, dtype=torch.promote_types(values.dtype, torch.float32))
    parts = [
        result[crossings(block.window(place)[1], result.device)]
        for place in everyone
        for block, result in zip(mine, results, strict=True)
    ]
    home = ranks.swap(_joined(parts, wide), incoming, outgoing)
    answers = {
        id(question): torch.empty_like(question.values, dtype=wide.dtype) for question in questions
    }
    pieces = home.split([block.count(ranks.place) for block in blocks])
    for block, piece in zip(blocks, pieces, strict=True):
        here, _, shape = block.window(ranks.place)
        answers[id(block.question)][here] = piece.view(shape)
    return [answers[id(question)] for question in questions]


def _dealt(questions: Iterable[Whole], count: int) -> list[_Block]:
    """Who has what: rows in equal shares, whole tensors so that all have as much to do."""
    blocks: list[_Block] = []
    loads = [0.0] * count
    wholes: list[tuple[float, Whole]] = []
    for question in questions:
        shape = question.shard.shape
        if question.job.by_rows:
            share = -(-shape[0] // count)
            firsts = range(0, shape[0], share)
            blocks += [
                _Block(question, owner, first, min(first + share, shape[0]))
                for owner, first in enumerate(firsts)
            ]
        else:
            wholes.append((question.job.cost(shape), question))
    for cost, question in sorted(wholes, key=lambda each: -each[0]):  # the longest first
        owner = loads.index(min(loads))
        loads[owner] += cost
        blocks.append(_Block(question, owner, 0, question.shard.shape[0]))
    return blocks


def _assembled(blocks: Sequence[_Block], arrived: Tensor, places: Iterable[int]) -> list[Tensor]:
    """The blocks, whole, from what came from each place in turn."""
    wholes = [
        arrived.new_empty(block.last - block.first, *block.question.shard.shape[1:])
        for block in blocks
    ]
    pairs = [(place, block) for place in places for block in blocks]
    pieces = arrived.split([block.count(place) for place, block in pairs])
    for at, ((place, block), piece) in enumerate(zip(pairs, pieces, strict=True)):
        _, there, shape = block.window(place)
        wholes[at % len(blocks)][crossings(there, piece.device)] = piece.view(shape)
    return wholes


def _done(blocks: Sequence[_Block], wholes: Sequence[Tensor]) -> list[Tensor]:
    """What the jobs make of the blocks, those of one kind in one call."""
    kinds: dict[Hashable, list[int]] = {}
    for at, block in enumerate(blocks):
        kinds.setdefault(block.question.job.kind(wholes[at].shape), []).append(at)
    results: dict[int, Tensor] = {}
    for places in kinds.values():
        jobs = [blocks[at].question.job for at in places]
        firsts = [blocks[at].first for at in places]
        made = jobs[0].done(jobs, [wholes[at] for at in places], firsts)
        results.update(zip(places, made, strict=True))
    return [results[at] for at in range(len(blocks))]


def _joined(parts: Sequence[Tensor], like: Tensor) -> Tensor:
    """The parts end to end, in the format of `like`."""
    return torch.cat([like.new_empty(0), *(part.reshape(-1).to(like.dtype) for part in parts)])
