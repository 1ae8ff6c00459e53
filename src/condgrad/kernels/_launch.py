"""One kernel launch, prepared once and repeated every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


class Launch:
    """A kernel with all its arguments but the table of moving addresses.

    Triton looks at every argument of every launch to find the variant to run, and asks the driver
    about every pointer. Here they are the same ones each time: the variant is remembered, and what
    lies on the device is handed over as the address that it has.
    """

    def __init__(self, kernel: Any, programs: int, arguments: dict[str, Any], **options: Any):
        self.kernel = kernel
        self.grid = (programs, 1, 1)
        self.arguments = {name: arguments[name] for name in kernel.arg_names}
        self.options = options
        self._run: Callable[..., Any] | None = None
        self._values: list[Any] = []
        self._place = list(self.arguments).index("moving")

    def __call__(self, moving: Tensor, stream: int | None) -> None:
        """Launch with this table of moving addresses, on the stream of this handle."""
        if self._run is None:
            self._first(moving)
            return
        self._values[self._place] = moving.data_ptr()
        self._run(*self._values, stream=stream)

    def _first(self, moving: Tensor) -> None:
        """Launch as Triton does, and remember what it has chosen; its interpreter chooses none."""
        self.arguments["moving"] = moving
        variant = self.kernel[self.grid](**self.arguments, **self.options)
        if variant is not None:
            self._run = variant[self.grid]
            self._values = [
                value.data_ptr() if isinstance(value, Tensor) else value
                for value in self.arguments.values()
            ]
