"""Which kernel of a step takes how long on a device, by torch's profiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from contenders import ours
from timing import Runner

STEPS = 5


def rows(model: str, shapes: Sequence[tuple[int, ...]]) -> list[dict[str, Any]]:
    """A row for each kernel of each of our steps: microseconds and launches a step."""
    found = []
    for contender in ours():
        runner = Runner(contender, shapes, "cuda")
        runner.hand([torch.randn(s, device="cuda") * 0.01 for s in shapes])
        for _ in range(3):
            runner.optimizer.step()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(STEPS):
                runner.optimizer.step()
            torch.cuda.synchronize()
        found += [
            {
                "model": model,
                "name": contender.name,
                "kernel": each.key,
                "us": round(each.self_device_time_total / STEPS, 2),
                "launches": each.count / STEPS,
            }
            for each in profile.key_averages()
            if each.self_device_time_total > 0
        ]
    return found
