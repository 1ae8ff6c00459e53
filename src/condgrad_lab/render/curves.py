"""Records as curves: mean lines with a band of one standard deviation, and paths of two numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from condgrad_lab.render import _axes, _numbers
from condgrad_lab.render._style import dashes, hue, marker, styled
from condgrad_lab.store import Record

_MARKED = 25  # epochs; a line with more has no room for markers
_FOOT = 0.2  # inches for a line below the axes
_AREAS = (5, 45)  # of the markers of a path, in points, after the first and the last epoch


@dataclass(frozen=True, eq=False)
class Line:
    """A method and its records, one a seed."""

    label: str
    records: Sequence[Record]

    @property
    def name(self) -> str:
        """The label, and how many of the records lead nowhere."""
        lost = sum(record.status == "diverged" for record in self.records)
        return f"{self.label} ({lost} of {len(self.records)} diverged)" if lost else self.label

    def has(self, *names: str) -> bool:
        """Whether there are records and they hold these numbers."""
        return all(_numbers.has(self.records, name) for name in names)

    def mean(self, name: str) -> np.ndarray:
        """The mean over the seeds that have the number, after each epoch from the first on."""
        return self._reduced(name, lambda values: float(np.mean(values)), least=1)

    def deviation(self, name: str) -> np.ndarray:
        """The standard deviation over the seeds, likewise; NaN where there are not two."""
        return self._reduced(name, lambda values: float(np.std(values, ddof=1)), least=2)

    def _reduced(self, name: str, of: Callable[[np.ndarray], float], least: int) -> np.ndarray:
        columns = _numbers.table(self.records, name).T[1:]
        found = (column[np.isfinite(column)] for column in columns)
        return np.array([of(values) if len(values) >= least else math.nan for values in found])


@styled
def grid(
    lines: Sequence[Line],
    shown: Sequence[str],
    *,
    across: Sequence[str] = ("epoch",),
    aside: Collection[str] = (),
    said: str = "",
) -> Figure:
    """A row for each number of `across`, a column for each number of `shown`.

    Lines start after the first epoch: the untrained network would take all the room. Those whose
    labels are in `aside` are drawn as far as the limits of the others let them. `said` is below.
    """
    size = (0.4 + 2.6 * len(shown), 0.25 + 2.2 * len(across))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(across), len(shown), squeeze=False)
    inner = [line for line in lines if line.label not in aside]
    for (row, x), (column, y) in ((r, c) for r in enumerate(across) for c in enumerate(shown)):
        ax = axes[row, column]
        for index, line in enumerate(lines):
            if line.has(x, y):
                _curve(ax, line, index, x, y)
        drawn = [line for line in inner if line.has(x, y)] or [e for e in lines if e.has(x, y)]
        _axes.across(ax, x, [line.mean(x) for line in drawn])
        _axes.limit(ax, "y", y, [reach for line in drawn for reach in _band(line, y)])
        ax.set_xlabel(_numbers.words(x))
        ax.set_title(_numbers.words(y) if row == 0 else "")
    _axes.legend(figure, axes.ravel())
    _foot(figure, said)
    methods = ", ".join(line.name for line in lines)
    numbers, steps = (", ".join(map(_numbers.words, names)) for names in (shown, across))
    figure.set_label(f"Curves of {numbers} over {steps}: {methods}.{_told(said)}")
    return figure


@styled
def panels(lines: Mapping[str, Sequence[Line]], shown: str, *, said: str = "") -> Figure:
    """A panel for each title: one number over the epochs. `said` stands below."""
    figure = Figure(figsize=(0.4 + 2.6 * len(lines), 2.45), layout="constrained")
    axes = figure.subplots(1, len(lines), squeeze=False)[0]
    for ax, (name, each) in zip(axes, lines.items(), strict=True):
        drawn = [line for line in each if line.has(shown)]
        for index, line in enumerate(each):
            if line in drawn:
                _curve(ax, line, index, "epoch", shown)
        _axes.across(ax, "epoch", [line.mean("epoch") for line in drawn])
        _axes.limit(ax, "y", shown, [reach for line in drawn for reach in _band(line, shown)])
        ax.set_title(name)
        ax.set_xlabel(_numbers.words("epoch"))
    axes[0].set_ylabel(_numbers.words(shown))
    _axes.legend(figure, axes)
    _foot(figure, said)
    methods = ", ".join(dict.fromkeys(line.name for each in lines.values() for line in each))
    what = f"Curves of {_numbers.words(shown)} over the epochs, {', '.join(lines)}: {methods}."
    figure.set_label(what + _told(said))
    return figure


def _foot(figure: Figure, said: str) -> None:
    if said:
        figure.set_figheight(figure.get_figheight() + _FOOT)
        figure.supxlabel(said, fontsize=8)


def _told(said: str) -> str:
    return f" {said[:1].upper()}{said[1:]}." if said else ""


@styled
def paths(
    panels: Mapping[str, Sequence[Line]], x: str = "active", y: str = "sparse_test_error"
) -> Figure:
    """A panel for each title: the means of two numbers against each other, epoch by epoch.

    The markers grow with the epoch. A cross at the last one is a standard deviation wide and high
    to each side.
    """
    figure = Figure(figsize=(0.4 + 3.6 * len(panels), 3.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        for index, line in enumerate(lines):
            if line.has(x, y):
                _path(ax, line, index, x, y)
        drawn = [line for line in lines if line.has(x, y)]
        for axis, name in (("x", x), ("y", y)):
            _axes.limit(ax, axis, name, [line.mean(name) for line in drawn])
        ax.set_title(title)
        ax.set_xlabel(_numbers.words(x))
    axes[0].set_ylabel(_numbers.words(y))
    _axes.legend(figure, axes)
    methods = ", ".join(dict.fromkeys(line.name for lines in panels.values() for line in lines))
    against = f"{_numbers.words(x)} against {_numbers.words(y)}"
    figure.set_label(f"Paths of {against} over the epochs, {', '.join(panels)}: {methods}.")
    return figure


def _band(line: Line, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper edge; the line itself where there is no deviation."""
    mean, deviation = line.mean(name), np.nan_to_num(line.deviation(name))
    return mean - deviation, mean + deviation


def _curve(ax: Axes, line: Line, index: int, x: str, y: str) -> None:
    steps, mean = line.mean(x), line.mean(y)
    (drawn,) = ax.plot(steps, mean, color=hue(index), linestyle=dashes(index), label=line.name)
    drawn.set_zorder(3 - index / 100)  # the first ones lie above the others
    if len(mean) <= _MARKED:
        drawn.set_marker(marker(index))
    if np.isfinite(line.deviation(y)).any():
        ax.fill_between(steps, *_band(line, y), color=hue(index), alpha=0.2, linewidth=0)


def _path(ax: Axes, line: Line, index: int, x: str, y: str) -> None:
    right, up = line.mean(x), line.mean(y)
    colour = hue(index)
    ax.plot(right, up, color=colour, linestyle=dashes(index), linewidth=1, alpha=0.6)
    areas = np.linspace(*_AREAS, len(right))
    dots = ax.scatter(right, up, areas, color=colour, marker=marker(index), linewidths=0, zorder=3)
    dots.set_label(line.name)
    wide, high = line.deviation(x)[-1], line.deviation(y)[-1]
    if math.isfinite(wide) and math.isfinite(high):
        ax.errorbar(right[-1], up[-1], high, wide, color=colour, linewidth=1, zorder=2)
