"""A split of a data set on the device, served in batches by index."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from torch import Tensor

from condgrad_lab import data
from condgrad_lab.data import Dataset, Pictures, Split
from condgrad_lab.models import InputKind, architecture
from condgrad_lab.sparse import SparseRows
from condgrad_lab.spec import Data, Run
from condgrad_lab.train import _draws
from condgrad_lab.train._draws import Draws, generator
from condgrad_lab.train._scale import Inputs, Scale
from condgrad_lab.train._stream import Stream
from condgrad_lab.train._team import ALONE, Team


def load(spec: Data, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """The samples that a run's data names; `folder` is where the user keeps the files."""
    if spec.synthetic and spec.train is not None and spec.test is not None:
        size = spec.train + (spec.validation or 0)
        return _held_out(data.synthetic(spec.name, train=size, test=spec.test, seed=0), spec)
    whole = _held_out(data.load(spec.name, folder=folder), spec)
    train, test = _cut(whole.train, spec.train), _cut(whole.test, spec.test)
    return Dataset(whole.name, train, test, whole.classes)


def _held_out(whole: Dataset, spec: Data) -> Dataset:
    """The data set with a part of the training split in the test's place, if the run says so."""
    size, split = spec.validation, whole.train
    if size is None:
        return whole
    if size >= len(split):
        raise ValueError(f"`validation` takes {size} of {len(split)} samples and leaves none")
    order = torch.randperm(len(split), generator=generator("validation"))
    return Dataset(whole.name, _picked(split, order[size:]), _picked(split, order[:size]),
                   whole.classes)  # fmt: skip


def _picked(split: Split, chosen: Tensor) -> Split:
    return Split(split.inputs[chosen], split.labels[chosen])


def _cut(split: Split, size: int | None) -> Split:
    """The first `size` samples in an order drawn once for all: some sets are sorted by class."""
    if size is None:
        return split
    if size > len(split):
        raise ValueError(f"a split of {len(split)} samples cannot be cut to {size}")
    return _picked(split, torch.randperm(len(split), generator=generator("subset"))[:size])


class Samples:
    """One split, resident on the device in its compact form, made ready batch by batch.

    With `augment` its images can be moved, and lie there with black around them.
    """

    def __init__(self, split: Split, run: Run, scale: Scale, *, augment: bool = False) -> None:
        assert not isinstance(split.inputs, Pictures)
        inputs = _shaped(split.inputs, architecture(run.model).input_kind).to(run.device)
        if augment and not (torch.is_tensor(inputs) and inputs.ndim == 4):
            raise ValueError(f"`augment` moves images, but {run.model} is not fed with images")
        self._framed = augment
        self._inputs = _draws.padded(inputs) if augment else inputs  # type: ignore[arg-type]
        self._labels = split.labels.to(run.device)
        self._scale = scale

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def device(self) -> torch.device:
        """Where the samples lie."""
        return self._labels.device

    def draws(self, seed: int, epoch: int) -> Draws:
        """What chance decides of an epoch of training on these samples."""
        order = torch.randperm(len(self), generator=generator(seed, "order", epoch))
        if not self._framed:
            return Draws(order)
        return Draws(order, _draws.crops(len(self), generator(seed, "augment", epoch)))

    def batch(self, draws: Draws) -> tuple[Inputs, Tensor]:
        """The inputs and labels of these draws, which lie on the device as well."""
        if draws.moves is not None:
            inputs = _draws.moved(self._inputs, draws)  # type: ignore[arg-type]
        else:
            inputs = self._inputs[draws.order]
            inputs = _draws.bare(inputs) if self._framed else inputs  # type: ignore[arg-type]
        return self._scale(inputs), self._labels[draws.order]

    def batches(
        self, size: int, draws: Draws | None = None, team: Team = ALONE
    ) -> Iterator[tuple[Inputs, Tensor]]:
        """Inputs and labels, `size` at a time (the last may be fewer), in the given order.

        The processes of a team get a part of each batch; some may get nothing of the last.
        """
        draws = Draws(torch.arange(len(self))) if draws is None else draws
        for part in draws.to(self.device).split(size):
            if len(share := team.share(part)):
                yield self.batch(share)


Source = Samples | Stream


def samples(dataset: Dataset, run: Run, workers: int | None = None) -> tuple[Source, Source]:
    """The training and the test split, ready for the run's model on the run's device."""
    scale = Scale(dataset.train, run)
    if isinstance(dataset.train.inputs, Pictures):
        train = Stream(dataset.train, run, scale, augment=run.augment, workers=workers)
        return train, Stream(dataset.test, run, scale, augment=False, workers=workers)
    train = Samples(dataset.train, run, scale, augment=run.augment)
    return train, Samples(dataset.test, run, scale)


def _shaped(inputs: Inputs, kind: InputKind) -> Inputs:
    if isinstance(inputs, SparseRows):
        return inputs
    if kind is InputKind.FLAT:
        return inputs.flatten(1)
    return inputs.unsqueeze(1) if kind is InputKind.GRAY else inputs
