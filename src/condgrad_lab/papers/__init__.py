"""The papers that are reproduced, one folder each, one file an artifact.

A file that does not start with an underscore holds one class: `figure_8.py` holds `Figure8`. To
add an artifact, write its file.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module

from condgrad_lab.artifact import Artifact
from condgrad_lab.papers import dnn_fw_2020

__all__ = ["artifacts"]


@functools.cache
def artifacts() -> tuple[Artifact, ...]:
    """All figures and tables, in their order."""
    names = [module.name for module in pkgutil.iter_modules(dnn_fw_2020.__path__)]
    files = sorted((name for name in names if not name.startswith("_")), key=_place)
    return tuple(_artifact(name) for name in files)


def _artifact(name: str) -> Artifact:
    module = import_module(f"{dnn_fw_2020.__name__}.{name}")
    return getattr(module, name.title().replace("_", ""))()


def _place(name: str) -> tuple[str, int]:
    kind, _, number = name.rpartition("_")
    return kind, int(number)
