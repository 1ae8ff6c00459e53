"""A split of a data set on the device, served in batches by index."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import torch
from torch import Tensor

from condgrad_lab import data
from condgrad_lab.data import Dataset, Split
from condgrad_lab.models import InputKind, architecture
from condgrad_lab.sparse import SparseRows
from condgrad_lab.spec import Data, Run

Inputs = Tensor | SparseRows


def seed_of(*words: object) -> int:
    """A seed from words: streams that differ in any word are unrelated."""
    text = "/".join(map(str, words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(*words: object) -> torch.Generator:
    """A generator seeded by these words alone, so that nothing of it must be saved to resume."""
    return torch.Generator().manual_seed(seed_of(*words))


def load(spec: Data, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """The samples that a run's data names; `folder` is where the user keeps the files."""
    if spec.synthetic and spec.train is not None and spec.test is not None:
        return data.synthetic(spec.name, train=spec.train, test=spec.test, seed=0)
    whole = data.load(spec.name, folder=folder)
    train, test = _cut(whole.train, spec.train), _cut(whole.test, spec.test)
    return Dataset(whole.name, train, test, whole.classes)


def _cut(split: Split, size: int | None) -> Split:
    """The first `size` samples in an order drawn once for all: some sets are sorted by class."""
    if size is None:
        return split
    if size > len(split):
        raise ValueError(f"a split of {len(split)} samples cannot be cut to {size}")
    chosen = torch.randperm(len(split), generator=generator("subset"))[:size]
    return Split(split.inputs[chosen], split.labels[chosen])


class Scale:
    """Bytes to numbers: images to [0, 1], colour images then to mean 0 and deviation 1 by channel.

    The channels' means and deviations are those of the training split, for both splits.
    """

    def __init__(self, train: Split, run: Run) -> None:
        self._dtype: torch.dtype = getattr(torch, run.dtype)
        self._moments: tuple[Tensor, Tensor] | None = None
        if architecture(run.model).input_kind is InputKind.COLOR and torch.is_tensor(train.inputs):
            mean, deviation = _moments(train.inputs)
            self._moments = mean.to(run.device, self._dtype), deviation.to(run.device, self._dtype)

    def __call__(self, inputs: Inputs) -> Inputs:
        if isinstance(inputs, SparseRows):
            return inputs
        scaled = inputs.to(self._dtype, memory_format=_layout(inputs)).div_(255)
        if self._moments is not None:
            mean, deviation = self._moments
            scaled.sub_(mean).div_(deviation)
        return scaled


class Samples:
    """One split, resident on the device in its compact form, made ready batch by batch."""

    def __init__(self, split: Split, run: Run, scale: Scale) -> None:
        self._inputs = _shaped(split.inputs, architecture(run.model).input_kind).to(run.device)
        self._labels = split.labels.to(run.device)
        self._scale = scale

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def device(self) -> torch.device:
        """Where the samples lie."""
        return self._labels.device

    def batches(self, size: int, order: Tensor | None = None) -> Iterator[tuple[Inputs, Tensor]]:
        """Inputs and labels, `size` at a time (the last may be fewer), in the given order."""
        order = torch.arange(len(self)) if order is None else order
        for chosen in order.to(self.device).split(size):
            yield self._scale(self._inputs[chosen]), self._labels[chosen]


def samples(dataset: Dataset, run: Run) -> tuple[Samples, Samples]:
    """The training and the test split, ready for the run's model on the run's device."""
    scale = Scale(dataset.train, run)
    return Samples(dataset.train, run, scale), Samples(dataset.test, run, scale)


def _shaped(inputs: Inputs, kind: InputKind) -> Inputs:
    if isinstance(inputs, SparseRows):
        return inputs
    if kind is InputKind.FLAT:
        return inputs.flatten(1)
    return inputs.unsqueeze(1) if kind is InputKind.GRAY else inputs


def _layout(images: Tensor) -> torch.memory_format:
    # Convolutions and poolings are faster with the channels innermost, on processors twice so.
    return torch.channels_last if images.ndim == 4 else torch.contiguous_format


def _moments(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation by channel, from the histogram of the bytes: exact, no float copy."""
    levels = torch.arange(256, dtype=torch.float64) / 255
    counts = [torch.bincount(images[:, c].flatten(), minlength=256) for c in range(images.shape[1])]
    share = torch.stack(counts).double() / counts[0].sum()
    mean = share @ levels
    deviation = (share @ levels**2 - mean**2).sqrt()
    return mean.view(-1, 1, 1), deviation.view(-1, 1, 1)
