"""What a reader of data says while it works: bars on a terminal, nothing in a pipe."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import parent_process

log = logging.getLogger("condgrad_lab.data")

Advance = Callable[[int], None]


class Progress:
    """The quiet display: notes go to the log, bars nowhere. Others derive from it."""

    def note(self, text: str) -> None:
        log.info(text)

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Advance]:
        """A piece of work of `total` bytes, or of unknown size; the block reports its advance."""
        log.info(label)
        yield lambda count: None


class Bars(Progress):
    """Progress bars and notes on the terminal's error stream."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    def note(self, text: str) -> None:
        super().note(text)
        self._console.print(text, style="dim", highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Advance]:
        from rich import progress as rich

        sized = (rich.DownloadColumn(), rich.TransferSpeedColumn(), rich.TimeRemainingColumn())
        columns = (
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            *(sized if total else ()),
            rich.TimeElapsedColumn(),
        )
        # Bars vanish when their work is done; the notes around them remain.
        with rich.Progress(*columns, console=self._console, transient=True) as display:
            task = display.add_task(label, total=total)
            yield lambda count: display.advance(task, count)


def automatic() -> Progress:
    """Bars where a person looks on, quiet in a pipe or a log file.

    A worker process is quiet too: the screen belongs to the process that started it.
    """
    seen = sys.stderr.isatty() and parent_process() is None
    return Bars() if seen and find_spec("rich") else Progress()
