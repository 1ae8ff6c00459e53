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


def test_the_example_is_launched(tmp_path):
    words = "-m torch.distributed.run --standalone --nproc-per-node 2".split()  # noqa: SIM905
    sizes = "--steps 30 --width 16 --layers 1 --context 16 --batch 4 --lr 3".split()  # noqa: SIM905
    done = subprocess.run(
        [sys.executable, *words, str(EXAMPLE), *sizes, "--checkpoint", str(tmp_path / "kept")],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for region in ("SpectralBall", "LinfBall", "KSparsePolytope", "Free"):
        assert region in done.stdout
    rows = re.findall(r"^ *(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +(\S+)$", done.stdout, re.MULTILINE)
    assert [int(step) for step, *_ in rows] == list(range(3, 31, 3))
    losses = [float(test) for _, _, test, _, _ in rows]
    assert losses[-1] < losses[0] - 0.2
    assert all(float(violation) < 1e-5 for *_, violation in rows)
    assert list((tmp_path / "kept").glob("*.distcp"))
