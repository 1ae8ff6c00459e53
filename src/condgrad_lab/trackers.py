"""Telling TensorBoard or Weights & Biases of every epoch, for those who watch there.

The records are the laboratory's own memory; these are an extra, each behind an extra of the same
name: `pip install 'condgrad[tensorboard]'`, `pip install 'condgrad[wandb]'`.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from condgrad_lab.queue import Event
from condgrad_lab.spec import Run
from condgrad_lab.store import Row


class Tracker(ABC):
    """A listener of the queue that passes each run's epochs on, under the run's key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._open: dict[Run, Any] = {}

    def __enter__(self) -> Callable[[Event], None]:
        return self._listen

    def __exit__(self, *error: object) -> None:
        for run in list(self._open):
            self._close(self._open.pop(run))

    def _listen(self, event: Event) -> None:
        if event.kind == "begin":
            self._open[event.run] = self._begin(event.run)
        elif event.kind == "epoch":
            numbers = {name: v for name, v in event.row.items() if math.isfinite(v)}
            self._write(self._open[event.run], numbers)
        elif event.run in self._open:
            self._close(self._open.pop(event.run))

    @abstractmethod
    def _begin(self, run: Run) -> Any:
        """What this run's epochs are written to."""

    @abstractmethod
    def _write(self, target: Any, row: Row) -> None: ...

    @abstractmethod
    def _close(self, target: Any) -> None: ...


class TensorBoard(Tracker):
    """Event files, a folder a run: `tensorboard --logdir runs/tensorboard`."""

    def _begin(self, run: Run) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(self._folder / run.key))

    def _write(self, target: Any, row: Row) -> None:
        for name, value in row.items():
            if name != "epoch":
                target.add_scalar(name, value, row["epoch"])

    def _close(self, target: Any) -> None:
        target.close()


class WeightsAndBiases(Tracker):
    """Weights & Biases, offline unless $WANDB_MODE says otherwise."""

    def _begin(self, run: Run) -> Any:
        import wandb

        return wandb.init(
            project="condgrad",
            name=run.key,
            config=run.to_dict(),
            dir=str(self._folder),
            mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type]
            reinit="create_new",  # several runs are under way at a time
            settings=wandb.Settings(console="off", silent=True),
        )

    def _write(self, target: Any, row: Row) -> None:
        target.log(row, step=int(row["epoch"]))

    def _close(self, target: Any) -> None:
        target.finish()


_KINDS = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


def tracker(name: str, folder: Path) -> Tracker:
    """The tracker of that name, writing into the folder."""
    if find_spec(name) is None:
        raise ModuleNotFoundError(f"{name} is not installed: pip install 'condgrad[{name}]'")
    return _KINDS[name](folder)
