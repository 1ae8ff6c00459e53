"""What the kernels can take: which regions, which tensors, and how they are described to them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..regions import (
    Box,
    Free,
    KNormBall,
    KSparsePolytope,
    L1Ball,
    L2Ball,
    LinfBall,
    LpBall,
    PerFilter,
    PerRow,
    ProbabilitySimplex,
    Region,
    UnitSimplex,
)
from ._available import available, interpreting
from .host import _build as host

KINDS: dict[type[Region], str] = {
    Free: "FREE",
    LinfBall: "LINF",
    Box: "BOX",
    L2Ball: "L2",
    L1Ball: "L1",
    UnitSimplex: "USIMPLEX",
    ProbabilitySimplex: "PSIMPLEX",
    KNormBall: "KNORM",
    LpBall: "LP",
    KSparsePolytope: "KSPARSE",
}
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
HOST_DTYPES = (torch.float32, torch.float64)
LONGEST = 1 << 32
"""The entries that a selection can count."""


class Layout(NamedTuple):
    """How a dense tensor's entries lie: every `mid` times `inner` neighbours are transposed."""

    mid: int
    inner: int


FLAT = Layout(1, 1)


def unit_of(region: Region) -> Region:
    """The region of a single point: the inner one of rows and filters."""
    return region.region if isinstance(region, (PerRow, PerFilter)) else region


def misfit(parameter: Tensor, region: Region) -> str | None:
    """Why the kernels cannot move this parameter; None if they can."""
    unit = unit_of(region)
    if type(unit) not in KINDS:
        return f"{unit} does not split into a measurement and an answer by entry"
    reason = _nowhere(parameter, unit)
    if reason is not None:
        return reason
    if type(parameter) not in (Tensor, torch.nn.Parameter):
        return f"it is a {type(parameter).__name__}, not a plain tensor"
    formats = HOST_DTYPES if on_host(parameter) else DTYPES
    if parameter.dtype not in formats:
        *most, last = (str(each).removeprefix("torch.") for each in formats)
        return f"it is {parameter.dtype}, not {', '.join(most)} or {last}"
    layout = layout_of(parameter)
    if layout is None:
        return f"its strides {parameter.stride()} for shape {tuple(parameter.shape)} leave gaps"
    rows = rows_of(parameter, region)
    if rows > 1 and parameter.numel() // rows % (layout.mid * layout.inner):
        return f"its strides {parameter.stride()} do not keep rows together"
    if KINDS[type(unit)] in ("KSPARSE", "KNORM") and parameter.numel() // rows >= LONGEST:
        return f"its points have {parameter.numel() // rows} entries, more than can be counted"
    return None


def on_host(parameter: Tensor) -> bool:
    """Whether the host's kernels would move the parameter, rather than Triton's."""
    return parameter.device.type == "cpu" and not interpreting()


def formats_beside(parameter: Tensor) -> tuple[torch.dtype, ...]:
    """The formats that the parameter's gradient and average may have."""
    return (parameter.dtype,) if on_host(parameter) else DTYPES


def _nowhere(parameter: Tensor, unit: Region) -> str | None:
    """Why there are no kernels where the parameter is, or not for its region; None if there are."""
    if on_host(parameter):
        if isinstance(unit, LpBall):
            return f"{unit} has no kernel on the host"
        return host.missing()
    if parameter.is_cuda or parameter.device.type == "cpu":
        return None if available() else "Triton is not installed"
    return f"it is on {parameter.device}, neither on a CUDA device nor on the host"


def rows_of(parameter: Tensor, region: Region) -> int:
    """The number of points of the parameter."""
    return parameter.shape[0] if isinstance(region, (PerRow, PerFilter)) else 1


def layout_of(x: Tensor) -> Layout | None:
    """The layout of a tensor that fills its memory as the kernels know how to read; else None."""
    if x.is_contiguous():
        return FLAT
    sizes = [(stride, size) for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1]
    expected = 1
    for stride, size in sorted(sizes):
        if stride != expected:
            return None
        expected *= size
    return _transposed(sizes)


def _transposed(sizes: list[tuple[int, int]]) -> Layout | None:
    """The layout of dense (stride, size) pairs that are blocks of transposed matrices, else None.

    Outer dimensions come first and lie outermost; of the others some lie inmost, though the rest
    follow them: (batch, channel, height, width) in channels_last has channels within pixels.
    """
    while sizes and sizes[0][0] == max(stride for stride, _ in sizes):
        sizes = sizes[1:]
    for cut in range(1, len(sizes)):
        front, back = sizes[:cut], sizes[cut:]
        inmost = math.prod(size for _, size in front)
        if _contiguous(front, 1) and _contiguous(back, inmost):
            return Layout(inmost, math.prod(size for _, size in back))
    return None


def _contiguous(sizes: list[tuple[int, int]], step: int) -> bool:
    """Whether these dimensions lie in order, the last of them with stride `step`."""
    for stride, size in reversed(sizes):
        if stride != step:
            return False
        step *= size
    return True


def numbers_of(region: Region, entries: int) -> dict[str, Any]:
    """The numbers that tell the kernels which region it is, for points of so many entries."""
    count = region.count(entries) if isinstance(region, (KNormBall, KSparsePolytope)) else 0
    return {
        "RADIUS": getattr(region, "radius", 1.0),
        "LOW": getattr(region, "low", 0.0),
        "HIGH": getattr(region, "high", 0.0),
        "POWER": getattr(region, "p", 2.0),
        "COUNT": count,
    }
