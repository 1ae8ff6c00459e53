"""The language in which a region measures a direction, and the pieces of tensors that answer it.

A region's `_measure` is a generator: it yields questions about the entries of its points
(`Norm`, `Max`, `Sum`, `Kth`) and receives the answers. It never learns how they were found: by one
reduction over a tensor, by a batch of tensors of many sizes at once, or from the shards of a tensor
on many machines. Several measurements can so be led in step, their questions answered together.

An answer is a number: a float for a single point on the host, where arithmetic on floats costs a
tenth of that on tensors, else a tensor with one entry a point that broadcasts against the entries.
`decided`, `pick`, `finite` and `larger` treat both alike, and the bundles of `_together.py` too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ._counting import FLOAT_COUNTS, k_largest, norm_of, separator
from ._ties import Draw, scramble

T = TypeVar("T")
Number = float | Tensor
LOWEST = torch.iinfo(torch.int64).min
EXACT_NORMS = 1 << 20  # up to here the norm of signs, squared, tells their number


class Norm(NamedTuple):
    """The norm of the given order."""

    values: Tensor
    order: float = 2.0


class Max(NamedTuple):
    """The largest value."""

    values: Tensor


class Sum(NamedTuple):
    """The sum of the values."""

    values: Tensor


class Kth(NamedTuple):
    """A value that separates the k largest from the rest: the k-th largest, or just below it.

    Whoever asks counts the values at and above it. k is a number, or a tensor with one a point.
    """

    values: Tensor
    k: int | Tensor


class Stature(NamedTuple):
    """The largest of values that are at least 0, and their norm in units of it.

    Whatever the size of the values, neither overflows or lacks digits.
    """

    values: Tensor
    order: float


class Largest(NamedTuple):
    """The choice of the k largest values, for pieces that are `joint`; at least 0 unless k is 1."""

    values: Tensor
    k: int
    piece: Any


Question = Norm | Max | Sum | Kth | Stature | Largest
Program = Generator[Any, Any, T]


def decided(condition: bool | Tensor) -> bool:
    """Whether the condition is known to hold everywhere, if knowing it costs no synchronisation.

    On an accelerator the answer is no: the caller then takes the road that is right either way.
    """
    if isinstance(condition, Tensor):
        return condition.device.type == "cpu" and bool(condition.all())
    return bool(condition)


def pick(condition: bool | Tensor, yes: Any, no: Any) -> Any:
    """The one where the condition holds, the other elsewhere."""
    if isinstance(condition, Tensor):
        return torch.where(condition, yes, no)
    return yes if condition else no


def finite(number: Number) -> bool | Tensor:
    """Whether a number is finite."""
    return math.isfinite(number) if isinstance(number, (int, float)) else number.isfinite()


def larger(a: Number, b: Number) -> Number:
    """The larger of two numbers; not a number if either is none."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.maximum(a, b)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return torch.clamp(a, min=b) if isinstance(a, Tensor) else torch.clamp(b, min=a)  # pyright: ignore
    return a if a > b or a != a else b


def mask(compare: Any, values: Tensor, number: Number) -> Tensor:
    """A comparison as ones and zeros of the values' own dtype: several times faster on a host."""
    if isinstance(values, Tensor):
        return compare(values, number, out=torch.empty_like(values))
    return values.compared(compare, number)


def _sign_of(noise: Tensor, dtype: torch.dtype) -> Tensor:
    """The sign that noise stands for."""
    return (noise & 1).to(dtype).mul_(2).sub_(1)


class Piece:
    """The entries of some points that lie here, and how to reduce them.

    `size` is the number of entries of one whole point, an int, or a tensor with one number a
    point where they differ. `random` tells whether ties are drawn; if not, the first one wins.
    `joint` asks for few questions rather than for cheap ones, since each round of them is a message
    to other ranks: several at once, as a list, and choices of the largest values as one.
    """

    size: int | Tensor
    random: bool
    joint = False

    def answer(self, question: Question) -> Any:
        """The number asked for."""
        raise NotImplementedError

    def run(self, program: Program[T]) -> T:
        """What the program returns, its questions answered one by one."""
        answer = None
        while True:
            try:
                question = program.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = self.answer(question)

    def counts(self, count: Callable[[int], int]) -> Any:
        """What `count` makes of the number of entries of a point."""
        assert isinstance(self.size, int), "points of different sizes have no common count"
        return count(self.size)

    def filled(self, sign: Tensor) -> Tensor:
        """The signs, those that are zero drawn; NaN counts as zero or not."""
        return torch.where(sign == 0, self.signs(sign), sign)

    def marked(self, sign: Tensor, x: Tensor) -> Tensor:
        """The signs, NaN where x is not finite."""
        return sign.add_(x, alpha=0)

    def k_largest(self, values: Tensor, k: int) -> tuple[Number, Tensor] | None:
        """A value that exactly k of the values reach, and ones at those, where that is quick."""
        return None

    def _entries(self, like: Tensor) -> Tensor:
        """The number of each entry, all different within a tensor."""
        raise NotImplementedError

    def _key(self, like: Tensor) -> Tensor:
        """The key of the draw, broadcastable against the entries."""
        raise NotImplementedError

    def _points(self, like: Tensor) -> Tensor:
        """The number of each point, broadcastable against the entries."""
        raise NotImplementedError

    def noise(self, like: Tensor) -> Tensor:
        """Int64 noise for each entry, all different within a tensor."""
        return scramble(self._entries(like), self._key(like))

    def priority(self, like: Tensor) -> Tensor:
        """An int64 rank for each entry, all different: the highest wins a tie."""
        return self.noise(like) if self.random else -self._entries(like)

    def rank_of_none(self, like: Tensor) -> Tensor:
        """The rank, for each point, of an entry that no point has; without draws it always wins."""
        if not self.random:
            return torch.ones((), dtype=torch.int64, device=like.device)
        return scramble(-1 - self._points(like), self._key(like))

    def signs(self, like: Tensor) -> Tensor:
        """A random sign for each entry; zero where ties take the first solution.

        From the noise's last bit: its leading ones decide which entry wins a tie.
        """
        if not self.random:
            return torch.zeros_like(like)
        return _sign_of(self.noise(like), like.dtype)


class Dense(Piece):
    """One tensor whose first `lead` dimensions count points and whose others are their entries."""

    def __init__(self, x: Tensor, lead: int, draw: Draw | None) -> None:
        self.lead = lead
        self.dims = tuple(range(lead, x.ndim))
        self.size = math.prod(x.shape[lead:])
        self.random = draw is not None
        self._draw = draw
        self._host = not lead and x.device.type == "cpu"

    def answer(self, question: Question) -> Any:
        """One reduction."""
        values = question.values
        if isinstance(question, Norm):
            return self._norm(values, question.order)
        if isinstance(question, Stature):
            stature = self._stature(values, question.order)
            return tuple(each.item() for each in stature) if self._host else stature
        if isinstance(question, Kth):
            return self._kth(values, question.k)
        if isinstance(question, Max):
            found = values.amax(self.dims, keepdim=True) if self.lead else values.amax()
        else:
            found = values.sum(self.dims, keepdim=True) if self.lead else values.sum()
        return found.item() if self._host else found

    def _norm(self, x: Tensor, order: float) -> Number:
        if self.lead:
            norm = torch.linalg.vector_norm(x, order, self.dims, keepdim=True)
        else:
            norm = norm_of(x, order)
        low, high = safe_range(norm.dtype)
        if self._host:
            number = norm.item()
            return number if low < number < high else self._scaled_norm(x, order).item()
        safe = (norm > low) & (norm < high)
        return norm if decided(safe) else torch.where(safe, norm, self._scaled_norm(x, order))

    def _scaled_norm(self, x: Tensor, order: float) -> Tensor:
        """The norm of numbers whose powers would underflow or overflow."""
        top, norm = self._stature(x.abs(), order)
        return top * norm

    def _stature(self, sizes: Tensor, order: float) -> tuple[Tensor, Tensor]:
        top = sizes.amax(self.dims, keepdim=True)
        shares = sizes / torch.where(top > 0, top, 1)
        norm = torch.linalg.vector_norm(shares, order, self.dims, keepdim=True)
        return (top, norm) if self.lead else (top.reshape(()), norm.reshape(()))

    def _kth(self, values: Tensor, k: int | Tensor) -> Number:
        flat = values.flatten(self.lead)
        if self._host and isinstance(k, int):
            return separator(flat, k)
        if isinstance(k, int):
            kth = flat.kthvalue(flat.shape[-1] - k + 1, -1).values
        else:
            place = (k.reshape(flat.shape[: self.lead]).to(torch.int64) - 1).unsqueeze(-1)
            kth = flat.sort(-1, descending=True).values.gather(-1, place).squeeze(-1)
        if self._host:
            return kth.item()
        return kth.reshape(values.shape[: self.lead] + (1,) * len(self.dims)) if self.lead else kth

    def k_largest(self, values: Tensor, k: int) -> tuple[Number, Tensor] | None:
        return k_largest(values, k) if self._host else None

    def filled(self, sign: Tensor) -> Tensor:
        if not self._host:
            return sign if decided(sign != 0) else super().filled(sign)
        if self.size < EXACT_NORMS:  # a norm counts the others, faster than any comparison
            if torch.linalg.vector_norm(sign).item() ** 2 > self.size - 0.5:
                return sign
        elif sign.all():
            return sign
        if not sign.is_contiguous():
            return super().filled(sign)
        # Few entries are zero as a rule (those of dead inputs): noise for them alone.
        flat = sign.view(-1)
        places = flat.logical_not().nonzero().view(-1)
        drawn = _sign_of(scramble(places, self._key(sign)), sign.dtype)
        flat.scatter_(0, places, drawn)  # several times faster than an assignment
        return sign

    def _entries(self, like: Tensor) -> Tensor:
        return torch.arange(like.numel(), device=like.device).view(like.shape)

    def _key(self, like: Tensor) -> Tensor:
        assert self._draw is not None
        return self._draw.key(like.device)

    def _points(self, like: Tensor) -> Tensor:
        shape = like.shape[: self.lead] + (1,) * (len(self.dims) if self.lead else 0)
        return torch.arange(math.prod(shape), device=like.device).view(shape)


@functools.cache
def safe_range(dtype: torch.dtype) -> tuple[float, float]:
    """Between which norms no power of an entry that matters has underflowed or overflowed."""
    info = torch.finfo(dtype)
    return info.tiny**0.5 / info.eps, info.max**0.5


class Choice(NamedTuple):
    """What tells exactly k largest values of each point from the rest."""

    values: Tensor
    threshold: Number
    last: Number | None  # the lowest priority still taken among values at the threshold
    reached: Tensor  # ones at the values that reach the threshold


def largest(values: Tensor, k: int, piece: Piece) -> Program[Choice]:
    """The choice of k largest values; ties at the threshold go by priority."""
    if piece.joint:
        return (yield Largest(values, k, piece))
    found = piece.k_largest(values, k)
    if found is not None:
        return Choice(values, found[0], None, found[1])
    single = isinstance(k, int) and k == 1
    threshold = yield Max(values) if single else Kth(values, k)
    reached = mask(torch.ge, values, threshold)
    exact = reached if values.numel() < FLOAT_COUNTS else reached.double()
    if decided((yield Sum(exact)) == k):
        return Choice(values, threshold, None, reached)
    tied = values == threshold
    room = 1 if single else k - (yield Sum(values > threshold))
    ranks = torch.where(tied, piece.priority(values), LOWEST)
    last = yield Max(ranks) if single else Kth(ranks, room)
    return Choice(values, threshold, last, reached)


def taken(choice: Choice, piece: Piece) -> Tensor:
    """Ones at the values that were chosen."""
    if choice.last is None:
        return choice.reached
    values = choice.values
    tied = (values == choice.threshold) & (piece.priority(values) >= choice.last)
    return ((values > choice.threshold) | tied).to(values.dtype)
