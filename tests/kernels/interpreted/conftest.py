"""The kernels' logic on the host: Triton's interpreter, chosen before anything imports Triton.

The switch holds for a whole process, so these files run in processes of their own, which
``test_interpreter.py`` starts. Under the plain command they are left to it.
"""

import os

import numpy as np
import pytest
import torch

INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore_glob = [] if INTERPRETING else ["test_*.py"]


@pytest.fixture(autouse=True, scope="session")
def _interpreter_as_devices_are():
    """Two repairs of Triton 3.6's interpreter.

    It reads single numbers from arrays of one entry, which NumPy 2.4 does not convert any more; and
    it cuts off what bfloat16 cannot hold, where devices round to nearest.
    """
    from triton.runtime import interpreter

    patch, convert = interpreter._patch_lang_tensor, interpreter._convert_float

    def patched(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def converted(x, given, wanted, mode):
        if (given.name, wanted.name) != ("fp32", "bf16"):
            return convert(x, given, wanted, mode)
        rounded = torch.from_numpy(np.ascontiguousarray(x)).bfloat16()
        return rounded.view(torch.int16).numpy().view(np.uint16)

    interpreter._patch_lang_tensor, interpreter._convert_float = patched, converted
    yield
    interpreter._patch_lang_tensor, interpreter._convert_float = patch, convert


@pytest.fixture(autouse=True)
def _silent_arithmetic():
    """No word of overflow or of division by zero: a device has none either."""
    with np.errstate(all="ignore"):
        yield
