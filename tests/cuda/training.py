"""What must hold of training on a CUDA device: the laboratory's fast path beside its plain one.

It needs torch, Triton and NumPy alone. ``test_training.py`` asks it under pytest,
``benchmarks/deep.py`` before it times anything.
"""

import dataclasses
import tempfile
from collections.abc import Callable

import numpy as np
import torch

from condgrad_lab.spec import Data, Optimizer, Rule, Run, Schedule
from condgrad_lab.store import Store
from condgrad_lab.train import Speed, Trial, load, train
from condgrad_lab.train._captured import CapturedSteps
from condgrad_lab.train._loop import alone

PLAIN = Speed(compile=False, capture=False, fused=False)
SGD = Run(
    Data("cifar-10", train=600, test=100, synthetic=True), "wideresnet10x1",
    Optimizer("SGD", 0.05, 0.9, nesterov=True, weight_decay=1e-4), epochs=3, batch=64,
    schedule=Schedule((2,), 0.2, band=True), measure=(), device="cuda", augment=True,
)  # fmt: skip


def inside(rule):
    """The same with SFW."""
    sfw = Optimizer("SFW", 0.5, 0.9, rescale="gradient")
    return dataclasses.replace(SGD, optimizer=sfw, rules=(rule,), measure=("sampled-gap", "top5"))


RUNS = {
    "SGD": SGD,
    "SFW L2": inside(Rule("L2Ball", width=30)),
    "SFW Linf": inside(Rule("LinfBall", width=100)),
    "SFW K-sparse": inside(Rule("KSparsePolytope", width=300, k=(100, 0.1))),
}
CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Enter the function in the list."""
    CHECKS[function.__name__] = function
    return function


def trained(run, speed, pieces=False):
    """The record of a run, whole or taken up anew for every epoch."""
    with tempfile.TemporaryDirectory() as folder:
        while True:
            with Store(folder).open(run) as journal:
                record = train(
                    run, load(run.data), journal, speed=speed, stop=lambda: pieces
                )  # fmt: skip
            if record.ended:
                return record


def compare(name, found, expected, rtol=0.02):
    """Complain of losses that are further apart than rounding makes them in three epochs."""
    assert found.status == expected.status == "done"
    for column in ("train_loss", "test_loss", "lr"):
        ours, theirs = found.column(column)[1:], expected.column(column)[1:]
        assert np.allclose(ours, theirs, rtol=rtol, atol=0.01), f"{name} {column}: {ours} {theirs}"


@check
def a_run_on_the_device_follows_that_on_the_host():
    for name, run in RUNS.items():
        host = trained(dataclasses.replace(run, device="cpu"), PLAIN)
        compare(name, trained(run, PLAIN), host, rtol=0.05)


@check
def captured_steps_are_the_plain_ones():
    for name, run in RUNS.items():
        plain = trained(run, PLAIN)
        found = trained(run, Speed(compile=False))
        assert "captured" in found.starts[0]["path"], found.starts[0]
        assert "fused" in found.starts[0]["path"], found.starts[0]
        compare(name, found, plain)


@check
def captured_steps_are_the_plain_ones_without_kernels_of_the_optimizer():
    for name, run in RUNS.items():
        found = trained(run, Speed(compile=False, fused=False))
        assert found.starts[0]["path"] == "captured"
        compare(name, found, trained(run, PLAIN))


@check
def compiled_and_captured_steps_are_the_plain_ones():
    for name in ("SGD", "SFW L2"):
        found = trained(RUNS[name], Speed())
        assert found.starts[0]["path"] == "compiled, fused, captured", found.starts[0]
        compare(name, found, trained(RUNS[name], PLAIN))


@check
def captured_steps_in_bfloat16_train():
    for name, run in RUNS.items():
        half = dataclasses.replace(run, autocast="bfloat16", epochs=5)
        record = trained(half, Speed(compile=False))
        losses = record.column("train_loss")[1:]
        assert losses[-1] < 0.95 * losses[0], f"{name}: {losses}"
        if run.rules:
            assert record.column("violation").max() <= 1e-4, name


@check
def a_captured_run_taken_up_again_is_the_uninterrupted_one():
    for name in ("SGD", "SFW Linf"):
        pieces = trained(RUNS[name], Speed(compile=False), pieces=True)
        assert len(pieces.starts) == RUNS[name].epochs
        compare(name, pieces, trained(RUNS[name], Speed(compile=False)))


@check
def no_step_waits_for_the_device():
    for name, run in RUNS.items():
        for speed in (Speed(compile=False), Speed(compile=False, capture=False)):
            with alone("cuda"):
                trial = Trial(run, load(run.data), speed=speed)
                trial.train_epoch()
                draws = trial.train.draws(0, 2)
                trial.parts.model.train()
                trial.steps.prepare(draws)
                batches = [trial.train.batch(part) for part in draws.to("cuda").split(64)]
                torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode("error")
                try:
                    if isinstance(trial.steps, CapturedSteps):
                        for _ in range(5):
                            trial.steps._replay()
                    for inputs, labels in batches[:3]:
                        trial.steps._step(inputs, labels, len(labels))
                except RuntimeError as error:
                    raise AssertionError(f"{name}, {speed}: {error}") from error
                finally:
                    torch.cuda.set_sync_debug_mode("default")


@check
def dropout_in_a_graph_follows_the_seed_of_its_epoch():
    run = dataclasses.replace(RUNS["SFW L2"], model="googlenet-thin", augment=False)
    run = dataclasses.replace(run, optimizer=dataclasses.replace(run.optimizer, lr=0.0), measure=())
    with alone("cuda"):
        trial = Trial(run, load(run.data), speed=Speed(compile=False))
        losses = []
        for epoch in (1, 2, 1):
            trial.epoch = epoch - 1
            trial.train_epoch()
            losses.append(trial.loss)
    assert abs(losses[0] - losses[2]) < 1e-3 * losses[0], losses
    assert losses[0] != losses[1], losses


@check
def checkpoints_lie_on_the_host_as_plain_data():
    run = RUNS["SFW L2"]
    with alone("cuda"):
        trial = Trial(run, load(run.data), speed=Speed(compile=False))
        trial.train_epoch()
        again = Trial(run, load(run.data), speed=PLAIN)
        again.load_state_dict(trial.state_dict())
        rates = {type(group["lr"]) for group in again.parts.optimizer.param_groups}
    assert rates == {float}
