"""Weights as pictures: a column a way to train, a row a class, red negative and green positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from condgrad_lab.render._style import FAINT, WEIGHTS, styled

_WIDTH = 7.5  # inches that a table fills where its cells do not grow or shrink too much for it
_CELLS = (0.78, 1.2)
_GAP = 0.06


@dataclass(frozen=True, eq=False)
class Column:
    """A column of pictures: a heading, an image a row (None: there is none), a line below."""

    label: str
    images: Sequence[np.ndarray | None]
    caption: str = ""


@styled
def table(columns: Sequence[Column], row_names: Sequence[str]) -> Figure:
    """The images, each on its own scale: white is zero, full colour its largest absolute value."""
    for column in columns:
        if len(column.images) != len(row_names):
            raise ValueError(
                f"`columns`: {column.label} has {len(column.images)} images for "
                f"{len(row_names)} `row_names`; give None where there is none"
            )
    rows, count = len(row_names), max(len(columns), 1)
    cell = min(max(_WIDTH / count, _CELLS[0]), _CELLS[1])
    left = 0.15 + 0.075 * max(map(len, row_names), default=0)
    width, height = left + count * cell + 0.1, rows * cell + 0.55
    figure = Figure(figsize=(width, height))
    for y, name in enumerate(row_names):
        middle = (height - 0.3 - (y + 0.5) * cell) / height
        figure.text((left - 0.08) / width, middle, name, ha="right", va="center")
    for x, column in enumerate(columns):
        start = left + x * cell
        middle = (start + (cell - _GAP) / 2) / width
        figure.text(
            middle, 1 - 0.16 / height, column.label, ha="center", va="center", weight="bold"
        )
        figure.text(middle, 0.13 / height, column.caption, ha="center", va="center", size=8)
        for y, image in enumerate(column.images):
            if image is not None:
                bottom = height - 0.3 - (y + 1) * cell + _GAP
                side = cell - _GAP
                box = (start / width, bottom / height, side / width, side / height)
                _show(figure.add_axes(box, label=f"{column.label} {row_names[y]}"), image)
    heads = ", ".join(f"{column.label} {column.caption}".strip() for column in columns)
    figure.set_label(
        "Weights as pictures, red negative and green positive. "
        f"Rows: {', '.join(row_names)}. Columns: {heads}."
    )
    return figure


def _show(ax: Axes, image: np.ndarray) -> None:
    sizes = np.abs(image[np.isfinite(image)])
    reach = float(sizes.max(initial=0.0)) or 1.0
    ax.imshow(image, cmap=WEIGHTS, vmin=-reach, vmax=reach, interpolation="none")
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set(visible=True, color=FAINT, linewidth=0.5)
