"""Medians of steps that take turns, so that whatever disturbs the machine disturbs all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from contenders import Contender
from torch import Tensor

POOL = 16
"""Sets of gradients that take turns: with one alone every iterate would soon lie at a vertex."""


class Timing(NamedTuple):
    """Microseconds a step: medians of the wall clock and of the processor's time, a low tenth."""

    wall: float
    processor: float
    low: float
    memory: int = 0


class Runner:
    """One contender with parameters of its own."""

    def __init__(self, contender: Contender, shapes: Sequence[tuple[int, ...]], device: str):
        self.name, self.passes = contender.name, contender.passes
        make = torch.Generator(device).manual_seed(0)
        self.params = [
            torch.randn(s, generator=make, device=device).mul_(0.02).requires_grad_()
            for s in shapes
        ]
        self.optimizer: Any = contender.make(self.params)
        self._device = device
        self._walls: list[float] = []
        self._processors: list[float] = []
        self.memory = 0

    def round(self, pool: list[list[Tensor]], steps: int) -> None:
        """Time some steps, each with the next set of gradients.

        On the host every step by itself: then a median does not see when others had their turn.
        """
        if self._device == "cuda":
            began = time.process_time()
            self._walls.append(self._events(pool, steps) / steps * 1e6)
            self._processors.append((time.process_time() - began) / steps * 1e6)
            return
        for t in range(steps):
            self._hand(pool[t % len(pool)])
            before, began = time.perf_counter(), time.process_time()
            self.optimizer.step()
            self._processors.append((time.process_time() - began) * 1e6)
            self._walls.append((time.perf_counter() - before) * 1e6)

    def _events(self, pool: list[list[Tensor]], steps: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._hand(pool[0])
        self.optimizer.step()
        torch.cuda.synchronize()
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        start.record()
        for t in range(steps):
            self._hand(pool[t % len(pool)])
            self.optimizer.step()
        end.record()
        torch.cuda.synchronize()
        self.memory = max(self.memory, torch.cuda.max_memory_allocated() - base)
        return start.elapsed_time(end) / 1e3

    def _hand(self, grads: list[Tensor]) -> None:
        for p, g in zip(self.params, grads, strict=True):
            p.grad = g

    @property
    def timing(self) -> Timing:
        return Timing(
            statistics.median(self._walls),
            statistics.median(self._processors),
            sorted(self._walls)[len(self._walls) // 10],
            self.memory,
        )


def race(
    contenders: Sequence[Contender],
    shapes: Sequence[tuple[int, ...]],
    *,
    device: str,
    rounds: int,
    steps: int,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Timing]:
    """The timing of every contender; they take turns, the first round warms up."""
    entries = sum(torch.Size(s).numel() for s in shapes)
    make = torch.Generator(device).manual_seed(1)
    sets = POOL if entries < 10**7 else 2
    pool = [
        [torch.randn(s, generator=make, device=device) * 0.01 for s in shapes] for _ in range(sets)
    ]
    runners = [Runner(each, shapes, device) for each in contenders]
    for number in range(rounds + 1):
        for runner in runners:
            runner.round(pool, steps)
            if number == 0:
                runner._walls.clear()
                runner._processors.clear()
        say(f"  round {number} of {rounds}")
    return {runner.name: runner.timing for runner in runners}


def copied(entries: int, device: str) -> float:
    """Bytes a second that one copy of float32 numbers reads and writes: the best of some."""
    x = torch.ones(max(entries, 1 << 16), device=device)
    y = torch.empty_like(x)
    best = float("inf")
    for _ in range(9):
        if device == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(5):
                y.copy_(x)
            end.record()
            torch.cuda.synchronize()
            best = min(best, start.elapsed_time(end) / 1e3 / 5)
        else:
            before = time.perf_counter()
            for _ in range(5):
                y.copy_(x)
            best = min(best, (time.perf_counter() - before) / 5)
    return 8 * x.numel() / best
