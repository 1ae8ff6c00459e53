"""What a figure or table of a paper is: lines of runs, claims about them, a picture of them.

An artifact is one file of `papers` with one class:

    class Figure8(Artifact):
        name, title = "figure-8", "Weights of a linear classifier on MNIST"

        def lines(self, scale):           # label -> run; every seed of it is one record
            return {"SGD": Run(Data("mnist"), "linear", Optimizer("SGD", lr=0.1)), ...}

        def claims(self, results):        # the paper beside ours
            return [Claim.near("SGD", 92.15, 100 * results.last("SGD", "test_accuracy"), 0.6), ...]

        def draw(self, results):          # a matplotlib Figure
            ...
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from condgrad_lab.spec import Run
from condgrad_lab.store import Record, Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Claim:
    """A number or a statement of the paper, and what the records say to it.

    `paper` and `ours` are numbers, or words where the paper makes a statement. `holds` is None
    where the records do not suffice to judge.
    """

    name: str
    paper: float | str
    ours: float | str
    deviation: float | None = None
    tolerance: float | None = None
    holds: bool | None = None
    note: str = ""

    @classmethod
    def near(
        cls, name: str, paper: float, values: Iterable[float], tolerance: float, note: str = ""
    ) -> Self:
        """That the mean of the values (one a seed) is the paper's number, up to the tolerance."""
        found = np.asarray(list(values), dtype=float)
        mean = float(found.mean()) if len(found) else math.nan
        deviation = float(found.std(ddof=1)) if len(found) > 1 else None
        # A mean that is no number (a run diverged) is a claim missed, no value at all an open one.
        holds = abs(mean - paper) <= tolerance if len(found) else None
        return cls(name, paper, mean, deviation, tolerance, holds, note)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, where both are numbers."""
        if isinstance(self.paper, str) or isinstance(self.ours, str):
            return None
        return self.ours - self.paper

    @property
    def verdict(self) -> str:
        """One word: "met", "missed" or "open"."""
        return {True: "met", False: "missed", None: "open"}[self.holds]


@dataclass(frozen=True)
class Table:
    """The paper's table beside ours, in words: the cells of each row under the columns' names.

    `said` is what a reader must know of all of ours: that they are of another scale, above all.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    said: str = ""


def values(records: Sequence[Record], name: str) -> np.ndarray:
    """One number of some records: a row each, a column an epoch, from epoch 0.

    A run that diverged has NaN behind its last epoch.
    """
    columns = [record.column(name) for record in records]
    length = max((record.run.epochs for record in records), default=0) + 1
    padded = [np.pad(c, (0, length - len(c)), constant_values=math.nan) for c in columns]
    return np.array(padded).reshape(len(columns), length)


@dataclass(frozen=True, eq=False)
class Results:
    """The records of an artifact at one scale: those that have ended, by line, in order of seed."""

    scale: str
    lines: Mapping[str, tuple[Record, ...]]
    wanted: int

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, line by line."""
        return tuple(record for line in self.lines.values() for record in line)

    @property
    def complete(self) -> bool:
        """Whether no record is missing."""
        return len(self.records) == self.wanted

    def __getitem__(self, label: str) -> tuple[Record, ...]:
        """The records of one line."""
        return self.lines[label]

    def values(self, label: str, name: str) -> np.ndarray:
        """One number of a line, as `values` gives it: a row a seed, a column an epoch."""
        return values(self.lines[label], name)

    def last(self, label: str, name: str) -> np.ndarray:
        """One number of a line after the last epoch, one a seed."""
        return self.values(label, name)[:, -1]


class Artifact(ABC):
    """A figure or table: see the module's text. Derived classes are stateless."""

    name: ClassVar[str]
    title: ClassVar[str]
    scales: ClassVar[tuple[str, ...]] = ("smoke", "small", "paper")
    judged: ClassVar[tuple[str, ...]] = ("paper",)
    """The scales at which the claims are held against the paper; at others they are only shown."""
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 3, "paper": 10}

    @abstractmethod
    def lines(self, scale: str) -> Mapping[str, Run]:
        """The runs by label, for one seed: the others' are set by `runs`."""

    @abstractmethod
    def claims(self, results: Results) -> Sequence[Claim]:
        """What the paper claims, and what the records say. Lines may be empty: records missing."""

    @abstractmethod
    def draw(self, results: Results) -> Figure:
        """The picture. Lines may be empty: records missing."""

    def table(self, results: Results) -> Table | None:
        """The paper's table with ours in it, if the artifact is one. Lines may be empty."""
        return None

    def judge(self, results: Results) -> list[Claim]:
        """The claims; all open at a scale at which they are not held against the paper."""
        claims = list(self.claims(results))
        if results.scale in self.judged:
            return claims
        return [dataclasses.replace(claim, holds=None) for claim in claims]

    def runs(
        self,
        scale: str,
        seeds: Sequence[int] | None = None,
        device: str | None = None,
        ranks: int = 1,
    ) -> dict[str, tuple[Run, ...]]:
        """Every run by label, one for each seed; on so many processes each."""
        if scale not in self.scales:
            raise ValueError(
                f"`scale` of {self.name} is one of {', '.join(self.scales)}: {scale!r}"
            )
        seeds = range(self.seeds[scale]) if seeds is None else seeds
        change: dict[str, Any] = {} if device is None else {"device": device}
        change |= {} if ranks == 1 else {"ranks": ranks}
        return {
            label: tuple(dataclasses.replace(run, seed=seed, **change) for seed in seeds)
            for label, run in self.lines(scale).items()
        }

    def results(
        self,
        store: Store,
        scale: str,
        seeds: Sequence[int] | None = None,
        device: str | None = None,
        ranks: int = 1,
    ) -> Results:
        """What the store has of this artifact."""
        runs = self.runs(scale, seeds, device, ranks)
        found = {label: [store.read(run) for run in line] for label, line in runs.items()}
        ended = {
            label: tuple(record for record in line if record is not None and record.ended)
            for label, line in found.items()
        }
        return Results(scale, ended, sum(map(len, runs.values())))
