"""What runs by hand runs under frameworks and launchers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from distributed import frameworks
from distributed.team import ENVIRONMENT

EXAMPLE = Path(__file__).parents[2] / "examples" / "fsdp.py"


@pytest.mark.parametrize(
    ("question", "args", "kinds", "close"),
    [
        (frameworks.accelerated, (), ["MULTI_CPU"], 1e-10),
        (frameworks.sharded_by_accelerate, (), ["DTensor"], 1e-10),
        (frameworks.fabric, ("ddp",), ["Parameter"], 1e-4),
        (frameworks.fabric, ("fsdp2",), ["DTensor"], 1e-4),
    ],
    ids=["Accelerate with DDP", "Accelerate with FSDP2", "Fabric with DDP", "Fabric with FSDP2"],
)
def test_frameworks_take_the_same_steps(nursery, question, args, kinds, close):
    team = nursery.lone_team(2)
    answers = team.ask(question, 2, *args)
    team.close()
    expected = frameworks.by_hand(2, torch.float64 if close < 1e-6 else torch.float32)
    for found, values in answers:
        assert found == kinds
        assert set(values) == set(expected)
        for name, value in expected.items():
            assert np.abs(values[name] - value).max() <= close, name


def launched(processes, *words):
    """What the example prints on so many processes: the regions, and a row of numbers a report."""
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    sizes = "--steps 30 --width 16 --layers 1 --context 16 --batch 12 --lr 3".split()  # noqa: SIM905
    done = subprocess.run(
        [sys.executable, *run, str(EXAMPLE), *sizes, *words],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = re.findall(r"^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +(\S+)$", done.stdout, re.MULTILINE)
    return done.stdout, {int(step): [float(each) for each in row] for step, *row in rows}


def test_the_example_reads_alike_on_any_number_of_processes(tmp_path):
    printed, whole = launched(3)
    for region in ("SpectralBall", "LinfBall", "KSparsePolytope", "Free"):
        assert region in printed
    assert list(whole) == list(range(3, 31, 3))
    assert whole[30][1] < whole[3][1] - 0.2, "the loss does not fall"
    assert all(violation < 1e-5 for *_, violation in whole.values())

    kept = ["--checkpoint", str(tmp_path / "kept")]
    _, begun = launched(2, *kept, "--stop", "15")
    assert list((tmp_path / "kept").glob("*.distcp"))
    _, ended = launched(1, *kept)
    assert list(begun) + list(ended) == list(whole)
    for step, (train, test, *_) in {**begun, **ended}.items():
        assert abs(train - whole[step][0]) < 0.02, step
        assert abs(test - whole[step][1]) < 0.02, step


def test_the_example_asks_for_a_launcher():
    words = [sys.executable, str(EXAMPLE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "launch it by torchrun" in done.stderr
