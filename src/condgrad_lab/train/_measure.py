"""The numbers taken between epochs. Nothing here moves a parameter or draws a random number."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import condgrad as cg
from condgrad_lab.train._samples import Samples

CHUNK = 250  # samples at a time, where that changes rounding alone; few enough for the caches
Numbers = dict[str, float | int]


def averages(model: nn.Module, samples: Samples, *, gradient: bool = False) -> Numbers:
    """Loss and accuracy over all samples; with `gradient`, their mean gradient is left in `.grad`.

    One pass serves both. The model is in evaluation mode, so that its buffers stay as they are.
    """
    total = torch.zeros((), dtype=torch.float64, device=samples.device)
    right = torch.zeros((), dtype=torch.int64, device=samples.device)
    if gradient:
        model.zero_grad()
    with torch.set_grad_enabled(gradient), _evaluating(model):
        for inputs, labels in samples.batches(CHUNK):
            outputs = model(inputs)
            loss = cross_entropy(outputs, labels, reduction="sum")
            if gradient:
                (loss / len(samples)).backward()
            total += loss.detach()
            right += (outputs.detach().argmax(1) == labels).sum()
    return {"loss": total.item() / len(samples), "accuracy": right.item() / len(samples)}


def constraints(optimizer: torch.optim.Optimizer, *, gap: bool) -> Numbers:
    """The largest violation and, at the gradients that the parameters hold, the gap."""
    numbers: Numbers = {"violation": cg.violation(optimizer).item()}
    if gap:
        numbers["gap"] = cg.fw_gap(optimizer).item()
    return numbers


def sparse(model: nn.Module, samples: Samples, initial: Mapping[str, Tensor]) -> Numbers:
    """The count of active parameters, and the averages of the network with the others at zero."""
    thinned = copy.deepcopy(model)
    active = cg.zero_inactive(thinned, initial)
    return {"active": active, **prefixed("sparse_test", averages(thinned, samples))}


def prefixed(prefix: str, numbers: Numbers) -> Numbers:
    """The numbers under longer names: loss becomes test_loss."""
    return {f"{prefix}_{name}": value for name, value in numbers.items()}


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
