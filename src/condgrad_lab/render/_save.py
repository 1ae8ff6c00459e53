"""Figures as files."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure

from condgrad_lab.artifact import Artifact, Results
from condgrad_lab.render import _facts
from condgrad_lab.render._style import DPI, styled


def save(artifact: Artifact, results: Results, folder: Path) -> list[Path]:
    """Write the artifact's picture as PNG and as SVG; returns the two paths."""
    folder.mkdir(parents=True, exist_ok=True)
    figure = artifact.draw(results)
    written = {"png": png(figure), "svg": svg(figure)}
    paths = {kind: folder / f"{_facts.anchor(artifact, results)}.{kind}" for kind in written}
    for kind, content in written.items():
        paths[kind].write_bytes(content)
    return list(paths.values())


@styled
def png(figure: Figure) -> bytes:
    """The figure as PNG, on white."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


@styled
def svg(figure: Figure, *, transparent: bool = False) -> bytes:
    """The figure as SVG, on white or on nothing: the same bytes for the same figure."""
    file = io.BytesIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(file, format="svg", transparent=transparent, metadata=metadata)
    return file.getvalue()
