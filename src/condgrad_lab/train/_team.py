"""Several processes that share every batch of a run, as torchrun starts them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from condgrad_lab.train._draws import Draws

T = TypeVar("T")


@dataclass(frozen=True)
class Team:
    """The processes of a run, seen from the one of number `rank`. Alone, it says nothing."""

    rank: int = 0
    size: int = 1

    @property
    def alone(self) -> bool:
        """Whether there is nobody else."""
        return self.size == 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    def share(self, draws: Draws) -> Draws:
        """The part of a batch that is for this process."""
        return draws if self.alone else draws[self.rank :: self.size]

    def sum(self, *tensors: Tensor) -> None:
        """Replace each tensor by its sum over the processes."""
        if not self.alone:
            for tensor in tensors:
                torch.distributed.all_reduce(tensor)

    def copy(self, *tensors: Tensor) -> None:
        """Replace each tensor by the leading process's."""
        if not self.alone:
            for tensor in tensors:
                torch.distributed.broadcast(tensor, src=0)

    def told(self, value: T) -> T:
        """What the leading process has for this value."""
        if self.alone:
            return value
        held: list[Any] = [value]
        torch.distributed.broadcast_object_list(held, src=0)
        return held[0]


ALONE = Team()


def expected() -> int:
    """How many processes torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def joined(device: str) -> Iterator[Team]:
    """The team that torchrun has started, or nobody else; `device` is that of the runs."""
    if expected() == 1:
        yield ALONE
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Team(torch.distributed.get_rank(), torch.distributed.get_world_size())
    finally:
        gc.collect()  # a model that averages gradients must not outlive the group it does it in
        torch.distributed.destroy_process_group()
