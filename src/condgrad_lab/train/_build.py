"""From the words of a run to the objects that train: model, optimizer, schedules."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import condgrad as cg
from condgrad_lab import models
from condgrad_lab.spec import Optimizer, Rule, Run, Schedule
from condgrad_lab.train._draws import seed_of


@dataclass(frozen=True)
class Parts:
    """What a run trains with, at its start; `initial` are its parameters by name."""

    model: nn.Module
    optimizer: Any  # torch's stub of `step` knows no closures that return tensors
    schedules: Schedules
    initial: dict[str, Tensor]

    @property
    def fused(self) -> bool:
        """Whether a few kernels move all parameters, which a graph can hold."""
        return all(group.get("fused") for group in self.optimizer.param_groups)


def build(run: Run, classes: int, *, fused: bool = False) -> Parts:
    """Everything at the start of the run: a function of the run alone.

    With `fused` the optimizer moves all parameters by a few kernels, if it has them.
    """
    model = models.build(run.model, classes=classes, seed=seed_of(run.seed, "model"))
    model.to(run.device, getattr(torch, run.dtype))
    # As the images are, see `_samples`. (torch's stubs do not know this form of `to`.)
    model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = _optimizer(run, model, fused)
    # After the optimizer: `constrain` moves a start that lies outside its region.
    initial = {name: p.detach().clone() for name, p in model.named_parameters()}
    return Parts(model, optimizer, Schedules(run.schedule, optimizer), initial)


class Schedules:
    """The learning rate after each epoch: milestones first, then the band rule.

    It is a number here, in double precision, and what the optimizer's groups have is a copy of it:
    that number, or a tensor on the device that a captured step can read.
    """

    def __init__(self, schedule: Schedule, optimizer: torch.optim.Optimizer) -> None:
        self._schedule, self._optimizer = schedule, optimizer
        # The band rule multiplies what it finds in an optimizer's groups: here, a number alone.
        self._held = torch.optim.SGD([torch.zeros(())], lr=optimizer.param_groups[0]["lr"])
        self._band = cg.schedules.BandRule(self._held) if schedule.band else None
        self._tensor: Tensor | None = None

    @property
    def lr(self) -> float:
        """The learning rate of the next epoch."""
        return self._held.param_groups[0]["lr"]

    def rate_on(self, device: torch.device) -> None:
        """Keep the rate in a tensor on this device from now on."""
        self._tensor = torch.zeros((), device=device)
        self._tell()

    def step(self, epoch: int, loss: float) -> None:
        """Set the rates for the epoch after this one, whose mean training loss was `loss`."""
        if epoch in self._schedule.milestones:
            self._held.param_groups[0]["lr"] *= self._schedule.factor
        if self._band:
            self._band.step(loss)
        self._tell()

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs, as plain data."""
        return {"lr": self.lr, "band": self._band.state_dict() if self._band else None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a saved schedule, rates included."""
        self._held.param_groups[0]["lr"] = state["lr"]
        if self._band:
            self._band.load_state_dict(state["band"])
        self._tell()

    def _tell(self) -> None:
        if self._tensor is not None:
            self._tensor.fill_(self.lr)
        for group in self._optimizer.param_groups:  # another list after a checkpoint was loaded
            group["lr"] = self.lr if self._tensor is None else self._tensor


def region(rule: Rule) -> Any:
    """What `cg.constrain` takes for this rule."""
    if rule.region not in cg.regions.__all__:
        raise ValueError(f"`region` is {rule.region!r}, which condgrad does not have")
    kind: Any = getattr(cg, rule.region)
    if kind is cg.Free:
        return cg.Free()
    shape = {name: v for name in ("p", "k") if (v := getattr(rule, name)) is not None}
    if rule.radius is not None:
        return kind(radius=rule.radius, **shape)
    return cg.sized(kind, width=rule.width, diameter=rule.diameter, **shape)


def _optimizer(run: Run, model: nn.Module, fused: bool) -> torch.optim.Optimizer:
    name = run.optimizer.name
    if name in cg.optim.__all__:
        if not run.rules:
            raise ValueError(f"`rules` is empty, but condgrad.{name} needs a region a parameter")
        groups: Any = cg.constrain(model, {rule.pattern: region(rule) for rule in run.rules})
        kind = getattr(cg.optim, name)
        options = _options(run.optimizer, kind, seed=seed_of(run.seed, "ties"))
        return _made(kind, groups, options, fused)
    kind = getattr(torch.optim, name, None)
    if kind is None:
        raise ValueError(f"`optimizer` is {name!r}: neither condgrad nor torch.optim has it")
    if run.rules:
        raise ValueError(f"`rules` constrain the run, but torch.optim.{name} knows no regions")
    return _made(kind, list(model.parameters()), _options(run.optimizer, kind), fused)


def _made(kind: Any, params: Any, options: dict[str, Any], fused: bool) -> torch.optim.Optimizer:
    """The optimizer, with its kernels if they are wanted and can take all of the parameters."""
    if fused and "fused" in inspect.signature(kind).parameters:
        try:
            return kind(params, **options, fused=True)
        except (ValueError, RuntimeError):
            pass  # a region whose step is no matter of kernels, or no Triton: the plain way
    return kind(params, **options)


def _options(spec: Optimizer, kind: type, **more: Any) -> dict[str, Any]:
    """The keyword arguments for the class: all it takes, and an error where it lacks one."""
    given, defaults = spec.to_dict(), Optimizer(spec.name, spec.lr).to_dict()
    del given["name"]
    taken = inspect.signature(kind).parameters
    if lacking := [n for n, v in given.items() if n not in taken and v != defaults[n]]:
        raise ValueError(f"`{lacking[0]}` is given, but {spec.name} has no such setting")
    return {name: value for name, value in {**given, **more}.items() if name in taken}
