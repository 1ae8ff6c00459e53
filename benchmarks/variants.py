"""Everything a launch can depend on, and the launches that the library prepares for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

import condgrad as cg
from condgrad.kernels._plan import BIG, SMALL, Member, Tables
from condgrad.kernels._programs import Programs

REGIONS: dict[str, Any] = {
    "FREE": cg.Free(),
    "LINF": cg.LinfBall(0.1),
    "BOX": cg.Box(-1.0, 1.0),
    "L2": cg.L2Ball(1.0),
    "L1": cg.L1Ball(1.0),
    "USIMPLEX": cg.UnitSimplex(1.0),
    "PSIMPLEX": cg.ProbabilitySimplex(1.0),
    "KNORM": cg.KNormBall(0.1, 1.0),
    "LP": cg.LpBall(3.0, 1.0),
    "KSPARSE": cg.KSparsePolytope(0.1, 1.0),
}
SELECTING = ("KSPARSE", "KNORM")
RULES = ("gradient", "diameter")
WIDE, BRAIN, HALF = torch.float32, torch.bfloat16, torch.float16
FORMATS = (
    (WIDE, WIDE, WIDE),
    (BRAIN, BRAIN, BRAIN),
    (BRAIN, WIDE, BRAIN),
    (WIDE, WIDE, BRAIN),
    (HALF, HALF, HALF),
    (HALF, WIDE, HALF),
)
"""The formats of gradient, average and parameter."""


class Choice(NamedTuple):
    """One parameter, as far as launches depend on it."""

    kind: str
    rule: str | None = "gradient"
    averaged: bool = True
    random: bool = True
    flat: bool = True
    aligned: bool = True
    entries: int = 4 * SMALL
    formats: tuple[torch.dtype, ...] = FORMATS[0]
    dithered: bool = False

    def sensible(self) -> bool:
        """Whether the library would come to it, and not by another choice."""
        few = self.entries <= SMALL and self.kind not in SELECTING
        return not few and (self.formats[2] is BRAIN or not self.dithered)


def launches(choice: Choice) -> list[Any]:
    """The launches of a step for one parameter of this kind."""
    given, kept, own = choice.formats
    x = _parameter(choice, own)
    member = Member(
        parameter=x,
        format=given,
        aligned=choice.aligned,
        average=_parameter(choice, kept) if choice.averaged else None,
        step=torch.zeros(()),
        region=REGIONS[choice.kind],
        rescale=choice.rule,
        random=choice.random,
        seed=0,
        number=0,
        fresh=0.1,
        maximize=False,
        dithered=choice.dithered,
    )
    return Programs(Tables([member])).launches


def _parameter(choice: Choice, dtype: torch.dtype) -> Tensor:
    if choice.flat:
        return torch.empty(choice.entries, dtype=dtype)
    shape = (choice.entries // 128, 32, 2, 2)
    return torch.empty(shape, dtype=dtype).contiguous(memory_format=torch.channels_last)


def usual() -> Iterator[Choice]:
    """What most trainings launch: float32, averaged, ties drawn, both rules."""
    for kind, rule in itertools.product(REGIONS, RULES):
        yield Choice(kind, rule)
        if kind in SELECTING:
            yield Choice(kind, rule, entries=SMALL // 2)


def few() -> Iterator[Choice]:
    """Every kind twice, so that every setting comes up: the usual way, and another."""
    for number, kind in enumerate(REGIONS):
        yield Choice(kind)
        formats = FORMATS[1 + number % (len(FORMATS) - 1)]
        yield Choice(
            kind,
            rule=("gradient", None)[number % 2],
            averaged=number % 3 == 0,
            random=number % 4 == 0,
            flat=False,
            aligned=number % 5 == 0,
            entries=SMALL // 2 if kind in SELECTING else 4 * SMALL,
            formats=formats,
            dithered=formats[2] is BRAIN,
        )
    yield Choice("L2", entries=BIG)


def meeting(number: int) -> Iterator[Choice]:
    """For each kind as many choices as it takes for any so many settings to meet."""
    for kind in REGIONS:
        field = [choice for choice in every() if choice.kind == kind and choice.sensible()]
        met = {choice: set(itertools.combinations(enumerate(choice), number)) for choice in field}
        wanted = set(itertools.chain.from_iterable(met.values()))
        while wanted:
            best = max(field, key=lambda choice: len(wanted & met[choice]))
            wanted -= met[best]
            yield best


def every() -> Iterator[Choice]:
    """All choices there are."""
    truth, sizes = (True, False), (4 * SMALL, SMALL // 2)
    for choice in itertools.product(
        REGIONS, RULES, truth, truth, truth, truth, sizes, FORMATS, truth
    ):
        yield Choice(*choice)
    yield from (Choice(kind, rule, entries=BIG) for kind in REGIONS for rule in RULES)


def device() -> Iterator[Choice]:
    """What the checks of tests/cuda and the timings of `run.py` launch, or nearly all of it."""
    truth, sizes = (True, False), (4 * SMALL, SMALL // 2)
    for kind, rule, averaged, entries in itertools.product(REGIONS, RULES, truth, sizes):
        yield Choice(kind, rule, averaged, entries=entries)
    for kind, rule, averaged in itertools.product(("L2", "L1", "LP", "KSPARSE"), RULES, truth):
        yield Choice(kind, rule, averaged, aligned=False)
    for kind, formats in itertools.product(REGIONS, (FORMATS[2], FORMATS[5])):
        for entries in sizes:
            yield Choice(kind, flat=False, entries=entries, formats=formats)
    for kind, rule in itertools.product(("L2", "LINF", "L1", "KNORM", "KSPARSE"), RULES):
        yield Choice(kind, rule, entries=BIG)
    for kind in ("L2", "LINF", "KSPARSE"):
        yield Choice(kind, "diameter", averaged=False, entries=BIG, formats=FORMATS[1])


WHICH = {
    "device": device,
    "few": few,
    "pairs": lambda: meeting(2),
    "triples": lambda: meeting(3),
    "usual": usual,
    "all": every,
}
