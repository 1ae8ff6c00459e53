"""A run of the laboratory whose steps are recorded with the kernels in them, and taken up again."""

import dataclasses

import pytest
import torch

from condgrad_lab.spec import Data, Optimizer, Rule, Run, Schedule
from condgrad_lab.train import Speed, Trial, load
from condgrad_lab.train._captured import CapturedSteps
from condgrad_lab.train._loop import alone
from lab.test_captured import recorder

RUN = Run(
    Data("mnist", train=28, test=10, synthetic=True), "mlp-32",
    Optimizer("SFW", 0.3, 0.9, rescale="diameter"), (Rule("L2Ball", width=300),), epochs=2,
    batch=8, schedule=Schedule((1,), 0.5),
)  # fmt: skip
RUNS = {
    "L2": RUN,
    "Linf": dataclasses.replace(
        RUN,
        optimizer=Optimizer("SFW", 0.3, 0.9, rescale="gradient"),
        rules=(Rule("LinfBall", width=30),),
    ),
}


def trial(run, fused):
    made = Trial(run, load(run.data), speed=Speed(fused=fused))
    assert made.parts.fused == fused
    if fused:
        record = recorder(list(made.parts.model.parameters()))
        settled = Speed(fused=True).on(run)
        made.steps = CapturedSteps(run, made.parts, made.train, settled, record=record)
    return made


def epoch(made):
    return made.train_epoch()["running_loss"], made.measure()["test_loss"]


@pytest.mark.parametrize("name", RUNS)
def test_recorded_kernels_train_as_the_plain_steps_do(name):
    run = RUNS[name]
    with alone("cpu"):
        plain, fast = trial(run, False), trial(run, True)
        assert epoch(fast) == pytest.approx(epoch(plain), rel=1e-5)
        rates = [group["lr"] for group in fast.parts.optimizer.param_groups]
        assert all(rate is rates[0] for rate in rates)
        assert float(rates[0]) == pytest.approx(0.15)
        counts = [state["step"] for state in fast.parts.optimizer.state.values()]
        assert {int(count) for count in counts} == {4}  # what got warm does not count
        again = trial(run, True)
        again.load_state_dict(fast.state_dict())
        found, expected = epoch(again), epoch(plain)
    assert found == pytest.approx(expected, rel=1e-5)
    for p, q in zip(again.parts.model.parameters(), plain.parts.model.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)
