"""One kernel launch, prepared once and repeated every step."""

from __future__ import annotations

from typing import Any

from torch import Tensor


class Launch:
    """A kernel with all its arguments but the table of moving addresses.

    Triton looks at every argument of every launch to find the variant to run; here they are the
    same ones each time, so the variant is remembered and called directly.
    """

    def __init__(self, kernel: Any, programs: int, arguments: dict[str, Any], **options: Any):
        self._kernel = kernel
        self._grid = (programs, 1, 1)
        self._arguments = {name: arguments[name] for name in kernel.arg_names}
        self._options = options
        self._variant: Any = None

    def __call__(self, moving: Tensor) -> None:
        """Launch with this table of moving addresses."""
        self._arguments["moving"] = moving
        if self._variant is None:
            self._variant = self._kernel[self._grid](**self._arguments, **self._options)
        else:
            self._variant[self._grid](*self._arguments.values())
