"""The comparison of whole training loops runs on any machine; its times are not asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "deep.py"


@pytest.mark.slow
def test_loops_are_timed_side_by_side(tmp_path):
    out = tmp_path / "deep.json"
    words = ["--device", "cpu", "--batch", "4", "--steps", "2", "--rounds", "1", "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words, "--out", str(out)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    contenders = report["contenders"]
    assert list(contenders) == ["SGD", "SFW L2", "SFW Linf"]
    for name, row in contenders.items():
        assert row["ms"] > 0
        assert name in done.stdout
    assert contenders["SGD"]["throughput_over_SGD"] == 1
    assert set(report["side_by_side"]) == {"1", "2"}
    assert report["failed_checks"] == []
    assert report["settings"]["model"] == "wideresnet10x1"
