"""Questions that a few numbers from every rank answer, put together into one message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ._measure import (
    LOWEST,
    Choice,
    Dense,
    Largest,
    Max,
    Norm,
    Number,
    Question,
    Stature,
    Sum,
    mask,
)

Given = Callable[[Any], None]


class Tally:
    """What this rank says to the questions of one round, and what the ranks say together.

    Every rank writes its numbers in a row of its own and zeros in those of the others, so that the
    sum of all messages is a table of what each rank said. Each rank then draws the same conclusions
    from it: a norm is combined without overflow, and a tie between ranks goes by priority, which
    neither a sum nor a maximum of numbers could tell.
    """

    def __init__(self) -> None:
        self._numbers: list[Number] = []
        self._orders: list[float] = []
        self._ranks: list[Tensor] = []
        self._conclusions: list[Callable[[_Table], None]] = []

    def add(self, question: Question, given: Given) -> None:
        """Take a question in; `given` is told its answer when there is one."""
        values = question.values
        if isinstance(question, Norm):
            norm = Dense(values, 0, None).answer(question) if values.numel() else 0.0
            at = self._say(norm, question.order)
            self._conclusions.append(lambda table: given(table.norms[at]))
        elif isinstance(question, Sum):
            at = self._say(values.sum(dtype=torch.float64))
            self._conclusions.append(lambda table: given(table.sums[at]))
        elif isinstance(question, Max):
            at = self._say(_top(values))
            self._conclusions.append(lambda table: given(table.tops[at]))
        elif isinstance(question, Stature):
            self._add_stature(question, given)
        else:
            assert isinstance(question, Largest)
            self._add_largest(question, given)

    def note(self, number: float, given: Given) -> None:
        """Say a number of one's own; `given` is told what each rank said."""
        at = self._say(number)
        self._conclusions.append(lambda table: given(table.numbers[:, at].tolist()))

    def _say(self, number: Number, order: float = 1.0) -> int:
        self._numbers.append(number)
        self._orders.append(order)
        return len(self._numbers) - 1

    def _add_stature(self, question: Stature, given: Given) -> None:
        values, order = question
        top = _top(values)
        scale = torch.where(top > 0, top, 1)
        norm = torch.linalg.vector_norm(values / scale, order, dtype=torch.float64)
        at = self._say(top)
        self._say(norm)

        def conclude(table: _Table) -> None:
            tops, norms = table.numbers[:, at], table.numbers[:, at + 1]
            top = table.tops_here[at]
            shares = norms * (tops.clamp(min=0) / torch.where(top > 0, top, 1))
            norm = shares.pow(order).sum().pow(1 / order)
            given((table.tops[at], table.plain(norm)))

        self._conclusions.append(conclude)

    def _add_largest(self, question: Largest, given: Given) -> None:
        values, piece = question.values, question.piece
        top = _top(values)
        tied = values == top
        at = self._say(top)
        self._say(tied.sum(dtype=torch.float64))
        row = len(self._ranks)
        self._ranks.append(_last(tied, piece))

        def conclude(table: _Table) -> None:
            threshold = table.tops[at]
            wins = table.numbers[:, at] == table.tops_here[at]
            count = (table.numbers[:, at + 1] * wins).sum()
            last = torch.where(wins, table.ranks[:, row], LOWEST).amax()
            alone = table.host and count.item() == 1 and threshold != 0
            given(_choice(values, threshold, None if alone else table.plain(last)))

        self._conclusions.append(conclude)

    def words(self, device: torch.device) -> Tensor:
        """What this rank says, as one vector of int64."""
        numbers = _vector(self._numbers, torch.float64, device).view(torch.int64)
        return torch.cat([numbers, _vector(self._ranks, torch.int64, device)])

    def conclude(self, rows: Tensor) -> None:
        """Answer all questions, from one row of words a rank."""
        if self._conclusions:
            table = _Table(rows, len(self._numbers), self._orders)
            for conclusion in self._conclusions:
                conclusion(table)


class _Table:
    """One row a rank, and what each column comes to."""

    def __init__(self, rows: Tensor, width: int, orders: Sequence[float]) -> None:
        self.host = _on_host(rows)
        self.numbers = rows[:, :width].contiguous().view(torch.float64)
        self.ranks = rows[:, width:]
        self.tops_here = self.numbers.amax(0)
        self.tops = self._each(self.tops_here)
        self.sums = self._each(self.numbers.sum(0))
        self.norms = self._each(self._combined(torch.tensor(orders, dtype=torch.float64)))

    def _combined(self, orders: Tensor) -> Tensor:
        """The norms of all entries, from those of the ranks' own: no power of them overflows."""
        orders = orders.to(self.numbers.device)
        tops = self.tops_here
        scale = torch.where((tops > 0) & tops.isfinite(), tops, 1)
        return (self.numbers / scale).pow(orders).sum(0).pow(1 / orders) * scale

    def _each(self, column: Tensor) -> Sequence[Number]:
        return column.tolist() if self.host else column.unbind()

    def plain(self, number: Tensor) -> Number:
        """The number as it is cheapest: on the host not as a tensor."""
        return number.item() if self.host else number


def _choice(values: Tensor, threshold: Number, last: Number | None) -> Choice:
    return Choice(values, threshold, last, mask(torch.ge, values, threshold))


def _top(values: Tensor) -> Tensor:
    """The largest value here; less than any where there is none."""
    return values.amax() if values.numel() else values.new_full((), -torch.inf)


def _last(tied: Tensor, piece: Any) -> Tensor:
    """The highest priority of the entries that are tied here."""
    if not _on_host(tied):
        ranks = torch.where(tied, piece.priority(tied), LOWEST)
        return ranks.amax() if ranks.numel() else ranks.new_full((), LOWEST)
    ranks = piece.ranks_at(tied.reshape(-1).nonzero().view(-1))
    return ranks.amax() if ranks.numel() else ranks.new_full((), LOWEST)


def _on_host(x: Tensor) -> bool:
    """Whether looking at the tensor waits for nothing."""
    return x.device.type == "cpu"


def _vector(numbers: Sequence[Number], dtype: torch.dtype, device: torch.device) -> Tensor:
    if not numbers:
        return torch.empty(0, dtype=dtype, device=device)
    if all(not isinstance(number, Tensor) for number in numbers):
        return torch.tensor(numbers, dtype=dtype, device=device)
    every = [torch.as_tensor(number, dtype=dtype, device=device) for number in numbers]
    return torch.stack(every)
