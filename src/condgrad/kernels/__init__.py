"""Fast paths on accelerators: the same results, found by capability, never required."""

from ._available import available
from ._fit import misfit
from ._step import FusedStep

__all__ = ["FusedStep", "available", "misfit"]
