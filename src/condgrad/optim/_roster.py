"""Who moves in a step, and how: worked out once, and kept as long as it stays true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, is_
from typing import Any

import torch
from torch import Tensor

from ..regions._shards import is_sharded
from ._move import Work

_FORMAT = attrgetter("dtype", "device")


class Works(list[Work]):
    """The moves of a step, in order; and, once somebody has formed them, the teams they move in."""

    __slots__ = ("teams",)

    def __init__(self, works: Iterable[Work]) -> None:
        super().__init__(works)
        self.teams: Any = None


class Roster:
    """The parameters that have gradients, with what does not change from step to step.

    `parameters` are they, `owners` the group of each, `pairs` both, `numbers` their places among
    all parameters, `choirs` the places of those whose directions are settled in one call. `divided`
    tells whether any parameter, with a gradient or without, may lie in pieces on several ranks.
    """

    def __init__(
        self,
        groups: Sequence[dict[str, Any]],
        settings: Callable[[dict[str, Any]], Any],
        voices: tuple[str, ...] | None,
        moves: Callable[[Tensor], bool] = lambda parameter: parameter.grad is not None,
    ) -> None:
        self._groups = list(groups)
        self._settings = settings
        self._known = [settings(group) for group in groups]
        everyone = [(p, group) for group in groups for p in group["params"]]
        self._everyone = [p for p, _ in everyone]
        self._moves = moves
        self._present = [moves(p) for p in self._everyone]
        self.divided = any(map(is_sharded, self._everyone))
        self.numbers = [place for place, there in enumerate(self._present) if there]
        self.parameters: list[Tensor] = [self._everyone[place] for place in self.numbers]
        self.owners: list[dict[str, Any]] = [everyone[place][1] for place in self.numbers]
        self._formats = list(map(_FORMAT, self.parameters))
        self.pairs = list(zip(self.parameters, self.owners, strict=True))
        self.choirs = self._sung(voices)
        self.works = Works(Work(*each) for each in zip(*self._lasting(), strict=True))

    def _lasting(self) -> Iterable[Sequence[Any]]:
        """The arguments of each work."""
        groups = self.owners
        draws = [(g["seed"], n) for g, n in zip(groups, self.numbers, strict=True)]
        random = [group["ties"] == "random" for group in groups]
        return (
            self.parameters,
            [group["region"] for group in groups],
            [group.get("rescale") for group in groups],
            [draw if drawn else None for draw, drawn in zip(draws, random, strict=True)],
        )

    def _sung(self, voices: tuple[str, ...] | None) -> list[list[int]]:
        alike: dict[Any, list[int]] = {}
        for place, group in enumerate(self.owners):
            key = id(group) if voices is None else tuple([group[name] for name in voices])
            alike.setdefault(key, []).append(place)
        return list(alike.values())

    def holds(self, groups: Sequence[dict[str, Any]]) -> bool:
        """Whether nothing has changed that this was worked out from."""
        everyone = [p for group in groups for p in group["params"]]
        return (
            len(groups) == len(self._groups)
            and all(map(is_, groups, self._groups))
            and len(everyone) == len(self._everyone)
            and all(map(is_, everyone, self._everyone))
            and list(map(self._moves, everyone)) == self._present
            and list(map(self._settings, groups)) == self._known
            and list(map(_FORMAT, self.parameters)) == self._formats
        )

    def brief(self, directions: Iterable[Tensor], states: Iterable[dict[str, Any]]) -> Works:
        """The works, told what is new in this step."""
        for work, parameter, group, direction, state in zip(
            self.works, self.parameters, self.owners, directions, states, strict=True
        ):
            work.direction, work.lr, work.step = direction, group["lr"], state["step"]
            if not parameter.ndim:
                work.parameter, work.direction = parameter.view(1), direction.view(1)
        return self.works

    def dismiss(self) -> None:
        """Forget what was new: a direction may be a gradient, whose memory the next pass needs."""
        for work in self.works:
            del work.direction

    def advance(self, states: Sequence[dict[str, Any]]) -> None:
        """Count a step of every parameter."""
        steps = [state["step"] for state in states]
        if all(step.is_cpu for step in steps):
            torch._foreach_add_(steps, _ONE, alpha=1.0)
        else:
            torch._foreach_add_(steps, 1)


_ONE = torch.ones(())  # a number would be made a tensor once for each
