"""What the host does in a fused step of many tensors: the step without its launches.

    PYTHONPATH=src python benchmarks/host.py [tensors]

Microseconds a step: gradients where they were, new ones in the same place, new ones elsewhere. It
needs Triton, and no device: launches are left out, and tables lie on the host.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import torch
from torch import Tensor

import condgrad as cg
from condgrad.kernels import _fit, _step
from condgrad.optim import _sfw

STEPS = 300


class Nothing:
    """Programs that launch nothing."""

    def __init__(self, tables: Any) -> None:
        pass

    def run(self, moving: Tensor, stream: Any) -> None:
        pass


def optimizer(params: list[Tensor], apart: bool) -> cg.SFW:
    """An optimizer of one group, or of a group for each parameter."""
    groups = [[p] for p in params] if apart else [params]
    return cg.SFW([{"params": g, "region": cg.L2Ball(1.0)} for g in groups], fused=True)


def measured(params: list[Tensor], sfw: cg.SFW, how: str) -> float:
    """The median microseconds of a step."""
    sets = [[torch.randn_like(p) for p in params] for _ in range(2)]
    times = []
    for t in range(STEPS):
        grads = sets[t % 2 if how == "elsewhere" else 0]
        for p, g in zip(params, grads, strict=True):
            p.grad = g if how == "the same" else g.view_as(g)
        began = time.perf_counter()
        sfw.step()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


def main() -> None:
    """Print a line for every way."""
    torch.set_num_threads(1)
    _step.Programs = Nothing  # pyright: ignore
    _step.misfit = _sfw.misfit = lambda parameter, region: None
    _step.on_host = _fit.on_host = lambda parameter: False  # Triton's step, not the host's own
    tensors = int(sys.argv[1]) if len(sys.argv) > 1 else 364
    for apart in (False, True):
        params = [torch.zeros(64) for _ in range(tensors)]
        sfw = optimizer(params, apart)
        for how in ("the same", "in their place", "elsewhere"):
            us = measured(params, sfw, how)
            print(f"{tensors} tensors, {len(sfw.param_groups)} groups, gradients {how}: {us:.0f}")


if __name__ == "__main__":
    main()
