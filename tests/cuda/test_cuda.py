"""What must hold on a CUDA device, by one command there: pytest tests/cuda. Elsewhere: skipped."""

import importlib.util
from pathlib import Path

import pytest
import torch

# By its path: on a machine with CUDA, `cuda` may be the name of NVIDIA's own package.
SPEC = importlib.util.spec_from_file_location("checks", Path(__file__).with_name("checks.py"))
checks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(checks)

READY = torch.cuda.is_available() and importlib.util.find_spec("triton") is not None


@pytest.mark.cuda
@pytest.mark.skipif(not READY, reason="needs a CUDA device and Triton")
@pytest.mark.parametrize("name", checks.CHECKS)
def test_on_a_device(name):
    checks.CHECKS[name]()
