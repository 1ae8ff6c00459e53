"""What the host's kernels must know of a set of parameters, and the call that moves them all."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._fit import KINDS, layout_of
from .._plan import RECALL_EVERY, Member, reals_of
from ._build import library
from ._table import Row

_KINDS = list(KINDS.values())


class HostPlan:
    """The table for the parameters on the host, of which only some fields change every step."""

    def __init__(
        self, members: Sequence[Member], places: Sequence[int], owners: Sequence[int]
    ) -> None:
        self._members = list(members)
        self._places, self._owners = list(places), list(owners)
        self._rows = (Row * len(self._members))(*map(_row, self._members))
        self._table = ctypes.addressof(self._rows)
        self._call = library().condgrad_step

    def refresh(self, groups: Sequence[dict[str, Any]]) -> None:
        """Take note of settings that changed without a change of structure."""
        for place, (row, owner) in enumerate(zip(self._rows, self._owners, strict=True)):
            group, member = groups[owner], self._members[place]
            row.fresh, row.sign = 1 - group["momentum"], -1 if group["maximize"] else 1
            if group["region"] is not member.region:
                self._members[place] = member._replace(region=group["region"])
                for name, value in _sizes(self._members[place]).items():
                    setattr(row, name, value)

    def step(
        self, addresses: Sequence[int], rates: Sequence[float | Tensor], capturing: bool = False
    ) -> None:
        """Move every parameter; the gradients lie at the addresses of their places."""
        numbers = list(map(float, rates))
        for row, place, owner in zip(self._rows, self._places, self._owners, strict=True):
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
        fresh=member.fresh,
        sign=-1 if member.maximize else 1,
        **_sizes(member),
    )


def _sizes(member: Member) -> dict[str, Any]:
    """The numbers of its region, which may change without a change of structure."""
    numbers, names = reals_of(member), ("RADIUS", "LOW", "HIGH", "DIAMETER", "COUNT")
    return {name.lower(): numbers[name] for name in names}
