"""The sets that projections are asked about, as their definitions have them.

Support functions, violations, vertices and facets are written from each set's formula, so that
they need nothing of the code under test.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from condgrad.regions import _projections


@dataclass(frozen=True)
class Member:
    """A set of size r (and with a k): its projection, and what its definition says."""

    name: str
    project: Callable  # (points, k, r) -> nearest points
    support: Callable  # (d, k, r) -> max of <d, y> over the set, for each row
    excess: Callable  # (v, k, r) -> how far outside each row lies, relative to r
    vertices: Callable | None = None  # (n, k, r) -> (rows, n)
    facets: Callable | None = None  # (n, k, r) -> G, h: the set is {G v >= h}

    def __repr__(self):
        return self.name


def largest(x, k):
    return x.abs().topk(min(k, x.shape[1]), dim=1).values.sum(1)


def norm(x, p):
    peak = x.abs().amax(1, keepdim=True).clamp(min=1e-300)
    return ((x / peak).abs().pow(p).sum(1)).pow(1 / p) * peak[:, 0]


def lp(p):
    return Member(
        f"L{p}",
        lambda x, k, r: _projections.onto_lp_ball(x, p, r),
        lambda d, k, r: r * norm(d, p / (p - 1)),
        lambda v, k, r: norm(v, p) / r - 1,
    )


def sign_vectors(n):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n)))


def sparse_signs(n, k):
    """All vectors with k entries +-1 and zeros elsewhere."""
    rows = []
    for chosen in itertools.combinations(range(n), min(k, n)):
        for signs in sign_vectors(len(chosen)):
            rows.append(np.zeros(n))
            rows[-1][list(chosen)] = signs
    return np.array(rows)


def ladder(n):
    return torch.arange(1, n + 1, dtype=torch.float64)


def head_excess(v, r):
    """How much the sums of the j largest entries outgrow those of r(n, n-1, ...), relative."""
    rungs = r * ladder(v.shape[1]).flip(0)
    heads = (v.sort(dim=1, descending=True).values - rungs).cumsum(1) / rungs.cumsum(0)
    return torch.maximum(heads.amax(1), heads[:, -1].abs())


def permutahedron_facets(n, k, r):
    G, h = [], []
    for size in range(1, n + 1):
        for chosen in itertools.combinations(range(n), size):
            G.append(np.isin(np.arange(n), chosen).astype(float))
            h.append(r * size * (size + 1) / 2)
    return np.array([*G, -np.ones(n)]), np.array([*h, -r * n * (n + 1) / 2])


def l1_vertices(n, k, r):
    return r * np.concatenate([np.eye(n), -np.eye(n)])


def k_sparse_facets(n, k, r):
    cross, cube = sparse_signs(n, n), np.concatenate([np.eye(n), -np.eye(n)])
    return -np.concatenate([cross, cube]), -r * np.r_[np.full(len(cross), k), np.ones(len(cube))]


def k_norm_facets(n, k, r):
    G = -sparse_signs(n, k)
    return G, np.full(len(G), -r)


POLYTOPES = [
    Member(
        "simplex",
        lambda x, k, r: _projections.onto_simplex(x, r),
        lambda d, k, r: r * d.amax(1),
        lambda v, k, r: torch.maximum((v.sum(1) / r - 1).abs(), -v.amin(1) / r),
        lambda n, k, r: r * np.eye(n),
        lambda n, k, r: (
            np.r_[np.eye(n), np.ones((1, n)), -np.ones((1, n))],
            np.r_[[0.0] * n, r, -r],
        ),
    ),
    Member(
        "unit simplex",
        lambda x, k, r: _projections.onto_unit_simplex(x, r),
        lambda d, k, r: r * d.amax(1).clamp(min=0),
        lambda v, k, r: torch.maximum(v.sum(1) / r - 1, -v.amin(1) / r),
        lambda n, k, r: r * np.r_[np.zeros((1, n)), np.eye(n)],
        lambda n, k, r: (np.r_[np.eye(n), -np.ones((1, n))], np.r_[[0.0] * n, -r]),
    ),
    Member(
        "L1",
        lambda x, k, r: _projections.onto_l1_ball(x, r),
        lambda d, k, r: r * d.abs().amax(1),
        lambda v, k, r: v.abs().sum(1) / r - 1,
        l1_vertices,
        lambda n, k, r: (sign_vectors(n), np.full(2**n, -r)),
    ),
    Member(
        "K-sparse",
        _projections.onto_k_sparse,
        lambda d, k, r: r * largest(d, k),
        lambda v, k, r: torch.maximum(v.abs().amax(1), v.abs().sum(1) / k) / r - 1,
        lambda n, k, r: r * sparse_signs(n, k),
        k_sparse_facets,
    ),
    Member(
        "K-norm",
        _projections.onto_k_norm,
        lambda d, k, r: r * torch.maximum(d.abs().amax(1), d.abs().sum(1) / min(k, d.shape[1])),
        lambda v, k, r: largest(v, k) / r - 1,
        lambda n, k, r: np.r_[l1_vertices(n, k, r), sign_vectors(n) * (r / min(k, n))],
        k_norm_facets,
    ),
    Member(
        "permutahedron",
        lambda x, k, r: _projections.onto_permutahedron(x, r),
        lambda d, k, r: r * (d.sort(dim=1).values * ladder(d.shape[1])).sum(1),
        lambda v, k, r: head_excess(v, r),
        lambda n, k, r: r * np.array(list(itertools.permutations(range(1, n + 1))), dtype=float),
        permutahedron_facets,
    ),
]
L2 = Member(
    "L2",
    lambda x, k, r: _projections.onto_l2_ball(x, r),
    lambda d, k, r: r * norm(d, 2),
    lambda v, k, r: norm(v, 2) / r - 1,
)
POWERS = (1.01, 1.5, 3.0, 5, 100.0)
LPS = [lp(p) for p in POWERS]
VECTORS = [*POLYTOPES, L2, *LPS]
MATRICES = [
    Member(
        "spectral",
        lambda x, k, r: _projections.clip_singular_values(x, r),
        lambda d, k, r: r * torch.linalg.matrix_norm(d, "nuc"),
        lambda v, k, r: torch.linalg.matrix_norm(v, 2) / r - 1,
    ),
    Member(
        "nuclear",
        lambda x, k, r: _projections.project_singular_values_l1(x, r),
        lambda d, k, r: r * torch.linalg.matrix_norm(d, 2),
        lambda v, k, r: torch.linalg.matrix_norm(v, "nuc") / r - 1,
    ),
]


def size(t):
    return t.flatten(1).norm(dim=1)


def inner(a, b):
    return (a * b).flatten(1).sum(1)
