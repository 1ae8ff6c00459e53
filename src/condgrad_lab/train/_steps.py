"""An epoch's steps: forward, backward, and the optimizer's move, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from condgrad_lab.spec import Run
from condgrad_lab.store import Row
from condgrad_lab.train._build import Parts
from condgrad_lab.train._draws import Draws
from condgrad_lab.train._measure import CHUNK, hits, kinds
from condgrad_lab.train._samples import Source
from condgrad_lab.train._scale import Inputs
from condgrad_lab.train._speed import Speed, autocast
from condgrad_lab.train._team import Team

_SEVERAL = ("SVRF", "SPIDERFW", "ORGFW")
"""Methods that evaluate a batch more than once: their gradients are not averaged in between."""


class Steps:
    """The steps of a run, one after another."""

    path: tuple[str, ...] = ()
    """In words, what speeds them up."""

    def __init__(self, run: Run, parts: Parts, train: Source, speed: Speed, team: Team) -> None:
        if not team.alone and run.optimizer.name in _SEVERAL:
            raise ValueError(f"`ranks` is {run.ranks}, but {run.optimizer.name} trains on one")
        self.run, self.parts, self.train, self.team = run, parts, train, team
        self.evaluations = 0  # of the gradient of one sample
        self._counting = "train" not in run.measure
        self._whole = self._model = _shared(parts.model, run, team)
        if speed.compile:
            # One run after the other must not add up to the number of forms that torch keeps.
            torch.compiler.reset()
            # Dropout is then drawn as it is without: what is compiled changes rounding alone.
            self._whole = torch.compile(self._model, options={"fallback_random": True})
            self.path += ("compiled",)
        if parts.fused:
            self.path += ("fused",)

    def prepare(self, draws: Draws) -> None:
        """What is to be done before an epoch, and before its random numbers are seeded."""

    def epoch(self, draws: Draws) -> Row:
        """Train on all samples once; returns the means over the batches."""
        self._refresh()
        losses: list[Tensor] = []
        found: list[Tensor] = []
        sizes = [len(part) for part in draws.split(self.run.batch)]
        batches = self.train.batches(self.run.batch, draws, self.team)
        # A part of a batch that is too small for all processes is left to none of them.
        sizes = [size for size in sizes if size >= self.team.size]
        for size, (inputs, labels) in zip(sizes, batches, strict=False):
            loss, counts = self._step(inputs, labels, size)
            losses.append(loss * len(labels) if not self.team.alone else loss)
            found.append(counts)
        # Each process has its own statistics of normalisation: those of the first one count.
        self.team.copy(*self.parts.model.buffers())
        return self._means(torch.stack(losses), sizes, found)

    def _step(self, inputs: Inputs, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """One step of the optimizer, which may look at the batch more than once."""
        last: list[Tensor] = []

        def closure() -> Tensor:
            self.evaluations += size
            loss, outputs = self.gradient(inputs, labels, size)
            last[:] = [outputs]  # of several evaluations, that at the current parameters
            return loss

        loss = self.parts.optimizer.step(closure).detach()
        return loss, self._counts(last[0], labels)

    def gradient(self, inputs: Inputs, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """The mean loss and the outputs of a batch; its mean gradient is left in `.grad`."""
        self.parts.optimizer.zero_grad()
        # Whatever is compiled is so for one size of batches.
        model = self._whole if size == self.run.batch else self._model
        with autocast(self.run):
            outputs = model(inputs)
            loss = cross_entropy(outputs, labels)
        # The processes of a team have their gradients averaged, whoever has a sample more.
        (loss if self.team.alone else loss * (len(labels) * self.team.size / size)).backward()
        return loss.detach(), outputs.detach()

    def _counts(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return hits(outputs, labels, self.run) if self._counting else labels[:0]

    def _refresh(self) -> None:
        """Give a variance-reduced method its full gradient."""
        refresh = getattr(self.parts.optimizer, "refresh", None)
        if refresh:
            refresh((self._closure(*batch), len(batch[1])) for batch in self.train.batches(CHUNK))

    def _closure(self, inputs: Inputs, labels: Tensor) -> Callable[[], Tensor]:
        def closure() -> Tensor:
            self.evaluations += len(labels)
            return self.gradient(inputs, labels, len(labels))[0]

        return closure

    def _means(self, losses: Tensor, sizes: list[int], found: list[Tensor]) -> Row:
        """The means over the samples: here, once an epoch, the host waits for the device."""
        weights = torch.tensor(sizes if self.team.alone else [1] * len(sizes))
        sums = [losses.double() @ weights.to(losses).double()]
        if self._counting:
            sums += torch.stack(found).sum(0).double().unbind()
        both = torch.stack(sums)
        self.team.sum(both)
        total, *counts = both.tolist()
        numbers: Row = {"train_loss": total / sum(sizes)}
        for name, count in zip(kinds(self.run), counts, strict=False):
            numbers[f"train_{name}"] = count / sum(sizes)
        return numbers


def _shared(model: nn.Module, run: Run, team: Team) -> Any:
    """The model as a batch is sent through it: by several processes, with gradients averaged."""
    if team.alone:
        return model
    devices = [torch.cuda.current_device()] if run.device == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, devices)
