"""How large a region should be: by its radius, its diameter, or its width against the start."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .regions import Region
from .regions._answers import norm_of
from .regions._base import positive
from .regions._measure import Dense, Norm, safe_range
from .regions._shards import is_sharded

_EXACT_BELOW = 300  # Γ overflows a double near 171, that is at n = 340


def expected_norm(n: int, std: float = 1.0) -> float:
    """The mean Euclidean norm of n independent normal numbers with standard deviation `std`.

    σ√2 Γ((n+1)/2)/Γ(n/2); for large n by its asymptotic series, since the difference of two
    logarithms of Γ loses the digits that matter.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"`n` must be a positive int, got {n!r}")
    if not (std >= 0 and math.isfinite(std)):
        raise ValueError(f"`std` must be finite and at least 0, got {std!r}")
    if n < _EXACT_BELOW:
        return std * math.sqrt(2) * math.gamma((n + 1) / 2) / math.gamma(n / 2)
    r = 1 / n
    series = 1 - r / 4 * (1 - r / 8 * (1 + r * (5 / 4 - r * (21 / 64 + r * 399 / 256))))
    return std * math.sqrt(n) * series


@dataclass(frozen=True)
class Sized:
    """A kind of region whose size is settled when the parameter is known; made by `sized`."""

    kind: Callable[..., Region]
    width: float | None = None
    diameter: float | None = None
    std: float | None = None
    at_zero: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    def region_for(self, parameter: Tensor) -> Region:
        """The region for this parameter, whose present value is taken as its start."""
        diameter = self.diameter
        if diameter is None:
            assert self.width is not None
            diameter = 2 * self.width * self._start(parameter)
        build = self.kind.from_diameter  # pyright: ignore[reportFunctionMemberAccess]
        return build(diameter, parameter.shape, **self.options)

    def _start(self, parameter: Tensor) -> float:
        if self.std is not None:
            return expected_norm(parameter.numel(), self.std)
        wide = torch.promote_types(parameter.dtype, torch.float32)
        if is_sharded(parameter):
            norm = float(norm_of(parameter, wide))
        else:
            x = parameter.detach().to(wide).reshape(-1)
            norm, (low, high) = float(torch.linalg.vector_norm(x)), safe_range(wide)
            if not low < norm < high:
                norm = float(Dense(x, 0, None).answer(Norm(x)))
        return norm if norm > 0 else self.at_zero


def sized(
    kind: type[Region],
    *,
    width: float | None = None,
    diameter: float | None = None,
    std: float | None = None,
    at_zero: float = 1.0,
    **options: Any,
) -> Sized:
    """A rule for `constrain`: regions of one kind, each sized for its parameter.

    Either by `diameter`, or by `width` w: the diameter is then 2 w E‖x‖₂ (paper, equation 16),
    where x is the parameter at initialisation. E‖x‖₂ is `expected_norm(n, std)` if `std` is given,
    else the norm that the parameter has now; a parameter that is zero now counts as `at_zero`.
    `options` go to the region (`p=5`, `k=0.1`, `region=L2Ball` for `PerRow`).
    """
    if not (isinstance(kind, type) and issubclass(kind, Region)):
        raise TypeError(f"`kind` must be a region class such as L2Ball, got {kind!r}")
    if (width is None) == (diameter is None):
        raise TypeError(f"give either `width` or `diameter` for {kind.__name__}, not both or none")
    sizes = (("width", width), ("diameter", diameter), ("std", std), ("at_zero", at_zero))
    for name, value in sizes:
        if value is not None:
            positive(value, name)
    return Sized(kind, width, diameter, std, at_zero, options)
