"""What chance decides of an epoch: the order of the samples, and how each of them is moved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

PAD = 4
"""Pixels of black around a small image before a part of its own size is cut out."""


def seed_of(*words: object) -> int:
    """A seed from words: streams that differ in any word are unrelated."""
    text = "/".join(map(str, words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(*words: object) -> torch.Generator:
    """A generator seeded by these words alone, so that nothing of it must be saved to resume."""
    return torch.Generator().manual_seed(seed_of(*words))


@dataclass(frozen=True, eq=False)
class Draws:
    """Samples in the order in which they are seen, with a row of `moves` each, if they move.

    The row of a small image is (rows down, columns right, flip), that of a picture in a file is a
    seed, since how often its crop must be drawn depends on its size.
    """

    order: Tensor
    moves: Tensor | None = None

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, places: slice) -> Draws:
        """A part of it."""
        return Draws(self.order[places], None if self.moves is None else self.moves[places])

    def at(self, places: Tensor) -> Draws:
        """The part at these places, without a wait for their device."""
        moves = None if self.moves is None else self.moves.index_select(0, places)
        return Draws(self.order.index_select(0, places), moves)

    def split(self, size: int) -> Iterator[Draws]:
        """Parts of that size; the last may be smaller."""
        return (self[start : start + size] for start in range(0, len(self), size))

    def to(self, device: torch.device | str) -> Draws:
        """The same on another device."""
        moves = None if self.moves is None else self.moves.to(device)
        return Draws(self.order.to(device), moves)


def crops(count: int, generator: torch.Generator) -> Tensor:
    """Moves of small images."""
    corners = torch.randint(2 * PAD + 1, (count, 2), generator=generator)
    return torch.cat([corners, torch.randint(2, (count, 1), generator=generator)], 1)


def seeds(count: int, generator: torch.Generator) -> Tensor:
    """Moves of pictures."""
    return torch.randint(1 << 62, (count, 1), generator=generator)


def padded(images: Tensor) -> Tensor:
    """Images (N, C, H, W) with black around them, the channels innermost: (N, H + 8, W + 8, C)."""
    return torch.nn.functional.pad(images, (PAD,) * 4).permute(0, 2, 3, 1).contiguous()


def bare(padded: Tensor) -> Tensor:
    """The images without their frame, as (N, C, H, W)."""
    return padded[:, PAD:-PAD, PAD:-PAD].permute(0, 3, 1, 2)


def moved(padded: Tensor, draws: Draws) -> Tensor:
    """The images drawn, moved and flipped, as (n, C, H, W) with the channels innermost."""
    assert draws.moves is not None
    height, width = padded.shape[1] - 2 * PAD, padded.shape[2] - 2 * PAD
    down, right, flip = draws.moves.unbind(1)
    across = torch.arange(width, device=padded.device)
    rows = down[:, None] + torch.arange(height, device=padded.device)
    columns = right[:, None] + torch.where(flip[:, None] > 0, width - 1 - across, across)
    found = padded[draws.order[:, None, None], rows[:, :, None], columns[:, None, :]]
    return found.permute(0, 3, 1, 2)
