"""Table 1: the test accuracies of tables 2 to 6 side by side, as the paper's main text shows them.

The paper prints other numbers for DenseNet121 under SGD here than in table 2: here it is held to
these. Runs and records are those of the other tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from condgrad_lab.artifact import Artifact, Claim, Results, Table
from condgrad_lab.papers.dnn_fw_2020 import _deep
from condgrad_lab.papers.dnn_fw_2020._deep import METHODS, DeepTable, Number
from condgrad_lab.papers.dnn_fw_2020.table_2 import Table2
from condgrad_lab.papers.dnn_fw_2020.table_3 import Table3
from condgrad_lab.papers.dnn_fw_2020.table_4 import Table4
from condgrad_lab.papers.dnn_fw_2020.table_5 import Table5
from condgrad_lab.papers.dnn_fw_2020.table_6 import Table6
from condgrad_lab.spec import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TABLES: Sequence[DeepTable] = (Table2(), Table3(), Table4(), Table5(), Table6())
_OTHERS: Mapping[tuple[str, str], Number] = {
    ("DenseNet121 on CIFAR-10", "SGD"): (93.14, 0.11),
    ("DenseNet121 on CIFAR-10", "SGD with decay"): (94.01, 0.09),
}
"""Where table 1 and the appendix print different numbers: those of table 1."""
_SAID = {
    "paper": "",
    "short": "a fifth of the paper's epochs (short scale)",
    "smoke": "small networks on invented images, not those that are named (smoke scale)",
}


class Table1(Artifact):
    """Four methods, five networks."""

    name, title = "table-1", "Test accuracy of deep networks on CIFAR and ImageNet"
    scales: ClassVar[tuple[str, ...]] = DeepTable.scales
    judged: ClassVar[tuple[str, ...]] = DeepTable.judged

    def lines(self, scale: str) -> Mapping[str, Run]:
        return {
            f"{table.title}: {method}": run
            for table in _TABLES
            for method, run in table.lines(scale).items()
        }

    def runs(
        self,
        scale: str,
        seeds: Sequence[int] | None = None,
        device: str | None = None,
        ranks: int = 1,
    ) -> dict[str, tuple[Run, ...]]:
        """The other tables' runs, as many seeds as each of them has."""
        return {
            f"{table.title}: {method}": line
            for table in _TABLES
            for method, line in table.runs(scale, seeds, device, ranks).items()
        }

    def claims(self, results: Results) -> Sequence[Claim]:
        if results.scale == "paper":
            return [
                _deep.near(label, printed, _deep.accuracies(results, label))
                for label, printed in _printed()
            ]
        found = []
        for table in _TABLES:
            of = table.title
            labels = {method: f"{of}: {method}" for method in METHODS}
            found += _deep.orderings(results, labels, of=f"{of}: ")
        return found

    def table(self, results: Results) -> Table:
        printed = dict(_printed())
        titles = [table.title for table in _TABLES]
        rows = []
        for method in METHODS:
            labels = [f"{title}: {method}" for title in titles]
            ours = [_deep.found(results, label, "test_accuracy") for label in labels]
            paper = [_deep.said("test_accuracy", printed[label]) for label in labels]
            rows.append((f"{method}: paper", tuple(paper)))
            rows.append((f"{method}: ours", tuple(_deep.said("test_accuracy", n) for n in ours)))
        return Table(tuple(titles), tuple(rows), _SAID[results.scale])

    def draw(self, results: Results) -> Figure:
        from condgrad_lab.render import curves

        panels = {
            table.title: [
                curves.Line(method, results[f"{table.title}: {method}"]) for method in METHODS
            ]
            for table in _TABLES
        }
        return curves.panels(panels, "test_accuracy", said=_SAID[results.scale])


def _printed() -> Iterator[tuple[str, Number]]:
    """The paper's test accuracy of every line."""
    for table in _TABLES:
        for method, row in table.printed.items():
            where = table.title, method
            yield f"{where[0]}: {method}", _OTHERS.get(where, row.test_accuracy)
