"""What makes a run faster and changes its numbers by rounding alone: no part of the run itself."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch

from condgrad_lab.models import InputKind, architecture
from condgrad_lab.spec import Run


@dataclass(frozen=True)
class Speed:
    """How steps are sped up; None is "where it can be", which is on CUDA.

    `compile` hands the network to torch.compile, `capture` replays steps from a CUDA graph,
    `fused` moves the parameters by a few kernels. `workers` is the number of processes that read
    pictures from files.
    """

    compile: bool | None = None
    capture: bool | None = None
    fused: bool | None = None
    workers: int | None = None

    def on(self, run: Run) -> Speed:
        """The same with everything settled for this run."""
        cuda = run.device == "cuda"
        # A small network is bound by launches, which a graph takes care of: no need to compile it.
        deep = cuda and architecture(run.model).input_kind is InputKind.COLOR
        wanted = {"compile": deep, "capture": cuda, "fused": cuda}
        unsaid = {name: value for name, value in wanted.items() if getattr(self, name) is None}
        return replace(self, **unsaid)


def autocast(run: Run) -> AbstractContextManager[object]:
    """The context in which forward passes of the run are to be made."""
    if run.autocast is None:
        return nullcontext()
    # Without the cache, which would hold casts of weights beyond a captured step.
    return torch.autocast(run.device, getattr(torch, run.autocast), cache_enabled=False)
