"""What figures 3, 8 and 9 share: a linear classifier a column, its weights as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from condgrad_lab.artifact import Artifact, Claim, Results
from condgrad_lab.papers.dnn_fw_2020 import _scales
from condgrad_lab.spec import Optimizer, Rule, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLERANCE = 0.6
"""Points of test accuracy by which a single run may differ from the paper's single run."""


@dataclass(frozen=True)
class Column:
    """A way to train the classifier, and the test accuracy that the paper prints for it.

    `note` is what was found out about ours at the scale at which they are compared.
    """

    optimizer: Optimizer
    accuracy: float
    rules: tuple[Rule, ...] = ()
    note: str = ""


def free(name: str, *, lr: float, accuracy: float) -> Column:
    """A column of an optimizer of `torch.optim`."""
    return Column(Optimizer(name, lr=lr), accuracy)


def inside(rule: Rule, *, lr: float, accuracy: float, note: str = "") -> Column:
    """A column of stochastic Frank-Wolfe inside a region, without momentum."""
    return Column(Optimizer("SFW", lr=lr, rescale="diameter"), accuracy, (rule,), note)


class WeightPictures(Artifact):
    """A row a class, a column a way to train; derived classes name data, columns and classes."""

    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "paper": 1}
    data: ClassVar[str]
    columns: ClassVar[Mapping[str, Column]]
    classes: ClassVar[Mapping[int, str]]

    def lines(self, scale: str) -> Mapping[str, Run]:
        return {
            label: Run(
                _scales.data(self.data, scale),
                "linear",
                column.optimizer,
                column.rules,
                epochs=_scales.epochs(scale),
                batch=64,
                measure=("train", "weights"),
            )
            for label, column in self.columns.items()
        }

    def claims(self, results: Results) -> Sequence[Claim]:
        found = {label: accuracies(results, label) for label in self.columns}
        judged = results.scale in self.judged  # what was found out holds for what it was found in
        return [
            Claim.near(
                label,
                column.accuracy,
                found[label],
                TOLERANCE,
                column.note if judged and len(found[label]) else "",
            )
            for label, column in self.columns.items()
        ]

    def draw(self, results: Results) -> Figure:
        from condgrad_lab.render import pictures

        columns = []
        for label, line in results.lines.items():
            captions = [f"{value:.2f} %" for value in accuracies(results, label)[:1]]
            images = _images(line[0].weights) if line else {}
            shown = [images.get(index) for index in self.classes]
            columns.append(pictures.Column(label, shown, *captions))
        return pictures.table(columns, list(self.classes.values()))


def accuracies(results: Results, label: str) -> np.ndarray:
    """Test accuracies after the last epoch in percent, one a seed."""
    return 100 * results.last(label, "test_accuracy")


def _images(weights: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """The weights of each class as an image; none where a run diverged."""
    return {
        index: row.reshape(28, 28)
        for matrix in weights.values()
        for index, row in enumerate(matrix)
    }
