"""A split whose pictures are decoded by other processes while the device computes."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import current_process

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from condgrad_lab.data import Pictures, Split
from condgrad_lab.environment import cores
from condgrad_lab.models import architecture
from condgrad_lab.spec import Run
from condgrad_lab.train import _draws
from condgrad_lab.train._draws import Draws, generator
from condgrad_lab.train._scale import Scale
from condgrad_lab.train._team import ALONE, Team

FEW = 1000
"""Pictures that are not worth the start of other processes."""

Key = tuple[int, int | None]


class Stream:
    """One split, decoded batch after batch; it is asked what `Samples` is asked."""

    def __init__(
        self, split: Split, run: Run, scale: Scale, *, augment: bool, workers: int | None
    ) -> None:
        assert isinstance(split.inputs, Pictures)
        self._decoded = _Decoded(split.inputs, split.labels, architecture(run.model).shape[-1])
        self._augment = augment
        self._workers = workers
        self._scale = scale
        self.device = torch.device(run.device)

    def __len__(self) -> int:
        return len(self._decoded.labels)

    def draws(self, seed: int, epoch: int) -> Draws:
        """What chance decides of an epoch of training on these pictures."""
        order = torch.randperm(len(self), generator=generator(seed, "order", epoch))
        if not self._augment:
            return Draws(order)
        return Draws(order, _draws.seeds(len(self), generator(seed, "augment", epoch)))

    def batches(
        self, size: int, draws: Draws | None = None, team: Team = ALONE
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and labels as `Samples.batches` gives them."""
        draws = Draws(torch.arange(len(self))) if draws is None else draws
        workers = self._readers(len(draws), team)
        loader = DataLoader(
            self._decoded,
            batch_sampler=_Keys(draws, size, team),  # type: ignore[arg-type]
            num_workers=workers,
            prefetch_factor=4 if workers else None,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator(),  # else it would draw a number from the global one
        )
        for pixels, labels in loader:
            images = pixels.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
            inputs = self._scale(images)
            assert isinstance(inputs, Tensor)
            yield inputs, labels.to(self.device, non_blocking=True)

    def _readers(self, count: int, team: Team) -> int:
        if current_process().daemon:  # a worker of the queue, which may not start processes
            return 0
        if self._workers is not None:
            return self._workers
        return 0 if count <= FEW else max(cores() // team.size, 1)


class _Decoded(Dataset[tuple[Tensor, int]]):
    """Pictures by (number, seed of their crop or None)."""

    def __init__(self, pictures: Pictures, labels: Tensor, side: int) -> None:
        self._pictures, self.labels, self._side = pictures, labels, side

    def __getitem__(self, key: Key) -> tuple[Tensor, int]:
        number, seed = key
        pixels = self._pictures.pixels(number, self._side, seed)
        return torch.from_numpy(pixels), int(self.labels[number])


class _Keys:
    """The keys of each batch, made one batch after the other: an epoch may have millions."""

    def __init__(self, draws: Draws, size: int, team: Team) -> None:
        self._draws, self._size, self._team = draws, size, team

    def __iter__(self) -> Iterator[list[Key]]:
        for part in self._draws.split(self._size):
            share = self._team.share(part)
            moves = share.moves
            seeds = [None] * len(share) if moves is None else moves.flatten().tolist()
            if len(share):
                yield list(zip(share.order.tolist(), seeds, strict=True))
