"""Measurements of many tensors in pieces, led in step: one message a round for all of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._exchange import Whole, exchanged
from ._measure import Kth, Largest, Program
from ._search import Search, narrowed
from ._shards import Ranks
from ._tally import Tally


class Task(NamedTuple):
    """A program over a tensor that these ranks hold.

    Its questions are about parts of tensors here, their answers about the tensors. `note` is a
    number told along with the answers to the first ones; `heard` is told what every rank noted, on
    the host and before any answer, and may raise. A program that only `listens` is dropped then: it
    keeps the ranks' messages alike.
    """

    ranks: Ranks
    program: Program[Any]
    note: float | None = None
    heard: Callable[[Sequence[int], list[float]], None] | None = None
    listens: bool = False


def strangers(ranks: Ranks, what: object) -> list[int]:
    """The ranks whose printed `what` is not that of the first one: one message of one size.

    A process group that is told messages of different lengths ends the process, or hangs: so ranks
    compare what they are about to lead before they do.
    """
    said = torch.zeros(ranks.size, dtype=torch.int64)
    said[ranks.place] = zlib.crc32(repr(what).encode())
    marks = ranks.total(said).tolist()
    return [rank for rank, mark in zip(ranks.numbers, marks, strict=True) if mark != marks[0]]


def lead(tasks: Sequence[Task]) -> list[Any]:
    """What the programs return.

    The ranks that hold a tensor must lead the same programs in the same order.
    """
    circles: dict[tuple[int, ...], list[int]] = {}
    for place, task in enumerate(tasks):
        circles.setdefault(task.ranks.numbers, []).append(place)
    results: dict[int, Any] = {}
    for places in circles.values():
        found = _Circle([tasks[place] for place in places]).led()
        results.update(zip(places, found, strict=True))
    return [results[place] for place in range(len(tasks))]


class _Voice:
    """One program, and the questions of it that are open."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.open: dict[int, Any] = {}
        self.result: Any = None
        self._given: dict[int, Any] = {}
        self._several = False
        self._hear(None)

    def give(self, place: int, answer: Any) -> None:
        """Answer the open question at this place; after the last one the program goes on."""
        del self.open[place]
        self._given[place] = answer
        if not self.open:
            answers = [self._given[at] for at in range(len(self._given))]
            self._hear(answers if self._several else answers[0])

    def _hear(self, answer: Any) -> None:
        self._given = {}
        try:
            asked: Any = self.task.program.send(answer)
        except StopIteration as stop:
            self.result = stop.value
            return
        self._several = isinstance(asked, list)
        asked = asked if self._several else [asked]
        self.open = {
            place: Search(each) if _is_search(each) else each for place, each in enumerate(asked)
        }

    def wholes(self) -> list[tuple[_Voice, int, Whole]]:
        """The open questions about whole tensors."""
        return [(self, at, each) for at, each in self.open.items() if isinstance(each, Whole)]

    def numbers(self) -> list[tuple[_Voice, int, Any]]:
        """The open questions about numbers."""
        return [(self, at, each) for at, each in self.open.items() if not isinstance(each, Whole)]


def _is_search(question: Any) -> bool:
    return isinstance(question, Kth) or (isinstance(question, Largest) and question.k > 1)


class _Circle:
    """The tasks of tensors that are held by the same ranks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._ranks = tasks[0].ranks
        self._voices = [_Voice(task) for task in tasks]

    def led(self) -> list[Any]:
        """What the programs return."""
        first = True
        while any(voice.open for voice in self._voices):
            self._answer_numbers(self._voices if first else [])
            for voice in self._voices:
                if voice.task.listens:
                    voice.open = {}
            first = False
            self._answer_wholes()
        return [voice.result for voice in self._voices]

    def _answer_numbers(self, noted: Sequence[_Voice]) -> None:
        """One round: every rank says its numbers and counts, and hears their sum."""
        asked = [each for voice in self._voices for each in voice.numbers()]
        tally = Tally()
        for voice in noted:
            self._note(tally, voice)
        searches: list[tuple[_Voice, int, Search]] = []
        for voice, place, question in asked:
            if isinstance(question, Search):
                searches.append((voice, place, question))
            else:
                tally.add(question, _giver(voice, place))
        device = _home(asked)
        words = tally.words(device)
        counts = [search.counts().to(device) for _, _, search in searches]
        if not len(words) and not counts:
            return
        rows, bins = self._said(words, counts)
        tally.conclude(rows)
        narrowed([search for _, _, search in searches], bins)
        for voice, place, search in searches:
            if search.answer is not None:
                voice.give(place, search.answer)

    def _note(self, tally: Tally, voice: _Voice) -> None:
        note, heard = voice.task.note, voice.task.heard
        if note is not None and heard is not None:
            tally.note(note, lambda said: heard(self._ranks.numbers, said))

    def _said(self, words: Tensor, counts: list[Tensor]) -> tuple[Tensor, Tensor]:
        """One row of words from every rank, and the sums of their counts."""
        ranks, width = self._ranks, len(words)
        table = words.new_zeros(ranks.size, width)
        table[ranks.place] = words
        total = ranks.total(torch.cat([table.view(-1), *counts]))
        return total[: table.numel()].view(ranks.size, width), total[table.numel() :]

    def _answer_wholes(self) -> None:
        asked = [each for voice in self._voices for each in voice.wholes()]
        if asked:
            answers = exchanged(self._ranks, [question for _, _, question in asked])
            for (voice, place, _), answer in zip(asked, answers, strict=True):
                voice.give(place, answer)


def _giver(voice: _Voice, place: int) -> Callable[[Any], None]:
    return lambda answer: voice.give(place, answer)


def _home(asked: Sequence[tuple[Any, int, Any]]) -> torch.device:
    """Where the numbers are put together."""
    return asked[0][2].values.device if asked else torch.device("cpu")
