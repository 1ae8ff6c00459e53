"""What a step costs beside torch's own, in one run: the one promise about time that is tested."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow
def test_an_epoch_of_the_small_network_costs_little_more_than_with_sgd():
    """Figure 5's training loop: L2 balls under the diameter rule.

    By the processor's clock, the loops taking turns, the least of several rounds each, and up to
    three times. The promise is 1.3 on a machine that is left alone (`docs/performance.md` has the
    numbers); tests share theirs, and 1.5 is what they may make of it.
    """
    spec = importlib.util.spec_from_file_location("epoch", BENCHMARKS / "epoch.py")
    epoch = importlib.util.module_from_spec(spec)
    sys.modules["epoch"] = epoch
    try:
        spec.loader.exec_module(epoch)
        ratios = []
        for _ in range(3):
            found = epoch.race(6, ("SGD", "L2 diameter"))
            ratios.append(found["L2 diameter"]["least_us"] / found["SGD"]["least_us"])
            if ratios[-1] <= 1.5:
                break
        assert min(ratios) <= 1.5, ratios
    finally:
        del sys.modules["epoch"]
