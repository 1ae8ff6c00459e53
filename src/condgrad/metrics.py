"""What a training run can be measured by: the gap, the violation, the active parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn

from ._members import at_rest, groups_of, members
from .constrain import ParameterGroups
from .regions import Free
from .regions._answers import gaps, sums_of, violations
from .regions._base import working
from .regions._shards import is_sharded, local, part_of, shard_of

Batches = Iterable[tuple[Callable[[], Any], float]]


@overload
def fw_gap(
    optimizer: Any, batches: Batches | None = ..., *, per_parameter: Literal[False] = ...
) -> Tensor: ...
@overload
def fw_gap(
    optimizer: Any, batches: Batches | None = ..., *, per_parameter: Literal[True]
) -> dict[str, Tensor]: ...
def fw_gap(
    optimizer: Any, batches: Batches | None = None, *, per_parameter: bool = False
) -> Tensor | dict[str, Tensor]:
    """The Frank-Wolfe gap max over v ∈ C of ⟨θ − v, ∇L(θ)⟩, summed over the parameters.

    At least 0, and 0 exactly at first-order critical points. ∇L is what stands in `p.grad`; or,
    given `batches` of (closure, size), the mean of the closures' gradients weighted by size (a
    closure zeroes the gradients, runs forward and backward on its batch), with the gradients at
    hand put back afterwards; buffers and random streams move on, as in any evaluation. The vertex
    is exact, whatever method a region steps by. Free parameters, whose gap is infinite, and
    parameters without gradient are left out; if none has a gradient, that is an error.
    `per_parameter=True` gives a dict by name.
    """
    groups = list(groups_of(optimizer))
    gradients = _present(groups) if batches is None else _mean_gradients(groups, batches)
    bound = [each for each in members(groups) if not isinstance(each[2], Free)]
    _check_one_sided([(name, parameter) for name, parameter, _ in bound], gradients)
    if not gradients:
        raise ValueError("no parameter has a gradient: run backward first, or give `batches`")
    if sparse := {g.layout for g in gradients.values()} - {torch.strided}:
        raise TypeError(
            f"a gradient of layout {sparse.pop()} was found: the gap needs dense gradients (for an "
            "embedding: sparse=False)"
        )
    signs = {p: -1 if group.get("maximize") else 1 for group in groups for p in group["params"]}
    found = [
        (name, (parameter, signs[parameter] * gradients[parameter], region))
        for name, parameter, region in bound
        if parameter in gradients
    ]
    each = gaps([triple for _, triple in found])
    names = [name for name, _ in found]
    return dict(zip(names, each, strict=True)) if per_parameter else _joined(each).sum()


@overload
def violation(optimizer_or_groups: Any, *, per_parameter: Literal[False] = ...) -> Tensor: ...
@overload
def violation(optimizer_or_groups: Any, *, per_parameter: Literal[True]) -> dict[str, Tensor]: ...
def violation(
    optimizer_or_groups: Any, *, per_parameter: bool = False
) -> Tensor | dict[str, Tensor]:
    """The largest violation of a region by its parameter: 0 inside, else the relative excess.

    `per_parameter=True` gives a dict by name.
    """
    groups = groups_of(optimizer_or_groups)
    found = list(members(groups.renewed() if isinstance(groups, ParameterGroups) else groups))
    each = violations([(parameter, region) for _, parameter, region in found])
    names = [name for name, _, _ in found]
    return dict(zip(names, each, strict=True)) if per_parameter else _joined(each).amax()


def active_parameters(model: nn.Module, initial: Mapping[str, Tensor]) -> int:
    """The number of entries at least as large, in absolute value, as at initialisation.

    `initial` holds the parameters' first values by name: `{n: p.detach().clone() for n, p in
    model.named_parameters()}` before training.
    """
    return sum(_counts(_active(model, initial)))


@torch.no_grad()
def zero_inactive(model: nn.Module, initial: Mapping[str, Tensor]) -> int:
    """Set every inactive entry of the model to zero; returns how many were active."""
    found = _active(model, initial)
    kept = sum(_counts(found))
    for parameter, active in found:
        local(parameter).mul_(active)
    return kept


def _counts(found: list[tuple[Tensor, Tensor]]) -> list[int]:
    """The number of active entries of each parameter."""
    return list(map(int, sums_of([p for p, _ in found], [active for _, active in found])))


def _active(model: nn.Module, initial: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """The parameters, and which of the entries that lie here are active."""
    parameters = dict(at_rest(model).named_parameters())
    missing = [name for name in parameters if name not in initial]
    if missing:
        raise ValueError(f"`initial` lacks the parameters {', '.join(missing)}")
    for name, parameter in parameters.items():
        if initial[name].shape != parameter.shape:
            raise ValueError(
                f"`initial` has shape {tuple(initial[name].shape)} for parameter `{name}`, whose "
                f"shape is {tuple(parameter.shape)}"
            )
    return [
        (p.detach(), local(p).detach().abs() >= part_of(initial[n], p).abs())
        for n, p in parameters.items()
    ]


def _check_one_sided(named: list[tuple[str, Tensor]], gradients: Mapping[Tensor, Tensor]) -> None:
    """Raise if a parameter in pieces has a gradient on some of its ranks alone."""
    divided = [(name, p) for name, p in named if is_sharded(p)]
    here = [local(p).new_full((1,), float(p in gradients)).double() for _, p in divided]
    for (name, p), count in zip(divided, sums_of([p for _, p in divided], here), strict=True):
        size = shard_of(p).ranks.size
        if int(count) not in (0, size):
            raise ValueError(
                f"parameter `{name}` has a gradient on {int(count)} of the {size} ranks that hold "
                "it: every rank must run the same layers backward; give it a gradient of zeros on "
                "the others"
            )


def _joined(parts: Iterable[Tensor]) -> Tensor:
    """The numbers of all parameters as one vector, in double precision."""
    numbers = [part.double() for part in parts]
    if not numbers:
        return torch.zeros(1)
    return torch.stack([number.to(numbers[0].device) for number in numbers])


def _present(groups: Iterable[Mapping[str, Any]]) -> dict[Tensor, Tensor]:
    found = (parameter for _, parameter, _ in members(groups))
    return {parameter: parameter.grad for parameter in found if parameter.grad is not None}


def _mean_gradients(groups: Iterable[Mapping[str, Any]], batches: Batches) -> dict[Tensor, Tensor]:
    parameters = [parameter for _, parameter, _ in members(groups)]
    kept = [parameter.grad for parameter in parameters]
    sums: dict[Tensor, Tensor] = {}
    total = 0.0
    try:
        for closure, size in batches:
            for parameter in parameters:
                parameter.grad = None
            with torch.enable_grad():
                closure()
            total += size
            for parameter in parameters:
                if parameter.grad is not None:
                    share = working(parameter.grad.detach()) * size
                    sums[parameter] = sums[parameter] + share if parameter in sums else share
    finally:
        for parameter, gradient in zip(parameters, kept, strict=True):
            parameter.grad = gradient
    if not total:
        raise ValueError("`batches` is empty: give the (closure, size) pairs of all data")
    return {parameter: share / total for parameter, share in sums.items()}
