"""Batches of binary sparse rows: which entries of each row are one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class SparseRows:
    """N rows of zeros and ones of one width, kept as the places of the ones.

    Row i has its ones at ``indices[offsets[i]:offsets[i + 1]]``, which is what
    ``torch.nn.functional.embedding_bag`` takes with ``include_last_offset=True``: a product with
    a dense matrix never needs the dense rows. A reader of text, which has 8,185 possible words
    and uses about 150, moves fifty times fewer numbers that way.
    """

    indices: Tensor
    offsets: Tensor
    width: int

    def __post_init__(self) -> None:
        # Only shapes and types: looking at values would make every batch wait for its device.
        for name in ("indices", "offsets"):
            value = getattr(self, name)
            if not isinstance(value, Tensor) or value.dtype != torch.int64 or value.dim() != 1:
                raise TypeError(f"`{name}` must be a 1-D int64 tensor, got {_describe(value)}")
        if len(self.offsets) == 0:
            raise ValueError("`offsets` needs one entry more than there are rows, got none")
        if self.indices.device != self.offsets.device:
            raise ValueError(
                f"`indices` and `offsets` must share a device, "
                f"got {self.indices.device} and {self.offsets.device}"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Tensor | slice) -> SparseRows:
        """The chosen rows in the order asked for; an index may repeat."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._run(start, max(start, stop))
            rows = torch.tensor(range(start, stop, step), dtype=torch.int64)
        if not isinstance(rows, Tensor) or rows.dtype != torch.int64 or rows.dim() != 1:
            raise TypeError(
                f"rows are chosen by a slice or a 1-D int64 tensor, not {_describe(rows)}"
            )
        return self._gather(self._counted_from_zero(rows.to(self.device)))

    def _run(self, start: int, stop: int) -> SparseRows:
        # Neighbouring rows lie next to each other: a view, shifted to start at zero.
        offsets = self.offsets[start : stop + 1]
        bounds = offsets[[0, -1]].tolist()
        return SparseRows(self.indices[slice(*bounds)], offsets - offsets[0], self.width)

    def _gather(self, rows: Tensor) -> SparseRows:
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        offsets = lengths.new_zeros(len(rows) + 1)
        torch.cumsum(lengths, 0, out=offsets[1:])
        # Entry j of the result lies (start of its row there − start of its row here) further on.
        shift = torch.repeat_interleave(starts - offsets[:-1], lengths)
        places = torch.arange(len(shift), device=self.device).add_(shift)
        # Four times as fast on a CPU as `indices[places]`.
        return SparseRows(self.indices.index_select(0, places), offsets, self.width)

    def _counted_from_zero(self, rows: Tensor) -> Tensor:
        if self.device.type == "cpu" and len(rows):
            low, high = int(rows.min()), int(rows.max())
            if low < -len(self) or high >= len(self):
                found = low if low < -len(self) else high
                raise IndexError(f"row {found} of {len(self)} rows does not exist")
        return torch.where(rows < 0, rows + len(self), rows)

    @property
    def device(self) -> torch.device:
        return self.indices.device

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> SparseRows:
        """The same rows on another device."""
        return SparseRows(
            self.indices.to(device, non_blocking=non_blocking),
            self.offsets.to(device, non_blocking=non_blocking),
            self.width,
        )

    def dense(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The rows as an ordinary (N, width) tensor of zeros and ones."""
        rows = torch.repeat_interleave(torch.arange(len(self), device=self.device), self.lengths)
        result = torch.zeros(len(self), self.width, dtype=dtype, device=self.device)
        result[rows, self.indices] = 1
        return result

    @property
    def lengths(self) -> Tensor:
        """The number of ones in each row."""
        return self.offsets.diff()

    def __repr__(self) -> str:
        return (
            f"SparseRows({len(self)} rows of width {self.width}, "
            f"{len(self.indices)} ones, device={str(self.device)!r})"
        )


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dim()}-D {str(value.dtype).removeprefix('torch.')} tensor"
    return f"{type(value).__name__}"
