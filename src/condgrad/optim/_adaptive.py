"""Frank-Wolfe with adaptive gradients: steps towards the minimum of a model scaled by entry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ..regions import Free, Region
from ..regions._base import positive, working
from ..regions._measure import Program, Sum
from ..regions._sharded import vertex
from ..regions._shards import Shard, local
from ..regions._ties import FIRST, Draw
from ._base import FrankWolfe, at_least_point, check_range
from ._move import recall_point
from ._move_sharded import Moved
from ._roster import Roster


class _Corner(NamedTuple):
    """The vertex for a direction."""

    slope: Tensor
    draw: Draw | None


class Model(NamedTuple):
    """The quadratic model γ⟨m, y⟩ + ½ ‖y − θ‖²_H around a parameter, and how to go down it.

    It is γ times the model of the listing: the same minimum, and a γ of zero does no harm.
    """

    parameter: Tensor
    slope: Tensor
    scale: Tensor
    region: Region
    lr: float | Tensor
    inner: int
    draws: tuple[int, int] | None
    step: Tensor

    def descend(self) -> None:
        """Move the parameter down the model."""
        path, answer = self._path(self.parameter), None
        while True:
            try:
                asked = path.send(answer)
            except StopIteration as stop:
                point, reach = stop.value
                break
            if isinstance(asked, _Corner):
                answer = self.region._oracle(asked.slope, asked.draw)
            else:
                answer = [question.values.sum() for question in asked]
        self.parameter.copy_(point)
        if not isinstance(self.region, Free):
            recall_point(self.parameter, self.region, self.step, reach)

    def led(self, shard: Shard) -> Program[Moved]:
        """Where the parameter goes, if it lies in pieces on several ranks."""
        path, answer = self._path(local(self.parameter)), None
        while True:
            try:
                asked = path.send(answer)
            except StopIteration as stop:
                return stop.value
            if isinstance(asked, _Corner):
                answer = yield from vertex(self.region, asked.slope, shard, asked.draw)
            else:
                answer = yield asked

    def _path(self, parameter: Tensor) -> Program[Moved]:
        """The way down the model; it asks for corners of the region, and for pairs of sums."""
        start = working(parameter)
        lr = self.lr.to(start.device) if isinstance(self.lr, Tensor) else self.lr
        pull = lr * working(self.slope)
        point, reach = start, start.new_zeros(())
        if isinstance(self.region, Free):
            return start - pull / self.scale, reach
        span = self.region._diameter(self.parameter.shape) or 1.0
        for k in range(self.inner):
            slope = pull + self.scale * (point - start)
            way = (yield _Corner(slope, self._draw(k))) - point
            share = way / span  # squares of the way itself might underflow or overflow
            sums = yield [Sum(self.scale * share * share), Sum(slope * share)]
            curvature, fall = (torch.as_tensor(sum_, dtype=start.dtype) for sum_ in sums)
            length = self._length(span * curvature, fall)
            point = point + length * way
            reach = torch.maximum(reach, length)
        return point, reach

    def _length(self, curvature: Tensor, fall: Tensor) -> Tensor:
        """Where along the way the model is least, clipped to [0, 1]: a tensor, never waited for."""
        return torch.where(curvature > 0, -fall / curvature, 0).clamp(0, 1)

    def _draw(self, k: int) -> Draw | None:
        return FIRST if self.draws is None else Draw(*self.draws, self.step, k)


class Adaptive(FrankWolfe):
    """A Frank-Wolfe method that scales its steps by the gradients' sizes, entry by entry."""

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        inner = group["inner"]
        if isinstance(inner, bool) or not (isinstance(inner, int) and inner >= 1):
            raise ValueError(f"`inner` must be an int of at least 1, got {inner!r}")
        positive(group["delta"], "delta")

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        wide = torch.promote_types(parameter.dtype, torch.float32)
        zeros = {name: torch.zeros_like(parameter, dtype=wide) for name in sorted(self._wide)}
        return {**super()._new_state(parameter, group), **zeros}

    def _sizes(self, state: dict[str, Any]) -> Tensor:
        """What the method knows of the squared size of each entry of the gradient."""
        raise NotImplementedError

    def _works(
        self, roster: Roster, directions: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Any]:
        works = roster.brief(directions, states)
        return [
            Model(
                work.parameter,
                work.direction,
                at_least_point(group["delta"] + self._sizes(state).sqrt()),
                work.region,
                work.lr,
                group["inner"],
                work.source,
                work.step,
            )
            for work, group, state in zip(works, roster.owners, states, strict=True)
        ]

    def _program(self, work: Model, shard: Shard) -> Program[Moved]:
        return work.led(shard)

    def _move(self, works: list[Any], foreach: bool | None) -> None:
        for model in works:
            model.descend()


class AdaSFW(Adaptive):
    r"""Frank-Wolfe steps on AdaGrad's model of the loss.

    ::

        input: regions C, lr γ, δ, K, θ₀ ∈ C, s = 0
        for t = 0, 1, …
            g ← ∇L(θ_t) on a batch                      (−g if maximize)
            s ← s + g²,  H ← δ + √s                     entry by entry
            y ← θ_t
            K times:                                    Q(y) = ⟨g, y⟩ + ‖y − θ_t‖²_H / 2γ
                v ← argmin over v ∈ C of ⟨∇Q(y), v⟩
                a ← the a in [0, 1] with the least Q(y + a (v − y))
                y ← y + a (v − y)
            θ_{t+1} ← y
            θ_{t+1} ← θ_t − γ g / H                     where the region is Free()

    Combettes, Spiegel, Pokutta, "Projection-Free Adaptive Gradients for Large-Scale Optimization"
    (2020). K oracles a step take the place of the projection, in the norm of H, that AdaGrad in a
    region would need. Tensors are moved one at a time.

    Args:
        params: parameters, (name, parameter) pairs, or groups, such as those of `cg.constrain`.
        region: the region of groups that name none.
        lr: the learning rate γ of the model. A number or a tensor.
        inner: the number K of Frank-Wolfe steps on the model.
        delta: what is added to H, above 0.
        ties: "random" draws among several best vertices; "first" does not, see SFW.
        seed: the seed of those draws.
        maximize: ascend instead.

    """

    _wide = frozenset({"sum"})

    def __init__(
        self,
        params: Iterable[Any],
        region: Region | None = None,
        *,
        lr: float | Tensor = 0.01,
        inner: int = 5,
        delta: float = 1e-8,
        ties: Literal["random", "first"] = "random",
        seed: int = 0,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            region,
            lr=lr,
            inner=inner,
            delta=delta,
            ties=ties,
            seed=seed,
            maximize=maximize,
        )

    def _directions(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """The gradients themselves; their squares are added up on the way."""
        wide = [working(gradient) for gradient in grads]
        torch._foreach_addcmul_([state["sum"] for state in states], wide, wide)
        return wide

    def _sizes(self, state: dict[str, Any]) -> Tensor:
        return state["sum"]


class AdamSFW(Adaptive):
    r"""Frank-Wolfe steps on the model of the loss that Adam, in its AMSGrad form, makes.

    ::

        input: regions C, lr γ, β₁, β₂, δ, K, θ₀ ∈ C, m = s = ŝ = 0
        for t = 0, 1, …
            g ← ∇L(θ_t) on a batch                      (−g if maximize)
            m ← β₁ m + (1 − β₁) g
            s ← β₂ s + (1 − β₂) g²,  ŝ ← max(ŝ, s)      entry by entry
            H ← δ + √ŝ
            θ_{t+1} ← K Frank-Wolfe steps from θ_t on
                      Q(y) = ⟨m, y⟩ + ‖y − θ_t‖²_H / 2γ, as in AdaSFW
            θ_{t+1} ← θ_t − γ m / H                     where the region is Free()

    Combettes, Spiegel, Pokutta, "Projection-Free Adaptive Gradients for Large-Scale Optimization"
    (2020). Unlike torch.optim.Adam it does not correct m and s for their start at zero.

    Args:
        params: parameters, (name, parameter) pairs, or groups, such as those of `cg.constrain`.
        region: the region of groups that name none.
        lr: the learning rate γ of the model. A number or a tensor.
        betas: the shares β₁, β₂ of the old averages that are kept, in [0, 1).
        inner: the number K of Frank-Wolfe steps on the model.
        delta: what is added to H, above 0.
        ties: "random" draws among several best vertices; "first" does not, see SFW.
        seed: the seed of those draws.
        maximize: ascend instead.

    """

    _wide = frozenset({"exp_avg", "exp_avg_sq", "max_exp_avg_sq"})

    def __init__(
        self,
        params: Iterable[Any],
        region: Region | None = None,
        *,
        lr: float | Tensor = 0.001,
        betas: tuple[float, float] = (0.9, 0.99),
        inner: int = 5,
        delta: float = 1e-8,
        ties: Literal["random", "first"] = "random",
        seed: int = 0,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            region,
            lr=lr,
            betas=betas,
            inner=inner,
            delta=delta,
            ties=ties,
            seed=seed,
            maximize=maximize,
        )

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        betas = group["betas"]
        if not (isinstance(betas, (tuple, list)) and len(betas) == 2):
            raise TypeError(f"`betas` must be a pair of numbers, got {betas!r}")
        for place, beta in enumerate(betas):
            check_range(f"betas[{place}]", beta, 0, 1)

    def _directions(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """The averages, brought up to date together with the second moments."""
        first, second = group["betas"]
        wide = [working(gradient) for gradient in grads]
        averages = [state["exp_avg"] for state in states]
        moments = [state["exp_avg_sq"] for state in states]
        torch._foreach_lerp_(averages, wide, 1 - first)
        torch._foreach_mul_(moments, second)
        torch._foreach_addcmul_(moments, wide, wide, 1 - second)
        torch._foreach_maximum_([state["max_exp_avg_sq"] for state in states], moments)
        return averages

    def _sizes(self, state: dict[str, Any]) -> Tensor:
        return state["max_exp_avg_sq"]
