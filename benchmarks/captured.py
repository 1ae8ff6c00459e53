"""A step inside a CUDA graph, where launches cost next to nothing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch
from contenders import Contender, ours, rivals
from timing import Runner


def rows(shapes: Sequence[tuple[int, ...]], rounds: int) -> list[dict[str, Any]]:
    """A row for SGD and for L2 balls under both rules, replayed from a graph."""
    plain = rivals("cuda")[0]
    found = [_replayed(each, shapes, rounds) for each in (plain, *ours(True, ("L2",)))]
    entries = sum(torch.Size(s).numel() for s in shapes)
    return [
        {
            "model": "densenet121 graph",
            "parameters": entries,
            "tensors": len(shapes),
            "name": name,
            "us": round(us, 2),
            "ratio": round(us / found[0][1], 3),
            "rival": plain.name,
            "floor_us": round(4 * passes * entries / 4.2e12 * 1e6, 2),
            "passes": passes,
        }
        for name, us, passes in found
    ]


def _replayed(
    contender: Contender, shapes: Sequence[tuple[int, ...]], rounds: int
) -> tuple[str, float, int]:
    runner = Runner(contender, shapes, "cuda")
    runner._hand([torch.randn(s, device="cuda") * 0.01 for s in shapes])
    for group in runner.optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = True
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            runner.optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        runner.optimizer.step()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(20):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 20 * 1e3)
    return contender.name, statistics.median(times), contender.passes
