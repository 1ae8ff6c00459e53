"""Online recursive-gradient Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from ..regions import Region
from ._base import check_range
from ._reference import VarianceReduced


class ORGFW(VarianceReduced):
    r"""Frank-Wolfe with momentum whose memory is carried along from one iterate to the next.

    ::

        input: regions C, lr γ, momentum 1 − ρ, θ₀ ∈ C
        for t = 0, 1, …
            on one batch, with the same random numbers:
            g₀ ← ∇L(θ_{t−1}),  g ← ∇L(θ_t)              (−g₀, −g if maximize)
            m ← g + (1 − ρ) (m − g₀)                    (m = g at first)
            v ← argmin over v ∈ C of ⟨m, v⟩
            θ_{t+1} ← θ_t + a (v − θ_t)                 a as in SFW
            θ_{t+1} ← θ_t − γ m                         where the region is Free()

    Xie, Shen, Zhang, Qian, Wang, "Efficient Projection-Free Online Methods with Stochastic
    Recursive Gradient" (2020). Momentum alone averages gradients of old iterates, and so lags
    behind; here the same batch tells by how much the memory is out of date. No pass over all the
    data is needed. In theory ρ falls like 1/t: set `group["momentum"]` as you would set lr.

    Each step calls the closure twice, at θ_{t−1} and at θ_t (the very first once), and each
    parameter keeps θ_{t−1} and m. A closure zeroes the gradients, runs forward and backward on the
    batch, returns the loss::

        for batch in batches:
            optimizer.step(closure_of(batch))

    Args:
        params: parameters, (name, parameter) pairs, or groups, such as those of `cg.constrain`.
        region: the region of groups that name none.
        lr: the learning rate; it may exceed 1 under both rescalings. A number or a tensor.
        momentum: the share 1 − ρ of the memory that is kept, in [0, 1).
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
        momentum: float = 0.9,
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
            momentum=momentum,
            rescale=rescale,
            ties=ties,
            seed=seed,
            maximize=maximize,
            foreach=foreach,
        )

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        check_range("momentum", group["momentum"], 0, 1)

    def _directions(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """The memories, brought up to date.

        m + (g − g₀) is the memory carried along; mixing in the share ρ of g gives the listing's m.
        Where there is no memory yet, both m and g₀ are zero, and m = g comes out.
        """
        memories = [state["estimate"] for state in states]
        torch._foreach_add_(memories, self._changes(group, grads))
        fresh = [g.to(m.dtype) for g, m in zip(grads, memories, strict=True)]
        torch._foreach_lerp_(memories, fresh, 1 - group["momentum"])
        return memories
