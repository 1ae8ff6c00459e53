"""A run in memory: it trains an epoch, measures itself, and can be saved and restored between."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from condgrad_lab.data import Dataset
from condgrad_lab.spec import Run
from condgrad_lab.store import Row
from condgrad_lab.train import _measure
from condgrad_lab.train._build import build
from condgrad_lab.train._samples import Inputs, generator, samples, seed_of


class Trial:
    """A run in memory: its model and optimizer, its samples, and how far it is.

    All randomness is drawn from generators seeded by (seed, purpose, epoch). So an epoch is the
    same whether or not the process is the one that trained the epoch before.
    """

    def __init__(self, run: Run, dataset: Dataset) -> None:
        self.run = run
        self.train, self.test = samples(dataset, run)
        self.parts = build(run, len(dataset.classes))
        self.epoch = 0
        self.evaluations = 0  # of the gradient of one sample
        self.loss = 0.0  # the mean over the batches of the last epoch
        self._outputs = torch.empty(0)

    @property
    def finite(self) -> bool:
        """Whether the last epoch's loss is a number; where it is not, there is no going on."""
        return math.isfinite(self.loss)

    def train_epoch(self) -> Row:
        """Train for an epoch; returns the numbers that fall off on the way."""
        self.epoch += 1
        run, optimizer, schedules = self.run, self.parts.optimizer, self.parts.schedules
        _seed(seed_of(run.seed, "noise", self.epoch), run.device)
        self.parts.model.train()
        lr = optimizer.param_groups[0]["lr"]
        self._refresh()
        running = self._steps()
        self.loss = running["train_loss"]
        schedules.step(self.epoch, self.loss)
        row: Row = {"epoch": self.epoch, "lr": lr, "evaluations": self.evaluations}
        row["running_loss"] = self.loss
        return row if "train" in run.measure else row | running

    def _refresh(self) -> None:
        """Give a variance-reduced method its full gradient."""
        refresh = getattr(self.parts.optimizer, "refresh", None)
        if refresh:
            batches = self.train.batches(_measure.CHUNK)
            refresh((self._closure(*batch), len(batch[1])) for batch in batches)

    def _steps(self) -> Row:
        run, optimizer, counting = self.run, self.parts.optimizer, "train" not in self.run.measure
        order = torch.randperm(len(self.train), generator=generator(run.seed, "order", self.epoch))
        losses: list[Tensor] = []
        sizes: list[int] = []
        hits: list[Tensor] = []
        for inputs, labels in self.train.batches(run.batch, order):
            losses.append(optimizer.step(self._closure(inputs, labels)).detach())
            sizes.append(len(labels))
            if counting:
                hits.append((self._outputs.argmax(1) == labels).sum())
        # Here, once an epoch, the host waits for the device.
        total = torch.stack(losses).double() @ torch.tensor(sizes).to(losses[0]).double()
        numbers: Row = {"train_loss": total.item() / len(self.train)}
        if counting:
            numbers["train_accuracy"] = torch.stack(hits).sum().item() / len(self.train)
        return numbers

    def _closure(self, inputs: Inputs, labels: Tensor) -> Callable[[], Tensor]:
        model, optimizer = self.parts.model, self.parts.optimizer

        def closure() -> Tensor:
            self.evaluations += len(labels)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = cross_entropy(outputs, labels)
            loss.backward()
            # Of several evaluations a step, the last one is that at the current parameters.
            self._outputs = outputs.detach()
            return loss

        return closure

    def measure(self) -> Row:
        """The numbers that the run asks for, at the present parameters."""
        model, optimizer = self.parts.model, self.parts.optimizer
        wanted, gap = self.run.measure, "gap" in self.run.measure
        row: Row = {}
        if gap or "train" in wanted:
            averages = _measure.averages(model, self.train, gradient=gap)
            row |= _measure.prefixed("train", averages) if "train" in wanted else {}
        row |= _measure.prefixed("test", _measure.averages(model, self.test))
        if self.run.rules:
            row |= _measure.constraints(optimizer, gap=gap)
        if "active" in wanted:
            row |= _measure.sparse(model, self.test, self.parts.initial)
        return row

    def weights(self) -> dict[str, np.ndarray]:
        """The parameters by name."""
        named = self.parts.model.named_parameters()
        return {name: parameter.detach().cpu().numpy() for name, parameter in named}

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on from here, as plain data and tensors."""
        return {
            "epoch": self.epoch,
            "evaluations": self.evaluations,
            "loss": self.loss,
            "model": self.parts.model.state_dict(),
            "optimizer": self.parts.optimizer.state_dict(),
            "schedules": self.parts.schedules.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a saved trial of the same run."""
        self.epoch, self.evaluations = state["epoch"], state["evaluations"]
        self.loss = state["loss"]
        self.parts.model.load_state_dict(state["model"])
        self.parts.optimizer.load_state_dict(state["optimizer"])
        self.parts.schedules.load_state_dict(state["schedules"])


def _seed(seed: int, device: str) -> None:
    # torch.manual_seed would also reseed accelerators that the run does not use.
    torch.default_generator.manual_seed(seed)
    if device == "cuda":
        torch.cuda.manual_seed(seed)
