"""Training in sight: a line a run at work, with its epoch, loss, accuracy, gap and time left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from condgrad_lab.cli._common import console

if TYPE_CHECKING:
    from condgrad_lab.queue import Event, Plan
    from condgrad_lab.spec import Run
    from condgrad_lab.store import Row


class Display:
    """A listener that shows the queue on a terminal, and is silent in a pipe."""

    def __init__(self, plan: Plan) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=console(error=True),
            transient=True,
            disable=not console(error=True).is_terminal,
        )
        epochs = sum(run.epochs for run in plan.left)
        self._all = self._progress.add_task("all epochs", total=epochs, numbers="")
        self._tasks: dict[Run, TaskID] = {}
        self._ended, self._total = 0, len(plan.left)

    def __enter__(self) -> Callable[[Event], None]:
        self._progress.start()
        return self._listen

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def _listen(self, event: Event) -> None:
        run, epoch = event.run, int(event.row.get("epoch", 0))
        if event.kind == "begin":
            name = run.key.removeprefix(f"{run.data.name}_").rpartition("_")[0]
            self._tasks[run] = self._add(f"{run.data.name} {name}", run, epoch)
            self._progress.advance(self._all, epoch)
        elif event.kind == "epoch":
            self._progress.advance(self._all, min(epoch, 1))
            self._progress.update(self._tasks[run], completed=epoch, numbers=summary(event.row))
        else:
            self._ended += 1
            numbers = f"{self._ended} of {self._total} runs"
            self._progress.update(self._all, numbers=numbers)
            if run in self._tasks:
                self._progress.remove_task(self._tasks.pop(run))

    def _add(self, name: str, run: Run, epoch: int) -> Any:
        return self._progress.add_task(name, total=run.epochs, completed=epoch, numbers="")


def summary(row: Row) -> str:
    """The numbers of an epoch in a few words."""
    shown = [
        ("loss", row.get("train_loss"), "{:.4f}"),
        ("test accuracy", row.get("test_accuracy"), "{:.2%}"),
        ("gap", row.get("gap"), "{:.3g}"),
    ]
    return "  ".join(
        f"{name} {form.format(value)}"
        for name, value, form in shown
        if value is not None and not math.isnan(value)
    )
