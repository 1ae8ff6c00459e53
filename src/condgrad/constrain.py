"""From rules to parameter groups: which parameter lives in which region."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ._members import at_rest, check_whole, groups_of, members, outside, plain_name
from .regions import Free, Region
from .sizing import Sized, sized

Rule = Region | Sized | type[Region]
Rules = Rule | Mapping[str | type[nn.Module], Rule]


class Parameter(NamedTuple):
    """A parameter, the name it goes by, and the module that owns it."""

    name: str
    value: nn.Parameter
    owner: nn.Module


class ParameterGroups(list[dict[str, Any]]):
    """Parameter groups for an optimizer, one for each region; printing them shows what was set.

    `buffers` are those of the constrained model: optimizers that evaluate a batch at several
    parameter settings keep them clean.
    """

    buffers: tuple[Tensor, ...] = ()

    def renewed(self) -> list[dict[str, Any]]:
        """The groups with the parameters that stand in the model now: sharding it replaces them."""
        models = [model for model, groups in _constrained.items() if groups is self]
        present = {
            plain_name(name): value
            for model in models
            for name, value in at_rest(model).named_parameters(remove_duplicate=False)
        }
        return [self._renewed(group, present) for group in self] if models else list(self)

    def _renewed(self, group: dict[str, Any], present: dict[str, nn.Parameter]) -> dict[str, Any]:
        names = group.get("param_names", ())
        if len(names) != len(group["params"]):  # a group that the caller added
            return dict(group)
        lost = [name for name in names if plain_name(name) not in present]
        if lost:
            raise ValueError(
                f"the model that `constrain` has seen no longer has {', '.join(lost)}: constrain "
                "it again, as it is now"
            )
        return {**group, "params": [present[plain_name(name)] for name in names]}

    def __str__(self) -> str:
        return summary(self)


_constrained: WeakKeyDictionary[nn.Module, ParameterGroups] = WeakKeyDictionary()


def constrain(
    model: nn.Module,
    rules: Rules,
    *,
    feasible: Literal["move", "check"] = "move",
    **size: Any,
) -> ParameterGroups:
    """The parameter groups of the model, each with the region that the rules give it.

    `rules` is one rule for every parameter, or a mapping whose keys are regular expressions that
    match the whole name of a parameter, or module types that own it; the first match wins. A rule
    is a region, `sized(...)`, or a region class together with the size (`width=30`). Frozen
    parameters are left out, tied ones count once. A start outside its region is moved to the
    nearest point inside, or, with `feasible="check"`, refused.
    """
    if feasible not in ("move", "check"):
        raise ValueError(f'`feasible` must be "move" or "check", got {feasible!r}')
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"`model` must be a torch.nn.Module, got {type(model).__name__}: bare parameters and a "
            "region go to the optimizer, as in SFW(parameters, region)"
        )
    table = _table(rules, size)
    found = list(_parameters(at_rest(model)))
    chosen = _assigned(table, found)
    groups: dict[Region, dict[str, Any]] = {}
    for parameter in found:
        if not parameter.value.requires_grad:
            continue
        check_whole(parameter.name, parameter.value)
        region = _region_for(parameter, chosen[parameter.name])
        group = groups.setdefault(region, {"params": [], "param_names": [], "region": region})
        group["params"].append(parameter.value)
        group["param_names"].append(parameter.name)
    result = ParameterGroups(groups.values())
    result.buffers = tuple(model.buffers())
    _settle(result, move=feasible == "move")
    _constrained[model] = result
    return result


def make_feasible(model_or_groups: Any) -> None:
    """Move every parameter that lies outside its region to the nearest point inside.

    Takes the groups of `constrain`, an optimizer, or a model that `constrain` has seen.
    """
    _settle(_groups_of(model_or_groups), move=True)


def summary(groups: Iterable[Mapping[str, Any]]) -> str:
    """A table of the groups: each parameter's name, shape, region, and diameter."""
    rows = [("parameter", "shape", "region", "diameter")]
    for name, parameter, region in members(groups):
        diameter = f"{region.diameter(parameter.shape):.6g}"
        rows.append((name, "×".join(map(str, parameter.shape)) or "1", str(region), diameter))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _groups_of(model_or_groups: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(model_or_groups, nn.Module):
        if model_or_groups not in _constrained:
            raise ValueError(
                "`model_or_groups` is a model that `constrain` has not seen: "
                "pass the groups or the optimizer"
            )
        model_or_groups = _constrained[model_or_groups]
    if isinstance(model_or_groups, ParameterGroups):
        return model_or_groups.renewed()
    return groups_of(model_or_groups)


def _settle(groups: Iterable[Mapping[str, Any]], *, move: bool) -> None:
    found = [(*each, outside(*each[1:])) for each in members(groups)]
    strays = [each for each in found if each[3]]
    if strays and not move:
        named = (f"{name} outside {region} by {excess:.3g}" for name, _, region, excess in strays)
        raise ValueError(
            f'`feasible` is "check", and these parameters start outside: {"; ".join(named)}'
        )
    for name, parameter, region, excess in strays:  # before any is moved
        if not math.isfinite(excess) and outside(region.project(parameter), region):
            raise ValueError(f"parameter `{name}` is not finite: no point of {region} is nearest")
    for _, parameter, region, _ in strays:
        with torch.no_grad():
            parameter.copy_(region.project(parameter))


def _table(rules: Rules, size: Mapping[str, Any]) -> dict[str | type[nn.Module], Region | Sized]:
    if not isinstance(rules, Mapping):
        return {r".*": _rule(rules, size)}
    if not rules:
        raise ValueError("`rules` is empty: give at least one, such as {r'.*': Free()}")
    return {_key(key): _rule(rule, size) for key, rule in rules.items()}


def _key(key: Any) -> str | type[nn.Module]:
    if isinstance(key, str):
        try:
            re.compile(key)
        except re.error as error:
            raise ValueError(f"`rules` has {key!r}, no regular expression: {error}") from None
    elif not (isinstance(key, type) and issubclass(key, nn.Module)):
        raise TypeError(
            f"`rules` must have regular expressions or module types as keys, got {key!r}"
        )
    return key


def _rule(rule: Any, size: Mapping[str, Any]) -> Region | Sized:
    if isinstance(rule, type) and issubclass(rule, Region):
        return Free() if rule is Free else sized(rule, **size)
    if not isinstance(rule, (Region, Sized)):
        raise TypeError(
            f"a rule must be a region, a region class with a size, or sized(...), got {rule!r}"
        )
    if size:
        shown = rule if isinstance(rule, Region) else f"a rule for {rule.kind.__name__}"
        raise TypeError(
            f"`{'`, `'.join(size)}` cannot size {shown}, whose size is settled; among several "
            "rules give each its own, such as cg.sized(L2Ball, width=30)"
        )
    return rule


def _parameters(model: nn.Module) -> Iterator[Parameter]:
    seen: set[nn.Parameter] = set()
    for prefix, module in model.named_modules():
        for name, value in module.named_parameters(recurse=False):
            if value not in seen:
                seen.add(value)
                yield Parameter(f"{prefix}.{name}" if prefix else name, value, module)


def _assigned(
    table: Mapping[str | type[nn.Module], Region | Sized], found: list[Parameter]
) -> dict[str, Region | Sized]:
    matches = {key: [p.name for p in found if _applies(key, p)] for key in table}
    names = ", ".join(p.name for p in found)
    idle = [_shown(key) for key, hits in matches.items() if not hits]
    if idle:
        raise ValueError(
            f"`rules` has rules that match no parameter: {', '.join(idle)}; expressions must match "
            f"a whole name, and the names are: {names}"
        )
    chosen: dict[str, Region | Sized] = {}
    for key, hits in matches.items():
        for name in hits:
            chosen.setdefault(name, table[key])
    missed = [p.name for p in found if p.name not in chosen and p.value.requires_grad]
    if missed:
        raise ValueError(
            f"`rules` leaves parameters without a region: {', '.join(missed)}; the rules are: "
            f"{', '.join(map(_shown, table))}; add {{r'.*': Free()}} to leave the rest free"
        )
    return chosen


def _applies(key: str | type[nn.Module], parameter: Parameter) -> bool:
    if isinstance(key, str):
        return re.fullmatch(key, parameter.name) is not None
    return isinstance(parameter.owner, key)


def _shown(key: str | type[nn.Module]) -> str:
    return repr(key) if isinstance(key, str) else key.__name__


def _region_for(parameter: Parameter, rule: Region | Sized) -> Region:
    if is_lazy(parameter.value):
        raise ValueError(
            f"parameter `{parameter.name}` has no shape yet: let the model see a batch first"
        )
    try:
        region = rule if isinstance(rule, Region) else rule.region_for(parameter.value)
        region._checked(parameter.value)
    except (ValueError, TypeError) as error:
        raise type(error)(f"parameter `{parameter.name}`: {error}") from None
    return region
