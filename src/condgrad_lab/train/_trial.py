"""A run in memory: it trains an epoch, measures itself, and can be saved and restored between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from condgrad_lab.data import Dataset
from condgrad_lab.spec import Run
from condgrad_lab.store import Row
from condgrad_lab.train import _measure
from condgrad_lab.train._build import build
from condgrad_lab.train._captured import CapturedSteps, can_be_captured
from condgrad_lab.train._draws import seed_of
from condgrad_lab.train._samples import Samples, samples
from condgrad_lab.train._speed import Speed
from condgrad_lab.train._steps import Steps
from condgrad_lab.train._team import ALONE, Team


class Trial:
    """A run in memory: its model and optimizer, its samples, and how far it is.

    All randomness is drawn from generators seeded by (seed, purpose, epoch). So an epoch is the
    same whether or not the process is the one that trained the epoch before.
    """

    def __init__(
        self, run: Run, dataset: Dataset, *, speed: Speed | None = None, team: Team = ALONE
    ) -> None:
        if run.ranks != team.size:
            raise ValueError(
                f"`ranks` is {run.ranks}, but {team.size} processes are here: start the run by "
                f"torchrun --nproc-per-node {run.ranks}"
            )
        self.run, self.team = run, team
        settled = (speed or Speed()).on(run)
        self.train, self.test = samples(dataset, run, settled.workers)
        self.parts = build(run, len(dataset.classes), fused=bool(settled.fused))
        self.steps = self._steps(settled)
        self.epoch = 0
        self.loss = 0.0  # the mean over the batches of the last epoch

    def _steps(self, speed: Speed) -> Steps:
        run, parts, train = self.run, self.parts, self.train
        wanted = speed.capture and self.team.alone and can_be_captured(run, parts, train)
        if wanted and isinstance(train, Samples):
            return CapturedSteps(run, parts, train, speed)
        return Steps(run, parts, train, speed, self.team)

    @property
    def finite(self) -> bool:
        """Whether the last epoch's loss is a number; where it is not, there is no going on."""
        return math.isfinite(self.loss)

    def train_epoch(self) -> Row:
        """Train for an epoch; returns the numbers that fall off on the way."""
        self.epoch += 1
        run, lr = self.run, self.parts.schedules.lr
        draws = self.train.draws(run.seed, self.epoch)
        self.parts.model.train()
        self.steps.prepare(draws)
        noise = [run.seed, "noise", self.epoch, *([] if self.team.leads else [self.team.rank])]
        _seed(seed_of(*noise), run.device)
        running = self.steps.epoch(draws)
        self.loss = float(running["train_loss"])
        self.parts.schedules.step(self.epoch, self.loss)
        row: Row = {"epoch": self.epoch, "lr": lr, "evaluations": self.steps.evaluations}
        row["running_loss"] = self.loss
        return row if "train" in run.measure else row | running

    def measure(self) -> Row:
        """The numbers that the run asks for, at the present parameters."""
        wanted, gap = self.run.measure, "gap" in self.run.measure
        optimizer, row = self.parts.optimizer, Row()
        if gap or "train" in wanted:
            averages = self._averages(self.train, gradient=gap)
            row |= _measure.prefixed("train", averages) if "train" in wanted else {}
        row |= _measure.prefixed("test", self._averages(self.test))
        if self.run.rules:
            row["violation"] = _measure.violation(optimizer)
        if gap:
            row["gap"] = _measure.gap(optimizer)
        if "sampled-gap" in wanted:
            self._averages(self.train, draws=_measure.sampled(self.train), gradient=True)
            row["sampled_gap"] = _measure.gap(optimizer)
        if "active" in wanted:
            row |= _measure.sparse(self.parts.model, self.test, self.run, self.parts.initial)
        return row

    def _averages(self, of: Any, **more: Any) -> _measure.Numbers:
        return _measure.averages(self.parts.model, of, self.run, team=self.team, **more)

    def weights(self) -> dict[str, np.ndarray]:
        """The parameters by name."""
        named = self.parts.model.named_parameters()
        return {name: parameter.detach().cpu().numpy() for name, parameter in named}

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on from here, as plain data and tensors."""
        optimizer = self.parts.optimizer.state_dict()
        for group in optimizer["param_groups"]:
            group["lr"] = self.parts.schedules.lr  # where it is a tensor, that belongs to a graph
        return {
            "epoch": self.epoch,
            "evaluations": self.steps.evaluations,
            "loss": self.loss,
            "model": self.parts.model.state_dict(),
            "optimizer": optimizer,
            "schedules": self.parts.schedules.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a saved trial of the same run."""
        self.epoch, self.steps.evaluations = state["epoch"], state["evaluations"]
        self.loss = state["loss"]
        self.parts.model.load_state_dict(state["model"])
        self.parts.optimizer.load_state_dict(state["optimizer"])
        self.parts.schedules.load_state_dict(state["schedules"])


def _seed(seed: int, device: str) -> None:
    # torch.manual_seed would also reseed accelerators that the run does not use.
    torch.default_generator.manual_seed(seed)
    if device == "cuda":
        torch.cuda.manual_seed(seed)
