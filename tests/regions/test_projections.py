"""Projections, cross-examined: every question is asked of every set.

A nearest point P of x is proved by its variational inequality ⟨x − P, y − P⟩ ≤ 0 for all y of the
set, whose worst y is the set's support function at x − P. Small cases are also solved by other
means: quadratic programs over all facets, nested root finding, eigenvalues.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, isotonic_regression, nnls

from condgrad.regions import _isotonic, _projections
from inputs import normal
from projected_sets import (
    L2,
    MATRICES,
    POLYTOPES,
    POWERS,
    VECTORS,
    inner,
    ladder,
    lp,
    norm,
    size,
)

EPS = torch.finfo(torch.float64).eps

of_polytopes = pytest.mark.parametrize("member", POLYTOPES, ids=repr)
of_vectors = pytest.mark.parametrize("member", VECTORS, ids=repr)
of_matrices = pytest.mark.parametrize("member", MATRICES, ids=repr)
of_all = pytest.mark.parametrize("member", VECTORS + MATRICES, ids=repr)


def batch(member, rows, entries, seed, scale=1.0):
    """Gaussian points that suit the member: vectors, or matrices of about as many entries."""
    side = math.isqrt(entries)
    shape = (side, entries // side) if member in MATRICES else (entries,)
    return normal((rows, *shape), seed, scale)


# ---- inputs

RADII = st.sampled_from([0.1, 1.0, 2.5])
ENTRIES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 2.0, -2.0]),  # ties and zeros
    st.floats(-100, 100, allow_subnormal=False),
)


def rows_of(low, high):
    return st.lists(ENTRIES, min_size=low, max_size=high).map(
        lambda row: torch.tensor([row], dtype=torch.float64)
    )


# ---- the questions


def certify(member, x, k, r, tol=1e-13):
    """Assert that the member's projection of x lies in the set, and that no point is nearer."""
    v = member.project(x, k, r)
    assert v.shape == x.shape
    assert v.dtype == x.dtype
    assert member.excess(v, k, r).max() <= tol
    gap = member.support(x - v, k, r) - inner(x - v, v)
    # x - v and the support at it carry the rounding of x, by the size of the set.
    assert (gap <= tol * (size(x) + size(v)) * (size(v) + r)).all()
    return v


@of_vectors
@settings(max_examples=40)
@given(x=rows_of(1, 7), k=st.integers(1, 7), r=RADII)
def test_no_point_of_the_set_is_nearer(member, x, k, r):
    certify(member, x, min(k, x.shape[1]), r)


@of_all
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 30.0, 1e6])
def test_no_point_of_the_set_is_nearer_in_many_dimensions(member, scale):
    for k in (1, 7, 60, 200):
        x = batch(member, 8, 200, seed=k, scale=scale)
        certify(member, x, k, 0.1)
        certify(member, x.sign() * (5 * x).exp().clamp(max=1e6), k, 3.0)
        certify(member, (3 * x / scale).round() * scale, k, 1.0)  # many ties and zeros


@of_polytopes
@settings(max_examples=40)
@given(x=rows_of(1, 4), k=st.integers(1, 4), r=RADII)
def test_the_angle_to_every_vertex_is_obtuse(member, x, k, r):
    k = min(k, x.shape[1])
    v = member.project(x, k, r)
    vertices = torch.from_numpy(member.vertices(x.shape[1], k, r))
    tol = 1e-13 * (x.norm() + v.norm()) * (v.norm() + r)
    assert ((vertices - v) @ (x - v).T <= tol).all()


def by_quadratic_program(x, G, h):
    """The point of {G v >= h} nearest to x: least distance programming (Lawson and Hanson)."""
    E = np.vstack([G.T, h - G @ x])
    target = np.zeros(len(E))
    target[-1] = 1
    multipliers, _ = nnls(E, target, maxiter=1000)
    residual = E @ multipliers - target
    return x - residual[:-1] / residual[-1]


@of_polytopes
@settings(max_examples=40)
@given(x=rows_of(1, 4), k=st.integers(1, 4), r=RADII)
def test_a_quadratic_program_over_the_facets_agrees(member, x, k, r):
    x = x.clamp(-10, 10)
    k = min(k, x.shape[1])
    expected = by_quadratic_program(x[0].numpy(), *member.facets(x.shape[1], k, r))
    found = member.project(x, k, r)[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * r)


def by_nested_roots(x, p, r):
    """The nearest point of the Lp ball: v + mu v^(p-1) = |x| solved inside of an equation in mu."""
    if np.sum(np.abs(x) ** p) <= r**p:
        return x
    logs = np.log(np.abs(x[x != 0]))

    def entry(log_a, log_mu):
        def off(log_v):
            return np.logaddexp(log_v, log_mu + (p - 1) * log_v) - log_a

        low = min(log_a, (log_a - log_mu) / (p - 1)) - 1 - 1 / (p - 1)
        return brentq(off, low, log_a, xtol=1e-15, rtol=4 * EPS)

    def log_point(log_mu):
        return np.array([entry(log_a, log_mu) for log_a in logs])

    def off(log_mu):
        return np.logaddexp.reduce(p * (log_point(log_mu) - np.log(r)))

    if off(-300) <= 0:  # outside by rounding alone
        return x
    v = np.zeros_like(x)
    v[x != 0] = np.exp(log_point(brentq(off, -300, 700, xtol=1e-14, rtol=4 * EPS)))
    return np.sign(x) * v


@pytest.mark.parametrize("p", [*POWERS, 2])
@settings(max_examples=12)
@given(x=rows_of(1, 3), r=RADII)
def test_nested_root_finding_agrees(p, x, r):
    found = _projections.onto_lp_ball(x, p, r)[0].numpy()
    expected = by_nested_roots(x[0].numpy(), p, r)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * r)


@of_matrices
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (3, 3), (3, 5)])
def test_eigenvalues_of_the_dilation_agree(member, shape):
    """The eigenvalues of [[0, M], [Mᵀ, 0]] are the singular values with both signs."""
    for seed, r in itertools.product(range(5), (0.1, 1.0)):
        m = normal((1, *shape), seed)
        zeros = [np.zeros((side, side)) for side in shape]
        dilation = np.block([[zeros[0], m[0].numpy()], [m[0].numpy().T, zeros[1]]])
        values, vectors = np.linalg.eigh(dilation)
        if member.name == "spectral":
            values = np.clip(values, -r, r)
        else:  # each value appears twice
            n = min(shape)
            top = by_quadratic_program(
                values[-n:], np.r_[np.eye(n), -np.ones((1, n))], np.r_[[0.0] * n, -r]
            )
            values = np.r_[-top[::-1], np.zeros(len(values) - 2 * n), top]
        expected = (vectors * values @ vectors.T)[: shape[0], shape[0] :]
        np.testing.assert_allclose(member.project(m, 1, r)[0].numpy(), expected, atol=1e-8 * r)


@of_all
def test_a_nearest_point_is_its_own_nearest_point(member):
    for k, r in itertools.product((1, 3, 30), (0.1, 2.5)):
        v = member.project(batch(member, 30, 30, seed=k, scale=5.0), k, r)
        torch.testing.assert_close(member.project(v, k, r), v, rtol=1e-14, atol=1e-14 * r)


@of_polytopes
def test_projections_of_ties_are_their_own_nearest_points(member):
    """They lie on many facets at once, where rounding decides which ones bind."""
    for seed, r in itertools.product(range(4), (0.1, 2.5)):
        v = member.project(1e9 * normal((50, 50), seed).round(), 7, r)
        torch.testing.assert_close(member.project(v, 7, r), v, rtol=1e-14, atol=1e-14 * r)


@of_all
@pytest.mark.parametrize("stretch", [1e-10, 0.5, 1e3])
def test_all_points_along_a_normal_share_a_nearest_point(member, stretch):
    for k in (1, 3, 10):
        x = batch(member, 20, 10, seed=k, scale=3.0)
        v = member.project(x, k, 0.1)
        found = member.project(v + stretch * (x - v), k, 0.1)
        torch.testing.assert_close(found, v, rtol=0, atol=1e-13 * max(1, stretch))


@pytest.mark.parametrize(
    "member", [m for m in POLYTOPES if m.name == "simplex" or "perm" in m.name]
)
def test_a_constant_added_moves_nothing_where_the_sum_is_given(member):
    x = (10 * normal((50, 40), 11)).round()  # so coarse that the addition is exact
    for r in (0.1, 0.3, 1.0):
        expected = member.project(x, 1, r)
        torch.testing.assert_close(
            member.project(x + 2.0**50, 1, r), expected, rtol=1e-13, atol=1e-13
        )


@of_all
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_inside_come_back_bit_for_bit(member, dtype):
    for k in (1, 3, 10):
        v = member.project(batch(member, 40, 10, seed=k, scale=3.0), k, 0.1)
        centre = v.mean(0, keepdim=True)
        x = (0.9 * centre + 0.1 * v).to(dtype)  # inside, by convexity
        if member.excess(torch.zeros_like(x[:1]), k, 0.1) <= 0:
            x.view(len(x), -1)[:, ::3] *= -0.0
        found = member.project(x, k, 0.1)
        assert torch.equal(found, x)
        assert torch.equal(found.signbit(), x.signbit())


@of_polytopes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vertices_rounded_to_their_dtype_come_back_bit_for_bit(member, dtype):
    for n, k in ((1, 1), (2, 1), (4, 1), (4, 3), (4, 4)):
        vertices = torch.from_numpy(member.vertices(n, k, 0.1)).to(dtype)
        assert torch.equal(member.project(vertices, k, 0.1), vertices)


@of_all
def test_rows_are_independent_and_broken_ones_come_back_as_nan(member):
    x = batch(member, 6, 10, seed=0, scale=2.0)
    alone = torch.cat([member.project(row[None], 3, 1.0) for row in x])
    torch.testing.assert_close(member.project(x, 3, 1.0), alone, rtol=1e-14, atol=1e-15)
    for row, value in enumerate((torch.nan, torch.inf, -torch.inf)):
        x[row].view(-1)[row] = value
    found = member.project(x, 3, 1.0)
    assert found[:3].isnan().all()
    torch.testing.assert_close(found[3:], alone[3:], rtol=1e-14, atol=1e-15)


@of_all
def test_zeros_ties_and_empty_batches(member):
    for x in (torch.zeros_like(batch(member, 2, 6, 0)), torch.ones_like(batch(member, 2, 6, 0))):
        for r in (0.1, 3.0):
            v = certify(member, x, 2, r)
            if member.name != "permutahedron" and member.name != "simplex":
                assert x.any() or not v.any()
            certify(member, x * 1e6, 2, r)
    assert member.project(batch(member, 0, 6, 0), 2, 1.0).shape == batch(member, 0, 6, 0).shape


@of_all
def test_float32_is_the_rounding_of_float64(member):
    x = batch(member, 20, 300, seed=1, scale=0.2).float()
    found = member.project(x, 20, 0.1)
    assert found.dtype == torch.float32
    expected = member.project(x.double(), 20, 0.1)
    assert (expected - x).abs().max() > 1e-3
    torch.testing.assert_close(found.double(), expected, rtol=2**-24, atol=1e-45)


@of_all
def test_strides_do_not_matter_and_the_input_stays(member):
    x = batch(member, 6, 8, seed=2, scale=2.0)
    strided = torch.empty(*reversed(x.shape), dtype=x.dtype).permute(*reversed(range(x.ndim)))
    strided.copy_(x)
    assert not strided.is_contiguous()
    assert torch.equal(member.project(strided, 3, 0.1), member.project(x, 3, 0.1))
    assert torch.equal(strided, x)


@of_all
@pytest.mark.parametrize("power", [-90, -30, 30, 90])
def test_units_do_not_matter(member, power):
    """The set of radius c r is c times that of radius r; a power of two is exact."""
    x, c = batch(member, 10, 12, seed=3, scale=3.0), 2.0**power
    expected = member.project(x, 3, 0.7)
    torch.testing.assert_close(
        member.project(x * c, 3, 0.7 * c) / c, expected, rtol=1e-12, atol=1e-14
    )


@of_all
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_points_far_smaller_or_larger_than_the_set(member, scale):
    """From far away, nearest is farthest along: <x, P(x)> reaches the support of the set."""
    x = batch(member, 10, 12, seed=4, scale=scale)
    v = member.project(x, 3, 0.1)
    assert member.excess(v, 3, 0.1).max() <= 1e-13
    if scale > 1:
        torch.testing.assert_close(inner(x, v), member.support(x, 3, 0.1), rtol=1e-13, atol=0)
    elif member.name not in ("simplex", "unit simplex", "permutahedron"):
        assert torch.equal(v, x)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("share", [1 - 1e-13, 1 - 1e-9, 0.999, 0.5, 1e-3, 1e-12])
def test_lp_projections_from_near_and_far(p, share):
    """Spread entries, spikes and zeros, in one batch whose rows need different multipliers."""
    x = torch.zeros(6, 1000, dtype=torch.float64)
    x[0] = normal((1000,), 5)
    x[1] = normal((1000,), 6) * (20 * normal((1000,), 7)).exp()
    x[2] = 1.0
    x[2, 0] = 1e6
    x[3, :3] = torch.tensor([1.0, -1.0, 1e-200])
    x[4] = torch.linspace(-1, 1, 1000)
    x = x / norm(x, p).clamp(min=1e-300)[:, None]
    certify(lp(p), x, 1, share, tol=2e-13 * max(1, 1 / (p - 1)))


@pytest.mark.parametrize("member", [*POLYTOPES, lp(1.01), lp(3), L2], ids=repr)
def test_long_rows(member):
    x = normal((1, 100_000), 8)
    certify(member, x, 10_000, 3.0, tol=1e-11)
    certify(member, x.sign() * (8 * x).exp(), 10_000, 3.0, tol=1e-11)
    spike = 1e-7 * x.abs()  # one rounding error of the level, times n, would show in the sum
    spike[0, 0] = 2.0
    v = certify(member, spike, 1, 2.004, tol=1e-11)
    assert member.excess(v, 1, 2.004) <= 1e-14


# ---- isotonic regression


def falling_stairs(n):
    """Rows on which pooling one violator at a time takes many rounds."""
    late = torch.arange(n, dtype=torch.float64)
    late[-1] = -10.0 * n * n  # pulls every entry down, one after the other
    teeth = torch.arange(n, dtype=torch.float64) % 7
    return torch.stack([late, -late.flip(0), teeth, -ladder(n), ladder(n), torch.ones(n).double()])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 100, 1023, 5000])
def test_isotonic_regression_agrees_with_pool_adjacent_violators(n):
    noise = normal((4, n), n)
    y = torch.cat([falling_stairs(n), noise, (3 * noise).round(), noise.cumsum(1)])
    expected = np.stack([isotonic_regression(row.numpy()).x for row in y])
    found = _isotonic.isotonic(y)
    assert (found.diff(dim=1) >= 0).all()
    scale = 1e-13 * y.abs().amax(1, keepdim=True).numpy()
    assert (np.abs(found.numpy() - expected) <= scale).all()


@settings(max_examples=60)
@given(y=rows_of(1, 40))
def test_isotonic_regression_of_ties(y):
    expected = isotonic_regression(y[0].numpy()).x
    np.testing.assert_allclose(_isotonic.isotonic(y)[0].numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 64, 1000])
def test_running_sums_by_doubling(n):
    x = normal((2, 3, n), n)
    torch.testing.assert_close(_isotonic.doubling_sum(x), x.cumsum(-1), rtol=0, atol=1e-12)
    first = torch.arange(n) // 7 * 7  # a fresh start at every seventh place
    expected = torch.stack([x[..., f : i + 1].sum(-1) for i, f in enumerate(first)], dim=-1)
    torch.testing.assert_close(_isotonic.doubling_sum(x, first), expected, rtol=0, atol=1e-12)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@of_all
def test_a_cuda_device_agrees_and_repeats_itself(member):
    x = batch(member, 5, 1000, seed=9, scale=2.0)
    torch.use_deterministic_algorithms(True)
    try:
        found = member.project(x.cuda(), 30, 1.0)
        again = member.project(x.cuda(), 30, 1.0)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(found, again)
    torch.testing.assert_close(found.cpu(), member.project(x, 30, 1.0), rtol=1e-11, atol=1e-13)
