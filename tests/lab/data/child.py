"""A process of its own that gets the tiny data set; the tests of processes start it and kill it.

``fetch CACHE ADDRESS`` fetches it as a user would, and tells what it is at. ``deaths CACHE`` puts
it into the cache again and again, each time in a copy of the process that is killed one file
operation later than the one before, and prints what each left.
"""

import io
import os
import signal
import sys
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

from condgrad_lab.data import DataError, Progress
from condgrad_lab.data import cache as store
from condgrad_lab.data.progress import Advance
from condgrad_lab.data.sources import obtain
from lab.data import tiny


class Teller(Progress):
    def task(self, label: str, total: int | None = None) -> AbstractContextManager[Advance]:
        say(label)
        return super().task(label, total)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def fetch(cache: Path, address: str) -> None:
    entry, contents = obtain(tiny.recipe([address]), folder=None, cache=cache, progress=Teller())
    assert contents == tiny.CONTENTS
    say(f"got it from {entry.source}")


def deaths(cache: Path) -> None:
    """First into an empty cache, then over what the last of the first round has put there."""
    _round(cache)
    say("again")
    _round(cache)


def _round(cache: Path) -> None:
    for step in count():
        child = os.fork()
        if child == 0:
            _die_at(step)
            with store.lock(cache, "tiny", Progress()):
                store.place(cache, "tiny", tiny.CONTENTS, source=f"step {step}", inputs={})
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        say(f"{os.WIFSIGNALED(status)} {_state(cache)}")
        if not os.WIFSIGNALED(status):
            return


def _die_at(step: int) -> None:
    """From now on the file operation of this number, half done, is the last thing one does."""
    left = step
    open_, rename = io.open, os.rename

    def write(self: Path, data: bytes) -> None:
        nonlocal left
        with open_(self, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            _one_more()
            file.write(data[len(data) // 2 :])

    def move(self: Path, target: Path) -> None:
        _one_more()
        rename(self, target)

    def _one_more() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    Path.write_bytes = write  # type: ignore[method-assign, assignment]
    Path.rename = move  # type: ignore[method-assign, assignment]


def _state(cache: Path) -> str:
    try:
        entry = store.entry(cache, "tiny")
        if entry is None:
            return "absent"
        return "whole" if store.read(entry) == tiny.CONTENTS else "wrong"
    except DataError as error:
        return f"damaged: {error}"


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    {"fetch": fetch, "deaths": deaths}[command](Path(folder), *rest)
