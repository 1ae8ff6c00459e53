"""Questions to kernels on the host: to its own, and to Triton's in their interpreter.

Triton's interpreter is switched on for a whole process, before anything imports Triton:
``test_interpreter.py`` runs these files once more in processes of their own. Under the plain
command they are asked of the host's kernels, and those about Triton alone are left out.
"""

import numpy as np
import pytest
import torch

from kernels.cases import INTERPRETING, MISSING

collect_ignore_glob = [] if INTERPRETING else ["test_triton*.py"]


@pytest.fixture(autouse=True, scope="session")
def _kernels_are_there():
    if MISSING:
        pytest.skip(MISSING)


@pytest.fixture(autouse=True, scope="session")
def _interpreter_as_devices_are():
    """Two repairs of Triton 3.6's interpreter.

    It reads single numbers from arrays of one entry, which NumPy 2.4 does not convert any more; and
    it cuts off what bfloat16 cannot hold, where devices round to nearest.
    """
    if not INTERPRETING:
        yield
        return
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
