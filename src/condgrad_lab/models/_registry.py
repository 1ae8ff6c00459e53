"""The list of architectures, and the one way to build them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Literal

import torch
from torch import nn

from condgrad_lab.models._layers import he_normal
from condgrad_lab.models.convnet import ConvNet
from condgrad_lab.models.densenet import DenseNet
from condgrad_lab.models.googlenet import GoogLeNet
from condgrad_lab.models.imdb import SUBWORDS, ImdbMLP
from condgrad_lab.models.linear import Linear
from condgrad_lab.models.mlp import MLP
from condgrad_lab.models.resnext import ResNeXt
from condgrad_lab.models.wideresnet import WideResNet

Init = Literal["torch", "he"]


class InputKind(StrEnum):
    """What a network is fed with."""

    FLAT = "flat"  # (N, pixels), scaled to [0, 1]
    GRAY = "gray"  # (N, 1, height, width), scaled to [0, 1]
    COLOR = "color"  # (N, 3, height, width), normalised by channel
    SUBWORDS = "subwords"  # SparseRows: the active entries of N binary rows


@dataclass(frozen=True)
class Architecture:
    """What is known of a network before it is built.

    `make(classes)` draws from torch's global generator: `build` is what callers want.
    `shape` is that of one example, `classes` the number of classes of its experiment, and
    `init` where its weights start: "torch" keeps PyTorch's defaults, "he" is `he_normal`.
    """

    make: Callable[[int], nn.Module]
    input_kind: InputKind
    shape: tuple[int, ...]
    classes: int
    init: Init = "torch"


def _small_image(make: Callable[[int], nn.Module], classes: int) -> Architecture:
    return Architecture(make, InputKind.COLOR, (3, 32, 32), classes, "he")


def _imagenet(make: Callable[[int], nn.Module], side: int = 224) -> Architecture:
    return Architecture(make, InputKind.COLOR, (3, side, side), 1000, "he")


_ONES = (1, 1, 1, 1)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "linear": Architecture(Linear, InputKind.FLAT, (784,), 10),
        "mlp-64": Architecture(partial(MLP, hidden=(64, 64)), InputKind.FLAT, (784,), 10),
        "mlp-32": Architecture(partial(MLP, hidden=(32, 32)), InputKind.FLAT, (784,), 10),
        "convnet": Architecture(ConvNet, InputKind.GRAY, (1, 28, 28), 10),
        "imdb-mlp": Architecture(ImdbMLP, InputKind.SUBWORDS, (SUBWORDS,), 2),
        "densenet121": _small_image(DenseNet, 10),
        "wideresnet28x10": _small_image(WideResNet, 10),
        "googlenet": _small_image(GoogLeNet, 100),
        "densenet121-imagenet": _imagenet(partial(DenseNet, imagenet=True)),
        "resnext50": _imagenet(ResNeXt),
        # Small ones of the same kinds, which a processor trains in a moment: to try things out.
        "densenet13": _small_image(partial(DenseNet, layers=_ONES, growth=8), 10),
        "wideresnet10x1": _small_image(partial(WideResNet, blocks=1, width=1), 10),
        "googlenet-thin": _small_image(partial(GoogLeNet, thin=8), 100),
        "densenet13-imagenet": _imagenet(
            partial(DenseNet, layers=_ONES, growth=8, imagenet=True), 64
        ),
        "resnext14": _imagenet(partial(ResNeXt, blocks=_ONES, groups=4, width=16), 64),
    }
)


def architecture(name: str) -> Architecture:
    """The architecture of that name, or a `ValueError` that lists the names there are."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"`name` is {name!r}, which is no architecture: choose one of {known}")
    return ARCHITECTURES[name]


def build(
    name: str, *, seed: int, classes: int | None = None, init: Init | None = None
) -> nn.Module:
    """The network `name` with fresh weights, on the CPU: the same seed gives the same weights.

    The caller's random state, on any device, is neither used nor changed. `classes` and `init`
    default to those of the architecture. `init="torch"` starts a deep network at PyTorch's
    defaults: its convolutions are then sqrt(6 fan_in / fan_out) times smaller than under "he", and
    so is every region that is sized by a width.
    """
    entry = architecture(name)
    classes = entry.classes if classes is None else classes
    init = entry.init if init is None else init
    if classes < 1:
        raise ValueError(f"`classes` is {classes}: give the number of classes, at least 1")
    if init not in ("torch", entry.init):
        allowed = " or ".join(repr(i) for i in dict.fromkeys((entry.init, "torch")))
        raise ValueError(f"`init` is {init!r}, but {name} starts with {allowed}")
    # torch.manual_seed would reseed the accelerators too, which fork_rng is told to leave alone.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        model = entry.make(classes)
        if init == "he":
            he_normal(model)
    return model
