"""How long a run will take, found by training a little on invented data."""

from __future__ import annotations

import dataclasses
import time

from condgrad_lab.models import InputKind, architecture
from condgrad_lab.spec import Data, Run
from condgrad_lab.train._loop import alone
from condgrad_lab.train._samples import load
from condgrad_lab.train._trial import Trial

_SIZES = {
    "mnist": (60_000, 10_000),
    "fashion-mnist": (60_000, 10_000),
    "cifar-10": (50_000, 10_000),
    "cifar-100": (50_000, 10_000),
    "imdb": (25_000, 25_000),
}
_BATCHES = 12


def probe(run: Run) -> float | None:
    """The seconds of an epoch of this run on this machine, or None where a probe takes too long."""
    if run.data.name not in _SIZES or run.ranks > 1:
        return None
    if architecture(run.model).input_kind is InputKind.COLOR:
        return None  # a step may take a minute on a processor, and as long to compile elsewhere
    whole = [
        given or size
        for given, size in zip((run.data.train, run.data.test), _SIZES[run.data.name], strict=True)
    ]
    train = min(_BATCHES * run.batch, whole[0])
    test = max(1, train * whole[1] // whole[0])
    small = dataclasses.replace(run, data=Data(run.data.name, train, test, synthetic=True))
    with alone(run.device):
        trial = Trial(small, load(small.data))
        return _epoch(trial) * whole[0] / train


def _epoch(trial: Trial) -> float:
    trial.train_epoch()  # the first steps pay for what is made once
    trial.measure()
    began = time.perf_counter()
    trial.train_epoch()
    trial.measure()
    return time.perf_counter() - began
