"""The kernels compile for a Hopper GPU, on a machine without one, and need no memory for registers.

The interpreter accepts much that the compiler does not: a type that changes in a branch, a hint on
a constant. So the compiler itself is asked, in a process of its own, since one in which Triton
interprets cannot compile and one that has a stand-in for a driver can do nothing else.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from condgrad.kernels._fit import KINDS

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("ptxas", "cuobjdump")


def missing():
    """What of Triton's wheel is not here."""
    spec = importlib.util.find_spec("triton")
    if spec is None:
        return "Triton"
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    return " and ".join(f"its {tool}" for tool in TOOLS if not (folder / tool).exists())


def report(folder):
    """What the script says of some variants, compiled anew."""
    settings = {**os.environ, "TRITON_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    settings |= {"PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": ""}
    settings.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "compiled.py"), "--which", "few"],
        env=settings,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=f"{missing()} missing: nothing can be compiled")
def test_every_kind_of_region_compiles_for_a_device_that_is_not_here(tmp_path):
    found = report(tmp_path)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-5000:]
    counted = r"[1-9]\d* kernels compiled, 0 with spilled registers, 0 that read no 16 bytes"
    assert re.search(counted, found.stdout), found.stdout[-500:]
    kinds = {line.split()[0] for line in found.stdout.splitlines() if line.strip()}
    assert set(KINDS.values()) <= kinds
