"""Walking through parameter groups that carry regions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .regions import Region
from .regions._answers import violations
from .regions._base import SLACK
from .regions._shards import put_away

_WRAPPERS = ("_checkpoint_wrapped_module.", "_orig_mod.")
"""What activation checkpointing and compilation put into names."""


def members(
    groups: Iterable[Mapping[str, Any]], first: int = 0
) -> Iterator[tuple[str, Tensor, Region]]:
    """Every parameter of the groups, with its name (its place where it has none) and region.

    The groups are counted from `first` on.
    """
    for number, group in enumerate(groups, first):
        if not isinstance(group.get("region"), Region):
            raise TypeError(
                f"parameter group {number} has no region: give the groups of cg.constrain, or an "
                "optimizer over them"
            )
        names = group.get("param_names") or [f"{number}.{i}" for i in range(len(group["params"]))]
        for name, parameter in zip(names, group["params"], strict=True):
            yield name, parameter, group["region"]


def groups_of(optimizer_or_groups: Any) -> Iterable[Mapping[str, Any]]:
    """The groups of an optimizer; groups as they are."""
    groups = getattr(optimizer_or_groups, "param_groups", optimizer_or_groups)
    if not isinstance(groups, Iterable) or isinstance(groups, nn.Module):
        raise TypeError(
            "an optimizer, or groups such as those of cg.constrain, are wanted, got "
            f"{type(groups).__name__}"
        )
    return groups


def outside(parameter: Tensor, region: Region) -> float:
    """How far outside its region the parameter lies, 0 if it is rounding at most."""
    if parameter.is_meta:
        return 0.0
    found = float(violations([(parameter, region)])[0])
    return found if not found <= SLACK * torch.finfo(parameter.dtype).eps else 0.0


def at_rest(model: nn.Module) -> nn.Module:
    """The model, in which all parameters are those that an optimizer moves, and no copies."""
    put_away(model)
    return model


def plain_name(name: str) -> str:
    """A parameter's name without those of wrappers around its module."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def check_whole(name: str, parameter: Tensor) -> None:
    """Raise if FSDP1 has cut the parameter out of all numbers, without regard to shapes."""
    if getattr(parameter, "_fsdp_flattened", False):
        raise TypeError(
            f"parameter `{name}` is flattened by FullyShardedDataParallel (FSDP1), and its shape "
            "is lost: shard the model with torch.distributed.fsdp.fully_shard (FSDP2) instead"
        )
