"""What a step of a small network is made of: its operations, which no busy machine changes.

How long they take beside torch's own is measured by `benchmarks/epoch.py`, see
`docs/performance.md`.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MOST = {
    "SGD": 18,
    "L2 diameter": 5,
    "L2 gradient": 7,
    "L1 diameter": 34,
    "L1 gradient": 37,
    "K-sparse 10 % diameter": 47,
    "K-sparse 10 % gradient": 52,
    "Linf diameter": 103,
    "Linf gradient": 105,
}
"""Operations of one step on the six tensors of the 784-64-64-10 network; SGD's as the measure.

Of the loops whose steps are made of torch's operations: a fused one is a single call.
"""


@pytest.fixture(scope="module")
def epoch():
    spec = importlib.util.spec_from_file_location("epoch", BENCHMARKS / "epoch.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["epoch"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["epoch"]


class Counter(TorchDispatchMode):
    """Counts operations on tensors; not numbers that are read, which costs a tenth of one."""

    count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = str(operation)
        self.count += not ("local_scalar" in name or "profiler" in name)
        return operation(*args, **(kwargs or {}))


def operations(epoch, name, model):
    """How many operations the third step takes: by then there is all state, and no pull inside."""
    loop, data = epoch.Loop(model, epoch.LOOPS[name](model)), epoch.images()
    epoch.trained(loop, data, 0, 2)
    nn.functional.cross_entropy(model(data[0][:50]), data[1][:50]).backward()
    with Counter() as counter:
        loop.optimizer.step()
    return counter.count


def test_every_loop_of_the_benchmark_has_a_limit(epoch):
    assert set(MOST) == {name for name in epoch.LOOPS if "fused" not in name}


@pytest.mark.parametrize("name", MOST)
def test_a_step_of_the_small_network_takes_few_operations(epoch, name):
    assert operations(epoch, name, epoch.network()) <= MOST[name]


@pytest.mark.parametrize("name", ["L2 diameter", "L2 gradient"])
def test_many_tensors_take_no_more_operations_than_few(epoch, name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        deep = nn.Sequential(nn.Linear(784, 64), *(nn.Linear(64, 64) for _ in range(20)))
    assert operations(epoch, name, deep) <= MOST[name]


def test_the_benchmark_times_what_it_is_asked_for(epoch):
    found = epoch.race(1, ("SGD", "L2 diameter"))
    assert list(found) == ["SGD", "L2 diameter"]
    assert all(0 < each["least_us"] <= each["median_us"] for each in found.values())
    assert torch.get_num_threads() == 1
