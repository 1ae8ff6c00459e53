"""What must hold of training on a CUDA device: pytest tests/cuda. Elsewhere: skipped."""

import importlib.util

import pytest
import torch

from cuda.training import CHECKS

READY = torch.cuda.is_available() and importlib.util.find_spec("triton") is not None


@pytest.mark.cuda
@pytest.mark.skipif(not READY, reason="needs a CUDA device and Triton")
@pytest.mark.parametrize("name", CHECKS)
def test_on_a_device(name):
    CHECKS[name]()
