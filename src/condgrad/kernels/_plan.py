"""What the kernels must know of a set of parameters: tables on the device, launches on the host."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..regions import Region
from ._fit import FLAT, KINDS, layout_of, numbers_of, rows_of, unit_of

RECALL_EVERY = 16
SMALL = 8192
"""The largest point whose K-th largest value one program finds."""
BIG = 1 << 26
"""The number of entries from which larger chunks pay."""


class Member(NamedTuple):
    """One parameter in a plan, and how it moves.

    Of its gradient only what a plan depends on: the tensor itself is the next pass's to free.
    """

    parameter: Tensor
    format: torch.dtype
    aligned: bool
    average: Tensor | None
    step: Tensor
    region: Region
    rescale: str | None
    random: bool
    seed: int
    number: int
    fresh: float
    maximize: bool
    dithered: bool

    @property
    def kind(self) -> str:
        """The name under which the kernels know the region."""
        return KINDS[type(unit_of(self.region))]

    @property
    def rows(self) -> int:
        """The number of points."""
        return rows_of(self.parameter, self.region)

    @property
    def size(self) -> int:
        """The number of entries of a point."""
        return self.parameter.numel() // self.rows


class Bucket(NamedTuple):
    """What members that share their launches have in common."""

    kind: str
    rule: bool
    averaged: bool
    random: bool
    flat: bool
    aligned: bool
    large: bool
    dithered: bool
    g: torch.dtype
    m: torch.dtype
    x: torch.dtype

    @property
    def measured(self) -> bool:
        """Whether a pass must measure before another can move."""
        return self.rule or self.kind not in ("FREE", "LINF", "BOX")

    @property
    def selects(self) -> bool:
        """Whether the region asks for a K-th largest value."""
        return self.kind in ("KSPARSE", "KNORM")


def bucket_of(member: Member) -> Bucket:
    """The bucket of a member."""
    kind, x, average = member.kind, member.parameter, member.average
    tensors = [x] if average is None else [x, average]
    aligned = member.aligned and all(tensor.data_ptr() % 16 == 0 for tensor in tensors)
    return Bucket(
        kind=kind,
        rule=member.rescale == "gradient" and kind != "FREE",
        averaged=average is not None,
        random=member.random,
        flat=layout_of(x) == FLAT,
        aligned=aligned and (member.rows == 1 or member.size % 8 == 0),
        large=kind in ("KSPARSE", "KNORM") and member.size > SMALL,
        dithered=member.dithered,
        g=member.format,
        m=member.format if average is None else average.dtype,
        x=x.dtype,
    )


@dataclass
class Share:
    """A bucket's place in the tables: its tensors, its chunks, and how chunks are cut."""

    bucket: Bucket
    members: list[int] = field(default_factory=list)
    block: int = 1024
    loop: int = 4
    first: int = 0
    chunks: int = 0


class Tables:
    """The tables of a plan on its device."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self.device = members[0].parameter.device
        self.shares = self._shared()
        self.order = list(itertools.chain.from_iterable(s.members for s in self.shares))
        self.columns = self._cut()
        self._allocate()

    def _shared(self) -> list[Share]:
        shares: dict[Bucket, Share] = {}
        for number, member in enumerate(self.members):
            bucket = bucket_of(member)
            shares.setdefault(bucket, Share(bucket)).members.append(number)
        total = sum(member.parameter.numel() for member in self.members)
        for share in shares.values():
            if share.bucket.selects and not share.bucket.large:
                share.loop = SMALL // share.block
            elif total >= BIG:
                share.loop = 16
        return list(shares.values())

    def _cut(self) -> dict[str, list[Any]]:
        """Every tensor's row in the tables, column by column; chunks, points and counters dealt."""
        columns: dict[str, list[Any]] = {}
        self.chunks = self.points = self.counted = 0
        for share in self.shares:
            share.first = self.chunks
            for place in share.members:
                row = self._row(self.members[place], share)
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
            share.chunks = self.chunks - share.first
        return columns

    def _row(self, member: Member, share: Share) -> dict[str, Any]:
        x, average, bucket = member.parameter, member.average, share.bucket
        layout = layout_of(x)
        assert layout is not None
        parts = math.ceil(member.size / (share.block * share.loop))
        row = {
            "THETA": x.data_ptr(),
            "AVERAGE": 0 if average is None else average.data_ptr(),
            "STEP": member.step.data_ptr(),
            "SEED": member.seed,
            "NUMBER": member.number,
            "ROWS": member.rows,
            "SIZE": member.size,
            "FIRST": self.chunks,
            "PARTS": parts,
            "POINT": self.points,
            "BINS": self.counted,
            "MID": layout.mid,
            "INNER": layout.inner,
            "HALVED": int(x.element_size() < 4),
            "FRESH": member.fresh,
            "SIGN": -1.0 if member.maximize else 1.0,
            **reals_of(member),
        }
        self.chunks += parts * member.rows
        self.points += member.rows if bucket.measured else 0
        self.counted += member.rows if bucket.large else 0
        return row

    def _allocate(self) -> None:
        from .gpu import _tables as at

        T, C, P = len(self.order), self.chunks, self.points
        measured = any(share.bucket.measured for share in self.shares)
        topped = any(s.bucket.kind in ("L1", "USIMPLEX", "PSIMPLEX", "KNORM") for s in self.shares)
        ints = [self.columns[name] for name in at.INTS.split()]
        owners = [
            torch.full((s,), place, dtype=torch.int32) for place, s in enumerate(self._spans())
        ]
        self.ints = placed(torch.tensor(ints, dtype=torch.int64), self.device)
        self.reals = placed(self._reals(), self.device)
        self.owners = placed(torch.cat(owners), self.device)
        wide, long = torch.float64, torch.int64
        self.keys = self._empty(T, long)
        self.rates = self._empty(T, wide)
        self.lengths = self._empty(T, wide)
        self.due = self._empty(T, torch.int32)
        self.all_sums = self._empty(at.columns(at.SUMS) * C if measured else 1, wide)
        self.all_tops = self._empty(at.columns(at.TOPS) * C if topped else 1, long)
        self.records = self._empty(at.columns(at.RECORD) * P, wide)
        self.choices = self._empty(at.columns(at.CHOICE) * P, long)
        self.all_bins = self._empty(self.counted * at.DIGITS.value, torch.int32).zero_()
        self.counters = self._empty(P + T, torch.int32).zero_()
        self.pending = self._empty(2, torch.int32).zero_()

    def tensors(self) -> list[Tensor]:
        """All that lies on the device."""
        return [value for value in vars(self).values() if isinstance(value, Tensor)]

    def _spans(self) -> Iterator[int]:
        """The number of chunks of every tensor."""
        return (p * r for p, r in zip(self.columns["PARTS"], self.columns["ROWS"], strict=True))

    def _empty(self, count: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(max(count, 1), dtype=dtype, device=self.device)

    def _reals(self) -> Tensor:
        from .gpu import _tables as at

        columns = [self.columns[name] for name in at.REALS.split()]
        flat = array("d", itertools.chain.from_iterable(columns))
        return torch.frombuffer(flat, dtype=torch.float64).view(len(columns), -1)

    def refresh(self, settings: Sequence[tuple[Region, float, bool]]) -> None:
        """Take note of every member's region, share of the gradient, and wish to ascend.

        Schedules that turn momentum come here in every step, so what is the same is left as it is.
        """
        for row, place in enumerate(self.order):
            member = self.members[place]
            region, fresh, maximize = settings[place]
            self.columns["FRESH"][row] = fresh
            self.columns["SIGN"][row] = -1.0 if maximize else 1.0
            if region is not member.region:
                self.members[place] = member._replace(region=region)
                for name, value in reals_of(self.members[place]).items():
                    self.columns[name][row] = value
        self.reals.copy_(pinned(self._reals(), self.device), non_blocking=True)


def reals_of(member: Member) -> dict[str, float]:
    """The numbers of a member's region that may change without a change of structure; and K."""
    ruled = member.rescale == "diameter" and member.kind != "FREE"
    shape = member.parameter.shape or (1,)
    return {
        **numbers_of(unit_of(member.region), member.size),
        "DIAMETER": member.region.diameter(shape) if ruled else 1.0,
    }


def pinned(x: Tensor, device: torch.device) -> Tensor:
    """The host tensor where a CUDA device can fetch it without a wait."""
    return x.pin_memory() if device.type == "cuda" else x


def placed(x: Tensor, device: torch.device) -> Tensor:
    """The host tensor on the device, without waiting for it."""
    return pinned(x, device).to(device, non_blocking=True)
