"""What the variance-reduced methods share: each batch is evaluated here and at a reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from ..regions import Region
from ..regions._base import working
from ..regions._shards import is_sharded, local
from ._base import Closure, FrankWolfe, untraced
from ._evaluate import Surroundings, copies, exchanged, gathered_anew


class VarianceReduced(FrankWolfe):
    """A Frank-Wolfe method that corrects its estimate by how a batch's gradient has changed.

    Beside hyperparameters its groups carry two counters, saved with them: "since", the steps since
    the reference was set (None before that), and "evaluations" (see the property).
    """

    _wide = frozenset({"estimate"})
    _follows = False
    """Whether the reference is always the iterate before; if not, it stays where it was set."""
    _stale: Mapping[Tensor, Tensor] = MappingProxyType({})
    """During a step: the gradients at the reference, of the parameters that have one."""
    _step_supports_amp_scaling = True
    """Not so: but GradScaler shows itself only to those who say this, and so can be refused."""

    def __init__(
        self,
        params: Iterable[Any],
        region: Region | None,
        *,
        buffers: Iterable[Tensor] | None,
        **defaults: Any,
    ) -> None:
        known = getattr(params, "buffers", ()) if buffers is None else buffers
        super().__init__(params, region, since=None, evaluations=0, **defaults)
        self._buffers = tuple(known)
        if strange := [b for b in self._buffers if not isinstance(b, Tensor)]:
            raise TypeError(
                f"`buffers` must hold tensors, such as model.buffers(), got {type(strange[0])}"
            )

    @property
    def evaluations(self) -> int:
        """How many gradients of a batch were evaluated so far, those of `refresh` included."""
        return max(group["evaluations"] for group in self.param_groups)

    def _count(self, more: int) -> None:
        # The same in every group, so that it outlives checkpoints that keep groups alone.
        total = self.evaluations + more
        for group in self.param_groups:
            group["evaluations"] = total

    def __getstate__(self) -> dict[str, Any]:
        # With the parameters, so that a copy of model and optimizer together stays in one piece.
        return {**super().__getstate__(), "_buffers": self._buffers}

    # ---- steps

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One step; returns what the closure returns at the current parameters.

        The closure zeroes the gradients, runs forward and backward on the current batch, and
        returns the loss. It is called at the reference first and at the current parameters last:
        the gradients, buffers and random streams that it leaves are those of one evaluation here.
        """
        self._refuse_scaler()
        if closure is None:
            return self._prepare()
        return self._step(closure)

    @untraced
    def _step(self, closure: Closure) -> Any:
        self._check_ready()
        kept = self._references()
        loss, stale = self._evaluated(closure, kept if self._apart() else {})
        self._count(2 if stale is not None else 1)
        if self._follows and kept:
            torch._foreach_copy_(list(map(local, kept.values())), list(map(local, kept)))
        self._stale = stale or {}
        try:
            self._advance()
        finally:
            self._stale = {}
        for group in self.param_groups:
            group["since"] = (group["since"] or 0) + 1
        return loss

    def _check_ready(self) -> None:
        """Raise if the method cannot step yet."""

    def _apart(self) -> bool:
        """Whether the reference lies elsewhere than the parameters."""
        return any(group["since"] for group in self.param_groups)

    def _references(self) -> dict[Tensor, Tensor]:
        every = (parameter for group in self.param_groups for parameter in group["params"])
        return {p: self.state[p]["reference"] for p in every if self.state.get(p)}

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        wide = torch.promote_types(parameter.dtype, torch.float32)
        state = super()._new_state(parameter, group)
        state["reference"] = parameter.detach().clone()
        state["estimate"] = torch.zeros_like(parameter, dtype=wide)
        return state

    def _changes(self, group: dict[str, Any], grads: list[Tensor]) -> list[Tensor]:
        """The gradients less those at the reference, which count as zero where there are none."""
        params = [parameter for parameter in group["params"] if parameter.grad is not None]
        stale = [
            working(self._stale[p]) if p in self._stale else torch.zeros_like(working(g))
            for p, g in zip(params, grads, strict=True)
        ]
        return list(torch._foreach_sub([working(g) for g in grads], stale))

    # ---- evaluations

    def _called(self, closure: Closure | None) -> Any:
        # Where autocast surrounds the step, it keeps its casts of what the parameters were before.
        torch.clear_autocast_cache()
        if not any(is_sharded(p) for group in self.param_groups for p in group["params"]):
            return super()._called(closure)
        with gathered_anew():  # and FSDP keeps copies
            return super()._called(closure)

    def _evaluated(
        self, closure: Closure, references: dict[Tensor, Tensor]
    ) -> tuple[Any, dict[Tensor, Tensor] | None]:
        """The loss here and, if there are references, the gradients there.

        Whatever goes wrong, parameters, buffers and random streams are as they were before.
        """
        before = self._surroundings()
        stale = None
        try:
            if references:
                with exchanged(list(references), list(references.values())):
                    self._called(closure)
                stale = self._copied_gradients(references)
                before.restore()
            return self._called(closure), stale
        except BaseException:
            before.restore()
            self._drop_gradients()
            raise

    def _surroundings(self) -> Surroundings:
        devices = {p.device for group in self.param_groups for p in group["params"]}
        if self._buffers and not any(buffer.device in devices for buffer in self._buffers):
            raise ValueError(
                f"`buffers` lie on {self._buffers[0].device}, the parameters on "
                f"{', '.join(map(str, devices))}: model.to(device) replaces buffers, so call "
                "cg.constrain, or list `buffers=model.buffers()`, after it"
            )
        return Surroundings(devices, self._buffers)

    def _copied_gradients(self, parameters: Iterable[Tensor]) -> dict[Tensor, Tensor]:
        """Copies, since what a closure zeroes in place must not be zeroed here."""
        wanted = set(parameters)
        found = {
            parameter: self._gradient(parameter, group)
            for group in self.param_groups
            for parameter in group["params"]
            if parameter in wanted and parameter.grad is not None
        }
        return dict(zip(found, copies(list(found.values())), strict=True))

    def _drop_gradients(self) -> None:
        """Leave no gradient, since it may be that at the reference, or half of one."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    # ---- those who come without a closure

    def _prepare(self) -> None:
        """Take in a step without a closure, which distributed checkpointing makes at lr 0.

        It does so to learn which state there will be. Nobody else has a reason to.
        """
        if any(group["lr"] != 0 for group in self.param_groups):
            name = type(self).__name__
            raise ValueError(
                f"`closure` is missing: {name} evaluates each batch at two settings of the "
                "parameters; call step(closure) with a closure that zeroes the gradients, runs "
                "forward and backward on the current batch, and returns the loss"
            )
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and not self.state[parameter]:
                    self.state[parameter].update(self._new_state(parameter, group))

    def _refuse_scaler(self) -> None:
        shown = [self.__dict__.pop(name, None) for name in ("grad_scale", "found_inf")]
        if any(each is not None for each in shown):
            raise ValueError(
                f"`GradScaler` cannot drive {type(self).__name__}, whose closure makes gradients "
                "that the scaler never sees: use bfloat16 autocast, which needs no scaler, or "
                "divide the gradients by a fixed scale at the end of the closure"
            )
