"""Stochastic Frank-Wolfe, with and without momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from .._members import members
from ..kernels import FusedStep, misfit
from ..regions import Region
from ._base import FrankWolfe, check_choice, check_range, untraced


class SFW(FrankWolfe):
    r"""Stochastic Frank-Wolfe: a step towards the vertex that the averaged gradient prefers.

    ::

        input: regions C, lr γ, momentum 1 − ρ, θ₀ ∈ C, m = 0
        for t = 0, 1, …
            g ← ∇L(θ_t) on a batch                      (−g if maximize)
            m ← (1 − ρ) m + ρ g
            v ← argmin over v ∈ C of ⟨m, v⟩
            a ← min(γ, 1)                               rescale=None
                min(γ / D(C), 1)                        rescale="diameter"
                min(γ ‖m‖₂ / ‖v − θ_t‖₂, 1)             rescale="gradient"
            θ_{t+1} ← θ_t + a (v − θ_t)
            θ_{t+1} ← θ_t − γ m                         where the region is Free()

    Pokutta, Spiegel, Zimmer, "Deep Neural Network Training with Frank-Wolfe" (2020), algorithm 1.
    The average starts at zero, so the first steps are short under rescale="gradient". It is an
    average: a step is about 1/(1 − momentum) times shorter than that of torch.optim.SGD, whose
    momentum accumulates, at the same lr.

    Args:
        params: parameters, (name, parameter) pairs, or groups, such as those of `cg.constrain`.
        region: the region of groups that name none.
        lr: the learning rate; it may exceed 1 under both rescalings. A number or a tensor.
        momentum: the share 1 − ρ of the old average that is kept, in [0, 1).
        rescale: how lr becomes a step length, as above.
        ties: "random" draws among several best vertices; "first" takes sgn(0) = 0 and the first
            entry, and leaves a zero direction without effect.
        seed: the seed of those draws. A draw depends on seed, step, parameter and entry alone.
        maximize: ascend instead.
        foreach: False moves one tensor after another, True and None all of them together.
        fused: True moves all parameters by a few kernels, or raises. It takes regions that split.
            On a CUDA device it takes Triton, which comes with torch's CUDA builds. On the host it
            takes a C++ compiler, which builds the kernels within seconds when they are first asked
            for, and parameters in float32 or float64; one thread does it all, several times faster
            than the default for small networks. The results are the same up to rounding. None
            means False, until the kernels have been tried on a device: so far their logic has run
            in Triton's interpreter alone.
        wide_average: keep the average of a float16 or bfloat16 parameter in float32.
        rounding: "nearest", or "stochastic" for bfloat16 parameters that the kernels move: steps
            far below the last place then count on average instead of being lost.

    """

    _settings = ("momentum", "maximize")
    _hurry: FusedStep | None = None
    _left: frozenset[int] | None = None

    def __init__(
        self,
        params: Iterable[Any],
        region: Region | None = None,
        *,
        lr: float | Tensor = 0.1,
        momentum: float = 0.9,
        rescale: Literal["diameter", "gradient"] | None = "gradient",
        ties: Literal["random", "first"] = "random",
        seed: int = 0,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        wide_average: bool = False,
        rounding: Literal["nearest", "stochastic"] = "nearest",
    ) -> None:
        super().__init__(
            params,
            region,
            lr=lr,
            momentum=momentum,
            rescale=rescale,
            ties=ties,
            seed=seed,
            maximize=maximize,
            foreach=foreach,
            fused=fused,
            wide_average=wide_average,
            rounding=rounding,
        )

    # ---- checks

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        check_range("momentum", group["momentum"], 0, 1)
        check_choice("fused", group["fused"], (True, False, None))
        check_choice("rounding", group["rounding"], ("nearest", "stochastic"))

    def _check_parameters(self, group: dict[str, Any]) -> None:
        super()._check_parameters(group)
        for name, parameter, region in members([group]):
            dithers = group["rounding"] == "stochastic" and parameter.dtype is torch.bfloat16
            if not (group["fused"] or dithers) or parameter.is_meta:
                continue
            wish = "fused=True" if group["fused"] else "rounding='stochastic'"
            reason = misfit(parameter, region)
            if reason is None and not group["fused"]:
                reason = f"`fused` is {group['fused']}"
            if reason is not None:
                remedy = "fused=None" if group["fused"] else "fused=True or rounding='nearest'"
                raise ValueError(
                    f"`{wish}` cannot move parameter `{name}` of shape {tuple(parameter.shape)} "
                    f"in {region}: {reason}; use {remedy}"
                )

    # ---- steps

    @untraced
    def _advance(self) -> None:
        if any(map(_may_hurry, self.param_groups)):
            if self._hurry is None:
                self._hurry = FusedStep()
            self._hurry(self)
            self._left = self._hurry.rest
            if not self._left:
                return
        else:
            self._left = None
        super()._advance()

    def _moves(self, parameter: Tensor) -> bool:
        here = self._left is None or id(parameter) in self._left
        return here and parameter.grad is not None

    # ---- state

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = super()._new_state(parameter, group)
        if group["momentum"]:
            state["momentum_buffer"] = self._no_average(parameter, group)
        return state

    def _state_of(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The parameter's state, made up where anything is missing."""
        state = self.state[parameter]
        if not state:
            state.update(self._new_state(parameter, group))
        elif group["momentum"] and "momentum_buffer" not in state:  # its momentum was zero
            state["momentum_buffer"] = self._no_average(parameter, group)
        return state

    def _no_average(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        wide = torch.promote_types(parameter.dtype, torch.float32)
        dtype = wide if group["wide_average"] else parameter.dtype
        return torch.zeros_like(parameter, dtype=dtype)

    def _kept_wide(self, group: dict[str, Any]) -> frozenset[str]:
        return frozenset({"momentum_buffer"}) if group["wide_average"] else frozenset()

    def _directions(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """The averages, brought up to date; the gradients themselves without momentum."""
        if not group["momentum"]:
            return grads
        if not all("momentum_buffer" in state for state in states):
            self._begun(group, grads, states)
        averages = [state["momentum_buffer"] for state in states]
        if any(g.dtype is not m.dtype for g, m in zip(grads, averages, strict=True)):
            grads = [g.to(m.dtype) for g, m in zip(grads, averages, strict=True)]
        torch._foreach_lerp_(averages, grads, 1 - group["momentum"])
        return averages

    def _begun(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        """Make averages for the parameters whose momentum was zero until now."""
        for gradient, state in zip(grads, states, strict=True):
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = self._no_average(gradient, group)


def _may_hurry(group: dict[str, Any]) -> bool:
    """Whether kernels are wanted for the group."""
    return group["fused"] is True
