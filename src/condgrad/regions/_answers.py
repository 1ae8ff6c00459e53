"""Regions asked about whole tensors and tensors in pieces alike; those in pieces all in step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ._base import Region, working
from ._lead import Task, lead, strangers
from ._measure import Norm, Number, Program, Sum
from ._sharded import nearest, vertex, violation
from ._shards import Shard, is_sharded, local, part_of, shard_of, with_part
from ._ties import FIRST, Draw

Pair = tuple[Tensor, Region]


def answered(
    tensors: Sequence[Tensor],
    what: Callable[[int], object],
    whole: Callable[[int], Any],
    program: Callable[[int, Shard], Program[Any]],
) -> list[Any]:
    """One answer a tensor: from `whole` for an ordinary one, from `program` for one in pieces.

    `what` is asked of a tensor must be the same on all ranks that hold it, which they make sure of.
    """
    divided = [place for place, tensor in enumerate(tensors) if is_sharded(tensor)]
    shards = [shard_of(tensors[place]) for place in divided]
    pairs = list(zip(divided, shards, strict=True))
    _agree([(shard, what(place)) for place, shard in pairs])
    with torch.no_grad():
        led = lead([Task(shard.ranks, program(place, shard)) for place, shard in pairs])
        answers = dict(zip(divided, led, strict=True))
        return [answers[at] if at in answers else whole(at) for at in range(len(tensors))]


def _agree(asked: Sequence[tuple[Shard, object]]) -> None:
    """Raise if the ranks that hold tensors between them are not asked the same about them."""
    circles: dict[tuple[int, ...], list[tuple[Shard, object]]] = {}
    for shard, what in asked:
        circles.setdefault(shard.ranks.numbers, []).append((shard, what))
    for pairs in circles.values():
        ranks = pairs[0][0].ranks
        described = [(shard.shape, what) for shard, what in pairs]
        others = strangers(ranks, described) if ranks.size > 1 else []
        if others:
            raise ValueError(
                f"ranks {', '.join(map(str, others))} ask about other sharded tensors or regions "
                f"than rank {ranks.numbers[0]}: constrain, size, project and measure the same "
                "parameters on all ranks, in the same order"
            )


def violations(pairs: Sequence[Pair]) -> list[Tensor]:
    """The relative excess of each tensor: a 0-dim tensor, at least 0."""
    checked = [region._checked(x) for x, region in pairs]

    def program(at: int, shard: Shard) -> Program[Tensor]:
        x = local(checked[at])
        found = yield from violation(pairs[at][1], x, shard)
        return torch.as_tensor(found, dtype=working(x).dtype, device=x.device)

    def whole(at: int) -> Tensor:
        return pairs[at][1]._violation(checked[at])

    return answered(checked, lambda at: ("violation", pairs[at][1]), whole, program)


def projections(pairs: Sequence[Pair]) -> list[Tensor]:
    """The nearest point of each tensor, or what lies here of it."""
    checked = [region._checked(x) for x, region in pairs]

    def program(at: int, shard: Shard) -> Program[Tensor]:
        x = local(checked[at])
        return (yield from nearest(pairs[at][1], working(x), shard)).to(x.dtype)

    def whole(at: int) -> Tensor:
        return pairs[at][1]._nearest(working(checked[at])).to(checked[at].dtype)

    return answered(checked, lambda at: ("projection", pairs[at][1]), whole, program)


def gaps(triples: Sequence[tuple[Tensor, Tensor, Region]]) -> list[Tensor]:
    """⟨θ − v, g⟩ for each tensor θ, gradient g and region, v the vertex for g: never below 0.

    The exact vertex: an approximate one would make the gap too small.
    """
    starts = [region._checked(x) for x, _, region in triples]
    directions = [
        working(part_of(gradient.detach(), x).reshape(local(start).shape))
        for start, (x, gradient, _) in zip(starts, triples, strict=True)
    ]

    def product(at: int, towards: Tensor) -> Tensor:
        return (working(local(starts[at])) - towards) * directions[at]

    def program(at: int, shard: Shard) -> Program[Tensor]:
        towards = yield from vertex(triples[at][2]._exact, directions[at], shard, FIRST)
        found = yield Sum(product(at, towards))
        return torch.as_tensor(found, dtype=torch.float64, device=directions[at].device)

    def whole(at: int) -> Tensor:
        towards = triples[at][2]._exact._oracle(directions[at], FIRST)
        return product(at, towards).sum(dtype=torch.float64)

    found = answered(starts, lambda at: ("gap", triples[at][2]), whole, program)
    return [gap.clamp(min=0) for gap in found]  # θ is one of the v's: below 0 is rounding


def vertex_of(region: Region, x: Tensor, draw: Draw | None) -> Tensor:
    """The vertex for a direction in pieces, in the same pieces."""
    point = region._checked(x)
    program = vertex(region, local(point), shard_of(point), draw)
    (part,) = answered(
        [point], lambda at: ("vertex", region), lambda at: None, lambda at, shard: program
    )
    return with_part(x, part.to(x.dtype).view(local(x).shape))


def projection_of(region: Region, x: Tensor) -> Tensor:
    """The nearest point to a tensor in pieces, in the same pieces."""
    (part,) = projections([(x, region)])
    return with_part(x, part.view(local(x).shape))


def norm_of(x: Tensor, dtype: torch.dtype) -> Number:
    """The Euclidean norm of a tensor in pieces."""

    def program(at: int, shard: Shard) -> Program[Number]:
        return (yield Norm(local(x).to(dtype)))

    return answered([x], lambda at: "norm", lambda at: None, program)[0]


def sums_of(tensors: Sequence[Tensor], parts: Sequence[Tensor]) -> list[Number]:
    """The sums of all entries of tensors, given the parts of them that lie here."""

    def program(at: int, shard: Shard) -> Program[Number]:
        return (yield Sum(parts[at]))

    return answered(tensors, lambda at: "sum", lambda at: parts[at].sum(), program)
