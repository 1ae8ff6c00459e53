"""Several runs side by side, each in a process of its own with one thread.

Small networks are bound by what happens between their operations, so as many processes as cores
finish several times sooner than one process that spreads each operation over the cores. Each
worker has a pipe to itself: one that dies takes nobody else's messages with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process

from condgrad_lab.queue._work import Event, Listener, Settings, work
from condgrad_lab.spec import Run


def execute(runs: Sequence[Run], settings: Settings, *, jobs: int, listen: Listener) -> None:
    """Bring all runs to their end, `jobs` at a time; `listen` hears of everything, in order.

    An interrupt (Ctrl-C) ends the workers at once and goes on to the caller. Nothing is lost but
    the epoch that each was in.
    """
    jobs = min(jobs, len(runs))
    if jobs > 1:
        with _Pool(jobs, settings) as pool:
            pool.run(runs, listen)
        return
    for run in runs:
        # Where one run had no time for another epoch, no run is begun.
        if settings.team.told(settings.over) or work(run, settings, listen) == "stopped":
            break


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    run: Run | None = None


class _Pool:
    """The workers, from their start to their end."""

    def __init__(self, jobs: int, settings: Settings) -> None:
        self._settings = settings
        # A forked child would inherit locks that threads of this process hold.
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._start() for _ in range(jobs)]

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        for worker in self._workers:
            if kind is not None:
                worker.process.terminate()
            worker.pipe.close()  # an idle worker ends when its pipe does
        for worker in self._workers:
            worker.process.join()

    def run(self, runs: Sequence[Run], listen: Listener) -> None:
        """Give each idle worker a run, and pass on what they tell, until all is done."""
        waiting = deque(runs)
        for worker in self._workers:
            self._give(worker, waiting)
        while busy := {worker.pipe: worker for worker in self._workers if worker.run}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                event = self._heard(worker)
                listen(event)
                if event.kind == "stopped":
                    waiting.clear()
                if event.kind not in ("begin", "epoch"):
                    self._give(worker, waiting)

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_main, args=(theirs, self._settings), daemon=True)
        process.start()
        theirs.close()  # so that the pipe ends when the worker does
        return _Worker(process, ours)

    def _give(self, worker: _Worker, waiting: deque[Run]) -> None:
        worker.run = waiting.popleft() if waiting and not self._settings.over else None
        if worker.run is not None:
            with suppress(OSError):  # it has died meanwhile, as `_heard` will find
                worker.pipe.send(worker.run)

    def _heard(self, worker: _Worker) -> Event:
        assert worker.run is not None
        try:
            return worker.pipe.recv()
        except (EOFError, OSError):
            run = worker.run
            worker.process.join()
            code = worker.process.exitcode
            worker.pipe.close()
            fresh = self._start()
            worker.process, worker.pipe = fresh.process, fresh.pipe
            return Event("failed", run, text=f"its process died ({_reason(code)})")


def _reason(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}: out of memory?" if name == "SIGKILL" else name


def _main(pipe: Connection, settings: Settings) -> None:
    """A worker's life: runs from the pipe, one after the other, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    threading.Thread(target=_die_with_parent, daemon=True).start()
    while True:
        try:
            run = pipe.recv()
        except EOFError:
            return
        work(run, settings, pipe.send)


def _die_with_parent() -> None:
    # A parent killed by force cannot end its workers.
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
