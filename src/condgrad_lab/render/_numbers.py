"""The numbers of records as they are shown: their names in words, in percent where they are shares.

Beside the names that records have, an `…_error` is what an `…_accuracy` lacks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condgrad_lab import words as said
from condgrad_lab.artifact import values
from condgrad_lab.store import Record

words = said.named


def has(records: Sequence[Record], name: str) -> bool:
    """Whether all of these records hold the number, and there is one at all."""
    source = _source(name)
    return bool(records) and all(any(source in row for row in record.epochs) for record in records)


def table(records: Sequence[Record], name: str) -> np.ndarray:
    """The number as shown: a row a record, a column an epoch, NaN behind a divergence."""
    found = values(records, _source(name))
    if name.endswith("_error"):
        return 100 - 100 * found
    return 100 * found if name.endswith("_accuracy") else found


def _source(name: str) -> str:
    stem = name.removesuffix("_error")
    return name if stem == name else f"{stem}_accuracy"
