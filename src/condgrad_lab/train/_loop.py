"""The one training loop: epochs, the numbers after each, a checkpoint after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from condgrad_lab.data import Dataset
from condgrad_lab.spec import Run
from condgrad_lab.store import Journal, Record, Row
from condgrad_lab.train._trial import Trial

Watch = Callable[[Row], None]


def train(
    run: Run,
    dataset: Dataset,
    journal: Journal,
    *,
    watch: Watch = lambda row: None,
    stop: Callable[[], bool] = lambda: False,
) -> Record:
    """The record of the run, taken up where the journal's last checkpoint left it.

    `watch` sees the numbers of each epoch as it ends. `stop` is asked between epochs; when it says
    yes the run is left as it is, to be taken up another time.
    """
    if (record := journal.record()).ended:
        return record
    with alone(run.device):
        trial = Trial(run, dataset)
        _begin(trial, journal, watch)
        while trial.finite and trial.epoch < run.epochs:
            _epoch(trial, journal, watch)
            if trial.epoch < run.epochs and stop():
                break
        if not trial.finite:
            journal.finish("diverged")
        elif trial.epoch == run.epochs:
            journal.finish("done", trial.weights() if "weights" in run.measure else {})
    return journal.record()


def _begin(trial: Trial, journal: Journal, watch: Watch) -> None:
    state = journal.resume()
    if state is not None:
        trial.load_state_dict(state)
        return
    began = time.perf_counter()
    row: Row = {"epoch": 0, "evaluations": 0, **trial.measure()}
    journal.append(row, {"measure": time.perf_counter() - began})
    watch(row)


def _epoch(trial: Trial, journal: Journal, watch: Watch) -> None:
    began = time.perf_counter()
    row = trial.train_epoch()
    trained = time.perf_counter()
    row |= trial.measure()
    measured = time.perf_counter()
    journal.append(row, {"train": trained - began, "measure": measured - trained})
    journal.save(trial.state_dict())
    watch(row)


@contextmanager
def alone(device: str) -> Iterator[None]:
    """One thread, and the caller's random state put back at the end.

    With one thread the numbers do not depend on how many cores the machine has; and several
    single-thread runs side by side finish sooner than one after the other on all cores.
    """
    threads = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[0] if device == "cuda" else []):
            yield
    finally:
        torch.set_num_threads(threads)
