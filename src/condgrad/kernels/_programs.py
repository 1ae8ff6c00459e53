"""Which kernels a step launches, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ._launch import Launch
from ._plan import RECALL_EVERY, SMALL, Bucket, Share, Tables

VALUE_DIGITS = ((23, 8), (11, 12), (0, 11))
"""Shift and width of the digits of |x|, 31 bits, from the top."""
RANK_DIGITS = ((52, 12), (40, 12), (28, 12), (16, 12), (4, 12), (0, 4))
"""Shift and width of the digits of a priority."""
TICKS = 128
WIDE, NARROW = 2048, 512
"""The entries among which a program of a large selection counts digits of values, or of ties."""


class Programs:
    """The launches of a step over some tables, in order."""

    def __init__(self, tables: Tables) -> None:
        from .gpu import _tick

        self._tables = tables
        arguments = {**self._common(), "every": RECALL_EVERY, "BLOCK": TICKS}
        programs = -(-len(tables.order) // TICKS)
        self.launches = [Launch(_tick.tick, programs, arguments, num_warps=4)]
        for share in tables.shares:
            self.launches += [*self._recalling(share), *self._moving(share)]

    def run(self, moving: torch.Tensor, stream: int | None) -> None:
        """Launch them all."""
        for launch in self.launches:
            launch(moving, stream)

    def _common(self) -> dict[str, Any]:
        t = self._tables
        names = (
            "ints reals owners keys rates lengths due all_sums all_tops records choices all_bins "
            "counters pending"
        )
        return {
            **{name: getattr(t, name) for name in names.split()},
            "moving": None,
            "T": len(t.order),
            "C": t.chunks,
            "P": t.points,
        }

    def _arguments(self, share: Share) -> dict[str, Any]:
        from .gpu import _tables as at

        bucket = share.bucket
        kinds: list[str] = [*at.KINDS.split()]
        return {
            **self._common(),
            "first": share.first,
            "chunks": share.chunks,
            "KIND": kinds.index(bucket.kind),
            "RULE": bucket.rule,
            "AVERAGED": bucket.averaged,
            "RANDOM": bucket.random,
            "FLAT": bucket.flat,
            "COUNTED": bucket.kind == "KSPARSE" and bucket.large,
            "MEASURED": bucket.measured,
            "ALIGNED": bucket.aligned,
            "DITHERED": bucket.dithered,
            "G_TYPE": type_of(bucket.g),
            "M_TYPE": type_of(bucket.m),
            "X_TYPE": type_of(bucket.x),
            "BLOCK": share.block,
            "LOOP": share.loop,
        }

    def _recalling(self, share: Share) -> list[Launch]:
        """The K-norm ball's gauge needs the K-th largest |θ| before anything else.

        The device knows when points are pulled back inside; between, these launches end at once.
        """
        if share.bucket.kind != "KNORM":
            return []
        return list(self._selecting(share, "theta"))

    def _moving(self, share: Share) -> list[Launch]:
        from .gpu import _measure, _update

        bucket, arguments = share.bucket, self._arguments(share)
        launches = []
        if bucket.measured:
            settings = {"num_warps": 4, **room_of(bucket, "measure")}
            launches.append(Launch(_measure.measure, share.chunks, arguments, **settings))
        if bucket.kind == "KSPARSE":
            launches += self._selecting(share, "average" if bucket.averaged else "gradient")
        settings = {"num_warps": 4, **room_of(bucket, "update")}
        if bucket.rule and bucket.kind in ("KSPARSE", "LP"):
            launches.append(Launch(_update.gap, share.chunks, arguments, **settings))
        launches.append(Launch(_update.update, share.chunks, arguments, **settings))
        return launches

    def _selecting(self, share: Share, source: str) -> Iterator[Launch]:
        from .gpu import _select

        bucket, arguments = share.bucket, self._arguments(share)
        kinds = {"theta": bucket.x, "average": bucket.m, "gradient": bucket.g}
        arguments |= {"SOURCE": source, "TYPE": type_of(kinds[source])}
        if not bucket.large:
            whole = {**arguments, "BLOCK": SMALL}
            yield Launch(_select.select_small, share.chunks, whole, num_warps=16)
            return
        settings = {"num_warps": 4, **room_of(bucket, "select")}
        chunk = share.block * share.loop
        wide = {"BLOCK": WIDE, "LOOP": chunk // WIDE}
        narrow = {"BLOCK": NARROW, "LOOP": chunk // NARROW}
        for shift, width in VALUE_DIGITS:
            digit = {**arguments, **wide, "SHIFT": shift, "WIDTH": width}
            yield Launch(_select.count_digits, share.chunks, digit, **settings)
        for shift, width in RANK_DIGITS if source != "theta" else ():
            digit = {**arguments, **narrow, "SHIFT": shift, "WIDTH": width}
            yield Launch(_select.count_ties, share.chunks, digit, **settings)


def room_of(bucket: Bucket, kernel: str) -> dict[str, int]:
    """How many registers a thread may take.

    The assembler, left alone, would sometimes rather spill a few for one more program. It is left
    alone where it does not: on float32 tensors as they usually lie.
    """
    usual = bucket.flat and bucket.aligned and {bucket.g, bucket.m, bucket.x} == {torch.float32}
    if usual:
        return {}
    if bucket.flat:
        return {"maxnreg": 128}
    return {"maxnreg": 255 if (bucket.kind, kernel) == ("KNORM", "measure") else 168}


def type_of(dtype: torch.dtype) -> Any:
    """Triton's name of a format."""
    import triton.language as tl  # pyright: ignore[reportMissingImports]

    return {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}[
        dtype
    ]
