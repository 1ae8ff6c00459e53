"""An epoch of the 784-64-64-10 network at batch 50: ours beside the same loop with SGD."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import condgrad as cg

BATCH, IMAGES = 50, 6000
"""A tenth of MNIST's epoch: enough for a median, and the batches do not fit into the cache."""


class Loop(NamedTuple):
    """A network in training."""

    model: nn.Module
    optimizer: Any


def network() -> nn.Module:
    """The network of figures 1, 5, 6 and 7, at PyTorch's start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)]
        return nn.Sequential(*layers)


def images() -> tuple[Tensor, Tensor]:
    """Random images as MNIST's are: four fifths of the pixels dark, a tenth of them always."""
    make = torch.Generator().manual_seed(0)
    shape = (IMAGES, 784)
    bright = torch.rand(shape, generator=make) < 0.2
    alive = torch.rand(784, generator=make) < 0.9
    pixels = torch.rand(shape, generator=make) * bright * alive
    return pixels, torch.randint(10, (IMAGES,), generator=make)


def trained(loop: Loop, data: tuple[Tensor, Tensor], begin: int, batches: int) -> None:
    """Train on so many batches, from number `begin` on, around and around."""
    pixels, labels = data
    for number in range(begin, begin + batches):
        at = number * BATCH % IMAGES
        loop.optimizer.zero_grad()
        outputs = loop.model(pixels[at : at + BATCH])
        cross_entropy(outputs, labels[at : at + BATCH]).backward()
        loop.optimizer.step()


def _constrained(
    region: Any, lr: float, rule: Any, fused: bool | None = None, **sizes: Any
) -> Callable[[nn.Module], Any]:
    return lambda model: cg.SFW(
        cg.constrain(model, region, **sizes), lr=lr, momentum=0.9, rescale=rule, fused=fused
    )


SETTINGS: dict[str, tuple[Any, float, str, dict[str, Any]]] = {
    "L2 diameter": (cg.L2Ball, 0.1, "diameter", {"width": 300}),  # figure 5
    "L2 gradient": (cg.L2Ball, 0.1, "gradient", {"width": 300}),
    "Linf diameter": (cg.LinfBall, 0.03, "diameter", {"width": 30}),
    "Linf gradient": (cg.LinfBall, 0.1, "gradient", {"width": 30}),
    "L1 diameter": (cg.L1Ball, 0.1, "diameter", {"width": 1000}),  # figures 1 and 6
    "L1 gradient": (cg.L1Ball, 0.1, "gradient", {"width": 1000}),
    "K-sparse 10 % diameter": (cg.KSparsePolytope(0.1, 30.0), 0.1, "diameter", {}),
    "K-sparse 10 % gradient": (cg.KSparsePolytope(0.1, 30.0), 0.1, "gradient", {}),
}
LOOPS: dict[str, Callable[[nn.Module], Any]] = {
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    "SGD fused": lambda model: torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, fused=True
    ),
} | {
    name + mark: _constrained(region, lr, rule, fused, **sizes)
    for mark, fused in (("", None), (", fused", True))
    for name, (region, lr, rule, sizes) in SETTINGS.items()
}


def race(rounds: int, names: tuple[str, ...] = tuple(LOOPS)) -> dict[str, dict[str, float]]:
    """Microseconds a batch, taking turns: median and least of the processor's time.

    The processor's, since a machine that is shared gives its clock to others.
    """
    data = images()
    loops = {}
    for name in names:
        model = network()
        loops[name] = Loop(model, LOOPS[name](model))
    batches = IMAGES // BATCH // 2
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name, loop in loops.items():
            began = time.process_time()
            trained(loop, data, number * batches, batches)
            if number:
                found[name].append((time.process_time() - began) / batches * 1e6)
    return {
        name: {"median_us": statistics.median(each), "least_us": min(each)}
        for name, each in found.items()
    }
