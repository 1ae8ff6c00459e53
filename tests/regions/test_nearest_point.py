"""Every region projects to the nearest point: by its own oracle, and beside the slow twin."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import condgrad as cg
from inputs import array, dot, generator, inside, normal, tensor
from members import BOUNDED, BOUNDED_ONE_EACH, CASES, asked_of, is_flat


def precision(region):
    """The relative precision promised in float64: general Lp balls solve for a root."""
    inner = getattr(region, "region", region)
    return 1e-6 if isinstance(inner, cg.LpBall) else 1e-8


def obtuse(region, x, p, tol):
    """Whether <x - p, y - p> <= 0 for every y of the region: its own oracle names the worst y."""
    worst = region.lmo(p - x, generator=generator(0))
    reach = float((x - p).norm()) * (float(p.norm()) + region.diameter(x.shape))
    return dot(x - p, worst) - dot(x - p, p) <= tol * reach


@asked_of(BOUNDED)
def test_projection_is_the_nearest_point(case):
    for seed, scale in enumerate([0.03, 0.3, 1.0, 5.0, 30.0, 1e3, 1e6]):
        x = normal(case.shape, seed, scale)
        p = case.region.project(x)
        assert case.twin.violation(array(p)) <= precision(case.region) * 1e-2
        assert obtuse(case.region, x, p, precision(case.region))


@asked_of(BOUNDED_ONE_EACH)
def test_projection_is_the_nearest_point_with_ties(case):
    few = st.sampled_from([-2.0, -1.0, 0.0, 0.1, 0.5, 1.0])
    entries = st.one_of(few, st.floats(-1e2, 1e2), st.floats(-1e-3, 1e-3))

    @settings(max_examples=25)
    @given(arrays.arrays(np.float64, case.shape, elements=entries).map(tensor))
    def nearest(x):
        p = case.region.project(x)
        assert case.twin.violation(array(p)) <= precision(case.region) * 1e-2
        assert obtuse(case.region, x, p, precision(case.region))

    nearest()


@asked_of(CASES)
def test_projection_follows_the_twin(case):
    for seed, scale in enumerate([0.1, 3.0]):
        x = normal(case.shape, seed, scale)
        p, expected = array(case.region.project(x)), case.twin.project(array(x))
        assert np.linalg.norm(p - expected) <= precision(case.region) * np.linalg.norm(expected)


@asked_of(BOUNDED)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_points_inside_stay_as_they_are(case, dtype):
    y = inside(case.region, case.shape, 5).to(dtype)
    if is_flat(case.twin):
        close = 8 * torch.finfo(dtype).eps * float(y.abs().max())
        assert float((case.region.project(y) - y).abs().max()) <= close
    else:
        assert torch.equal(case.region.project(y), y)


@asked_of(BOUNDED)
def test_projecting_twice_is_projecting_once(case):
    for seed in range(2):
        p = case.region.project(normal(case.shape, seed, 10.0))
        assert case.region.contains(p)
        assert torch.allclose(case.region.project(p), p, rtol=1e-12, atol=1e-14)


@asked_of(BOUNDED)
def test_projection_never_widens_a_distance(case):
    for seed in range(3):
        x, y = normal(case.shape, seed, 3.0), normal(case.shape, seed + 10, 0.3)
        moved = case.region.project(x) - case.region.project(y)
        assert float(moved.norm()) <= float((x - y).norm()) * (1 + precision(case.region))


@asked_of(CASES)
def test_projection_is_a_tensor_of_its_own(case):
    x = inside(case.region, case.shape, 5) if case in BOUNDED else normal(case.shape, 5)
    before = x.clone()
    case.region.project(x).add_(1)
    assert torch.equal(x, before)


@asked_of(BOUNDED)
def test_a_point_that_is_not_finite_is_outside(case):
    for poison in (torch.nan, torch.inf, -torch.inf):
        for place in (0, -1):
            x = normal(case.shape, 0)
            x.view(-1)[place] = poison
            assert not case.region.contains(x)


@asked_of(BOUNDED)
def test_a_point_that_is_not_a_number_is_not_moved_inside(case):
    # An infinite entry may be: its nearest bound in a box is that bound.
    for place in (0, -1):
        x = normal(case.shape, 0)
        x.view(-1)[place] = torch.nan
        assert not case.region.project(x).isfinite().all()
