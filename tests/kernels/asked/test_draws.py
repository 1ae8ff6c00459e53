"""Ties: zero directions, equal entries, the origin, and the same draws as the reference."""

import pytest
import torch

import condgrad as cg
from kernels.cases import BLOCKS, REGIONS, Pair, gradients

OF_VERTICES = [r for r in REGIONS if not isinstance(r, cg.Free)]


def vertices(members, given, **settings):
    """Where a step of length one lands: the vertices that kernels and reference choose."""
    pair = Pair(members, lr=1.0, rescale=None, momentum=0.0, **settings)
    pair.give(given)
    pair.step()
    fast = [p.clone() for p in pair.fast]
    pair = Pair(members, lr=1.0, rescale=None, momentum=0.0, **settings)
    pair.give(given)
    pair.reference.step()
    return list(zip(pair.regions, fast, pair.slow, strict=True))


def check(found):
    """The same support, the same signs, and the same sizes to rounding."""
    for region, fast, slow in found:
        where = f"{region} {tuple(fast.shape)}"
        assert torch.equal(fast.sign(), slow.sign().float()), where
        assert torch.allclose(fast.double(), slow, rtol=1e-6, atol=0), where


def whole_numbers(shape, seed, most=2):
    """Few different values, so that many are equal and some are zero."""
    made = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, shape, generator=made).float()


@pytest.mark.parametrize("seed", [0, 5])
def test_ties_fall_as_in_the_reference(seed):
    members = [(r, (n,)) for r in OF_VERTICES for n in (7, 40)] + list(BLOCKS)
    given = [whole_numbers(shape, seed + i) for i, (_, shape) in enumerate(members)]
    check(vertices(members, given, seed=seed))


def test_a_zero_direction_draws_as_in_the_reference():
    members = [(r, (n,)) for r in OF_VERTICES for n in (1, 9)] + list(BLOCKS)
    check(vertices(members, [torch.zeros(shape) for _, shape in members], seed=3))


def test_without_draws_the_first_wins():
    members = [(r, (9,)) for r in OF_VERTICES] + list(BLOCKS)
    for most in (0, 1):
        given = [whole_numbers(shape, i, most) for i, (_, shape) in enumerate(members)]
        found = vertices(members, given, ties="first")
        for region, fast, slow in found:
            assert torch.allclose(fast.double(), slow, rtol=1e-6, atol=0), f"{region}"


def test_draws_change_from_step_to_step_as_in_the_reference():
    members = [(r, (9,)) for r in OF_VERTICES]
    pair = Pair(members, lr=0.3, rescale=None, momentum=0.0, seed=11)
    for _ in range(2):
        pair.give([torch.zeros(shape) for _, shape in members])
        assert all(off <= 1 for off in pair.step().values())


@pytest.mark.parametrize("k", [1, 900, 8999, 9000])
def test_a_large_selection_is_exact_and_so_are_its_ties(k):
    """More entries than one program holds: they are counted digit by digit."""
    n = 9000
    members = [(cg.KSparsePolytope(k, 0.1), (n,)), (cg.KSparsePolytope(k, 0.1), (2, n // 2))]
    members = members if k in (1, 900) else members[:1]
    plain = gradients([shape for _, shape in members], seed=k)
    tied = [whole_numbers(shape, k + i) for i, (_, shape) in enumerate(members)]
    for given in (plain, tied) if k == 900 else (tied,):
        found = vertices(members, given, seed=k)
        check(found)
        assert all(int((fast != 0).sum()) == k for _, fast, _ in found)


def test_a_threshold_that_leaps_out_of_sight_is_found_again():
    """Exponents are told apart about the last step's: far up, far down, to zero, and back."""
    n = 9000
    pair = Pair([(cg.KSparsePolytope(900, 0.1), (n,))], lr=1.0, rescale=None, momentum=0.0)
    for t, scale in enumerate((1.0, 1e25, 1e-30, 1e-12, 0.0, 1.0)):
        (gradient,) = gradients([(n,)], t)
        gradient = gradient * scale
        gradient[::3] = gradient[0]  # ties, at any scale
        pair.give([gradient])
        pair.kernels.step()
        pair.reference.step()
        (fast,), (slow,) = pair.fast, pair.slow
        assert int((fast != 0).sum()) == 900, scale
        assert torch.equal(fast.sign(), slow.sign().float()), scale


def test_a_large_norm_of_the_k_largest_is_pulled_back():
    """The K-norm ball's own K-th largest value, sought when points are pulled back inside."""
    region, n = cg.KNormBall(300, 1.0), 9000
    pair = Pair([(region, (n,))], lr=1e-4, momentum=0.0)
    for t in range(2):
        pair.give(gradients([(n,)], t))
        assert all(off <= 1 for off in pair.step().values())
        for optimizer, (p,) in ((pair.kernels, pair.fast), (pair.reference, pair.slow)):
            optimizer.state[p]["step"].fill_(15)  # so that the next step pulls back
            p.mul_(1 + 1e-5)
    outside = cg.KNormBall(300, 1.0).violation(pair.fast[0].double())
    pair.give(gradients([(n,)], 3))
    pair.step()
    assert region.violation(pair.fast[0].double()) <= 1e-6 < outside
