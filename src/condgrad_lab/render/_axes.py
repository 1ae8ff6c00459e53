"""Axes that show what matters: limits, scales and ticks for the numbers of records; legends."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    StrMethodFormatter,
)

_WIDE = 10.0  # a loss that spans more than this factor is shown on a logarithmic axis
_DECADES = 300.0  # so much wider, and there is room for powers of ten alone
_MARGIN = 0.05
_ENTRY = (0.6, 0.075)  # inches of a legend's entry: without its text, and of each letter
_ROW = 0.2  # inches


def across(ax: Axes, name: str, values: Sequence[np.ndarray]) -> None:
    """Let the horizontal axis show these steps: epochs, or evaluations counted from none."""
    found = _finite(values)
    if not len(found):
        ax.text(0.5, 0.5, "no records", transform=ax.transAxes, ha="center", va="center")
        return
    low, high = (0.0 if name == "evaluations" else found.min()), found.max()
    margin = 0.03 * (high - low) or 0.5
    ax.set_xlim(low if name == "evaluations" else low - margin, high + margin)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    if name == "evaluations":
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))


def limit(ax: Axes, axis: str, name: str, values: Sequence[np.ndarray]) -> None:
    """Let the "x" or the "y" axis show all these values of one number, and no more."""
    found = _finite(values)
    if not len(found):
        ax.set(**{f"{axis}ticks": []})
        return
    low, high = float(found.min()), float(found.max())
    least = float(found[found > 0].min(initial=np.inf))
    of = ax.xaxis if axis == "x" else ax.yaxis
    if name.endswith(("loss", "error", "gap")) and high > _WIDE * least:
        margin = (high / least) ** _MARGIN
        ax.set(**{f"{axis}scale": "log", f"{axis}lim": (least / margin, high * margin)})
        of.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _DECADES * least else (1,)))
        of.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        of.set_minor_formatter(NullFormatter())
    else:
        margin = _MARGIN * (high - low) or _MARGIN * abs(high) or 1.0
        ax.set(**{f"{axis}lim": (low - margin, high + margin)})
        if high >= 1000:
            of.set_major_locator(MaxNLocator(6))
            of.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def legend(figure: Figure, axes: Collection[Axes]) -> None:
    """One legend above all axes, each label once; the figure grows by its height."""
    found = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    width, widths = figure.get_figwidth(), [_ENTRY[0] + _ENTRY[1] * len(label) for label in found]
    most = len(found) if sum(widths) < width else max(int(width / max(widths)), 1)
    rows = math.ceil(len(found) / most)
    columns = math.ceil(len(found) / rows)
    figure.set_figheight(figure.get_figheight() + _ROW * rows)
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=columns)


def _finite(values: Sequence[np.ndarray]) -> np.ndarray:
    found = np.concatenate([np.empty(0), *values])
    return found[np.isfinite(found)]
