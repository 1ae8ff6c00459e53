"""What is there, what is left, and about how long that takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from condgrad_lab.spec import Run
from condgrad_lab.store import Record, Store


@dataclass(frozen=True)
class Plan:
    """What is to be done; `seconds` is what one worker takes for a run, None where unknown."""

    ended: tuple[Run, ...]
    left: tuple[Run, ...]  # in the order in which to run them
    begun: tuple[Run, ...]  # those of `left` with some epochs behind them
    seconds: dict[Run, float | None]

    def duration(self, jobs: int) -> float | None:
        """About how long it takes with so many workers; None where a part of it is unknown."""
        known = [seconds for seconds in self.seconds.values() if seconds is not None]
        if len(known) < len(self.seconds):
            return None
        return max(sum(known) / max(jobs, 1), max(known, default=0.0))


def plan(runs: Iterable[Run], store: Store) -> Plan:
    """The plan for these runs, each named once however often it is given."""
    records = {run: store.read(run) for run in dict.fromkeys(runs)}
    ended = tuple(run for run, record in records.items() if record is not None and record.ended)
    left = {run: record for run, record in records.items() if run not in ended}
    paces = Paces(store) if left else None
    seconds: dict[Run, float | None] = {}
    for run, record in left.items():
        pace = paces.of(run) if paces else None
        seconds[run] = pace and pace * (run.epochs - (record.epoch if record else 0))
    # Runs over one data set follow each other, so that a worker reads it once; among them the
    # long ones begin, so that the workers finish together.
    order = sorted(left, key=lambda run: (run.data.name, -(seconds[run] or 0.0)))
    begun = tuple(run for run in order if (record := left[run]) is not None and record.epoch)
    return Plan(ended, tuple(order), begun, seconds)


class Paces:
    """The seconds that an epoch takes, from records of the like, or else tried out."""

    def __init__(self, store: Store) -> None:
        self._known: dict[object, float] = {}
        for record in store.all():
            if pace := _measured(record):
                self._known[record.run.configuration] = pace
                self._known[_kind(record.run)] = pace

    def of(self, run: Run) -> float | None:
        """The seconds of an epoch of this run, or None."""
        exact, kind = run.configuration, _kind(run)
        if exact not in self._known and kind not in self._known:
            from condgrad_lab.train import probe

            if tried := probe(run):
                self._known[kind] = tried
        return self._known.get(exact, self._known.get(kind))


def _measured(record: Record) -> float | None:
    times = [row["train"] + row["measure"] for row in record.times if row["epoch"] > 0]
    return sum(times) / len(times) if times else None


def _kind(run: Run) -> tuple[object, ...]:
    """What decides the time of an epoch, all but the numbers."""
    regions = tuple(rule.region for rule in run.rules)
    return run.data, run.model, run.optimizer.name, regions, run.batch, run.measure, run.device
