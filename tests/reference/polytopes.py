"""The polytopes among the regions, twice more: all their vertices, and their inequalities.

``vertices(region, n)`` has one vertex a row. ``inequalities(region, n)`` is a linear program's
feasible set in the terms of ``scipy.optimize.linprog``; its first n variables are the point, and
those after them are auxiliary. Both are for small n.
"""

import itertools

import numpy as np

from .regions import (
    L1,
    Box,
    KNorm,
    KSparse,
    Linf,
    Permutahedron,
    ProbabilitySimplex,
    UnitSimplex,
)


def is_polytope(region):
    return type(region) in VERTICES


def vertices(region, n):
    return np.array(VERTICES[type(region)](region, n), dtype=np.float64)


def inequalities(region, n):
    return INEQUALITIES[type(region)](region, n)


def _signs(n):
    return itertools.product([-1.0, 1.0], repeat=n)


def _k_sparse_vertices(region, n):
    for places in itertools.combinations(range(n), region.K):
        for signs in _signs(region.K):
            v = np.zeros(n)
            v[list(places)] = np.multiply(signs, region.tau)
            yield v


def _l1_vertices(region, n):
    return np.concatenate([np.eye(n), -np.eye(n)]) * region.tau


def _linf_vertices(region, n):
    return np.array(list(_signs(n))) * region.tau


def _k_norm_vertices(region, n):
    """Both families, those that are no vertices of the hull (K = 1, K = n) included."""
    sparse, dense = region.parts
    return np.concatenate([_l1_vertices(sparse, n), _linf_vertices(dense, n)])


VERTICES = {
    L1: _l1_vertices,
    Linf: _linf_vertices,
    KSparse: lambda region, n: list(_k_sparse_vertices(region, n)),
    KNorm: _k_norm_vertices,
    UnitSimplex: lambda region, n: np.concatenate([np.eye(n), np.zeros((1, n))]) * region.tau,
    ProbabilitySimplex: lambda region, n: np.eye(n) * region.tau,
    Permutahedron: lambda region, n: list(itertools.permutations(region.ladder(n))),
    Box: lambda region, n: list(itertools.product([region.low, region.high], repeat=n)),
}


def _norms(n, largest, total):
    """{abs(v_i) <= t_i <= largest, sum of t <= total}, in the variables (v, t)."""
    E = np.eye(n)
    A = np.block([[E, -E], [-E, -E], [np.zeros(n), np.ones(n)]])
    b = np.append(np.zeros(2 * n), total)
    return {"A_ub": A, "b_ub": b, "bounds": [(None, None)] * n + [(0, largest)] * n}


def _k_norm(region, n):
    """{abs(v_i) <= t_i <= s + r_i, r >= 0, K s + sum of r <= tau}, in (v, t, r, s).

    The least K s + sum of r is the sum of the K largest t: linear programming duality.
    """
    E, Z, o, z = np.eye(n), np.zeros((n, n)), np.ones((n, 1)), np.zeros((n, 1))
    last = np.concatenate([np.zeros(2 * n), np.ones(n), [region.K]])
    A = np.vstack([np.block([[E, -E, Z, z], [-E, -E, Z, z], [Z, E, -E, -o]]), last])
    b = np.append(np.zeros(3 * n), region.tau)
    bounds = [(None, None)] * (2 * n) + [(0, None)] * n + [(None, None)]
    return {"A_ub": A, "b_ub": b, "bounds": bounds}


def _simplex(region, n, kind):
    return {f"A_{kind}": np.ones((1, n)), f"b_{kind}": [region.tau], "bounds": [(0, None)] * n}


def _permutahedron(region, n):
    """v = P ladder with P doubly stochastic (Birkhoff), in the variables (v, P row by row)."""
    E, ladder = np.eye(n), region.ladder(n)
    image = np.hstack([E, -np.kron(E, ladder)])
    rows = np.hstack([np.zeros((n, n)), np.kron(E, np.ones(n))])
    columns = np.hstack([np.zeros((n, n)), np.kron(np.ones(n), E)])
    A, b = np.vstack([image, rows, columns]), np.append(np.zeros(n), np.ones(2 * n))
    return {"A_eq": A, "b_eq": b, "bounds": [(None, None)] * n + [(0, None)] * n**2}


INEQUALITIES = {
    L1: lambda region, n: _norms(n, None, region.tau),
    Linf: lambda region, n: {"bounds": [(-region.tau, region.tau)] * n},
    KSparse: lambda region, n: _norms(n, region.tau, region.K * region.tau),
    KNorm: _k_norm,
    UnitSimplex: lambda region, n: _simplex(region, n, "ub"),
    ProbabilitySimplex: lambda region, n: _simplex(region, n, "eq"),
    Permutahedron: _permutahedron,
    Box: lambda region, n: {"bounds": [(region.low, region.high)] * n},
}
