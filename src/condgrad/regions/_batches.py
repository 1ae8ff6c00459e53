"""Many tensors answered at once: points of one size stacked, points of many sizes end to end."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from ._measure import LOWEST, Dense, Kth, Max, Norm, Piece, Question, Stature
from ._ties import Draw, keys


class Stack(Dense):
    """Tensors of one size, one below the other: each is one point and has a draw of its own."""

    def __init__(self, x: Tensor, draws: list[Draw] | None) -> None:
        super().__init__(x, 1, None)
        self.random = draws is not None
        self._draws = draws

    def _entries(self, like: Tensor) -> Tensor:
        return torch.arange(like[0].numel(), device=like.device).view(like.shape[1:])

    def _key(self, like: Tensor) -> Tensor:
        assert self._draws is not None
        return on(like.device, keys(self._draws)).view((-1,) + (1,) * (like.ndim - 1))

    def _points(self, like: Tensor) -> Tensor:
        return torch.zeros((), dtype=torch.int64, device=like.device)


class Ragged(Piece):
    """Tensors of many sizes end to end in one vector: each is one point, has a draw of its own.

    Every number a point is spread over the point's entries, so that it meets them elementwise.
    """

    def __init__(self, x: Tensor, sizes: list[int], draws: list[Draw] | None) -> None:
        self._sizes = sizes
        self._total = sum(sizes)
        self._lengths = on(x.device, torch.tensor(sizes))
        self.size = self.spread(self._lengths.to(x.dtype))  # powers of it keep x's precision
        self.random = draws is not None
        self._draws = draws

    def spread(self, numbers: Tensor) -> Tensor:
        """One number a point, repeated for each of its entries."""
        return numbers.repeat_interleave(self._lengths, output_size=self._total)

    def answer(self, question: Question) -> Any:
        """One multi-tensor reduction, spread over the entries."""
        values = question.values
        if isinstance(question, Norm):
            top, norm = self._stature(values.abs(), question.order)
            return self.spread(top * norm)
        if isinstance(question, Stature):
            top, norm = self._stature(values, question.order)
            return self.spread(top), self.spread(norm)
        if isinstance(question, Kth):
            raise NotImplementedError("points of different sizes have no common count")
        if isinstance(question, Max):
            return self.spread(self._max(values))
        sums = torch.segment_reduce(values.double(), "sum", lengths=self._lengths, unsafe=True)
        return self.spread(sums.to(values.dtype if values.is_floating_point() else torch.int64))

    def _stature(self, sizes: Tensor, order: float) -> tuple[Tensor, Tensor]:
        top = self._max(sizes)
        shares = sizes / self.spread(torch.where(top > 0, top, 1))
        norms = torch._foreach_norm(shares.split(self._sizes), order)
        return top, torch.stack(list(norms))

    def _max(self, values: Tensor) -> Tensor:
        if values.is_floating_point():
            return torch.stack(list(torch._foreach_max(values.split(self._sizes))))
        owners = self.spread(torch.arange(len(self._sizes), device=values.device))
        lowest = torch.full((len(self._sizes),), LOWEST, device=values.device)
        return lowest.scatter_reduce_(0, owners, values, "amax")

    def _entries(self, like: Tensor) -> Tensor:
        starts = [0, *itertools.accumulate(self._sizes)][:-1]
        numbers = torch.arange(self._total, device=like.device)
        return numbers - self.spread(on(like.device, torch.tensor(starts)))

    def _key(self, like: Tensor) -> Tensor:
        assert self._draws is not None
        return self.spread(on(like.device, keys(self._draws)))

    def _points(self, like: Tensor) -> Tensor:
        return torch.zeros((), dtype=torch.int64, device=like.device)


def on(device: torch.device, numbers: Tensor) -> Tensor:
    """A small tensor of the host on a device, without waiting for it."""
    if device.type == "cuda" and numbers.is_cpu:
        if torch.cuda.is_current_stream_capturing():
            # A graph would read the host's memory again, whoever has it by then.
            dtype = numbers.dtype
            return torch.stack(
                [torch.full((), n, dtype=dtype, device=device) for n in numbers.tolist()]
            )
        numbers = numbers.pin_memory()
    return numbers.to(device, non_blocking=True)
