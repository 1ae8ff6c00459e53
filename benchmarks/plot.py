"""Bars: each step beside the first rival's, network by network. `python plot.py report.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def drawn(report: dict[str, Any], path: Path) -> None:
    """Draw the ratios to the first rival into an SVG file."""
    by_model: dict[str, list[dict[str, Any]]] = {}
    for row in report["rows"]:
        by_model.setdefault(row["model"], []).append(row)
    longest = max(map(len, by_model.values()))
    size = (5.2 * len(by_model), 0.32 * longest + 1.4)
    figure, axes = plt.subplots(1, len(by_model), figsize=size, squeeze=False)
    for axis, (model, rows) in zip(axes[0], by_model.items(), strict=True):
        names = [row["name"] for row in rows][::-1]
        ratios = [row["ratio"] for row in rows][::-1]
        floors = [row["ratio"] * row["floor_us"] / row["us"] for row in rows][::-1]
        axis.barh(names, ratios, color="#4878a8")
        axis.plot(floors, names, "|", color="black", markersize=9, label="bytes alone")
        axis.axvline(1.0, color="#888888", linewidth=0.8)
        axis.set_title(f"{model}: {rows[0]['parameters']:,} in {rows[0]['tensors']}", fontsize=10)
        axis.set_xlabel(f"time of a step / {rows[0]['rival']}")
        axis.tick_params(labelsize=8)
        axis.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        drawn(json.loads(Path(name).read_text()), Path(name).with_suffix(".svg"))
