"""One run, from its place in the queue to its record, and what is told of it on the way."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from condgrad_lab.data import Dataset
from condgrad_lab.spec import Data, Run
from condgrad_lab.store import BusyError, Row, Store
from condgrad_lab.train import load, train


@dataclass(frozen=True)
class Event:
    """What happened to a run.

    It began (`row` is where it goes on from), passed an epoch (`row` are its numbers), ended, was
    stopped by the deadline, is busy in another process, or failed (`text` says how).
    """

    kind: Literal["begin", "epoch", "end", "stopped", "busy", "failed"]
    run: Run
    row: Row = field(default_factory=dict)
    text: str = ""


Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Settings:
    """What every worker needs to know; `deadline` is a time.time()."""

    folder: str | os.PathLike[str]
    deadline: float | None = None

    @property
    def over(self) -> bool:
        """Whether the deadline is behind us."""
        return self.deadline is not None and time.time() >= self.deadline


def work(run: Run, settings: Settings, tell: Listener) -> None:
    """Bring the run to its end, or to the deadline. What goes wrong is told, not raised."""
    try:
        with Store(settings.folder).open(run) as journal:
            rows = journal.record().epochs
            tell(Event("begin", run, rows[-1] if rows else {}))
            record = train(
                run,
                _dataset(run.data),
                journal,
                watch=lambda row: tell(Event("epoch", run, row)),
                stop=lambda: settings.over,
            )
    except BusyError as error:
        tell(Event("busy", run, text=str(error)))
    except Exception:
        tell(Event("failed", run, text=traceback.format_exc()))
    else:
        tell(Event("end" if record.ended else "stopped", run))


@lru_cache(maxsize=1)
def _dataset(spec: Data) -> Dataset:
    return load(spec)
