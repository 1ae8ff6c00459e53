"""Who has a gradient, and whether everything still lies where it lay: asked in every step."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from operator import attrgetter, is_, itemgetter, or_
from typing import Any

from torch import Tensor

_MEMBERS = itemgetter("params")
_GRADIENT = attrgetter("grad")
_FORMAT = attrgetter("dtype")
_AVERAGE = itemgetter("momentum_buffer")
_COUNTER = itemgetter("step")


class Present:
    """The parameters that have a gradient, with the numbers of their groups and their own.

    Only those of groups that ask for the kernels; `others` are the ids of the rest.
    """

    def __init__(self, groups: Sequence[dict[str, Any]]) -> None:
        self._everyone = _flat(groups)
        self._sizes = _sizes(groups)
        owners = [owner for owner, size in enumerate(self._sizes) for _ in range(size)]
        asked = [n for n, owner in enumerate(owners) if groups[owner]["fused"]]
        self.numbers = [n for n in asked if self._everyone[n].grad is not None]
        self.params: list[Tensor] = [self._everyone[n] for n in self.numbers]
        self.owners = [owners[n] for n in self.numbers]
        self.others = frozenset(map(id, self._everyone)) - {id(self._everyone[n]) for n in asked}
        self._absent = [self._everyone[n] for n in asked if self._everyone[n].grad is None]

    def gradients(self, groups: Sequence[dict[str, Any]]) -> list[Tensor] | None:
        """Their gradients, in order; None if the groups or those who have one are others now."""
        if len(groups) != len(self._sizes) or _sizes(groups) != self._sizes:
            return None
        if not all(map(is_, _flat(groups), self._everyone)):
            return None
        grads = list(map(_GRADIENT, self.params))
        if type(None) in set(map(type, grads)):
            return None
        return None if any(p.grad is not None for p in self._absent) else grads


class Standing:
    """What plans were worked out for: where tensors lie, and how gradients are laid out."""

    def __init__(
        self, present: Present, grads: Sequence[Tensor], states: Sequence[dict[str, Any]]
    ) -> None:
        self._params = present.params
        self._states = states
        self._counters = list(map(_COUNTER, states))
        self._averaged = [state for state in states if "momentum_buffer" in state]
        self._places = self._found()
        self._layouts = list(map(Tensor.stride, grads))
        self._formats = list(map(_FORMAT, grads))
        self._aligned = _aligned(list(map(Tensor.data_ptr, grads)))

    def _found(self) -> list[int]:
        """Where the parameters and their averages lie."""
        averages = map(Tensor.data_ptr, map(_AVERAGE, self._averaged))
        return [*map(Tensor.data_ptr, self._params), *averages]

    def holds(self, grads: list[Tensor], addresses: list[int]) -> bool:
        """Whether it is still so, for these gradients of the same parameters."""
        try:
            if self._found() != self._places:
                return False
            if not all(map(is_, map(_COUNTER, self._states), self._counters)):
                return False
        except KeyError:  # something has been taken away
            return False
        return (
            list(map(_FORMAT, grads)) == self._formats
            and list(map(Tensor.stride, grads)) == self._layouts
            and _aligned(addresses) == self._aligned
        )


def _flat(groups: Sequence[dict[str, Any]]) -> list[Tensor]:
    return list(itertools.chain.from_iterable(map(_MEMBERS, groups)))


def _sizes(groups: Sequence[dict[str, Any]]) -> list[int]:
    return list(map(len, map(_MEMBERS, groups)))


def _aligned(addresses: list[int]) -> bool | list[bool]:
    """Whether addresses are multiples of 16: all of them, as is usual, or which."""
    if not functools.reduce(or_, addresses, 0) & 15:
        return True
    return [not address & 15 for address in addresses]
