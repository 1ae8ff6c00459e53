"""The numbers taken between epochs. Nothing here moves a parameter or draws a random number."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import condgrad as cg
from condgrad_lab.spec import Run
from condgrad_lab.train._draws import Draws, generator
from condgrad_lab.train._samples import Source
from condgrad_lab.train._speed import autocast
from condgrad_lab.train._team import ALONE, Team

CHUNK = 250  # samples at a time, where that changes rounding alone; few enough for the caches
_MANY = {True: 500, False: 1000}  # on an accelerator, with a gradient and without
SAMPLED = 5000  # samples of the "sampled-gap"
Numbers = dict[str, float | int]


def kinds(run: Run) -> tuple[str, ...]:
    """The names of what `hits` counts."""
    return ("accuracy", "top5_accuracy") if "top5" in run.measure else ("accuracy",)


def hits(outputs: Tensor, labels: Tensor, run: Run) -> Tensor:
    """How many samples have their class where the largest output is, and among the five largest."""
    first = (outputs.argmax(1) == labels).sum()
    if "top5" not in run.measure:
        return first[None]
    five = outputs.topk(min(5, outputs.shape[1]), 1).indices
    return torch.stack([first, (five == labels[:, None]).sum()])


def averages(
    model: nn.Module,
    samples: Source,
    run: Run,
    *,
    draws: Draws | None = None,
    gradient: bool = False,
    team: Team = ALONE,
) -> Numbers:
    """Loss and accuracies over all samples, or over those drawn; on all processes the same.

    With `gradient`, their mean gradient is left in `.grad`: one pass serves both. The model is in
    evaluation mode, so that its buffers stay as they are.
    """
    count = len(samples if draws is None else draws)
    total = torch.zeros((), dtype=torch.float64, device=samples.device)
    right = torch.zeros(len(kinds(run)), dtype=torch.int64, device=samples.device)
    size = CHUNK if samples.device.type == "cpu" else _MANY[gradient]
    if gradient:
        model.zero_grad()
    with torch.set_grad_enabled(gradient), _evaluating(model):
        for inputs, labels in samples.batches(size * team.size, draws, team):
            with autocast(run):
                outputs = model(inputs)
                loss = cross_entropy(outputs, labels, reduction="sum")
            if gradient:
                (loss / count).backward()
            total += loss.detach()
            right += hits(outputs.detach(), labels, run)
    team.sum(total, right, *(p.grad for p in model.parameters() if gradient and p.grad is not None))
    numbers: Numbers = {"loss": total.item() / count}
    return numbers | {n: c / count for n, c in zip(kinds(run), right.tolist(), strict=True)}


def sampled(samples: Source) -> Draws:
    """The training samples, always the same ones, that stand for all of them."""
    order = torch.randperm(len(samples), generator=generator("gap"))
    return Draws(order[:SAMPLED].sort().values)


def violation(optimizer: torch.optim.Optimizer) -> float:
    """The largest violation of a region by its parameter."""
    return cg.violation(optimizer).item()


def gap(optimizer: torch.optim.Optimizer) -> float:
    """The Frank-Wolfe gap at the gradients that the parameters hold."""
    return cg.fw_gap(optimizer).item()


def sparse(model: nn.Module, samples: Source, run: Run, initial: Mapping[str, Tensor]) -> Numbers:
    """The count of active parameters, and the averages of the network with the others at zero."""
    thinned = copy.deepcopy(model)
    active = cg.zero_inactive(thinned, initial)
    return {"active": active, **prefixed("sparse_test", averages(thinned, samples, run))}


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
