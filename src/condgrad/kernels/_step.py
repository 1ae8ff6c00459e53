"""The fused step: an optimizer's parameters moved by a few launches, or by one call on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from ..regions import Region
from ..regions._base import check_dense
from ._fit import formats_beside, misfit, on_host, unit_of
from ._moving import Moving
from ._plan import Member, Tables, placed
from ._present import Present, Standing
from ._programs import Programs
from .host._plan import HostPlan

_SETTINGS = itemgetter(
    "region", "momentum", "rescale", "ties", "seed", "maximize", "fused", "rounding"
)
_RATE = itemgetter("lr")


class FusedStep:
    """The fused step of one optimizer. It belongs to a process: it is neither copied nor pickled.

    What a step needs to know (addresses, chunks, radii) is worked out once and kept as long as the
    parameters, the formats and the settings it was worked out for are the same; only the addresses
    of gradients and the learning rates may change at will.
    """

    def __init__(self) -> None:
        self.rest: frozenset[int] = frozenset()
        """The ids of the parameters that the last step left to others, as they asked for it."""
        self._plans: list[_Plan | HostPlan] = []
        self._present: Present | None = None
        self._standing: Standing | None = None
        self._state: Any = None
        self._settings: list[Any] = []
        self._captured: list[Any] = []

    def __call__(self, optimizer: Any) -> None:
        """Move every parameter that has a gradient, but for those that are left in `rest`."""
        groups = optimizer.param_groups
        grads = None if self._present is None else self._present.gradients(groups)
        addresses = [] if grads is None else _addresses(grads, optimizer)
        capturing = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
        if grads is None or not self._is_current(optimizer, grads, addresses, capturing):
            if capturing:
                raise RuntimeError(
                    "a step is being captured whose parameters or settings are not those of the "
                    "step before: run a few steps first, as torch.cuda.graphs asks"
                )
            addresses = self._prepare(optimizer)
        rates = list(map(_RATE, groups))
        for plan in self._plans:
            kept = plan.step(addresses, rates, capturing)
            if capturing:
                self._captured.append((plan, kept))  # a graph must find them where they were

    def _is_current(
        self, optimizer: Any, grads: list[Tensor], addresses: list[int], capturing: bool
    ) -> bool:
        """Whether everything still lies where the plans were told; settings are brought up."""
        if optimizer.state is not self._state:
            return False
        if self._standing is None or not self._standing.holds(grads, addresses):
            return False
        settings = list(map(_SETTINGS, optimizer.param_groups))
        if settings == self._settings:
            return True
        if capturing or not all(map(_refreshable, self._settings, settings)):
            return False
        self._settings = settings
        for plan in self._plans:
            plan.refresh(optimizer.param_groups)
        return True

    def _prepare(self, optimizer: Any) -> list[int]:
        """Work out plans for the parameters, one a device; the addresses of their gradients."""
        groups = optimizer.param_groups
        self._plans, self._standing = [], None
        present = self._present = Present(groups)
        grads = [p.grad for p in present.params if p.grad is not None]
        addresses = _addresses(grads, optimizer)
        held: list[dict[str, Any]] = []
        by_device: dict[torch.device, list[int]] = {}
        for place, parameter in enumerate(present.params):
            group = groups[present.owners[place]]
            held.append(optimizer._state_of(parameter, group))
            reason = _unfit(parameter, grads[place], held[place], group)
            if reason is not None:
                raise ValueError(
                    f"`fused=True` cannot move parameter number {present.numbers[place]} of shape "
                    f"{tuple(parameter.shape)}: {reason}; use fused=None"
                )
            by_device.setdefault(parameter.device, []).append(place)
        for device, places in by_device.items():
            with _on(device):
                _move_counters(device, [held[place] for place in places])
                members = _members(groups, present, grads, places, held)
                owners = [present.owners[place] for place in places]
                kind = HostPlan if on_host(present.params[places[0]]) else _Plan
                self._plans.append(kind(members, places, owners))
        self.rest = present.others
        self._standing = Standing(present, grads, held)
        self._state = optimizer.state
        self._settings = list(map(_SETTINGS, groups))
        return addresses


def _addresses(grads: list[Tensor], optimizer: Any) -> list[int]:
    """Where the gradients lie; raises if one of them is not dense."""
    try:
        return list(map(Tensor.data_ptr, grads))
    except RuntimeError:  # it has no address
        for gradient in grads:
            check_dense(gradient, optimizer)
        raise


def _unfit(
    parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
) -> str | None:
    """Why the kernels cannot move this parameter; None if they can."""
    average = state.get("momentum_buffer") if group["momentum"] else None
    reason = misfit(parameter, group["region"])
    if reason is not None:
        return reason
    formats = formats_beside(parameter)
    if gradient.dtype not in formats:
        return f"its gradient is {gradient.dtype}"
    if not _alike(parameter, gradient):
        return f"its gradient has other strides, {gradient.stride()}"
    if average is not None and not (average.dtype in formats and _alike(parameter, average)):
        return f"its average is {average.dtype} with strides {average.stride()}"
    return None


def _move_counters(device: torch.device, states: list[dict[str, Any]]) -> None:
    """Bring the step counters to the device, where the kernels count."""
    steps = [state["step"] for state in states]
    if all(s.device == device and s.dtype == torch.float32 for s in steps):
        return
    if all(s.device.type == "cpu" for s in steps):
        counters = placed(torch.stack([s.float() for s in steps]), device).unbind()
    else:
        counters = [s.to(device, torch.float32, non_blocking=True) for s in steps]
    for state, counter in zip(states, counters, strict=True):
        state["step"] = counter


def _members(
    groups: list[Any],
    present: Present,
    grads: Sequence[Tensor],
    places: Sequence[int],
    held: Sequence[dict[str, Any]],
) -> list[Member]:
    """The parameters at these places, and how they move."""
    members = []
    for place in places:
        group, parameter = groups[present.owners[place]], present.params[place]
        members.append(
            Member(
                parameter,
                grads[place].dtype,
                grads[place].data_ptr() % 16 == 0,
                average=held[place]["momentum_buffer"] if group["momentum"] else None,
                step=held[place]["step"],
                region=group["region"],
                rescale=group["rescale"],
                random=group["ties"] == "random",
                seed=group["seed"],
                number=present.numbers[place],
                fresh=1 - group["momentum"],
                maximize=group["maximize"],
                dithered=group["rounding"] == "stochastic" and parameter.dtype == torch.bfloat16,
            )
        )
    return members


class _Plan:
    """The tables and launches for the parameters on one device."""

    def __init__(
        self, members: Sequence[Member], places: Sequence[int], owners: Sequence[int]
    ) -> None:
        self._owners = list(owners)
        self._tables = Tables(members)
        order = self._tables.order
        self._device = self._tables.device
        self._moving = Moving([places[n] for n in order], [owners[n] for n in order], self._device)
        self._programs = Programs(self._tables)
        self._stream = _stream(self._device)

    def refresh(self, groups: list[Any]) -> None:
        """Take note of settings that changed without a change of structure."""
        now = [(g["region"], 1 - g["momentum"], g["maximize"]) for g in groups]
        with _on(self._device):
            self._tables.refresh([now[owner] for owner in self._owners])

    def step(self, addresses: list[int], rates: list[Any], capturing: bool) -> Any:
        """Launch everything on the current stream; what a graph that captures it needs."""
        with _on(self._device):
            stream = _stream(self._device)
            if stream != self._stream and not capturing:
                self._move_to(stream)
            if capturing:
                kept = self._moving.captured(addresses, rates)
            else:
                kept = (self._moving.table(addresses, rates),)
            self._programs.run(kept[0], None if stream is None else stream.cuda_stream)
        return kept

    def _move_to(self, stream: Any) -> None:
        """Go on with another stream, after all that was launched on the last one.

        The allocator must know of it: what is freed may be in use there.
        """
        stream.wait_stream(self._stream)
        for x in (*self._tables.tensors(), *self._moving.tensors()):
            x.record_stream(stream)
        self._stream = stream


def _stream(device: torch.device) -> Any:
    """The device's current stream; None for the host."""
    return torch.cuda.current_stream(device) if device.type == "cuda" else None


def _on(device: torch.device) -> Any:
    """A context in which this is the current device, to which launches and allocations go."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(device)


def _refreshable(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    """Whether a plan stays good when a group's settings become these: the rest are numbers."""
    region, momentum, *fixed, _, fused, rounding = new
    was, had, *stood, _, hurried, rounded = old
    same = (momentum > 0, *fixed, fused, rounding) == (had > 0, *stood, hurried, rounded)
    return same and (region is was or _structure(region) == _structure(was))


def _structure(region: Region) -> tuple[Any, ...]:
    """What a plan is built for, of a region."""
    return type(region), type(unit_of(region)), getattr(unit_of(region), "k", None)


def _alike(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors lie in memory in the same order."""
    pairs = zip(x.shape, x.stride(), y.stride(), strict=True)
    return x.shape == y.shape and all(a == b for size, a, b in pairs if size > 1)
