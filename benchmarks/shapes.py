"""The shapes of the networks whose steps are timed."""

from __future__ import annotations

import itertools

import torch
from torch import nn

Shapes = list[tuple[int, ...]]


def mlp() -> Shapes:
    """784-64-64-10: 55,050 parameters in 6 tensors."""
    sizes = (784, 64, 64, 10)
    return [s for a, b in itertools.pairwise(sizes) for s in ((b, a), (b,))]


def transformer() -> Shapes:
    """16 blocks of width 2048 and an embedding: 0.9 billion parameters in 97 tensors."""
    width = 2048
    block = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    return [(50257, width), *(16 * [*block, (width,), (width,)])]


def matrices() -> Shapes:
    """24 matrices of 2048 x 2048."""
    return 24 * [(2048, 2048)]


def network(name: str) -> Shapes:
    """The shapes of a network of the laboratory, which is never filled with numbers."""
    from condgrad_lab.models import architecture

    entry = architecture(name)
    with torch.device("meta"):
        model: nn.Module = entry.make(entry.classes)
    return [tuple(p.shape) for p in model.parameters()]


MODELS = {
    "mlp": mlp,
    "densenet121": lambda: network("densenet121"),
    "wideresnet28x10": lambda: network("wideresnet28x10"),
    "resnext50": lambda: network("resnext50"),
    "transformer": transformer,
    "matrices": matrices,
}
