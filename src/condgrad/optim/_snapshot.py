"""The full gradient at a snapshot, for the methods that correct it batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sized
from typing import Any

import torch
from torch import Tensor

from ..regions._base import working
from ..regions._shards import local
from ._base import Closure
from ._reference import VarianceReduced

Batches = Iterable[tuple[Closure, float]]
Progress = Callable[[int, int | None], Any]


class Snapshotting(VarianceReduced):
    """A variance-reduced method that starts each period from the full gradient."""

    @torch.no_grad()
    def refresh(self, batches: Batches, *, progress: Progress | None = None) -> None:
        """Take a snapshot of the parameters and the full gradient there; a new period begins.

        `batches` are (closure, size) pairs that together make up the data: a closure zeroes the
        gradients and runs forward and backward on its batch's mean loss, and its gradient counts by
        the size. `progress` is called with the number of batches done and, if `batches` has a
        length, that of all. The full gradient is left in `p.grad`, so that `fw_gap` tells the gap;
        buffers and random streams are put back as they were. After an exception the old snapshot
        stands.
        """
        self._refresh(batches, progress)

    def _refresh(self, batches: Batches, progress: Progress | None) -> None:
        means = {
            parameter: torch.zeros_like(working(parameter))
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.requires_grad
        }
        count = self._average(batches, means, progress)
        for group in self.param_groups:
            group["since"] = 0
            for parameter in group["params"]:
                if parameter in means:
                    self._set(parameter, group, means[parameter])
        self._count(count)

    def _average(
        self, batches: Batches, means: dict[Tensor, Tensor], progress: Progress | None
    ) -> int:
        """Fill in the mean of the gradients; returns the number of batches."""
        length = len(batches) if isinstance(batches, Sized) else None
        before = self._surroundings()
        count, total = 0, 0.0
        try:
            for pair in batches:
                closure, size = _checked(pair)
                self._called(closure)
                count, total = count + 1, total + size
                self._blend(means, size / total)
                if progress is not None:
                    progress(count, length)
            if not count:
                raise ValueError("`batches` is empty: give the (closure, size) pairs of all data")
        except BaseException:
            self._drop_gradients()
            raise
        finally:
            before.restore()
        return count

    def _blend(self, means: dict[Tensor, Tensor], share: float) -> None:
        """Let the gradients at hand make up that share of the means; one that is absent is zero."""
        for group in self.param_groups:
            within = [p for p in group["params"] if p in means]
            grads = [
                local(means[p]).new_zeros(()).expand_as(local(p))
                if p.grad is None
                else working(self._gradient(p, group))
                for p in within
            ]
            torch._foreach_lerp_([local(means[p]) for p in within], grads, share)

    def _set(self, parameter: Tensor, group: dict[str, Any], mean: Tensor) -> None:
        """Give the parameter its snapshot, and its gradient the mean."""
        state = self.state[parameter]
        if state:
            state["reference"].copy_(parameter)
        else:
            state.update(self._new_state(parameter, group))
        state["estimate"] = mean
        if parameter.grad is not None:
            parameter.grad.copy_(-mean if group["maximize"] else mean)

    def _check_ready(self) -> None:
        for number, group in enumerate(self.param_groups):
            known = all(self.state.get(p) for p in group["params"] if p.requires_grad)
            if group["since"] is None or not known:
                raise ValueError(
                    f"group {number} has no snapshot: {type(self).__name__} needs the full "
                    "gradient; call refresh([(closure, size), ...]) before the first step, and "
                    "again when parameters were added or unfrozen"
                )


def _checked(pair: Any) -> tuple[Closure, float]:
    try:
        closure, size = pair
    except (TypeError, ValueError):
        closure, size = None, 0
    if not callable(closure):
        raise TypeError(f"`batches` must yield (closure, size) pairs, got {type(pair).__name__}")
    if not (isinstance(size, (int, float)) and 0 < size < math.inf):
        raise ValueError(f"`batches` must yield positive sizes of the batches, got {size!r}")
    return closure, size
