"""Steps replayed from a CUDA graph: launched as one, with nothing of them left to Python.

All that a step reads lies where the graph will look for it: the epoch's draws, the number of the
step, the learning rate. So a replay needs no word from the host, and the host waits once an epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from condgrad_lab.spec import Run
from condgrad_lab.store import Row
from condgrad_lab.train._build import Parts
from condgrad_lab.train._draws import Draws
from condgrad_lab.train._measure import kinds
from condgrad_lab.train._samples import Samples, Source
from condgrad_lab.train._speed import Speed
from condgrad_lab.train._steps import Steps
from condgrad_lab.train._team import ALONE

Step = Callable[[], None]
WARM = 3
"""Steps before a capture: what is made or compiled on first use must be there."""


def can_be_captured(run: Run, parts: Parts, train: Source) -> bool:
    """Whether all of the run's steps are alike, and do nothing that a graph cannot."""
    once = not hasattr(parts.optimizer, "refresh") and run.optimizer.name in ("SFW", "SGD")
    # A replay cannot know that it is the first one, in which SGD's momentum is not dampened.
    alike = run.optimizer.dampening == 0 and isinstance(train, Samples)
    return once and alike and len(train) >= run.batch


def replayed(step: Step) -> Step:
    """What does the step again: a CUDA graph of it, recorded after a few rounds to get warm."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


class CapturedSteps(Steps):
    """The steps of a run whose full batches are replayed; a last one of fewer samples is not."""

    def __init__(
        self,
        run: Run,
        parts: Parts,
        train: Samples,
        speed: Speed,
        record: Callable[[Step], Step] = replayed,
    ) -> None:
        super().__init__(run, parts, train, speed, ALONE)
        self._resident = train
        self.path += ("captured",)
        self._record = record
        self._replay: Step | None = None
        self._grads: list[Tensor | None] = []
        # Kernels of the optimizer can be captured; other ways to move would be frozen as they are.
        self._inside = parts.fused
        device, self._full = train.device, len(train) // run.batch
        if self._inside:
            parts.schedules.rate_on(device)
        self._draws = train.draws(0, 0).to(device)  # a place for those of each epoch
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        self._range = torch.arange(run.batch, device=device)
        dtype = getattr(torch, run.dtype)
        self._losses = torch.zeros(self._full, dtype=dtype, device=device)
        self._found = torch.zeros(self._full, len(kinds(run)), dtype=torch.int64, device=device)

    def prepare(self, draws: Draws) -> None:
        """Put the epoch's draws in their place, and record the step if it was not yet."""
        self._fill(draws)
        if self._replay is None:
            self._replay = self._prepared()

    def epoch(self, draws: Draws) -> Row:
        """Train on all samples once; returns the means over the batches."""
        assert self._replay is not None
        for _ in range(self._full):
            self._replay()
            if not self._inside:
                self._move()
        self.evaluations += self._full * self.run.batch
        sizes = [self.run.batch] * self._full
        losses, found = self._losses, list(self._found)
        if len(rest := draws[self._full * self.run.batch :]):
            train = self._resident
            loss, counts = self._step(*train.batch(rest.to(train.device)), len(rest))
            losses, found = torch.cat([losses, loss[None]]), [*found, counts]
            sizes.append(len(rest))
        return self._means(losses, sizes, found)

    def _fill(self, draws: Draws) -> None:
        self._draws.order.copy_(draws.order)
        if self._draws.moves is not None and draws.moves is not None:
            self._draws.moves.copy_(draws.moves)
        self._place.zero_()

    def _body(self) -> None:
        """One step, told nothing: what is recorded."""
        draws = self._draws.at(self._place * self.run.batch + self._range)
        inputs, labels = self._resident.batch(draws)
        loss, outputs = self.gradient(inputs, labels, self.run.batch)
        place = self._place[None]
        self._losses.index_copy_(0, place, loss.to(self._losses.dtype)[None])
        if self._counting:
            self._found.index_copy_(0, place, self._counts(outputs, labels)[None])
        if self._inside:
            self.parts.optimizer.step()
        self._place.copy_((self._place + 1) % self._full)

    def _move(self) -> None:
        """The optimizer's step, at the gradients where the graph has left them."""
        for parameter, grad in zip(self.parts.model.parameters(), self._grads, strict=True):
            parameter.grad = grad
        self.parts.optimizer.step()

    def _prepared(self) -> Step:
        """The recorded step; whatever has moved on the way is put back where it was."""
        model, optimizer = self.parts.model, self.parts.optimizer
        tensors = [*model.parameters(), *model.buffers()]
        kept = [tensor.detach().clone() for tensor in tensors]
        states = {p: _copied(state) for p, state in optimizer.state.items()}
        replay = self._record(self._body)
        self._grads = [parameter.grad for parameter in model.parameters()]
        with torch.no_grad():
            for tensor, value in zip(tensors, kept, strict=True):
                tensor.copy_(value)
            for p, state in optimizer.state.items():
                _put_back(state, states.get(p, {}))
        self._place.zero_()
        return replay


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    return {name: v.clone() for name, v in state.items() if isinstance(v, Tensor)}


def _put_back(state: dict[str, Any], before: dict[str, Any]) -> None:
    """Bring state back in its place; what was not there yet begins at zero."""
    for name, value in state.items():
        if isinstance(value, Tensor):
            value.copy_(before[name]) if name in before else value.zero_()
