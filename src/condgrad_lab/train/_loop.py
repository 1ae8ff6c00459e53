"""The one training loop: epochs, the numbers after each, a checkpoint after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from condgrad_lab.data import Dataset
from condgrad_lab.spec import Run
from condgrad_lab.store import Journal, Record, Row
from condgrad_lab.train._speed import Speed
from condgrad_lab.train._team import ALONE, Team
from condgrad_lab.train._trial import Trial

Watch = Callable[[Row], None]


def train(
    run: Run,
    dataset: Dataset,
    journal: Journal,
    *,
    watch: Watch = lambda row: None,
    stop: Callable[[], bool] = lambda: False,
    speed: Speed | None = None,
    team: Team = ALONE,
) -> Record:
    """The record of the run, taken up where the journal's last checkpoint left it.

    `watch` sees the numbers of each epoch as it ends. `stop` is asked between epochs; when it says
    yes the run is left as it is, to be taken up another time. Every process of a team calls this,
    and the journal of the leading one is written.
    """
    if (record := team.told(journal.record())).ended:
        return record
    with alone(run.device), _Saver(journal, behind=run.device == "cuda") as saver:
        trial = Trial(run, dataset, speed=speed, team=team)
        log = _Log(journal, saver, watch, team)
        log.begin(trial)
        while trial.finite and trial.epoch < run.epochs:
            log.epoch(trial)
            if trial.epoch < run.epochs and team.told(stop()):
                break
        log.end(trial)
    return team.told(journal.record())


class _Log:
    """What is written of a trial; the processes that do not lead write nothing."""

    def __init__(self, journal: Journal, saver: _Saver, watch: Watch, team: Team) -> None:
        self._journal, self._saver, self._watch, self._team = journal, saver, watch, team

    def begin(self, trial: Trial) -> None:
        """Take up the last checkpoint, or measure the start."""
        said = {"path": ", ".join(trial.steps.path)} if trial.steps.path else {}
        state = self._team.told(self._journal.resume(**said) if self._team.leads else None)
        if state is not None:
            trial.load_state_dict(state)
            return
        began = time.perf_counter()
        row: Row = {"epoch": 0, "evaluations": 0, **trial.measure()}
        self._write(row, {"measure": time.perf_counter() - began})

    def epoch(self, trial: Trial) -> None:
        """Train and measure an epoch, write its numbers, and then its checkpoint."""
        began = time.perf_counter()
        row = trial.train_epoch()
        trained = time.perf_counter()
        row |= trial.measure()
        measured = time.perf_counter()
        if self._team.leads:
            self._journal.append(row, {"train": trained - began, "measure": measured - trained})
            self._saver.save(trial.state_dict())
            self._watch(row)

    def end(self, trial: Trial) -> None:
        """Close the record, if the run has come to its end."""
        if not self._team.leads:
            return
        self._saver.wait()
        if not trial.finite:
            self._journal.finish("diverged")
        elif trial.epoch == trial.run.epochs:
            weights = trial.weights() if "weights" in trial.run.measure else {}
            self._journal.finish("done", weights)

    def _write(self, row: Row, seconds: dict[str, float]) -> None:
        if self._team.leads:
            self._journal.append(row, seconds)
            self._watch(row)


class _Saver:
    """Writes checkpoints; `behind`, while the next epoch trains, from a copy on the host.

    A process that dies meanwhile has the checkpoint before: numbers ahead of it are found again.
    """

    def __init__(self, journal: Journal, *, behind: bool) -> None:
        self._journal = journal
        self._pool = ThreadPoolExecutor(1) if behind else None
        self._pending: Future[None] | None = None

    def __enter__(self) -> _Saver:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown()

    def save(self, state: dict[str, Any]) -> None:
        """Replace the checkpoint, once the one before has been written."""
        if self._pool is None:
            self._journal.save(state)
            return
        self.wait()
        self._pending = self._pool.submit(self._journal.save, _on_host(state))

    def wait(self) -> None:
        """Wait until the last checkpoint is written; what went wrong with it is raised."""
        if self._pending:
            self._pending.result()


def _on_host(value: Any) -> Any:
    """A copy of everything, in the host's memory."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {name: _on_host(item) for name, item in value.items()}
    return [_on_host(item) for item in value] if isinstance(value, list) else value


@contextmanager
def alone(device: str) -> Iterator[None]:
    """One thread, and the caller's random state put back at the end.

    With one thread the numbers do not depend on how many cores the machine has; and several
    single-thread runs side by side finish sooner than one after the other on all cores. On CUDA
    convolutions are tried out for the fastest way, as all batches are of one size.
    """
    threads, benchmark = torch.get_num_threads(), torch.backends.cudnn.benchmark
    if device == "cpu":
        torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = device == "cuda" or benchmark
    devices = [torch.cuda.current_device()] if device == "cuda" else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = benchmark
