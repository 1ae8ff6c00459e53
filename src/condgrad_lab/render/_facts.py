"""What pages tell of an artifact beside its numbers: what it shows, how it was made, and where."""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from condgrad_lab import words
from condgrad_lab.artifact import Artifact, Results
from condgrad_lab.store import Record

Found = Sequence[tuple[Artifact, Results]]

TITLE = "The paper beside our runs"
READING = (
    "Bands, crosses and ± are one standard deviation over the seeds. A claim of a number is met "
    "where the mean of ours is within the tolerance of the paper's."
)
_VERSIONS = ("condgrad", "torch", "numpy", "python", "cuda")


def about(artifact: Artifact) -> str:
    """What the artifact shows: the text of its file, without its name."""
    name = artifact.name.replace("-", " ").capitalize()
    text = _text(type(artifact)).removeprefix(f"{name}: ")
    return text[:1].upper() + text[1:]


def shared(found: Found) -> dict[str, list[str]]:
    """The texts of the files that several artifacts are made of, and the names of these."""
    texts: dict[str, list[str]] = defaultdict(list)
    for artifact, _ in found:
        for base in type(artifact).__mro__:
            # Without the underscore it is another artifact, or what all artifacts are.
            if base.__module__.rpartition(".")[2].startswith("_"):
                texts[_text(base)].append(artifact.name)
    return texts


def scale(results: Results) -> str:
    """What a title is followed by where the scale is not the paper's."""
    return "" if results.scale == "paper" else f", {results.scale} scale"


def anchor(artifact: Artifact, results: Results) -> str:
    """What a section and a picture are called: with the scale, where it is not the paper's."""
    return artifact.name if results.scale == "paper" else f"{artifact.name}-{results.scale}"


def command(artifact: Artifact, results: Results) -> str:
    """What to type to have these records made again."""
    scale = "" if results.scale == "paper" else f" --scale {results.scale}"
    return f"condgrad run {artifact.name}{scale}"


def distinct(found: Found) -> list[Record]:
    """All records, those that several artifacts share only once."""
    return list({r.run: r for _, results in found for r in results.records}.values())


def time(records: Iterable[Record]) -> str:
    """The wall time of all records together, as if one had followed the other."""
    return words.duration(sum(record.seconds for record in records))


def environments(records: Iterable[Record]) -> list[str]:
    """Where records were made: versions and machine, the commits, and how many records."""
    counts: Counter[str] = Counter()
    commits: dict[str, dict[str, None]] = defaultdict(dict)
    for record in records:
        counts.update({_machine(start) for start in record.starts})
        for start in record.starts:
            if "commit" in start:
                commits[_machine(start)][start["commit"]] = None
    return [_environment(machine, list(commits[machine]), n) for machine, n in counts.items()]


def _environment(machine: str, commits: list[str], count: int) -> str:
    parts = [f"{count} {'record' if count == 1 else 'records'}", machine]
    if commits:
        noun = "commit" if len(commits) == 1 else "commits"
        parts.append(f"{noun} {words.listed(commits)}")
    return ": ".join(parts[:2]) + "".join(f"; {part}" for part in parts[2:])


def _machine(start: dict[str, str]) -> str:
    """Versions first, then the rest, without what differs from one start to the next."""
    versions = [f"{name} {start[name]}" for name in _VERSIONS if name in start]
    rest = [str(v) for k, v in start.items() if k not in (*_VERSIONS, "epoch", "commit")]
    return ", ".join(versions + rest)


def _text(kind: type) -> str:
    module = inspect.getmodule(kind)
    return inspect.cleandoc((module and module.__doc__) or "")
