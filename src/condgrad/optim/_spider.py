"""Frank-Wolfe with the stochastic path-integrated differential estimator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from ..regions import Region
from ._snapshot import Snapshotting


class SPIDERFW(Snapshotting):
    r"""Frank-Wolfe on a full gradient that each batch brings up to date since the step before.

    ::

        input: regions C, lr γ, θ₀ ∈ C
        refresh:                                        (every so many steps)
            d ← ∇L(θ_t) on all the data                 (−∇L if maximize)
        for t = 0, 1, …
            unless it is the first step since refresh, on one batch, with the same random numbers:
                g₀ ← ∇L(θ_{t−1}),  g ← ∇L(θ_t)          (−g₀, −g if maximize)
                d ← d + (g − g₀)
            v ← argmin over v ∈ C of ⟨d, v⟩
            θ_{t+1} ← θ_t + a (v − θ_t)                 a as in SFW, with d for m
            θ_{t+1} ← θ_t − γ d                         where the region is Free()

    Yurtsever, Sra, Cevher, "Conditional Gradient Methods via Stochastic Path-Integrated
    Differential Estimator" (2019); Shen et al., "Complexities in Projection-Free Stochastic
    Non-convex Minimization" (2019). Every correction is small, but their errors add up until the
    next refresh.

    Each step calls the closure twice, at θ_{t−1} and at θ_t (the first one after a refresh once),
    and each parameter keeps θ_{t−1} and d. A closure zeroes the gradients, runs forward and
    backward on the batch, returns the loss::

        optimizer.refresh((closure_of(batch), len(batch)) for batch in batches)
        for batch in batches:
            optimizer.step(closure_of(batch))

    Args:
        params: parameters, (name, parameter) pairs, or groups, such as those of `cg.constrain`.
        region: the region of groups that name none.
        lr: the learning rate; it may exceed 1 under both rescalings. A number or a tensor.
        rescale: how lr becomes a step length, see SFW.
        ties: "random" draws among several best vertices; "first" does not, see SFW.
        seed: the seed of those draws.
        maximize: ascend instead.
        foreach: whether to move many tensors together, see SFW.
        buffers: the model's buffers, `model.buffers()`, which only an evaluation at θ_t may change;
            None: those that came with the groups of `cg.constrain`.

    """

    _follows = True

    def __init__(
        self,
        params: Iterable[Any],
        region: Region | None = None,
        *,
        lr: float | Tensor = 0.1,
        rescale: Literal["diameter", "gradient"] | None = "gradient",
        ties: Literal["random", "first"] = "random",
        seed: int = 0,
        maximize: bool = False,
        foreach: bool | None = None,
        buffers: Iterable[Tensor] | None = None,
    ) -> None:
        super().__init__(
            params,
            region,
            buffers=buffers,
            lr=lr,
            rescale=rescale,
            ties=ties,
            seed=seed,
            maximize=maximize,
            foreach=foreach,
        )

    def _directions(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """The estimates, brought up to date by what has changed since the step before."""
        estimates = [state["estimate"] for state in states]
        if group["since"]:
            torch._foreach_add_(estimates, self._changes(group, grads))
        return estimates
