"""What tables 1 to 6 share: deep networks, trained by SGD and by SFW inside balls.

SGD has Nesterov momentum 0.9, as torch.optim.SGD has it, and weight decay 0 or 0.0001; SFW has
momentum 0.9 and gradient rescaling, and every parameter of the network lies in a ball of its own,
normalisation included, sized by the width. All begin at the rate 0.1, multiply it at milestones,
and follow the band rule after every epoch. Images are cropped and flipped at random, forward and
backward passes are in bfloat16, and parameters in float32. The paper does not say how its training
numbers were taken: ours are the means over the batches of the last epoch, as trained.

Scales: *paper* is what the paper prints. *short* has a fifth of the epochs, milestones scaled, one
seed; its numbers are not the paper's, and it is judged by orderings alone. *smoke* is a few steps
of a small network of the same kind on invented images, to see that everything runs.

Claims at the scale of the paper: the test accuracy is the paper's up to two of its own deviations,
or 0.6 points where it had a single run. At short scale: SFW inside L2 balls ends above SGD without
decay, and at most 0.5 points below SGD with decay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from condgrad_lab import words
from condgrad_lab.artifact import Artifact, Claim, Results, Table
from condgrad_lab.papers.dnn_fw_2020._weights import TOLERANCE
from condgrad_lab.spec import Data, Optimizer, Rule, Run, Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SGD = Optimizer("SGD", lr=0.1, momentum=0.9, nesterov=True)
DECAY = dataclasses.replace(SGD, weight_decay=0.0001)
SFW = Optimizer("SFW", lr=0.1, momentum=0.9, rescale="gradient")
METHODS = ("SGD", "SGD with decay", "SFW L2", "SFW L∞")
SHORT = 5
"""By how much the short scale is shorter."""
CLOSE = 0.5
"""Points by which SFW may stay behind SGD with decay at the short scale."""
_SHOWN = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")

Number = tuple[float, float | None]


@dataclass(frozen=True)
class Printed:
    """A row of the paper's table: each number with its deviation, accuracies in percent."""

    train_loss: Number
    train_accuracy: Number
    test_loss: Number
    test_accuracy: Number
    train_top5_accuracy: Number | None = None
    test_top5_accuracy: Number | None = None


def single(
    train_loss: float,
    train_accuracy: float,
    test_loss: float,
    test_accuracy: float,
    train_top5: float,
    test_top5: float,
) -> Printed:
    """A row of single runs, with accuracies for the five first classes."""
    return Printed(
        (train_loss, None),
        (train_accuracy, None),
        (test_loss, None),
        (test_accuracy, None),
        (train_top5, None),
        (test_top5, None),
    )


@dataclass(frozen=True)
class Setup:
    """A network, its data, and how it is trained; `small` stands in for it at smoke scale."""

    model: str
    small: str
    data: str
    epochs: int
    batch: int
    milestones: tuple[int, ...]
    factor: float
    widths: tuple[float, float]  # of the L2 and the L∞ balls
    top5: bool = False

    def lines(self, scale: str) -> dict[str, Run]:
        """The runs by the names of their methods."""
        l2, linf = (Rule(kind, width=w) for kind, w in zip(_BALLS, self.widths, strict=True))
        ways = [(SGD, ()), (DECAY, ()), (SFW, (l2,)), (SFW, (linf,))]
        made = [self.run(scale, optimizer, rules) for optimizer, rules in ways]
        return dict(zip(METHODS, made, strict=True))

    def run(self, scale: str, optimizer: Optimizer, rules: tuple[Rule, ...]) -> Run:
        """One way to train at a scale."""
        smoke, epochs = scale == "smoke", self.length(scale)
        measure = (*(("sampled-gap",) if rules else ()), *(("top5",) if self.top5 else ()))
        return Run(
            Data(self.data, train=20, test=10, synthetic=True) if smoke else Data(self.data),
            self.small if smoke else self.model,
            optimizer,
            rules,
            Schedule(scaled(self.milestones, self.epochs, epochs), self.factor, band=True),
            epochs=epochs,
            batch=8 if smoke else self.batch,
            measure=measure,
            device="cpu" if smoke else "cuda",
            augment=True,
            autocast=None if smoke else "bfloat16",
        )

    def length(self, scale: str) -> int:
        """The epochs at a scale."""
        return {"smoke": 2, "short": self.epochs // SHORT, "paper": self.epochs}[scale]


_BALLS = ("L2Ball", "LinfBall")


def scaled(milestones: Sequence[int], whole: int, epochs: int) -> tuple[int, ...]:
    """The milestones of a schedule of `whole` epochs in one of fewer, to the nearest epoch."""
    places = {max(1, int(m * epochs / whole + 0.5)) for m in milestones}
    return tuple(sorted(places))


class DeepTable(Artifact):
    """Four ways to train a network; derived classes give the setup and the paper's numbers."""

    scales: ClassVar[tuple[str, ...]] = ("smoke", "short", "paper")
    judged: ClassVar[tuple[str, ...]] = ("short", "paper")
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "short": 1, "paper": 3}
    setup: ClassVar[Setup]
    printed: ClassVar[Mapping[str, Printed]]

    def lines(self, scale: str) -> Mapping[str, Run]:
        return self.setup.lines(scale)

    def claims(self, results: Results) -> Sequence[Claim]:
        if results.scale != "paper":
            return orderings(results, {method: method for method in METHODS})
        return [
            near(label, printed.test_accuracy, accuracies(results, label))
            for label, printed in self.printed.items()
        ]

    def table(self, results: Results) -> Table:
        names = [field.name for field in dataclasses.fields(Printed) if self._has(field.name)]
        rows = []
        for label, printed in self.printed.items():
            paper = [said(name, getattr(printed, name)) for name in names]
            ours = [said(name, found(results, label, name)) for name in names]
            speed = [record.throughput for record in results[label]]
            rows.append((f"{label}: paper", (*paper, "")))
            rows.append((f"{label}: ours", (*ours, f"{np.mean(speed):.0f}" if speed else "–")))
        columns = (*map(words.named, names), "samples a second")
        return Table(columns, tuple(rows), short(self.setup, results.scale))

    def _has(self, name: str) -> bool:
        return all(getattr(printed, name) is not None for printed in self.printed.values())

    def draw(self, results: Results) -> Figure:
        from condgrad_lab.render import curves

        lines = [curves.Line(label, line) for label, line in results.lines.items()]
        return curves.grid(lines, _SHOWN, said=short(self.setup, results.scale))


def short(setup: Setup, scale: str) -> str:
    """What is to be said of a scale that is not the paper's; nothing of that."""
    if scale == "paper":
        return ""
    if scale == "smoke":
        return f"{setup.small} on invented images, not {setup.model} (smoke scale)"
    return f"{setup.length(scale)} epochs, where the paper has {setup.epochs} (short scale)"


def near(label: str, printed: Number, found: np.ndarray) -> Claim:
    """That the test accuracy is the paper's."""
    value, deviation = printed
    tolerance = TOLERANCE if deviation is None else 2 * deviation
    note = "a single run of the paper, without deviation" if deviation is None else ""
    return Claim.near(label, value, found, round(tolerance, 6), note)


def orderings(results: Results, labels: Mapping[str, str], of: str = "") -> list[Claim]:
    """What must hold at the short scale; `labels` gives the line of each method."""
    found = {method: accuracies(results, label) for method, label in labels.items()}
    prefix = f"{results.scale} scale: {of}SFW L2 ends "
    return [
        _order(f"{prefix}above SGD without decay", found, "SGD", 0.0),
        _order(
            f"{prefix}at most {CLOSE} points below SGD with decay", found, "SGD with decay", CLOSE
        ),
    ]


def _order(name: str, found: Mapping[str, np.ndarray], rival: str, slack: float) -> Claim:
    ours, theirs = found["SFW L2"], found[rival]
    if not (len(ours) and len(theirs)):
        return Claim(name, "so it is", "–")
    text = "; ".join(f"{m} {said('test_accuracy', _of(found[m]))}" for m in ("SFW L2", rival))
    ahead = ours.mean() - theirs.mean()
    holds = ahead >= -slack if slack else ahead > 0  # a run that diverged has no accuracy
    return Claim(name, "so it is", text, holds=bool(holds))


def accuracies(results: Results, label: str) -> np.ndarray:
    """Test accuracies after the last epoch in percent, one a seed."""
    return 100 * results.last(label, "test_accuracy")


def said(name: str, number: Number | None) -> str:
    """A number of the table with its deviation, losses with four digits."""
    if number is None:
        return "–"
    digits = 2 if name.endswith("accuracy") else 4
    value, deviation = number
    return f"{value:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def found(results: Results, label: str, name: str) -> Number | None:
    values = results.last(label, name) if results[label] else np.array([])
    return _of(100 * values if name.endswith("accuracy") else values) if len(values) else None


def _of(values: np.ndarray) -> Number:
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return float(values.mean()), deviation
