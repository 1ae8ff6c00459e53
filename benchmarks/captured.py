"""A step inside a CUDA graph, where launches cost next to nothing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch
from contenders import Contender, ours, rivals
from timing import Runner

REPLAYS = 20


def rows(shapes: Sequence[tuple[int, ...]], rounds: int, speed: float) -> list[dict[str, Any]]:
    """A row for SGD and for each of ours, replayed from a graph; `speed` is that of a copy."""
    found = [_replayed(each, shapes, rounds) for each in (rivals("cuda")[0], *ours())]
    entries = sum(torch.Size(s).numel() for s in shapes)
    name, first, _ = found[0]
    return [
        {
            "model": "densenet121 graph",
            "parameters": entries,
            "tensors": len(shapes),
            "name": each,
            "us": round(us, 2),
            "ratio": round(us / first, 3),
            "rival": name,
            "floor_us": round(4 * passes * entries / speed * 1e6, 2),
            "passes": passes,
        }
        for each, us, passes in found
    ]


def _replayed(
    contender: Contender, shapes: Sequence[tuple[int, ...]], rounds: int
) -> tuple[str, float, int]:
    runner = Runner(contender, shapes, "cuda")
    runner.hand([torch.randn(s, device="cuda") * 0.01 for s in shapes])
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
    for _ in range(rounds + 1):  # the first warms up
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / REPLAYS * 1e3)
    return contender.name, statistics.median(times[1:]), contender.passes
