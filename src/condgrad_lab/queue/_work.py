"""One run, from its place in the queue to its record, and what is told of it on the way."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from condgrad_lab.data import Dataset
from condgrad_lab.spec import Data, Run
from condgrad_lab.store import BusyError, Journal, Record, Row, Store
from condgrad_lab.train import ALONE, Speed, Team, load, train

Kind = Literal["begin", "epoch", "end", "stopped", "busy", "failed"]


@dataclass(frozen=True)
class Event:
    """What happened to a run.

    It began (`row` is where it goes on from), passed an epoch (`row` are its numbers), ended, was
    stopped by the deadline, is busy in another process, or failed (`text` says how).
    """

    kind: Kind
    run: Run
    row: Row = field(default_factory=dict)
    text: str = ""


Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Settings:
    """What every worker needs to know; `deadline` is a time.time()."""

    folder: str | os.PathLike[str]
    deadline: float | None = None
    speed: Speed = field(default_factory=Speed)
    team: Team = ALONE

    @property
    def over(self) -> bool:
        """Whether the deadline is behind us."""
        return self.over_in(0.0)

    def over_in(self, seconds: float) -> bool:
        """Whether it will be, so many seconds from now."""
        return self.deadline is not None and time.time() + seconds >= self.deadline


class _Pace:
    """How long the last epoch took: what the next one must have before the deadline."""

    def __init__(self) -> None:
        self._last, self.seconds = time.time(), 0.0

    def passed(self) -> None:
        """An epoch has ended."""
        now = time.time()
        self._last, self.seconds = now, now - self._last


def work(run: Run, settings: Settings, tell: Listener) -> Kind:
    """Bring the run to its end, or to the deadline; returns the kind of the last event.

    What goes wrong is told, not raised.
    """
    event = _worked(run, settings, tell)
    tell(event)
    return event.kind


def _worked(run: Run, settings: Settings, tell: Listener) -> Event:
    """The event with which the run ends here."""
    try:
        with _opened(run, settings) as journal:
            record = _trained(run, journal, settings, tell)
    except BusyError as error:
        return Event("busy", run, text=str(error))
    except Exception:
        if not settings.team.alone:  # the others wait: torchrun ends them when this process ends
            raise
        return Event("failed", run, text=traceback.format_exc())
    return Event("end" if record.ended else "stopped", run)


@contextmanager
def _opened(run: Run, settings: Settings) -> Iterator[Journal]:
    """The journal, which the leading process of a team holds for all."""
    store, team, refusal = Store(settings.folder), settings.team, ""
    with ExitStack() as stack:
        journal = store.look(run)
        if team.leads:
            try:
                journal = stack.enter_context(store.open(run))
            except BusyError as error:
                refusal = str(error)
        if refusal := team.told(refusal):
            raise BusyError(refusal)
        yield journal


def _trained(run: Run, journal: Journal, settings: Settings, tell: Listener) -> Record:
    rows = journal.record().epochs
    tell(Event("begin", run, rows[-1] if rows else {}))
    dataset, pace = _dataset(run.data), _Pace()

    def watch(row: Row) -> None:
        pace.passed()
        tell(Event("epoch", run, row))

    return train(
        run,
        dataset,
        journal,
        watch=watch,
        stop=lambda: settings.over_in(pace.seconds),
        speed=settings.speed,
        team=settings.team,
    )


@lru_cache(maxsize=1)
def _dataset(spec: Data) -> Dataset:
    return load(spec)
