"""One Frank-Wolfe move: from a direction to a vertex, a step length, and the new parameter.

    v = argmin_{v in C} <d, v>          a = step length         θ ← θ + a (v − θ)

One parameter at a time here, all of them together in `_move_many.py`; neither waits for an
accelerator.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..regions import Free, Region
from ..regions._base import working
from ..regions._measure import Dense, Norm
from ..regions._ties import FIRST, Draw

RECALL_EVERY = 16
"""Steps after which a parameter is pulled back inside by what rounding has carried it out.

An average of two points of a convex set lies in the set, but its rounded entries may not, and the
errors of many steps can add up: an entry that should shrink by less than half a unit in the last
place does not shrink at all. One step adds at most about one machine epsilon.
"""


class Work:
    """One parameter's share of a step; parameter and direction have at least one dimension.

    What lasts from step to step is given first; `source` is the seed and the parameter's number,
    which a draw depends on, or None for the first of several solutions.
    """

    __slots__ = ("direction", "lr", "parameter", "region", "rescale", "source", "step")

    direction: Tensor
    lr: float | Tensor
    step: Tensor

    def __init__(
        self, parameter: Tensor, region: Region, rescale: str | None, source: tuple[int, int] | None
    ) -> None:
        self.parameter = parameter
        self.region = region
        self.rescale = rescale
        self.source = source

    @property
    def draw(self) -> Draw | None:
        """How ties are settled in this step."""
        return FIRST if self.source is None else Draw(*self.source, self.step)


def move(work: Work) -> None:
    """Move one parameter."""
    parameter, region = work.parameter, work.region
    if isinstance(region, Free):
        slide(work)
        return
    direction, start = working(work.direction), working(parameter)
    vertex = region._oracle(direction, work.draw)
    length = _length(work, direction, vertex, start)
    if start is parameter:
        parameter.lerp_(vertex, length)
    else:
        parameter.copy_(torch.lerp(start, vertex, length))
    recall(work, length)


def slide(work: Work) -> None:
    """Move a free parameter down its direction."""
    if isinstance(work.lr, Tensor):
        work.parameter.sub_(work.lr.to(work.parameter.device) * work.direction)
    else:
        work.parameter.add_(work.direction, alpha=-work.lr)


def recall(work: Work, length: float | Tensor) -> None:
    """Pull the parameter back inside, if it is time and the step had any length."""
    recall_point(work.parameter, work.region, work.step, length)


def recall_point(parameter: Tensor, region: Region, step: Tensor, length: float | Tensor) -> None:
    """Pull the parameter back inside, if it is time and the step had any length."""
    if not region._drifts or not recall_due(parameter, step):
        return
    recalled = region._recalled(parameter)
    if isinstance(length, Tensor):
        recalled = torch.where(length > 0, recalled, parameter)
    elif length == 0:
        return
    parameter.copy_(recalled)


def recall_due(parameter: Tensor, step: Tensor) -> bool:
    """Whether it is time to pull back; always, where asking would cost a wait, or be done once."""
    if step.device.type != "cpu":
        return True
    if parameter.is_cuda and torch.cuda.is_current_stream_capturing():
        return True
    return parameter.element_size() < 4 or int(step) % RECALL_EVERY == 0


def _length(work: Work, direction: Tensor, vertex: Tensor, start: Tensor) -> float | Tensor:
    """The step length a, in [0, 1]."""
    lr = work.lr
    if work.rescale == "gradient":
        piece = Dense(direction, 0, None)  # whose norms neither underflow nor overflow
        size, gap = piece.answer(Norm(direction)), piece.answer(Norm(vertex - start))
        reach = lr * size
        if isinstance(reach, Tensor):
            return torch.where(torch.as_tensor(gap > 0), reach / gap, 1).clamp(max=1)
        return reach / gap if gap > reach else 1.0
    if work.rescale == "diameter":
        lr = over_diameter(work)
    return lr.clamp(max=1) if isinstance(lr, Tensor) else min(lr, 1.0)


def over_diameter(work: Work) -> float | Tensor:
    """The learning rate over the region's diameter; nothing, if the region is a single point."""
    span = work.region._diameter(work.parameter.shape)
    return work.lr / span if span else 0.0 * work.lr
