"""What tunings 2 to 4 share: each method's best settings on a short schedule, found alike.

Beyond the paper, whose rates are for 200 epochs. The averaged momentum of SFW makes a step a tenth
as long as that of SGD at the same rate, so on a short schedule SFW trails at the paper's 0.1. Here
every method is given the same number of tries, three rates by three sizes (the width of the balls,
or the weight decay), at the scale *search*: 15 epochs with the table's milestones, scaled, and the
band rule; one seed that no table uses; and 5,000 training images held out, by which the best is
named. The test images take no part in that.

What was found is written into the artifact by hand, and brings it the scale *compare*: every method
at its best, for a fifth of the paper's epochs, on all training images, three seeds, judged on the
test images. The claim is ours, not the paper's: SFW at least as good as SGD with decay.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from condgrad_lab.artifact import Artifact, Claim, Results, Table
from condgrad_lab.papers.dnn_fw_2020._deep import DECAY, SFW, DeepTable, accuracies, scaled
from condgrad_lab.spec import Rule, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPOCHS = 15
HELD_OUT = 5000
SEED = 1000
_SAID = {
    "smoke": "small networks on invented images (smoke scale)",
    "search": f"{EPOCHS} epochs; accuracies are of {HELD_OUT:,} training images held out",
    "compare": "at the best settings found on held-out images; accuracies are of the test images",
}


@dataclass(frozen=True)
class Grid:
    """The tries of a method: every rate with every size, a weight decay or a width."""

    rates: tuple[float, ...]
    sizes: tuple[float, ...]
    ball: str = ""

    def tries(self) -> Iterator[tuple[float, float]]:
        """Rate and size of each try."""
        return itertools.product(self.rates, self.sizes)

    def said(self, rate: float, size: float) -> str:
        """A try in words."""
        return f"lr {rate:g}, {'width' if self.ball else 'decay'} {size:g}"


class Search(Artifact):
    """Tries of each method; derived classes name the table, the grids and, later, the best."""

    scales: ClassVar[tuple[str, ...]] = ("smoke", "search")
    judged: ClassVar[tuple[str, ...]] = ("compare",)
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "search": 1, "compare": 3}
    of: ClassVar[DeepTable]
    grids: ClassVar[Mapping[str, Grid]]
    best: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Rate and size of each method, as the search has found them; empty before it has run."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.scales = ("smoke", "search", "compare") if cls.best else ("smoke", "search")

    def lines(self, scale: str) -> Mapping[str, Run]:
        if scale == "compare":
            tries = {method: [self.best[method]] for method in self.grids}
        else:
            tries = {method: list(grid.tries()) for method, grid in self.grids.items()}
        each = {m: tries[m][:1] if scale == "smoke" else tries[m] for m in self.grids}
        return {
            self._label(method, *at): self._run(scale, self.grids[method], *at)
            for method, places in each.items()
            for at in places
        }

    def runs(
        self,
        scale: str,
        seeds: Sequence[int] | None = None,
        device: str | None = None,
        ranks: int = 1,
    ) -> dict[str, tuple[Run, ...]]:
        """Every run by label; searches are of a seed that no table uses."""
        if seeds is None and scale == "search":
            seeds = (SEED,)
        return super().runs(scale, seeds, device, ranks)

    def _run(self, scale: str, grid: Grid, rate: float, size: float) -> Run:
        setup = self.of.setup
        rules = (Rule(grid.ball, width=size),) if grid.ball else ()
        decay = {} if grid.ball else {"weight_decay": size}
        optimizer = dataclasses.replace(SFW if grid.ball else DECAY, lr=rate, **decay)
        run = setup.run({"compare": "short", "search": "short"}.get(scale, scale), optimizer, rules)
        if scale == "compare":
            return run
        held = 10 if scale == "smoke" else HELD_OUT
        run = dataclasses.replace(run, data=dataclasses.replace(run.data, validation=held))
        if scale == "smoke":
            return run
        milestones = scaled(setup.milestones, setup.epochs, EPOCHS)
        schedule = dataclasses.replace(run.schedule, milestones=milestones)
        # The gap is not what is searched for, and would take a tenth of the time.
        return dataclasses.replace(run, epochs=EPOCHS, schedule=schedule, measure=())

    def _label(self, method: str, rate: float, size: float) -> str:
        return f"{method}: {self.grids[method].said(rate, size)}"

    def claims(self, results: Results) -> Sequence[Claim]:
        if results.scale == "compare":
            return [self._at_least(results, method) for method in self.grids if method != _RIVAL]
        found = []
        for method in self.grids:
            ranked = _ranked(results, method)
            said = f"{ranked[0][0]}, {ranked[0][1]:.2f} %" if ranked else "–"
            tries = f"{len(ranked)} of {len(self._of(results, method))} tries"
            found.append(Claim(f"best of {method}", "–", said, note=tries))
        return found

    def _of(self, results: Results, method: str) -> list[str]:
        return [label for label in results.lines if label.startswith(f"{method}: ")]

    def _at_least(self, results: Results, method: str) -> Claim:
        name = f"{method} ends at or above {_RIVAL}, each at its best"
        found = [accuracies(results, self._label(m, *self.best[m])) for m in (method, _RIVAL)]
        if not all(map(len, found)):
            return Claim(name, "not of the paper", "–")
        ours, theirs = (each.mean() for each in found)
        text = f"{method} {ours:.2f}; {_RIVAL} {theirs:.2f}"
        return Claim(name, "not of the paper", text, holds=bool(ours >= theirs))

    def table(self, results: Results) -> Table:
        columns = ("training loss", "loss", "accuracy in %", "samples a second")
        rows = []
        for method in self.grids:
            for at, accuracy in _ranked(results, method):
                label = f"{method}: {at}"
                losses = [results.last(label, f"{s}_loss").mean() for s in ("train", "test")]
                speed = np.mean([record.throughput for record in results[label]])
                cells = (*(f"{x:.4f}" for x in losses), f"{accuracy:.2f}", f"{speed:.0f}")
                rows.append((label, cells))
        return Table(columns, tuple(rows), _SAID[results.scale])

    def draw(self, results: Results) -> Figure:
        from condgrad_lab.render import curves

        drawn = {
            method: [
                curves.Line(label.removeprefix(f"{method}: "), results[label])
                for label in self._of(results, method)
            ]
            for method in self.grids
        }
        return curves.panels(drawn, "test_accuracy", said=_SAID[results.scale])


_RIVAL = "SGD with decay"


def _ranked(results: Results, method: str) -> list[tuple[str, float]]:
    """The tries that have ended and their accuracies, the best first; a diverged one comes last."""
    found = [
        (label.removeprefix(f"{method}: "), float(accuracies(results, label).mean()))
        for label, line in results.lines.items()
        if line and label.startswith(f"{method}: ")
    ]
    return sorted(found, key=lambda each: -each[1] if np.isfinite(each[1]) else np.inf)
