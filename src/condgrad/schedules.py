"""Schedules of the learning rate that the Frank-Wolfe literature uses, as torch schedulers."""

from __future__ import annotations

import math
from collections import deque
from fractions import Fraction
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .regions._base import positive


class OpenLoop(LRScheduler):
    """The step 2/(t + 2) of the classical method, at every call of `step`.

    `scale` times that, where the optimizer rescales: the diameter, say, for rescale="diameter".
    """

    def __init__(self, optimizer: Optimizer, *, scale: float = 1.0, last_epoch: int = -1) -> None:
        self.scale = positive(scale, "scale")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        """The learning rates of the groups."""
        return [self.scale * 2 / (self.last_epoch + 2)] * len(self.optimizer.param_groups)


class BandRule(LRScheduler):
    """Follow the training loss: shrink the learning rate when it rises, let it grow when it falls.

    After each epoch, if the mean loss of the last `short` epochs is strictly above that of the last
    `long`, every group's lr is multiplied by `down`; if below, by `up`. It multiplies what it
    finds, so it goes together with other schedulers. `step` takes the epoch's mean training loss.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        short: int = 5,
        long: int = 10,
        down: float = 0.7,
        up: float = 0.7 ** (-1 / 6),
    ) -> None:
        if not 0 < short < long:
            raise ValueError(f"`short` must lie below `long`, got {short} and {long}")
        down, up = positive(down, "down"), positive(up, "up")
        self.optimizer = optimizer
        self.short, self.long, self.down, self.up = short, long, down, up
        self.losses: deque[float] = deque(maxlen=long)
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self, loss: float | Tensor) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Record an epoch's mean training loss and set the learning rates for the next."""
        self.losses.append(float(loss))
        self.last_epoch += 1
        losses = list(self.losses)
        recent, past = _mean(losses[-self.short :]), _mean(losses)
        factor = self.down if recent > past else self.up if recent < past else 1.0
        groups = self.optimizer.param_groups
        for lr in {id(group["lr"]): group["lr"] for group in groups}.values():
            if isinstance(lr, Tensor):
                lr.mul_(factor)  # once, however many groups share it
        for group in groups:
            if not isinstance(group["lr"], Tensor):
                group["lr"] *= factor
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs, as plain data."""
        return {"losses": list(self.losses), "last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the losses of a saved rule; the learning rates are the optimizer's to restore."""
        self.losses = deque(state_dict["losses"], maxlen=self.long)
        self.last_epoch = state_dict["last_epoch"]
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]


def _mean(values: list[float]) -> Fraction | float:
    # Fractions are exact, so equal losses have equal means and "strictly" means what it says.
    if all(map(math.isfinite, values)):
        return sum(map(Fraction, values)) / Fraction(len(values))
    return math.fsum(values)


def theorem_step(
    steps: int,
    *,
    excess: float | None = None,
    smoothness: float | None = None,
    diameter: float | None = None,
    beta: float | None = None,
) -> float:
    """The constant step length of the convergence theorem: sqrt((L₀ − L*)/(T M D² β)).

    `steps` is T, `excess` L₀ − L*, `smoothness` M, `diameter` D. Without `beta` its least value
    2(L₀ − L*)/(M D²) is taken; all but T then cancel, and the step is 1/sqrt(2T).
    """
    if not steps >= 1:
        raise ValueError(f"`steps` must be at least 1, got {steps!r}")
    if beta is None:
        return 1 / math.sqrt(2 * steps)
    if excess is None or smoothness is None or diameter is None:
        raise TypeError("with `beta`, give `excess`, `smoothness` and `diameter` too")
    known = {"excess": excess, "smoothness": smoothness, "diameter": diameter, "beta": beta}
    for name, value in known.items():
        positive(value, name)
    least = 2 * excess / (smoothness * diameter**2)
    if beta < least:
        raise ValueError(f"`beta` must be at least 2·excess/(M·D²) = {least:.6g}, got {beta!r}")
    return math.sqrt(excess / (steps * smoothness * diameter**2 * beta))
