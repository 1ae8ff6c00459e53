"""Whether the kernels can run here."""

from __future__ import annotations

import functools
import importlib.util
import os


@functools.cache
def available() -> bool:
    """Whether Triton is installed, with which the kernels are written."""
    return importlib.util.find_spec("triton") is not None


def interpreting() -> bool:
    """Whether Triton's interpreter stands in for a device: slow, for tests on the host."""
    return available() and os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")
