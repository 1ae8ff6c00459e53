"""What all optimizers over regions share: groups, checks, state dicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from .._members import check_whole, members, outside
from ..regions import Region
from ..regions._base import check_dense, is_printed
from ..regions._measure import Program
from ..regions._shards import Shard, is_sharded, local, part_of
from ._move import move
from ._move_host import move_on_host
from ._move_many import move_many
from ._move_sharded import (
    Moved,
    is_idle,
    move_sharded,
    moved,
    parts_of_states,
)
from ._roster import Roster, Works

Closure = Callable[[], Any]
F = TypeVar("F", bound=Callable[..., Any])


def untraced(function: F) -> F:
    """The function, left as it is inside a compiled graph."""
    return torch.compiler.disable(function)  # pyright: ignore[reportReturnType]


def at_least_point(x: Tensor) -> Tensor:
    """The tensor, or a one-entry vector that shares its memory if it has no dimension."""
    return x if x.ndim else x.view(1)


class ConstrainedOptimizer(Optimizer):
    """An optimizer whose parameter groups carry a region each.

    The region stands in its group under "region", as lr does. In a state dict it is its printed
    form, and only a checkpoint over the same regions is accepted.
    """

    _wide: frozenset[str] = frozenset()
    """The state tensors that are kept in at least float32, whatever the parameter's format."""

    def __init__(self, params: Iterable[Any], region: Region | None, **defaults: Any) -> None:
        if not isinstance(params, Tensor):  # which torch refuses; the caller's groups stay
            params = getattr(params, "renewed", lambda: params)()
            params = [dict(each) if isinstance(each, dict) else each for each in params]
        super().__init__(params, {"region": region, **defaults})

    # ---- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with a region of their own; torch's checks and ours."""
        group = {**self.defaults, **param_group}
        region = group["region"]
        if not isinstance(region, Region):
            raise TypeError(
                f"`region` of a parameter group must be a region such as L2Ball(1.0), got "
                f"{region!r}; pass `region`, or the groups that cg.constrain makes"
            )
        self._check_group(group)
        super().add_param_group(param_group)
        try:
            self._check_parameters(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    def _check_group(self, group: dict[str, Any]) -> None:
        """Raise if a hyperparameter of the group is wrong."""
        lr = group["lr"]
        single = isinstance(lr, Tensor) and lr.numel() == 1
        check_range("lr", lr.item() if single else lr, 0, math.inf)

    def _check_parameters(self, group: dict[str, Any]) -> None:
        for name, parameter, region in members([group], len(self.param_groups) - 1):
            check_whole(name, parameter)
            if not parameter.is_floating_point():
                raise TypeError(
                    f"parameter `{name}` is {parameter.dtype}: only real floating-point "
                    "parameters can be constrained; see torch.view_as_real for complex ones"
                )
            try:
                region._check_shape(parameter.shape or (1,))
            except ValueError as error:
                raise ValueError(f"parameter `{name}`: {error}") from None
            excess = outside(parameter, region)
            if excess:
                raise ValueError(
                    f"parameter `{name}` starts outside {region} (by {excess:.3g} of its size): "
                    "make groups with cg.constrain, which moves starts inside, or call "
                    "cg.make_feasible([{'params': ..., 'region': ...}]) first"
                )

    # ---- steps

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One step; returns what the closure returns, which may reevaluate the model."""
        loss = self._called(closure)
        self._advance()
        return loss

    def _advance(self) -> None:
        """Move every parameter that has a gradient."""
        raise NotImplementedError

    def _gradient(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        """The parameter's gradient, as far as it lies here; its negative under `maximize`."""
        gradient = parameter.grad
        assert gradient is not None
        check_dense(gradient, self)
        gradient = part_of(gradient, parameter)
        return -gradient if group["maximize"] else gradient

    def _called(self, closure: Closure | None) -> Any:
        if closure is None:
            return None
        with torch.enable_grad():
            return closure()

    # ---- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The state as torch's optimizers give it, every region in its printed form."""
        state = super().state_dict()
        for group in state["param_groups"]:
            group["region"] = repr(group["region"])
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state saved over the same regions; one over other regions is refused."""
        groups = [dict(group) for group in state_dict["param_groups"]]
        for number, (mine, saved) in enumerate(zip(self.param_groups, groups, strict=False)):
            region, found = mine["region"], saved.get("region")
            if found != region and not is_printed(region, found):
                raise ValueError(
                    f"`state_dict` was saved over {found} in group {number}, which here is in "
                    f"{region!r}: load it into an optimizer over the same regions; sizes by width "
                    "are those of the start that `constrain` sees, or of its `std`"
                )
            saved["region"] = region
            for name, value in self.defaults.items():  # those that an older version did not know
                saved.setdefault(name, mine.get(name, value))
        super().load_state_dict({**state_dict, "param_groups": groups})
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            for parameter, place in zip(mine["params"], theirs["params"], strict=True):
                self._widen(parameter, mine, state_dict["state"].get(place, {}))

    def _widen(self, parameter: Tensor, group: dict[str, Any], saved: dict[str, Any]) -> None:
        """Take wide state as it was saved: torch casts all that it loads to the parameter's."""
        wide = torch.promote_types(parameter.dtype, torch.float32)
        for name in self._kept_wide(group) & saved.keys():
            self.state[parameter][name] = saved[name].to(parameter.device, wide)

    def _kept_wide(self, group: dict[str, Any]) -> frozenset[str]:
        """The state tensors of a group that are kept in at least float32."""
        return self._wide


class FrankWolfe(ConstrainedOptimizer):
    """An optimizer that moves towards vertices: the step rules, ties and paths they all share."""

    _settings: tuple[str, ...] | None = None
    """The entries of a group that its directions depend on; None: groups are not to be mixed."""

    _roster: Roster | None = None

    def _check_group(self, group: dict[str, Any]) -> None:
        super()._check_group(group)
        if "rescale" in group:
            check_choice("rescale", group["rescale"], (None, "diameter", "gradient"))
        check_choice("ties", group["ties"], ("random", "first"))
        check_range("seed", group["seed"], 0, 2**63)
        if not isinstance(group["seed"], Integral):
            raise TypeError(f"`seed` must be an int, got {group['seed']!r}")
        if "foreach" in group:
            check_choice("foreach", group["foreach"], (True, False, None))

    def _directions(
        self, group: dict[str, Any], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """What the oracle is asked for each parameter: the algorithm's estimate of the gradient."""
        raise NotImplementedError

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """A parameter's state before its first step: the same keys for all, on every machine."""
        return {"step": torch.zeros((), dtype=torch.float32)}

    @untraced
    def _advance(self) -> None:
        """Move every parameter that has a gradient towards the vertex for its direction.

        Inside a compiled training step this part runs as it is: what it launches is few and large
        already, and neither a schedule nor a counter can then cause a recompilation.
        """
        roster = self._called_up()
        if not roster.parameters and not roster.divided:
            return
        grads = [self._gradient(*pair) for pair in roster.pairs]
        states = [self.state[parameter] for parameter in roster.parameters]
        if not all(states):
            self._begin(roster, states)
        if roster.divided:
            states = parts_of_states(roster.parameters, states)
        if states:
            roster.advance(states)
        directions = self._estimate(roster, grads, states)
        works = self._works(roster, directions, states)
        if roster.divided:
            works = self._move_divided(roster, works)
        self._move(works, roster.owners[-1].get("foreach") if roster.owners else None)
        roster.dismiss()

    def _called_up(self) -> Roster:
        """Who moves in this step."""
        roster = self._roster
        if roster is None or not roster.holds(self.param_groups):
            roster = self._roster = Roster(
                self.param_groups, self._watched(), self._settings, self._moves
            )
        return roster

    def _moves(self, parameter: Tensor) -> bool:
        """Whether the parameter moves in this step."""
        return parameter.grad is not None

    def _watched(self) -> Callable[[dict[str, Any]], Any]:
        """The settings of a group that decide how its parameters move."""
        names = {"region", "ties", "seed", "rescale", *(self._settings or ())}
        return itemgetter(*sorted(names & self.defaults.keys()))

    def _begin(self, roster: Roster, states: list[dict[str, Any]]) -> None:
        """Give those who move for the first time their state."""
        for parameter, group, state in zip(roster.parameters, roster.owners, states, strict=True):
            if not state:
                state.update(self._new_state(parameter, group))

    def _estimate(
        self, roster: Roster, grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[Tensor]:
        """Settle the directions, for groups of the same settings in one call."""
        if len(roster.choirs) == 1:
            return self._directions(roster.owners[0], grads, states)
        directions: list[Any] = [None] * len(grads)
        for places in roster.choirs:
            theirs = [grads[place] for place in places], [states[place] for place in places]
            settled = self._directions(roster.owners[places[0]], *theirs)
            for place, direction in zip(places, settled, strict=True):
                directions[place] = direction
        return directions

    def _works(
        self, roster: Roster, directions: list[Tensor], states: list[dict[str, Any]]
    ) -> Iterable[Any]:
        """The moves that the parameters are to make."""
        return roster.brief(directions, states)

    def _move_divided(self, roster: Roster, works: Iterable[Any]) -> Works:
        """Move the parameters that lie in pieces on several ranks; returns the other moves.

        Those without a gradient take part in the messages, which must be alike on all ranks.
        """
        works = list(works)
        numbered = list(zip(roster.numbers, works, strict=True))
        divided = {number: work for number, work in numbered if is_sharded(work.parameter)}
        try:
            move_sharded(divided, self._absent(), self._program, self)
        except ValueError:  # the ranks disagree: nothing has moved, and draws must not come apart
            for work in works:
                work.step.sub_(1)
            raise
        return Works(work for number, work in numbered if number not in divided)

    def _absent(self) -> dict[int, Any]:
        """The moves, to nowhere, of parameters that lie in pieces and have no gradient."""
        if not any(is_idle(p) for group in self.param_groups for p in group["params"]):
            return {}
        idle = Roster(self.param_groups, self._watched(), self._settings, is_idle)
        states = [self.state.get(p) or self._new_state(p, group) for p, group in idle.pairs]
        nowhere = [torch.zeros_like(local(parameter)) for parameter in idle.parameters]
        works = self._works(idle, nowhere, parts_of_states(idle.parameters, states))
        return dict(zip(idle.numbers, works, strict=True))

    def _program(self, work: Any, shard: Shard) -> Program[Moved]:
        """Where a parameter that lies in pieces goes."""
        return moved(work, shard)

    def _move(self, works: Any, foreach: bool | None) -> None:
        """Carry out the shares of a step, together where that is faster."""
        if foreach is False:
            for work in works:
                move(work)
        elif all(work.parameter.is_cpu for work in works):
            move_on_host(works)
        else:
            move_many(works)


def check_range(name: str, value: Any, low: float, high: float) -> None:
    """Raise unless it is a number with low <= value < high."""
    if not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number in [{low}, {high}), got {value!r}")
    if not low <= value < high:  # pyright: ignore[reportOperatorIssue]
        raise ValueError(f"`{name}` must lie in [{low}, {high}), got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}")
