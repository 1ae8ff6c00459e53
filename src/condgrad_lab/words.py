"""How numbers, claims and times are said: one way for the terminal, the report and the docs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:  # the command line says --help without waiting for numpy
    from condgrad_lab.artifact import Artifact, Claim, Results

VERDICTS = ("met", "missed", "open", "not judged")
COLUMNS = ("claim", "paper", "ours ± deviation", "difference (± tolerance)", "verdict")


NUMBERS = {
    "epoch": "epoch",
    "evaluations": "gradient evaluations",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "test_error": "test error",
    "train_top5_accuracy": "training top-5 accuracy",
    "test_top5_accuracy": "test top-5 accuracy",
    "gap": "Frank–Wolfe gap",
    "sampled_gap": "Frank–Wolfe gap over 5,000 samples",
    "active": "active parameters",
    "sparse_test_loss": "test loss of the sparse network",
    "sparse_test_accuracy": "test accuracy of the sparse network",
    "sparse_test_error": "test error of the sparse network",
}


@dataclass(frozen=True)
class Said:
    """A claim in words: what a table shows of it."""

    name: str
    paper: str
    ours: str
    difference: str
    verdict: str
    note: str

    @classmethod
    def of(cls, claim: Claim, *, judged: bool = True) -> Self:
        """The claim; `judged` is whether it is held against the paper at all."""
        return cls(
            claim.name,
            value(claim.paper),
            value(claim.ours, claim.deviation),
            _difference(claim),
            claim.verdict if judged else "not judged",
            claim.note,
        )


def named(name: str) -> str:
    """The number's name for a reader, with its unit."""
    unit = " in %" if name.endswith(("_accuracy", "_error")) else ""
    return NUMBERS.get(name, name.replace("_", " ")) + unit


def claims(artifact: Artifact, results: Results) -> list[Said]:
    """The claims of an artifact, as judged."""
    judged = results.scale in artifact.judged
    return [Said.of(claim, judged=judged) for claim in artifact.judge(results)]


def counted(said: Iterable[Said]) -> str:
    """How many claims have which verdict: 8 met, 1 missed."""
    counts = Counter(claim.verdict for claim in said)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def value(value: float | str, deviation: float | None = None) -> str:
    """A number with its standard deviation, or words as they are."""
    if isinstance(value, str):
        return value
    return _number(value) + ("" if deviation is None else f" ± {deviation:.2f}")


def records(results: Results) -> str:
    """How many of the records are there: 10 records, 9 of 10 records."""
    found = len(results.records)
    noun = "record" if results.wanted == 1 else "records"
    return f"{found} {noun}" if results.complete else f"{found} of {results.wanted} {noun}"


def duration(seconds: float) -> str:
    """Seconds as people say them: 40 s, 3 min, 2.5 h."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def listed(names: Sequence[str], limit: int = 4) -> str:
    """A few names of many."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _difference(claim: Claim) -> str:
    said = "" if claim.difference is None else _number(claim.difference, sign="+")
    return said if claim.tolerance is None else f"{said} (± {claim.tolerance:g})"


def _number(value: float, sign: str = "") -> str:
    return "–" if math.isnan(value) else f"{value:{sign}.2f}"
