"""Records on disk: one text file a run, a JSON object a line, written once and never changed.

A line holds one thing, named by its only key:

    {"run": ...}       the configuration, first
    {"start": ...}     where and with which versions the run began, or went on
    {"epoch": ...}     the numbers after an epoch (epoch 0: before training)
    {"time": ...}      the seconds that epoch took
    {"weights": ...}   the final parameters, where the run asks for them
    {"end": ...}       "done", or "diverged" when the loss left the finite numbers

`run`, `epoch`, `weights` and `end` are a function of the run alone; `start` and `time` are of the
day. A process may die at any moment: a line cut short is no line, and a run goes on from its last
checkpoint (kept beside the records, in `.state`, until the run has ended).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from condgrad_lab.environment import environment
from condgrad_lab.spec import Run

try:
    import fcntl
except ImportError:  # Windows: two processes on one record are then not told apart
    fcntl = None

Row = dict[str, float | int]
_SUM = b"sha256:"  # what a checkpoint begins with, then its sum


class BusyError(RuntimeError):
    """Another process is at work on this record."""


class RecordError(ValueError):
    """A file that should hold a record does not."""


@dataclass(frozen=True, eq=False)
class Record:
    """What a run left: its numbers by epoch, its weights, and the circumstances."""

    run: Run
    epochs: tuple[Row, ...] = ()
    times: tuple[Row, ...] = ()
    starts: tuple[dict[str, Any], ...] = ()
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    status: str = "partial"

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to run."""
        return self.status != "partial"

    @property
    def epoch(self) -> int:
        """The last epoch with numbers."""
        return int(self.epochs[-1]["epoch"]) if self.epochs else 0

    @property
    def throughput(self) -> float:
        """Samples a second in training, the median over the epochs; NaN where none is timed."""
        counts = {row["epoch"]: row.get("evaluations", math.nan) for row in self.epochs}
        found = [
            (counts[time["epoch"]] - counts[time["epoch"] - 1]) / time["train"]
            for time in self.times
            if time.get("train") and {time["epoch"], time["epoch"] - 1} <= counts.keys()
        ]
        return float(np.median(found)) if found else math.nan

    @property
    def seconds(self) -> float:
        """The wall time of all epochs."""
        return sum(sum(v for k, v in row.items() if k != "epoch") for row in self.times)

    def column(self, name: str) -> np.ndarray:
        """The values of one number over the epochs; NaN where an epoch does not have it."""
        known = sorted({key for row in self.epochs for key in row})
        if name not in known:
            raise KeyError(f"record {self.run.key} has no `{name}`; it has {', '.join(known)}")
        return np.array([row.get(name, math.nan) for row in self.epochs], dtype=float)

    def last(self, name: str) -> float:
        """The value of one number after the last epoch."""
        return float(self.column(name)[-1])


class Store:
    """A folder of records."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, run: Run) -> Path:
        """The file of this run's record."""
        return self.folder / f"{run.key}.jsonl"

    def read(self, run: Run) -> Record | None:
        """The record of this run as far as it got, or None where there is none."""
        path = self.path(run)
        return _of(run, path) if path.exists() else None

    def all(self) -> Iterator[Record]:
        """Every record of the folder, by name."""
        return (read(path) for path in sorted(self.folder.glob("*.jsonl")))

    def find(self, key: str) -> Record:
        """The one record whose key starts with, or whose digest is, `key`."""
        names = sorted(path.stem for path in self.folder.glob("*.jsonl"))
        found = [name for name in names if name.startswith(key) or name.endswith(f"_{key}")]
        if len(found) != 1:
            which = "no record" if not found else f"{len(found)} records ({', '.join(found[:4])} …)"
            raise KeyError(f"`{key}` names {which} in {self.folder}")
        return read(self.folder / f"{found[0]}.jsonl")

    @contextmanager
    def open(self, run: Run) -> Iterator[Journal]:
        """The record of this run for writing, held against other processes; raises `BusyError`."""
        state = self.folder / ".state"
        state.mkdir(parents=True, exist_ok=True)
        lock = state / f"{run.key}.lock"
        with lock.open("w") as held:
            _lock(held, run)
            journal = Journal(run, self.path(run), state / f"{run.key}.pt")
            yield journal
            if journal.record().ended:
                # Whoever takes the lock after this finds the record ended and has nothing to do.
                journal.checkpoint.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)

    def look(self, run: Run) -> Journal:
        """The record of this run for reading, while another process holds it for writing."""
        return Journal(run, self.path(run), self.folder / ".state" / f"{run.key}.pt")


class Journal:
    """The record of one run while it is written, and the checkpoint to go on from."""

    def __init__(self, run: Run, path: Path, checkpoint: Path) -> None:
        self.run = run
        self._path = path
        self.checkpoint = checkpoint

    def record(self) -> Record:
        """What is on disk."""
        return _of(self.run, self._path) if self._path.exists() else Record(self.run)

    def resume(self, **said: str) -> dict[str, Any] | None:
        """The last checkpoint, or None: from the start. The record is cut back to that epoch.

        What is `said` of the way in which the run goes on stands beside versions and machine.
        """
        state = self._load()
        epoch = -1 if state is None else state["epoch"]
        lines = [line for line in _lines(self._path) if _before(line, epoch)]
        if state is None or sum("epoch" in line for line in lines) <= epoch:
            # No checkpoint, or one that is ahead of the record: a part of that was lost.
            state, epoch, lines = None, -1, [{"run": self.run.to_dict()}]
        here = {**environment(self.run.device), **said}
        lines.append({"start": {"epoch": max(epoch, 0), **here}})
        _replace(self._path, lambda file: file.write("".join(map(_dump, lines)).encode()))
        return state

    def append(self, row: Row, seconds: Mapping[str, float]) -> None:
        """Add the numbers of an epoch and its seconds: before its checkpoint is saved.

        A process that dies between the two repeats the epoch: `resume` drops the numbers ahead of
        the checkpoint, and the same ones are found again.
        """
        time = {"epoch": row["epoch"], **{name: round(s, 4) for name, s in seconds.items()}}
        self._write({"epoch": row}, {"time": time})

    def save(self, state: dict[str, Any]) -> None:
        """Replace the checkpoint; `state["epoch"]` is the last epoch it has behind it."""
        import torch

        buffer = io.BytesIO()
        torch.save(state, buffer)
        content = buffer.getbuffer()

        def write(file: IO[bytes]) -> None:
            file.write(_SUM + hashlib.sha256(content).digest())
            file.write(content)

        _replace(self.checkpoint, write)

    def finish(self, status: str, weights: Mapping[str, np.ndarray] | None = None) -> None:
        """Close the record."""
        packed = [{"weights": {name: _pack(w) for name, w in weights.items()}}] if weights else []
        self._write(*packed, {"end": status})

    def _load(self) -> dict[str, Any] | None:
        import torch

        if not (self.checkpoint.exists() and self._path.exists()):
            return None
        content = self.checkpoint.read_bytes()
        if content.startswith(_SUM):  # torch's own sums are not looked at when it loads
            start = len(_SUM) + hashlib.sha256().digest_size
            known, content = content[len(_SUM) : start], content[start:]
            if hashlib.sha256(content).digest() != known:
                return None
        # A checkpoint of another version of torch may not load; the run then starts anew. What
        # torch raises depends on where it stumbles.
        with suppress(Exception):
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return None

    def _write(self, *lines: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write("".join(map(_dump, lines)).encode())
            file.flush()
            os.fsync(file.fileno())


def read(path: Path) -> Record:
    """The record in this file; raises `RecordError`."""
    try:
        return _read(path)
    except RecordError:
        raise
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        text = f"{path} is no record as this version knows them ({error}): delete it and run again"
        raise RecordError(text) from error


def _of(run: Run, path: Path) -> Record:
    """The record in this file, which should be that of this run."""
    record = read(path)
    if record.run != run:
        raise RecordError(f"{path} holds the record of {record.run.key}: delete it and run again")
    return record


def _read(path: Path) -> Record:
    found: dict[str, list[Any]] = {}
    for line in _lines(path):
        ((kind, value),) = line.items()
        found.setdefault(kind, []).append(value)
    if "run" not in found:
        raise RecordError(f"{path} is no record: its first line must hold the run; delete it")
    packed = found.get("weights", [{}])[-1]
    epochs = tuple(_numbers(row) for row in found.get("epoch", []))
    if [row["epoch"] for row in epochs] != list(range(len(epochs))):
        raise ValueError("its epochs do not follow one another")
    return Record(
        run=Run.from_dict(found["run"][0]),
        epochs=epochs,
        times=tuple(found.get("time", [])),
        starts=tuple(found.get("start", [])),
        weights={name: _unpack(w) for name, w in packed.items()},
        status=found.get("end", ["partial"])[-1],
    )


def settled(path: Path) -> list[str]:
    """The lines of a record that are a function of the run alone, as they stand in the file."""
    lines = path.read_text().splitlines()
    return [line for line in lines if not line.startswith(('{"start"', '{"time"'))]


def complete(records: Iterable[Record | None]) -> bool:
    """Whether every record is there and ended."""
    return all(record is not None and record.ended for record in records)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            return  # the process died while writing it
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            text = f"{path} is damaged at {line[:40]!r}: delete it and run again"
            raise RecordError(text) from None


def _before(line: dict[str, Any], epoch: int) -> bool:
    """Whether a line was true when the checkpoint after `epoch` was taken."""
    ((kind, value),) = line.items()
    return kind in ("run", "start") or (kind in ("epoch", "time") and value["epoch"] <= epoch)


def _dump(line: dict[str, Any]) -> str:
    return json.dumps(_finite(line), allow_nan=False, separators=(", ", ": ")) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity (null stands for both), and seven digits are enough."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def _numbers(row: dict[str, Any]) -> Row:
    return {name: math.nan if value is None else value for name, value in row.items()}


def _pack(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype="<f4")
    data = base64.b64encode(little.tobytes()).decode()
    return {"shape": list(array.shape), "float32": data}


def _unpack(packed: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["float32"]), "<f4").reshape(packed["shape"])


def _replace(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write the whole file at once: a reader sees the old one or the new one."""
    new = path.with_name(f".new-{path.name}")
    with new.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def _lock(held: IO[str], run: Run) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise BusyError(f"another process is at work on {run.key}") from None
