"""Medians of steps that take turns, so that whatever disturbs the machine disturbs all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from contenders import Contender
from torch import Tensor

POOL = 16
"""Sets of gradients that take turns: with one alone every iterate would soon lie at a vertex."""
TURN = 0.05
"""The seconds after which a contender on a device passes its turn on."""
SLOW = 2.0
"""The seconds a step on a device may take and be repeated."""
FEWEST = 3
"""The rounds that are run even where time is short."""


class Timing(NamedTuple):
    """Microseconds a step: medians of the wall clock and of the processor's time, a low tenth.

    `rival` is the first contender's median in the same rounds, `spread` how far the quarters lie
    apart, over the median.
    """

    wall: float
    processor: float
    low: float
    spread: float
    rival: float
    rounds: int
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
        self._steps = 1
        self.memory = 0

    def warm(self, pool: list[list[Tensor]], steps: int) -> None:
        """Step until everything is compiled; settle how many steps make a turn.

        Whoever takes seconds for a step on a device has had all its turns with the second one.
        """
        self._steps = steps
        if self._device == "cuda":
            self.round(pool, 1)
            began = time.monotonic()
            self.round(pool, 1)  # one more, before it
            if time.monotonic() - began > 2 * SLOW:
                del self._walls[0], self._processors[0]
                self._steps = 0
                return
            self._steps = max(1, min(steps, int(TURN * 1e6 / min(self._walls))))
        self.turn(pool)
        self._walls.clear()
        self._processors.clear()

    def turn(self, pool: list[list[Tensor]]) -> None:
        """Time as many steps as make a turn."""
        if self._steps:
            self.round(pool, self._steps)

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
            self.hand(pool[t % len(pool)])
            before, began = time.perf_counter(), time.process_time()
            self.optimizer.step()
            self._processors.append((time.process_time() - began) * 1e6)
            self._walls.append((time.perf_counter() - before) * 1e6)

    def _events(self, pool: list[list[Tensor]], steps: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.hand(pool[0])
        self.optimizer.step()
        torch.cuda.synchronize()
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        start.record()
        for t in range(steps):
            self.hand(pool[t % len(pool)])
            self.optimizer.step()
        end.record()
        torch.cuda.synchronize()
        self.memory = max(self.memory, torch.cuda.max_memory_allocated() - base)
        return start.elapsed_time(end) / 1e3

    def hand(self, grads: list[Tensor]) -> None:
        """Give the parameters these gradients."""
        for p, g in zip(self.params, grads, strict=True):
            p.grad = g

    def timing(self, rival: Runner) -> Timing:
        """What was found."""
        wall, walls = statistics.median(self._walls), sorted(self._walls)
        quarters = walls[3 * len(walls) // 4] - walls[len(walls) // 4]
        return Timing(
            wall,
            statistics.median(self._processors),
            walls[len(walls) // 10],
            quarters / wall,
            statistics.median(rival._walls),
            len(walls),
            self.memory,
        )


def race(
    contenders: Sequence[Contender],
    shapes: Sequence[tuple[int, ...]],
    *,
    device: str,
    rounds: int,
    steps: int,
    seconds: float = float("inf"),
) -> dict[str, Timing]:
    """The timing of every contender, within about so many seconds; they take turns.

    Where a device cannot hold them all, they run in heats, and the first is in all of them.
    """
    found: dict[str, Timing] = {}
    every = list(heats(contenders, shapes, device))
    for heat in every:
        until = time.monotonic() + seconds / len(every)
        pool = _gradients(shapes, device)
        runners = [Runner(each, shapes, device) for each in heat]
        for runner in runners:
            runner.warm(pool, steps)
        for number in range(rounds):
            if number >= FEWEST and time.monotonic() > until:
                break
            for runner in runners:
                runner.turn(pool)
        for runner in runners:
            found.setdefault(runner.name, runner.timing(runners[0]))
        del runner, runners, pool
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
    return found


def heats(
    contenders: Sequence[Contender], shapes: Sequence[tuple[int, ...]], device: str
) -> Iterator[list[Contender]]:
    """The contenders in parts that fit into the device's memory, the first in each of them."""
    if device == "cpu":
        yield list(contenders)
        return
    size = 4 * sum(torch.Size(s).numel() for s in shapes)
    room = 0.7 * torch.cuda.mem_get_info()[0] - 2 * size  # two sets of gradients, where it matters
    places = max(1, int(room / (3.5 * size)) - 1)  # parameters, momentum, second moments, slack
    first, *rest = contenders
    for begin in range(0, max(len(rest), 1), places):
        yield [first, *rest[begin : begin + places]]


def _gradients(shapes: Sequence[tuple[int, ...]], device: str) -> list[list[Tensor]]:
    entries = sum(torch.Size(s).numel() for s in shapes)
    make = torch.Generator(device).manual_seed(1)
    return [
        [torch.randn(s, generator=make, device=device) * 0.01 for s in shapes]
        for _ in range(POOL if entries < 10**7 else 2)
    ]


def copied(entries: int, device: str) -> float:
    """Bytes a second that one copy of float32 numbers reads and writes: the best of some.

    On a device of a gigabyte, which no cache holds.
    """
    x = torch.ones(max(entries, 1 << 16) if device == "cpu" else 1 << 28, device=device)
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
