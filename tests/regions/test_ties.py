"""Several solutions: one of them is drawn, at random, from the generator that was given."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import condgrad as cg
from inputs import array, generator, normal, tensor
from members import BOUNDED, ONE_EACH, SEVERAL, SIMPLE, Case, asked_of, is_ball, may_be_drawn
from reference import polytopes

ROUNDS = 2000

TIED = ([0, 0, 0, 0], [1, 1, 0, -1], [0, 0, -1, 0], [2, 2, 2, -1], [1, -1, 0, 0], [0, 1, 2, 1])


def fits(region, shape):
    """Whether the region binds tensors of this shape (a count K may be too large for it)."""
    try:
        region.diameter(shape)
    except ValueError:
        return False
    return True


POLYTOPES = [
    Case(case.region, (4,))
    for case in ONE_EACH
    if polytopes.is_polytope(case.twin) and fits(case.region, (4,))
]
BALLS = [case for case in ONE_EACH if type(case.region) in SIMPLE and is_ball(case.twin)]


def draws(region, x, rounds=ROUNDS, seed=0):
    """Vertices drawn for the same direction, all at once: one for each block of a larger tensor."""
    blocks = cg.PerRow if x.ndim == 1 else cg.PerFilter
    return blocks(region).lmo(x.expand(rounds, *x.shape), generator=generator(seed))


@asked_of(BOUNDED)
def test_a_zero_direction_draws_from_the_border(case):
    dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
    for dtype, seed in itertools.product(dtypes, range(4)):
        v = case.region.lmo(torch.zeros(case.shape, dtype=dtype), generator=generator(seed))
        assert v.dtype is dtype
        assert may_be_drawn(case.twin, array(v), 8 * torch.finfo(dtype).eps)


@asked_of(SEVERAL)
def test_draws_differ_from_one_to_the_next(case):
    zero = torch.zeros(case.shape, dtype=torch.float64)
    by_seed = [case.region.lmo(zero, generator=generator(seed)) for seed in range(20)]
    stream = generator(0)
    one_stream = [case.region.lmo(zero, generator=stream) for _ in range(20)]
    for drawn in (by_seed, one_stream):
        assert not all(torch.equal(v, drawn[0]) for v in drawn)


@asked_of(BOUNDED)
def test_the_same_generator_state_draws_the_same(case):
    zero = torch.zeros(case.shape, dtype=torch.float64)
    for seed in range(5):
        first = case.region.lmo(zero, generator=generator(seed))
        assert torch.equal(case.region.lmo(zero, generator=generator(seed)), first)


@asked_of(SEVERAL)
def test_without_a_generator_torch_manual_seed_rules(case):
    zero = torch.zeros(case.shape, dtype=torch.float64)

    def drawn(seed):
        torch.manual_seed(seed)
        return torch.stack([case.region.lmo(zero) for _ in range(20)])

    with torch.random.fork_rng(devices=[]):
        first = drawn(0)
        assert torch.equal(drawn(0), first)
        assert not torch.equal(drawn(1), first)


@asked_of(BOUNDED)
def test_no_tie_no_chance(case):
    x = normal(case.shape, 0)
    first = case.region.lmo(x, generator=generator(0))
    for seed in range(1, 4):
        assert torch.equal(case.region.lmo(x, generator=generator(seed)), first)


@asked_of(POLYTOPES)
def test_every_best_vertex_is_drawn(case):
    vertices = polytopes.vertices(case.twin, 4)
    vertices = vertices[[case.twin.is_extreme(v) for v in vertices]]
    for x in TIED:
        values = vertices @ x
        best = tensor(vertices[values <= values.min() + 1e-12])
        drawn = draws(case.region, tensor(x))
        hits = (drawn[:, None] - best[None]).abs().amax(-1) < 1e-12
        assert hits.any(1).all(), "drew something else than a best vertex"
        counts = hits.sum(0)
        assert (counts > 0).all(), "never drew some of the best vertices"
        if len(best) > 1 and not isinstance(case.region, cg.KNormBall):
            # All equally likely; a K-norm ball has two families of very different numbers.
            assert chisquare(counts.numpy()).pvalue > 1e-4


@asked_of(BALLS)
def test_draws_at_zero_favour_no_side(case):
    drawn = draws(case.region, torch.zeros(case.shape, dtype=torch.float64)).flatten(1)
    spread = drawn.std(0) / math.sqrt(ROUNDS)
    assert (drawn.mean(0).abs() <= 5 * spread).all()


@asked_of([case for case in SEVERAL if hasattr(case.region, "region")])
def test_blocks_draw_each_for_itself(case):
    x = torch.zeros((20, *case.shape[1:]), dtype=torch.float64)
    x[::2] = normal((10, *case.shape[1:]), 0)
    v = case.region.lmo(x, generator=generator(0))
    again = case.region.lmo(x, generator=generator(1))
    assert torch.equal(v[::2], again[::2])
    assert not all(torch.equal(block, v[1]) for block in v[1::2])
    assert not torch.equal(v[1::2], again[1::2])


@asked_of([case for case in BOUNDED if len(case.shape) > 1])
def test_a_tie_is_settled_by_one_vertex_in_every_layout_alike(case):
    x = torch.zeros(case.shape, dtype=torch.float64)
    expected = case.region.lmo(x, generator=generator(3))
    turned = x.transpose(0, -1).contiguous().transpose(0, -1)
    assert torch.equal(case.region.lmo(turned, generator=generator(3)), expected)


@pytest.mark.parametrize("region", [cg.SpectralBall(0.1), cg.NuclearBall(0.1)], ids=str)
def test_matrices_with_equal_singular_values_give_a_best_point(region):
    # Zero singular values for the spectral ball, two leading ones for the nuclear ball.
    x = torch.diag(torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64))
    turn = torch.linalg.qr(normal((4, 4), 0)).Q
    twin = Case(region, (4, 4)).twin
    for y in (x, turn @ x @ turn.T):
        v = array(region.lmo(y, generator=generator(0)))
        assert twin.is_optimal(array(y), v, 1e-12)
        assert may_be_drawn(twin, v)


def test_where_a_matrix_has_no_rank_the_spectral_ball_takes_nothing():
    """Every choice there is as good, and that of a decomposition is noise."""
    left, right = normal((4,), 0), normal((3,), 1)
    expected = -0.1 * torch.outer(left / left.norm(), right / right.norm())
    found = cg.SpectralBall(0.1).lmo(torch.outer(left, right), generator=generator(0))
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-15)


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=9),
    st.integers(1, 9),
    st.integers(0, 3),
)
def test_exactly_k_entries_win_however_many_tie(entries, k, seed):
    k = min(k, len(entries))
    v = cg.KSparsePolytope(k, 0.1).lmo(tensor(entries), generator=generator(seed))
    assert int((v != 0).sum()) == k
