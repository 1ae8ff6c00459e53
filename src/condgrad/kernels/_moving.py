"""The table of what moves from step to step: where gradients lie, and the learning rates."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

SPARES = 4
"""The host tables kept ready for captures, within which none can be allocated."""


class Moving:
    """The tables for the parameters on one device, in the order of the plan.

    A table is written on the host, in memory that the device fetches without a wait, and never
    again: the next one goes elsewhere, and torch hands the memory out anew only once it has been
    read. A captured graph fetches its table in every replay, so both stay with whom captures.
    """

    def __init__(self, order: Sequence[int], owners: Sequence[int], device: torch.device) -> None:
        self._order, self._owners = list(order), list(owners)
        self._device = device
        self._table = torch.zeros((3, len(order)), dtype=torch.int64, device=device)
        self._spares = [self._on_host() for _ in range(SPARES if device.type == "cuda" else 0)]
        self._last: Any = None
        self._buffers: dict[int, Tensor] = {}

    def _on_host(self) -> Tensor:
        cuda = self._device.type == "cuda"
        return torch.empty((3, len(self._order)), dtype=torch.int64, pin_memory=cuda)

    def table(self, addresses: list[int], rates: list[float | Tensor]) -> Tensor:
        """The table for gradients at these addresses and the learning rates of the groups."""
        now = (addresses, *self._split(rates))
        if now != self._last:
            self._fill(self._on_host(), now, self._table)
            self._last = now
        return self._table

    def captured(self, addresses: list[int], rates: list[float | Tensor]) -> tuple[Tensor, ...]:
        """A table of a graph's own, and after it what must live as long as the graph."""
        host = self._spares.pop() if self._spares else self._on_host()
        table = torch.empty_like(self._table)
        self._fill(host, (addresses, *self._split(rates)), table)
        self._last = None  # the capture has not filled the table of other steps
        return table, host, *(rate for rate in rates if isinstance(rate, Tensor))

    def tensors(self) -> list[Tensor]:
        """All that lies on the device."""
        return [self._table, *self._buffers.values()]

    def _fill(self, host: Tensor, now: tuple[Any, ...], table: Tensor) -> None:
        addresses, numbers, tensors = now
        columns = (
            array("q", [addresses[place] for place in self._order]),
            array("d", [numbers[owner] for owner in self._owners]),
            array("q", [tensors[owner] for owner in self._owners]),
        )
        for row, column in zip(host, columns, strict=True):
            row.copy_(torch.frombuffer(column, dtype=torch.int64))
        table.copy_(host, non_blocking=True)

    def _split(self, rates: list[float | Tensor]) -> tuple[list[float], list[int]]:
        """Learning rates as numbers, and as addresses where they are tensors on the device."""
        if set(map(type, rates)) == {float}:
            return rates, [0] * len(rates)  # pyright: ignore[reportReturnType]
        numbers, addresses = [], []
        for place, rate in enumerate(rates):
            held = self._held(place, rate)
            numbers.append(float(rate) if held is None else 0.0)
            addresses.append(0 if held is None else held.data_ptr())
        return numbers, addresses

    def _held(self, place: int, rate: float | Tensor) -> Tensor | None:
        """The learning rate where and as the kernels read it, if it is a tensor on a device."""
        if not isinstance(rate, Tensor) or rate.device.type != "cuda":
            return None
        if rate.device == self._device and rate.dtype == torch.float32:
            return rate
        empty = torch.empty((), dtype=torch.float32, device=self._device)
        return self._buffers.setdefault(place, empty).copy_(rate.reshape(()), non_blocking=True)
