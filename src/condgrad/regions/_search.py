"""The k-th largest value among entries on many ranks, to the bit, by counting."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._measure import Choice, Kth, Largest, mask
from ._ties import _shifted

_FORMS = {
    torch.float32: ("<f", "<i", torch.int32, 11),
    torch.float64: ("<d", "<q", torch.int64, 13),
}
"""How a float is packed, the integer it becomes, and the digits that one round settles."""
_FEW, _MOST = 10, 16
"""The digits of a priority that one round settles, at least and at most."""


class Search:
    """The search for the k-th largest of values that are at least 0, and for the k-th of ties.

    Read as integers such floats keep their order. Each round divides the range in which the answer
    lies into bins, and the ranks add up how many values each bin has: at most three rounds for
    float32, five for float64. Where more values are equal than have room, their priorities, which
    all differ, are searched in the same way: noise of 64 digits takes two rounds or three, the
    numbers of entries as many as their digits need.
    """

    def __init__(self, question: Kth | Largest) -> None:
        self._question = question
        self.values = question.values
        self._form = _FORMS[question.values.dtype]
        self._keys = question.values.reshape(-1).view(self._form[2]).long()
        self._places: Tensor | None = None  # of the candidates among the values here; None: all
        self._low = 0
        self._high = 2 ** (8 * question.values.element_size() - 1) - 1
        self._need = int(question.k)
        self._digits = self._form[3]
        self._threshold: float | None = None
        self.answer: Any = None

    # ---- a round: count, then narrow

    @property
    def _shift(self) -> int:
        return max(0, (self._high - self._low).bit_length() - self._digits)

    @property
    def width(self) -> int:
        """How many bins the next round has: the lowest value stands alone, as zeros often tie."""
        return 2 + ((self._high - self._low - 1) >> self._shift) if self._high > self._low else 1

    def counts(self) -> Tensor:
        """How many values each bin has here."""
        above = self._keys - self._low  # of 64 unsigned digits
        shift = self._shift
        bins = torch.where(above == 0, 0, 1 + (_shifted(above - 1, shift) if shift else above - 1))
        return torch.bincount(bins, minlength=self.width)

    def narrow(self, place: int, above: int, within: int) -> None:
        """Go on in a bin that has `within` values, and `above` in the bins beyond it."""
        shift = self._shift
        low = self._low + ((((place - 1) << shift) + 1) if place else 0)
        high = min(self._high, low + (1 << shift) - 1) if place else low
        self._need -= above
        kept = (self._keys >= low) & (self._keys <= high)
        self._low, self._high = low, high
        if self._need == within:
            self._settle(low, tied=None)
        elif high == low:
            self._settle(low, tied=kept, count=within)
        else:
            self._keep(kept)

    def _keep(self, kept: Tensor) -> None:
        self._keys = self._keys[kept]
        at = kept.nonzero().view(-1)
        self._places = at if self._places is None else self._places[at]

    # ---- what was found

    def _settle(self, key: int, tied: Tensor | None, count: int = 0) -> None:
        """A threshold, or the last priority, is known; `tied` are more entries than have room."""
        if self._threshold is not None:
            self._conclude(key)
            return
        real, whole = self._form[:2]
        self._threshold = struct.unpack(real, struct.pack(whole, key))[0]
        if tied is None or isinstance(self._question, Kth):
            self._conclude(None)
            return
        self._keep(tied)
        piece = self._question.piece
        self._keys = piece.ranks_at(self._places)
        random = piece.random
        self._low, self._high = (-(1 << 63), (1 << 63) - 1) if random else (1 - piece.size, 0)
        self._digits = min(max(count.bit_length() + 2, _FEW), _MOST)

    def _conclude(self, last: int | None) -> None:
        threshold = self._threshold
        assert threshold is not None
        if isinstance(self._question, Kth):
            self.answer = threshold
        else:
            reached = mask(torch.ge, self.values, threshold)
            self.answer = Choice(self.values, threshold, last, reached)


def narrowed(searches: Sequence[Search], counts: Tensor) -> None:
    """Let all searches go on, given the counts of all their bins over all ranks, end to end."""
    if not searches:
        return
    found: list[Tensor] = []
    for search, bins in zip(searches, counts.split([s.width for s in searches]), strict=True):
        reached = bins.flip(0).cumsum(0)
        at = torch.searchsorted(reached, search._need)
        within = bins.flip(0)[at]
        found.append(torch.stack([len(bins) - 1 - at, reached[at] - within, within]))
    numbers = torch.stack(found).tolist()
    for search, (place, above, within) in zip(searches, numbers, strict=True):
        search.narrow(place, above, within)
