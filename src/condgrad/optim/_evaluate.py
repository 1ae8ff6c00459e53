"""Evaluating a batch more than once, so that only the parameters differ and nothing leaks out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from ..regions._shards import local, put_away


class Surroundings:
    """What an evaluation draws from or disturbs beside gradients, as it stands now.

    The default random generators of the host and of the accelerators named, and the buffers. The
    generators' states live on the host: asking for them waits for nothing.
    """

    def __init__(self, devices: Iterable[torch.device], buffers: Sequence[Tensor]) -> None:
        self._host = torch.get_rng_state()
        # A model on the host must not wake up an accelerator, so its modules are asked for late.
        away = {device for device in devices if device.type not in ("cpu", "meta")}
        self._away = [(d, torch.get_device_module(d).get_rng_state(d)) for d in away]
        self._buffers = list(map(local, buffers))
        self._kept = copies(self._buffers)

    def restore(self) -> None:
        """Put everything back: the next evaluation draws the same numbers and starts as clean."""
        torch.set_rng_state(self._host)
        for device, state in self._away:
            torch.get_device_module(device).set_rng_state(state, device)
        if self._buffers:
            torch._foreach_copy_(self._buffers, self._kept)


@contextmanager
def exchanged(here: list[Tensor], there: list[Tensor]) -> Iterator[None]:
    """Let the two lists of tensors hold each other's values for a while.

    The values travel, not the pointers: shards, flattened weights and captured graphs that read
    the same memory see them too. Nothing but the two lists stays allocated in between.
    """
    _exchange(here, there)
    try:
        yield
    finally:
        _exchange(here, there)


def _exchange(here: list[Tensor], there: list[Tensor]) -> None:
    here, there = list(map(local, here)), list(map(local, there))
    kept = copies(here)
    torch._foreach_copy_(here, there)
    torch._foreach_copy_(there, kept)


@contextmanager
def gathered_anew() -> Iterator[None]:
    """Let FSDP2 gather parameters anew before they are used: its copies know of no exchange."""
    seen: set[nn.Module] = set()

    def hook(module: nn.Module, args: Any) -> None:
        if module not in seen:
            put_away(module)
            seen.update(module.modules())

    handle = register_module_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies of the tensors, made together: of those in pieces, what lies here."""
    parts = list(map(local, tensors))
    new = [torch.empty_like(part) for part in parts]
    if new:
        torch._foreach_copy_(new, parts)
    return new
