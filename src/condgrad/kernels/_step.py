"""The fused step: an optimizer's parameters moved by a few launches, or by one call on the host."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..regions._base import check_dense
from ._available import interpreting
from ._fit import formats_beside, misfit, unit_of
from ._plan import Member, Tables, placed
from ._programs import Programs
from .host._plan import HostPlan

_SETTINGS = itemgetter(
    "region", "momentum", "rescale", "ties", "seed", "maximize", "fused", "rounding"
)
_FORMAT = attrgetter("dtype")


class Present(NamedTuple):
    """The parameters that have a gradient, with it and with the number of their group."""

    params: list[Tensor]
    grads: list[Tensor]
    owners: list[int]
    numbers: list[int]


class FusedStep:
    """The fused step of one optimizer. It belongs to a process: it is neither copied nor pickled.

    What a step needs to know (addresses, chunks, radii) is worked out once and kept as long as the
    parameters, the formats and the settings it was worked out for are the same; only the addresses
    of gradients and the learning rates may change at will.
    """

    def __init__(self) -> None:
        self.rest: frozenset[int] = frozenset()
        """The ids of the parameters that the kernels could not take in the last step."""
        self._plans: list[_Plan | HostPlan] = []
        self._known: dict[str, Any] = {}
        self._held: list[dict[str, Any]] = []
        self._captured: list[Any] = []

    def __call__(self, optimizer: Any) -> None:
        """Move every parameter that has a gradient, but for those that are left in `rest`."""
        groups = optimizer.param_groups
        present = _present(groups, optimizer)
        if not present.params:
            self.rest, self._known = frozenset(), {}  # what was known told who is in the rest
            return
        capturing = present.params[0].is_cuda and torch.cuda.is_current_stream_capturing()
        if not self._is_current(optimizer, groups, present):
            if capturing:
                raise RuntimeError(
                    "a step is being captured whose parameters or settings are not those of the "
                    "step before: run a few steps first, as torch.cuda.graphs asks"
                )
            self._prepare(optimizer, groups, present)
        addresses = list(map(Tensor.data_ptr, present.grads))
        rates = [group["lr"] for group in groups]
        for plan in self._plans:
            kept = plan.step(addresses, rates, capturing)
            if capturing:
                self._captured.append((plan, kept))  # a graph must find them where they were

    def _is_current(self, optimizer: Any, groups: list[Any], present: Present) -> bool:
        """Whether everything still lies where the plans were told; settings are brought up."""
        known = self._known
        if not known or optimizer.state is not known["state"]:
            return False
        if not all(known[name] == value for name, value in self._fingerprint(present)):
            return False
        settings = list(map(_SETTINGS, groups))
        if settings == known["settings"]:
            return True
        if list(map(_structure, settings)) != list(map(_structure, known["settings"])):
            return False
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return False
        known["settings"] = settings
        for plan in self._plans:
            plan.refresh(self._members(groups, present, plan.places))
        return True

    def _fingerprint(self, present: Present) -> list[tuple[str, Any]]:
        grads = present.grads
        averages = [state.get("momentum_buffer") for state in self._held]
        return [
            ("params", list(map(id, present.params))),
            ("places", list(map(Tensor.data_ptr, present.params))),
            ("averages", [None if m is None else m.data_ptr() for m in averages]),
            ("strides", list(map(Tensor.stride, grads))),
            ("formats", list(map(_FORMAT, grads))),
            ("aligned", [not address & 15 for address in map(Tensor.data_ptr, grads)]),
        ]

    def _prepare(self, optimizer: Any, groups: list[Any], present: Present) -> None:
        """Work out plans for these parameters, one a device."""
        self._known, self._held, self._plans = {}, [], []
        rest: set[int] = set()
        by_device: dict[torch.device, list[int]] = {}
        for place, parameter in enumerate(present.params):
            group = groups[present.owners[place]]
            self._held.append(optimizer._state_of(parameter, group))
            reason = self._unfit(present, place, group)
            if reason is None:
                by_device.setdefault(parameter.device, []).append(place)
            elif group["fused"]:
                raise ValueError(
                    f"`fused=True` cannot move parameter number {present.numbers[place]} of shape "
                    f"{tuple(parameter.shape)}: {reason}; use fused=None"
                )
            else:
                rest.add(id(parameter))
        for device, places in by_device.items():
            self._move_counters(device, [self._held[place] for place in places])
            members = self._members(groups, present, places)
            owners = [present.owners[place] for place in places]
            kind = _Plan if device.type == "cuda" or interpreting() else HostPlan
            self._plans.append(kind(members, places, owners))
        self.rest = frozenset(rest)
        self._known = {
            "state": optimizer.state,
            "settings": list(map(_SETTINGS, groups)),
            **dict(self._fingerprint(present)),
        }

    def _unfit(self, present: Present, place: int, group: dict[str, Any]) -> str | None:
        """Why the kernels cannot move this parameter; None if they can."""
        parameter, gradient = present.params[place], present.grads[place]
        average = self._held[place].get("momentum_buffer") if group["momentum"] else None
        if not group["fused"]:
            return f"`fused` is {group['fused']}"
        reason = misfit(parameter, group["region"])
        if reason is not None:
            return reason
        formats = formats_beside(parameter)
        if gradient.layout is not torch.strided or gradient.dtype not in formats:
            return f"its gradient is {gradient.dtype}, {gradient.layout}"
        if not _alike(parameter, gradient):
            return f"its gradient has other strides, {gradient.stride()}"
        if average is not None and not (average.dtype in formats and _alike(parameter, average)):
            return f"its average is {average.dtype} with strides {average.stride()}"
        return None

    def _members(self, groups: list[Any], present: Present, places: Sequence[int]) -> list[Member]:
        """The parameters at these places, and how they move."""
        members = []
        for place in places:
            group, state = groups[present.owners[place]], self._held[place]
            members.append(
                Member(
                    parameter=present.params[place],
                    gradient=present.grads[place],
                    average=state["momentum_buffer"] if group["momentum"] else None,
                    step=state["step"],
                    region=group["region"],
                    rescale=group["rescale"],
                    random=group["ties"] == "random",
                    seed=group["seed"],
                    number=present.numbers[place],
                    fresh=1 - group["momentum"],
                    maximize=group["maximize"],
                    dithered=group["rounding"] == "stochastic"
                    and present.params[place].dtype == torch.bfloat16,
                )
            )
        return members

    @staticmethod
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


class _Plan:
    """The tables and launches for the parameters on one device."""

    def __init__(
        self, members: Sequence[Member], places: Sequence[int], owners: Sequence[int]
    ) -> None:
        self.places = list(places)
        self._tables = Tables(members)
        self._order = [self.places[number] for number in self._tables.order]
        self._owners = [owners[number] for number in self._tables.order]
        self.programs = Programs(self._tables)
        self._device = self._tables.device
        self._moving = torch.zeros((3, len(places)), dtype=torch.int64, device=self._device)
        self._spare = self._host_table()
        self._last: Any = None
        self._converted: list[Any] = []

    def refresh(self, members: Sequence[Member]) -> None:
        """Take note of settings that changed without a change of structure."""
        self._tables.refresh(members)

    def step(self, addresses: list[int], rates: list[float | Tensor], capturing: bool) -> Tensor:
        """Launch the kernels; returns the table that they read."""
        moving = self.moved(addresses, rates, capturing)
        self.programs.run(moving)
        return moving

    def _host_table(self) -> Tensor:
        cuda = self._device.type == "cuda"
        return torch.empty((3, len(self.places)), dtype=torch.int64, pin_memory=cuda)

    def moved(self, addresses: list[int], rates: list[float | Tensor], capturing: bool) -> Tensor:
        """The table of what moves: where gradients lie now, and the learning rates.

        A captured graph keeps a table of its own, which later steps must not write over.
        """
        numbers, tensors = self._rates(rates)
        now = (addresses, numbers, tensors)
        if now == self._last and not capturing:
            return self._moving
        host, self._spare = self._spare, None
        host = self._host_table() if host is None else host
        host[0] = torch.tensor([addresses[place] for place in self._order])
        every = torch.tensor([numbers[owner] for owner in self._owners], dtype=torch.float64)
        host[1] = every.view(torch.int64)
        host[2] = torch.tensor([tensors[owner] for owner in self._owners])
        if capturing:
            table = torch.empty_like(self._moving)
            self._converted.append(host)
        else:
            table, self._last, self._spare = self._moving, now, self._host_table()
        table.copy_(host, non_blocking=True)
        return table

    def _rates(self, rates: list[float | Tensor]) -> tuple[list[float], list[int]]:
        """Learning rates as numbers, and as addresses where they are tensors on the device."""
        if not any(isinstance(rate, Tensor) for rate in rates):
            return rates, [0] * len(rates)  # pyright: ignore[reportReturnType]
        numbers, addresses = [], []
        for rate in rates:
            if isinstance(rate, Tensor) and rate.device.type == "cuda":
                held = rate.to(self._device, torch.float32)
                if held is not rate:
                    self._converted.append(held)
                numbers.append(0.0)
                addresses.append(held.data_ptr())
            else:
                numbers.append(float(rate))
                addresses.append(0)
        return numbers, addresses


def _present(groups: list[Any], optimizer: object) -> Present:
    """The parameters that have a gradient."""
    present = Present([], [], [], [])
    number = -1
    for owner, group in enumerate(groups):
        for parameter in group["params"]:
            number += 1
            gradient = parameter.grad
            if gradient is not None:
                check_dense(gradient, optimizer)
                present.params.append(parameter)
                present.grads.append(gradient)
                present.owners.append(owner)
                present.numbers.append(number)
    return present


def _structure(settings: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a plan is built for, of the settings of a group; the rest are numbers in a table."""
    region, momentum, rescale, ties, seed, _, fused, rounding = settings
    kinds = type(region), type(unit_of(region)), getattr(unit_of(region), "k", None)
    return kinds, momentum > 0, rescale, ties, seed, fused, rounding


def _alike(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors lie in memory in the same order."""
    pairs = zip(x.shape, x.stride(), y.stride(), strict=True)
    return x.shape == y.shape and all(a == b for size, a, b in pairs if size > 1)
