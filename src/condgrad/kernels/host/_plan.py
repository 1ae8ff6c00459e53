"""What the host's kernels must know of a set of parameters, and the call that moves them all."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._fit import KINDS, layout_of, numbers_of, unit_of
from .._plan import RECALL_EVERY, Member, reals_of
from ._build import library
from ._table import Row

_KINDS = list(KINDS.values())


class HostPlan:
    """The table for the parameters on the host, of which only some fields change every step."""

    def __init__(self, members: Sequence[Member], places: Sequence[int], owners: Sequence[int]):
        self._members = list(members)
        self.places = list(places)
        self._owners = list(owners)
        self._rows = (Row * len(self._members))(*map(_row, self._members))
        self._table = ctypes.addressof(self._rows)
        self._call = library().condgrad_step

    def refresh(self, members: Sequence[Member]) -> None:
        """Take note of settings that changed without a change of structure."""
        self._members = list(members)
        for row, member in zip(self._rows, self._members, strict=True):
            for name, value in _numbers(member).items():
                setattr(row, name, value)

    def step(
        self, addresses: Sequence[int], rates: Sequence[float | Tensor], capturing: bool = False
    ) -> None:
        """Move every parameter; the gradients lie at the addresses of their places."""
        numbers = list(map(float, rates))
        for row, place, owner in zip(self._rows, self.places, self._owners, strict=True):
            row.gradient = addresses[place]
            row.rate = numbers[owner]
        if self._call(self._table, len(self._rows), RECALL_EVERY):
            self._recall()

    def _recall(self) -> None:
        """Pull those inside for whom it is time, unless their step had no length."""
        for row, member in zip(self._rows, self._members, strict=True):
            if member.region._drifts and row.length and not int(member.step) % RECALL_EVERY:
                point = member.parameter if member.parameter.ndim else member.parameter.view(1)
                point.copy_(member.region._recalled(point))


def _row(member: Member) -> Row:
    layout = layout_of(member.parameter)
    assert layout is not None
    return Row(
        theta=member.parameter.data_ptr(),
        average=None if member.average is None else member.average.data_ptr(),
        step=member.step.data_ptr(),
        kind=_KINDS.index(member.kind),
        wide=member.parameter.dtype is torch.float64,
        ruled=member.rescale == "gradient",
        random=member.random,
        rows=member.rows,
        size=member.size,
        mid=layout.mid,
        inner=layout.inner,
        seed=member.seed,
        number=member.number,
        **_numbers(member),
    )


def _numbers(member: Member) -> dict[str, Any]:
    """What may change without a change of structure."""
    numbers = numbers_of(unit_of(member.region), member.size) | reals_of(member)
    names = "RADIUS LOW HIGH FRESH SIGN DIAMETER COUNT"
    return {name.lower(): numbers[name] for name in names.split()}
