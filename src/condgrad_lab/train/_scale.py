"""From bytes to the numbers that a network is fed with."""

from __future__ import annotations

import torch
from torch import Tensor

from condgrad_lab.data import Split
from condgrad_lab.data.pictures import DEVIATION, MEAN
from condgrad_lab.models import InputKind, architecture
from condgrad_lab.sparse import SparseRows
from condgrad_lab.spec import Run

Inputs = Tensor | SparseRows


class Scale:
    """Bytes to numbers: images to [0, 1], colour images then to mean 0 and deviation 1 by channel.

    The channels' means and deviations are those of the training split, for both splits; those of
    pictures in files are the ones in common use.
    """

    def __init__(self, train: Split, run: Run) -> None:
        self._dtype: torch.dtype = getattr(torch, run.dtype)
        self._moments: tuple[Tensor, Tensor] | None = None
        if architecture(run.model).input_kind is InputKind.COLOR:
            mean, deviation = _moments(train)
            self._moments = mean.to(run.device, self._dtype), deviation.to(run.device, self._dtype)

    def __call__(self, inputs: Inputs) -> Inputs:
        if isinstance(inputs, SparseRows):
            return inputs
        scaled = inputs.to(self._dtype, memory_format=_layout(inputs)).div_(255)
        if self._moments is not None:
            mean, deviation = self._moments
            scaled.sub_(mean).div_(deviation)
        return scaled


def _layout(images: Tensor) -> torch.memory_format:
    # Convolutions and poolings are faster with the channels innermost, on processors twice so.
    return torch.channels_last if images.ndim == 4 else torch.contiguous_format


def _moments(train: Split) -> tuple[Tensor, Tensor]:
    """Mean and deviation by channel, from the histogram of the bytes: exact, no float copy."""
    images = train.inputs
    if not isinstance(images, Tensor):
        return tuple(torch.tensor(each).view(-1, 1, 1) for each in (MEAN, DEVIATION))  # type: ignore[return-value]
    levels = torch.arange(256, dtype=torch.float64) / 255
    counts = [torch.bincount(images[:, c].flatten(), minlength=256) for c in range(images.shape[1])]
    share = torch.stack(counts).double() / counts[0].sum()
    mean = share @ levels
    deviation = (share @ levels**2 - mean**2).sqrt()
    return mean.view(-1, 1, 1), deviation.view(-1, 1, 1)
