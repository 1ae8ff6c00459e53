"""What figures 1, 2, 5, 6 and 7 share: Frank-Wolfe methods side by side, and who is ahead.

The paper's statements are made precise here, once for all of these figures:

- the numbers compared are the training loss and the test accuracy: its text speaks of "the train
  and the test set";
- *per epoch*: after the last epoch. *Per gradient evaluation*: where MSFW has spent its last
  evaluation, the others' values between two of their epochs being interpolated;
- *ahead*: by an exact paired test over the seeds, see `_significance`, at the level of 5 %;
- "A can gain on B": A is ahead in at least one of the two numbers, each tested at half the level;
- "A gains as much as B": B is not ahead in either of them, each tested at half the level;
- "A is ahead of B": in both of them, each tested at the level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from condgrad_lab.artifact import Artifact, Claim, Results
from condgrad_lab.papers.dnn_fw_2020 import _scales
from condgrad_lab.papers.dnn_fw_2020._significance import LEVEL, p_value
from condgrad_lab.spec import Optimizer, Rule, Run
from condgrad_lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVERYTHING = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
BRIEF = ("train_loss", "test_accuracy")
_NUMBERS = {"training loss": ("train_loss", -1.0), "test accuracy": ("test_accuracy", 1.0)}
_OURS = "SPIDER-FW is our addition, and its learning rate our choice"


@dataclass(frozen=True)
class Setup:
    """A data set, a network, a region, and the learning rate of each method.

    All rates but SPIDER-FW's are the paper's, which leaves that method out as "not competitive".
    Its rate is the one with the least training loss after ten epochs among six: see `_tuning`.
    """

    data: str
    model: str
    rule: Rule
    batch: int
    lr: Mapping[str, float]

    def lines(self, scale: str) -> dict[str, Run]:
        """The runs by the names of their methods."""
        return {
            label: Run(
                _scales.data(self.data, scale),
                self.model,
                _method(label, lr),
                (self.rule,),
                epochs=_scales.epochs(scale),
                batch=self.batch,
                measure=("train", "gap"),
            )
            for label, lr in self.lr.items()
        }


def _method(label: str, lr: float) -> Optimizer:
    momentum = 0.9 if label in ("MSFW", "ORGFW") else 0.0
    name = {"MSFW": "SFW", "SPIDER-FW": "SPIDERFW"}.get(label, label)
    return Optimizer(name, lr=lr, momentum=momentum, rescale="diameter")


class Comparison(Artifact):
    """Methods side by side, over epochs and over gradient evaluations."""

    seeds: ClassVar[Mapping[str, int]] = {"smoke": 2, "small": 3, "paper": 10}
    setup: ClassVar[Setup]
    shown: ClassVar[tuple[str, ...]]
    """What the picture shows of each method."""
    notes: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What was found out about a claim, by its name."""

    def lines(self, scale: str) -> Mapping[str, Run]:
        return self.setup.lines(scale)

    def claims(self, results: Results) -> Sequence[Claim]:
        # What was found out holds for what it was found in.
        race = Race(results, self.notes if results.scale in self.judged else {})
        return [
            race.can_gain("SVRF", "SFW"),
            race.can_gain("ORGFW", "SFW"),
            race.can_gain("MSFW", "SFW"),
            race.gains_as_much("MSFW", "SVRF"),
            race.gains_as_much("MSFW", "ORGFW"),
            race.is_ahead("MSFW", "SVRF", per="evaluation"),
            race.is_ahead("MSFW", "ORGFW", per="evaluation"),
            race.is_ahead("MSFW", "SPIDER-FW", per="epoch"),
        ]

    def draw(self, results: Results) -> Figure:
        from condgrad_lab.render import curves

        return curves.grid(
            [curves.Line(label, line) for label, line in results.lines.items()],
            self.shown,
            across=("epoch", "evaluations"),
            aside=("SPIDER-FW",),
        )


class Race:
    """Who is ahead of whom in an artifact's records."""

    def __init__(self, results: Results, notes: Mapping[str, str]) -> None:
        self._results, self._notes = results, notes

    def can_gain(self, first: str, second: str) -> Claim:
        """That the first is ahead of the second in one of the numbers, per epoch."""
        found = self._compared(first, second, "epoch")
        holds = any(p <= LEVEL / 2 for _, p in found.values())
        return self._claim(f"per epoch: {first} can gain on {second}", found, holds)

    def gains_as_much(self, first: str, second: str) -> Claim:
        """That the second is not ahead of the first in any of the numbers, per epoch."""
        found = self._compared(second, first, "epoch")
        holds = all(p > LEVEL / 2 for _, p in found.values())
        return self._claim(f"per epoch: {first} gains as much as {second}", found, holds)

    def is_ahead(self, first: str, second: str, *, per: str) -> Claim:
        """That the first is ahead of the second in all of the numbers."""
        found = self._compared(first, second, per)
        holds = all(p <= LEVEL for _, p in found.values())
        return self._claim(f"per {per}: {first} is ahead of {second}", found, holds)

    def _claim(self, name: str, found: dict[str, tuple[str, float]], holds: bool) -> Claim:
        text = "; ".join(f"{number} {values}, p = {p:.3f}" for number, (values, p) in found.items())
        notes = [_OURS] if "SPIDER-FW" in name else []
        if found and name in self._notes:
            notes.append(self._notes[name])
        note = "; ".join(notes)
        return Claim(name, "so it is", text, holds=holds if found else None, note=note)

    def _compared(self, first: str, second: str, per: str) -> dict[str, tuple[str, float]]:
        """Of each number: both means in words, and the p-value of the first's being ahead."""
        seeds = self._common_seeds(first, second)
        if not seeds:
            return {}
        found = {}
        for words, (name, sign) in _NUMBERS.items():
            a, b = (self._values(label, name, seeds, per) for label in (first, second))
            form = "{:.4f}" if sign < 0 else "{:.2%}"
            text = f"{first} {form.format(a.mean())}, {second} {form.format(b.mean())}"
            found[words] = text, p_value(sign * (a - b))
        return found

    def _common_seeds(self, first: str, second: str) -> list[int]:
        """The seeds that both have; one alone shows nothing."""
        sets = [{record.run.seed for record in self._results[label]} for label in (first, second)]
        common = sorted(sets[0] & sets[1])
        return common if len(common) > 1 else []

    def _values(self, label: str, name: str, seeds: list[int], per: str) -> np.ndarray:
        """The numbers to compare, one a seed."""
        chosen = [record for record in self._results[label] if record.run.seed in seeds]
        return np.array([self._value(record, name, per) for record in chosen])

    def _value(self, record: Record, name: str, per: str) -> float:
        values = record.column(name)
        if record.status == "diverged":
            values = np.where(np.isfinite(values), values, values[0])  # no better than untrained
        if per == "epoch" or record.status == "diverged":
            return float(values[-1])
        return float(np.interp(self._budget(), record.column("evaluations"), values))

    def _budget(self) -> float:
        """The gradient evaluations of a whole run of MSFW."""
        return self._results["MSFW"][0].last("evaluations")
