"""The numbers of records as they are shown: their names in words, in percent where they are shares.

Beside the names that records have, an `…_error` is what an `…_accuracy` lacks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condgrad_lab.artifact import values
from condgrad_lab.store import Record

_WORDS = {
    "epoch": "epoch",
    "evaluations": "gradient evaluations",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "test_error": "test error",
    "gap": "Frank–Wolfe gap",
    "active": "active parameters",
    "sparse_test_loss": "test loss of the sparse network",
    "sparse_test_accuracy": "test accuracy of the sparse network",
    "sparse_test_error": "test error of the sparse network",
}


def words(name: str) -> str:
    """The number's name for a reader, with its unit."""
    unit = " in %" if name.endswith(("_accuracy", "_error")) else ""
    return _WORDS.get(name, name.replace("_", " ")) + unit


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
