"""Runs the files of ``asked/``, each in a process with Triton's interpreter switched on."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from condgrad.kernels import _plan
from condgrad.optim import _move

HERE = Path(__file__).parent
FILES = sorted(path.name for path in (HERE / "asked").glob("test_*.py"))


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="Triton, whose interpreter it takes, is missing",
)
@pytest.mark.parametrize("name", FILES)
def test_kernels_do_on_the_host_what_the_reference_does(name):
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [*command, str(HERE / "asked" / name)],
        cwd=HERE.parents[1],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
    assert " passed" in found.stdout
    assert "skipped" not in found.stdout


def test_kernels_and_reference_pull_back_in_the_same_steps():
    assert _plan.RECALL_EVERY == _move.RECALL_EVERY
