"""A row of the table that the host's kernels read: `Row` of `step.cpp`, field by field."""

from __future__ import annotations

import ctypes
from typing import ClassVar

_ADDRESSES = "theta gradient average step"
_WHOLE = "kind wide ruled random rows size count mid inner"
_WORDS = "seed number"
_REAL = "radius low high fresh sign diameter rate length"


class Row(ctypes.Structure):
    """One tensor: where it lies, its region, and how it moves."""

    _fields_: ClassVar = [
        *((name, ctypes.c_void_p) for name in _ADDRESSES.split()),
        *((name, ctypes.c_int64) for name in _WHOLE.split()),
        *((name, ctypes.c_uint64) for name in _WORDS.split()),
        *((name, ctypes.c_double) for name in _REAL.split()),
    ]
