"""The registry of the tests: examples of every region, the shapes they bind, and their slow twins.

Every question of ``tests/regions`` is asked of every case here. A region joins with one line in
``EXAMPLES`` (a case or two that look ordinary, and those on its edges) and one in ``TWINS``.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

import condgrad as cg
from reference import regions as twins

VECTORS = ((7,), (), (1,), (1, 6), (3, 4), (2, 3, 2, 2))
MATRICES = ((3, 4), (1, 1), (1, 6), (6, 1), (2, 3, 2, 2))
ROWS = ((3, 4), (1, 6), (4, 1), (2, 3, 2, 2))
FILTERS = ((3, 2, 2), (2, 3, 1), (2, 1, 2, 3), (2, 1, 2, 2, 1))


@dataclasses.dataclass(frozen=True)
class Examples:
    """Regions of one kind: the first is tried on all the shapes, the others on the first alone.

    The first by each method, where a kind has several.
    """

    shapes: tuple[tuple[int, ...], ...]
    regions: tuple[Any, ...]

    @property
    def first(self):
        by_method = {getattr(region, "method", None): region for region in self.regions[::-1]}
        return tuple(by_method.values())[::-1]

    def shapes_of(self, region):
        return self.shapes if region in self.first else self.shapes[:1]


@dataclasses.dataclass(frozen=True)
class Case:
    """One region on one shape."""

    region: Any
    shape: tuple[int, ...]

    @property
    def twin(self):
        return twin(self.region, self.shape)

    def __str__(self):
        return f"{self.region}-{'x'.join(map(str, self.shape)) or 'scalar'}"


def examples(shapes, *regions):
    return Examples(shapes, regions)


SIMPLE = {
    cg.L1Ball: examples(VECTORS, cg.L1Ball(0.1), cg.L1Ball(30.0)),
    cg.L2Ball: examples(VECTORS, cg.L2Ball(0.1), cg.L2Ball(30)),
    cg.LinfBall: examples(VECTORS, cg.LinfBall(0.1), cg.LinfBall(30.0)),
    cg.LpBall: examples(
        VECTORS,
        cg.LpBall(1.5, 0.1),
        cg.LpBall(3, 0.1),
        cg.LpBall(1.05, 2.0),
        cg.LpBall(2.0, 0.1),
        cg.LpBall(20.0, 0.1),
    ),
    cg.KSparsePolytope: examples(
        VECTORS,
        cg.KSparsePolytope(0.5, 0.1),
        cg.KSparsePolytope(1, 0.1),
        cg.KSparsePolytope(3, 30.0),
        cg.KSparsePolytope(7, 0.1),
        cg.KSparsePolytope(1.0, 0.1),
        cg.KSparsePolytope(0.001, 0.1),
        cg.KSparsePolytope((2, 0.6), 0.1),
        cg.KSparsePolytope((100, 0.1), 0.1),
    ),
    cg.KNormBall: examples(
        VECTORS,
        cg.KNormBall(0.5, 0.1),
        cg.KNormBall(1, 0.1),
        cg.KNormBall(2, 0.1),
        cg.KNormBall(3, 30.0),
        cg.KNormBall(7, 0.1),
        cg.KNormBall((2, 0.6), 0.1),
        cg.KNormBall((100, 0.1), 0.1),
    ),
    cg.UnitSimplex: examples(VECTORS, cg.UnitSimplex(0.1), cg.UnitSimplex(30.0)),
    cg.ProbabilitySimplex: examples(
        VECTORS, cg.ProbabilitySimplex(0.1), cg.ProbabilitySimplex(30.0)
    ),
    cg.Permutahedron: examples(VECTORS, cg.Permutahedron(0.1), cg.Permutahedron()),
    cg.Box: examples(VECTORS, cg.Box(-0.1, 0.3), cg.Box(0.1, 0.2), cg.Box(-3, 0), cg.Box(-2, -1.9)),
    cg.SpectralBall: examples(
        MATRICES,
        cg.SpectralBall(0.1),
        cg.SpectralBall(30.0),
        cg.SpectralBall(0.1, method="polynomial"),
        cg.SpectralBall(30.0, method="polynomial"),
    ),
    cg.NuclearBall: examples(
        MATRICES,
        cg.NuclearBall(0.1),
        cg.NuclearBall(30.0),
        cg.NuclearBall(0.1, method="lanczos"),
        cg.NuclearBall(30.0, method="lanczos"),
    ),
    cg.Free: examples(VECTORS, cg.Free()),
}

FIRST = [region for kind, each in SIMPLE.items() if kind is not cg.Free for region in each.first]
OF_VECTORS = [r for r in FIRST if SIMPLE[type(r)].shapes is VECTORS]

EXAMPLES = SIMPLE | {
    cg.PerRow: examples(ROWS, *map(cg.PerRow, OF_VECTORS)),
    cg.PerFilter: examples(FILTERS, *map(cg.PerFilter, FIRST)),
}


def count(k, n):
    """The K that k means for a point of n entries."""
    pair = k if isinstance(k, tuple) else (k,)
    return min(n, max(1, *(round(f * n) if isinstance(f, float) else f for f in pair)))


TWINS: dict[type, Callable[[Any, tuple[int, ...]], twins.Region]] = {
    cg.L1Ball: lambda r, shape: twins.L1(r.radius),
    cg.L2Ball: lambda r, shape: twins.L2(r.radius),
    cg.LinfBall: lambda r, shape: twins.Linf(r.radius),
    cg.LpBall: lambda r, shape: twins.Lp(r.p, r.radius),
    cg.KSparsePolytope: lambda r, shape: twins.KSparse(count(r.k, math.prod(shape)), r.radius),
    cg.KNormBall: lambda r, shape: twins.KNorm(count(r.k, math.prod(shape)), r.radius),
    cg.UnitSimplex: lambda r, shape: twins.UnitSimplex(r.radius),
    cg.ProbabilitySimplex: lambda r, shape: twins.ProbabilitySimplex(r.radius),
    cg.Permutahedron: lambda r, shape: twins.Permutahedron(r.radius),
    cg.Box: lambda r, shape: twins.Box(r.low, r.high),
    cg.SpectralBall: lambda r, shape: BY_METHOD[r.method, "spectral"](r.radius),
    cg.NuclearBall: lambda r, shape: BY_METHOD[r.method, "nuclear"](r.radius),
    cg.Free: lambda r, shape: twins.Free(),
    cg.PerRow: lambda r, shape: twins.Blocks(twin(r.region, (math.prod(shape[1:]),))),
    cg.PerFilter: lambda r, shape: twins.Blocks(twin(r.region, shape[1:])),
}


BY_METHOD = {
    ("svd", "spectral"): twins.Spectral,
    ("polynomial", "spectral"): twins.Polynomial,
    ("svd", "nuclear"): twins.Nuclear,
    ("lanczos", "nuclear"): twins.Lanczos,
}


def twin(region, shape):
    """The slow twin of a region, for tensors of this shape."""
    return TWINS[type(region)](region, shape)


def exactly(region):
    """The same set, asked by a method that leaves nothing to be desired."""
    if hasattr(region, "region"):
        return dataclasses.replace(region, region=exactly(region.region))
    return dataclasses.replace(region, method="svd") if hasattr(region, "method") else region


def scaled(region, factor):
    """The region, blown up about the origin."""
    sizes = {"radius", "low", "high", "region"} & {f.name for f in dataclasses.fields(region)}
    old = {name: getattr(region, name) for name in sizes}
    new = {k: scaled(v, factor) if k == "region" else v * factor for k, v in old.items()}
    return dataclasses.replace(region, **new)


CASES = [
    Case(region, shape)
    for kind in EXAMPLES.values()
    for region in kind.regions
    for shape in kind.shapes_of(region)
]
BOUNDED = [case for case in CASES if not isinstance(case.region, cg.Free)]
SEVERAL = [case for case in BOUNDED if case.twin.diameter(case.shape) > 0]
ONE_EACH = [Case(r, kind.shapes[0]) for kind in EXAMPLES.values() for r in kind.regions]
BOUNDED_ONE_EACH = [case for case in ONE_EACH if not isinstance(case.region, cg.Free)]


def asked_of(cases):
    """Ask the question of each of these cases."""
    return pytest.mark.parametrize("case", cases, ids=str)


def is_ball(twin):
    """Whether the region is the unit ball of a norm, or blocks of such."""
    return is_ball(twin.region) if isinstance(twin, twins.Blocks) else isinstance(twin, twins.Ball)


def may_be_drawn(twin, v, tol=1e-12):
    """Whether v is what a tie may draw: a vertex of a polytope, else any point of the boundary.

    Blocks each draw their own.
    """
    if isinstance(twin, twins.Blocks):
        return all(may_be_drawn(twin.region, block, tol) for block in v)
    if isinstance(twin, (twins.Spectral, twins.Nuclear)) and not isinstance(twin, twins.Polynomial):
        return abs(twin.gauge(v) - 1) <= tol
    return twin.is_extreme(v, tol)


def is_flat(twin):
    """Whether the region has no inside: it lies in a hyperplane."""
    if isinstance(twin, twins.Blocks):
        return is_flat(twin.region)
    return isinstance(twin, (twins.ProbabilitySimplex, twins.Permutahedron))


def settings_beside_size(region):
    """The keywords that ``from_diameter`` needs beside the diameter."""
    if isinstance(region, (cg.PerRow, cg.PerFilter)):
        return {"region": type(region.region), **settings_beside_size(region.region)}
    names = {"p", "k", "method"} & {f.name for f in dataclasses.fields(region)}
    return {name: getattr(region, name) for name in names}
