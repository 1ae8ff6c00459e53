"""The cache: one folder a data set, complete and checked, or not there at all.

A folder is filled under another name and renamed into place, so whatever is killed leaves no half
file behind. Writers take a lock, which the system frees when its holder dies; readers take none:
they check the very bytes they use against the sums written beside them.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from condgrad_lab.data.checks import Files, digest, expect
from condgrad_lab.data.errors import DataError, damaged
from condgrad_lab.data.progress import Progress

ORIGIN = "origin.json"
FORMAT = 1


@dataclass(frozen=True)
class Stored:
    """Size and sum of one cached file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A data set in the cache: where it lies, where it came from, what was read to make it."""

    name: str
    folder: Path
    source: str
    inputs: Mapping[str, str]
    files: Mapping[str, Stored]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files.values())


def root(cache: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the cache: as named, else ``$CONDGRAD_DATA``, else the user's cache folder."""
    if cache is None:
        cache = os.environ.get("CONDGRAD_DATA") or None
    if cache is None:
        cache = _users() / "data"
    return Path(cache).expanduser()


def _users() -> Path:
    """The user's cache folder; the usual one of Linux where pooch is not installed."""
    try:
        from pooch import os_cache
    except ImportError:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "condgrad"
    return Path(os_cache("condgrad"))


def entry(cache: Path, name: str) -> Entry | None:
    """What the cache says it has of a data set, files unread; None when it has nothing."""
    folder = cache / name
    try:
        origin = json.loads((folder / ORIGIN).read_bytes())
        files = {file: Stored(**stored) for file, stored in origin["files"].items()}
        if origin["format"] != FORMAT:
            return None
        return Entry(name, folder, origin["source"], origin["inputs"], files)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(folder / ORIGIN, "it cannot be read", _again(name)) from error


def read(entry: Entry) -> dict[str, bytearray]:
    """The contents of an entry's files, each checked."""
    contents = {}
    for name, stored in entry.files.items():
        path = entry.folder / name
        try:
            content = bytearray(path.stat().st_size)
            with path.open("rb") as file:
                got = file.readinto(content)
        except FileNotFoundError as error:
            raise damaged(path, "it is missing", _again(entry.name)) from error
        if got != stored.bytes:
            found = f"it has {got:,} bytes, expected {stored.bytes:,}"
            raise damaged(path, found, _again(entry.name))
        expect(path, digest(content), [stored.sha256], _again(entry.name))
        contents[name] = content
    return contents


def complete(entry: Entry) -> bool:
    """Whether all files of an entry are there with their sizes; what they hold is not read."""
    paths = {entry.folder / name: stored.bytes for name, stored in entry.files.items()}
    return all(path.is_file() and path.stat().st_size == size for path, size in paths.items())


def place(
    cache: Path, name: str, contents: Files, *, source: str, inputs: Mapping[str, str]
) -> Entry:
    """Put a data set into the cache, whole and at once; the caller holds its lock."""
    files = {key: Stored(len(value), digest(value)) for key, value in contents.items()}
    origin = {"format": FORMAT, "name": name, "source": source, "inputs": dict(inputs)}
    origin["files"] = {key: asdict(stored) for key, stored in files.items()}
    with staging(cache, name) as folder:
        fresh, stale, target = folder / "new", folder / "old", cache / name
        fresh.mkdir()
        for key, value in contents.items():
            (fresh / key).write_bytes(value)
        (fresh / ORIGIN).write_text(json.dumps(origin, indent=1) + "\n")
        if target.exists():
            target.rename(stale)
        fresh.rename(target)
    return Entry(name, target, source, dict(inputs), files)


@contextmanager
def staging(cache: Path, name: str) -> Iterator[Path]:
    """A folder for unfinished work, beside the entries so that renaming never copies."""
    folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def lock(cache: Path, name: str, progress: Progress) -> Iterator[None]:
    """The right to write one data set; a second process waits for the first."""
    held = _acquired(cache, name, progress)
    try:
        # Only a holder of this lock makes such folders: what lies there belongs to the dead.
        for left_over in cache.glob(f".{name}-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield
    finally:
        held.release()


def _acquired(cache: Path, name: str, progress: Progress) -> FileLock:
    held = FileLock(cache / f".{name}.lock")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        try:
            held.acquire(timeout=0)
        except Timeout:
            with progress.task(f"{name}: waiting for another process that fetches it"):
                held.acquire()
    except OSError as error:
        raise DataError(
            f"the cache `{cache}` cannot be written ({error.strerror or error}); "
            f"set CONDGRAD_DATA to a folder you may write to"
        ) from error
    return held


def _again(name: str) -> str:
    return f"run `condgrad data get {name}` to get it anew"
