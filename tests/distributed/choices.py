"""Directions full of ties and extremes, and what regions answer to them in pieces and whole."""

import contextlib
import unittest.mock

import torch
import torch.distributed as dist
from torch import Tensor

import condgrad as cg
from condgrad.regions import _tally
from condgrad.regions._base import working
from condgrad.regions._lead import Task, lead
from condgrad.regions._measure import decided
from condgrad.regions._sharded import vertex
from condgrad.regions._shards import shard_of
from condgrad.regions._ties import FIRST, Draw
from distributed.layouts import placed, run
from inputs import generator, normal

SHAPES = ((37,), (3, 11), (1,), (5, 4, 3), (2048,), (40, 31))
REGIONS = (
    cg.KSparsePolytope(0.3, 0.1),
    cg.KSparsePolytope((1, 1e-9), 0.1),
    cg.KSparsePolytope(1.0, 0.1),
    cg.KSparsePolytope((3, 0.01), 2.0),
    cg.KNormBall(0.4, 0.1),
    cg.L1Ball(0.3),
    cg.UnitSimplex(0.3),
    cg.ProbabilitySimplex(0.1),
    cg.LinfBall(0.1),
    cg.Box(-0.1, 0.3),
    cg.L2Ball(0.7),
    cg.LpBall(3.0, 0.2),
    cg.Permutahedron(0.1),
)


def directions(shape, dtype):
    """Every kind of trouble, by name."""
    x = normal(shape, 5, dtype=dtype)
    few = torch.zeros(shape, dtype=dtype)
    few.view(-1)[:: 1 + few.numel() // 4] = -1.5
    powers = torch.randint(-30, 30, shape, generator=generator(7)).to(dtype)
    most = torch.finfo(dtype).max
    return {
        "normal": x,
        "zero": torch.zeros(shape, dtype=dtype),
        "negative zero": -torch.zeros(shape, dtype=dtype),
        "few": few,
        "equal": torch.full(shape, -0.1, dtype=dtype),
        "coarse": (x * 2).round() / 2,
        "coarse and bounded": x.sign() * (1 + (x > 0.5)),
        "positive": x.abs() + 0.1,
        "one zero": torch.where(x == x.min(), 0.0, x.abs() + 0.1),
        "wide": x.sign() * torch.ones(shape, dtype=dtype) * 2.0**powers,
        "tiny": x * torch.finfo(dtype).tiny,
        "denormal": (x * 3).round() * torch.finfo(dtype).smallest_normal / 8,
        "huge": (x / x.abs().max()) * most,
        "infinite": torch.where(x == x.max(), torch.inf, x),
        "not a number": torch.where(x == x.max(), torch.nan, x),
    }


@contextlib.contextmanager
def as_elsewhere():
    """On the host, what is done on an accelerator, where looking at a number would be to wait."""
    code = decided.__code__
    with unittest.mock.patch.object(_tally, "_on_host", return_value=False):
        decided.__code__ = _unlooked.__code__
        try:
            yield
        finally:
            decided.__code__ = code


def _unlooked(condition):
    return not isinstance(condition, Tensor) and bool(condition)  # names of the other's module


def unequal_elsewhere(layout, dtype):
    """As below; nothing is known there before the ranks have spoken, and all is asked."""
    with as_elsewhere():
        return unequal(layout, dtype)


def run_elsewhere(*args):
    """The iterates, found that way."""
    with as_elsewhere():
        return run(*args)


def unequal(layout, dtype):
    """The names of the cases in which the parts are not those of the whole vertex; and rounds."""
    cases = [
        (name, region, direction, draw)
        for shape in SHAPES
        for name, direction in directions(shape, dtype).items()
        for number, region in enumerate(REGIONS)
        for draw in ((Draw(3, number, torch.tensor(5.0)),) if number % 3 else (FIRST,))
    ]
    tasks = []
    for _, region, direction, draw in cases:
        x = placed(direction, layout)
        shard = shard_of(x)
        tasks.append(Task(shard.ranks, vertex(region, x.to_local(), shard, draw)))
    rounds, summed = 0, dist.all_reduce

    def counted(*args, **kwargs):
        nonlocal rounds
        rounds += 1
        return summed(*args, **kwargs)

    dist.all_reduce = counted
    try:
        found = lead(tasks)
    finally:
        dist.all_reduce = summed
    wrong = []
    for (name, region, direction, draw), part in zip(cases, found, strict=True):
        whole = region._oracle(working(direction), draw)
        expected = placed(whole, layout).to_local()
        if not _same(part, expected, region):
            wrong.append(f"{name} {tuple(direction.shape)} {region}: {part} is not {expected}")
    return wrong, rounds


def _same(part, expected, region):
    """Equal to the bit where entries are chosen, to rounding where they are scaled."""
    if isinstance(region, (cg.L2Ball, cg.LpBall)):
        close = 64 * torch.finfo(part.dtype).eps
        return torch.allclose(part, expected, rtol=close, atol=close, equal_nan=True)
    return torch.allclose(part, expected, rtol=0, atol=0, equal_nan=True)
