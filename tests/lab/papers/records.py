"""Records as an author imagines them, to ask the claims with."""

import dataclasses

from condgrad_lab.artifact import Results
from condgrad_lab.store import Record


def results(artifact, numbers, *, weights=None, scale="paper", seeds=None, status="done"):
    """Records of every line and seed, made of what `numbers(label, seed)` gives for each epoch.

    Lines for which it gives nothing stay empty.
    """
    lines = {}
    for label, runs in artifact.runs(scale, seeds).items():
        found = []
        for run in runs:
            columns = numbers(label, run.seed)
            if columns is None:
                continue
            rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values())]  # noqa: B905
            epochs = tuple({"epoch": place, **row} for place, row in enumerate(rows))
            run = dataclasses.replace(run, epochs=len(rows) - 1)
            found.append(Record(run, epochs=epochs, weights=weights or {}, status=status))
        lines[label] = tuple(found)
    return Results(scale, lines, sum(map(len, lines.values())))


def verdicts(artifact, found):
    """The claims by name."""
    return {claim.name: claim for claim in artifact.judge(found)}
