"""Projected stochastic gradient descent: the baseline that Frank-Wolfe methods do without."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from torch import Tensor

from ..regions import Region
from ..regions._base import working
from ..regions._measure import Program, pick
from ..regions._sharded import nearest
from ..regions._shards import Shard, is_sharded, local
from ._base import ConstrainedOptimizer, at_least_point, check_range, untraced
from ._move_sharded import is_idle, led, parts_of_states


class ProjectedSGD(ConstrainedOptimizer):
    r"""SGD followed by the projection onto the region.

    ::

        input: regions C, lr γ, momentum μ, dampening d, weight decay λ, θ₀ ∈ C
        for t = 0, 1, …
            g ← ∇L(θ_t) on a batch + λ θ_t              (−∇L if maximize)
            b ← μ b + (1 − d) g                         (b = g at first)
            g ← g + μ b if nesterov, else b
            θ_{t+1} ← Π_C(θ_t − γ g)

    The update is torch.optim.SGD's; the projections are exact (general Lp balls: to 1e-6).
    """

    def __init__(
        self,
        params: Iterable[Any],
        region: Region | None = None,
        *,
        lr: float | Tensor = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            region,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        check_range("momentum", group["momentum"], 0, 1)
        check_range("weight_decay", group["weight_decay"], 0, float("inf"))
        if group["nesterov"] and not (group["momentum"] > 0 and group["dampening"] == 0):
            raise ValueError("`nesterov` needs a momentum above 0 and no dampening")

    @untraced
    def _advance(self) -> None:
        """Move every parameter that has a gradient.

        As it is inside a compiled training step: a projection decides by what it finds, which a
        graph cannot, and a schedule would cause a recompilation.
        """
        found = [
            (parameter, self._gradient(parameter, group), group)
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        divided = [each for each in found if is_sharded(each[0])]
        for parameter, gradient, group in found:  # all were checked before the first one moves
            if not is_sharded(parameter):
                self._descend(parameter, gradient, group)
        self._descend_in_pieces(divided)

    def _descend(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        below = self._below(parameter, gradient, group, self._memory(parameter, group))
        _settle(at_least_point(parameter), group["region"]._nearest(below), group["lr"])

    def _descend_in_pieces(self, divided: list[tuple[Tensor, Tensor, dict[str, Any]]]) -> None:
        """Move the parameters that lie in pieces on several ranks."""
        everyone = [(p, group) for group in self.param_groups for p in group["params"]]
        numbers = {parameter: number for number, (parameter, _) in enumerate(everyone)}
        descents = {
            numbers[parameter]: _Descent(
                at_least_point(parameter),
                self._below(local(parameter), gradient, group, self._memory(parameter, group)),
                group["region"],
                group["lr"],
            )
            for parameter, gradient, group in divided
        }
        idle = {
            numbers[p]: _Descent(at_least_point(p), working(local(p)), group["region"], 0.0)
            for p, group in everyone
            if is_idle(p)
        }
        for number, inside in led(descents, idle, _landing, self).items():
            if number in descents:
                _settle(local(descents[number].parameter), inside, descents[number].lr)

    def _memory(self, parameter: Tensor, group: dict[str, Any]) -> Any:
        """The parameter's state, as far as it lies here."""
        states = [self.state[parameter] if group["momentum"] else {}]
        return parts_of_states([parameter], states)[0]

    def _below(
        self, parameter: Tensor, gradient: Tensor, group: dict[str, Any], state: Any
    ) -> Tensor:
        """Where the step leads before it is projected."""
        if group["weight_decay"]:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        if group["momentum"]:
            gradient = self._accelerated(gradient, group, state)
        start = working(at_least_point(parameter))
        return start - group["lr"] * working(at_least_point(gradient))

    def _accelerated(self, gradient: Tensor, group: dict[str, Any], state: Any) -> Tensor:
        momentum = group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = gradient.clone()
        else:
            buffer = state["momentum_buffer"]
            buffer.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])
        buffer = state["momentum_buffer"]
        return gradient.add(buffer, alpha=momentum) if group["nesterov"] else buffer


class _Descent(NamedTuple):
    """A parameter in pieces, and where its step leads here before it is projected."""

    parameter: Tensor
    below: Tensor
    region: Region
    lr: float | Tensor


def _landing(descent: _Descent, shard: Shard) -> Program[Tensor]:
    return nearest(descent.region, descent.below, shard)


def _settle(start: Tensor, inside: Tensor, lr: float | Tensor) -> None:
    """Move the parameter inside, unless the step has no length.

    Rounding may have left the start outside by a hair: without a step, not even that moves.
    """
    start.copy_(pick(lr != 0, inside, start))
