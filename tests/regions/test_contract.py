"""What makes a region a region: its oracle, its membership, its diameter, its projection agree."""

import inspect

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import condgrad as cg
import members
from condgrad import regions
from inputs import array, centre, coordinates, dot, generator, inside, normal, tensor
from members import BOUNDED, BOUNDED_ONE_EACH, CASES, EXAMPLES, SEVERAL, TWINS, asked_of
from reference import polytopes

SMALL = [case for case in BOUNDED if polytopes.is_polytope(case.twin) and len(case.shape) == 1]


def any_tensor(shape):
    """Entries of all sizes, with many ties and zeros among them."""
    few = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0])
    entries = st.one_of(few, st.floats(-1e3, 1e3), st.floats(-1e-3, 1e-3))
    return arrays.arrays(np.float64, shape, elements=entries).map(tensor)


def test_every_exported_region_has_examples_and_a_twin():
    kinds = {getattr(regions, name) for name in regions.__all__}
    final = {kind for kind in kinds if not inspect.isabstract(kind)}
    assert final == set(EXAMPLES), "add the region's examples to tests/members.py"
    assert final == set(TWINS), "add the region's slow twin to tests/members.py"
    assert all(isinstance(r, kind) for kind, each in EXAMPLES.items() for r in each.regions)
    assert all(getattr(cg, kind.__name__) is kind for kind in kinds)


@asked_of(BOUNDED)
def test_lmo_follows_the_twin(case):
    for seed in range(3):
        x = normal(case.shape, seed)
        v, expected = case.region.lmo(x), case.twin.lmo(array(x))
        assert np.max(np.abs(array(v) - expected)) <= 1e-12 * np.max(np.abs(expected))
        assert case.twin.is_extreme(array(v))


@asked_of(BOUNDED_ONE_EACH)
def test_lmo_minimises_in_every_direction(case):
    twin = case.twin

    @settings(max_examples=25)
    @given(any_tensor(case.shape))
    @example(torch.zeros(case.shape, dtype=torch.float64))
    @example(torch.ones(case.shape, dtype=torch.float64))
    @example(coordinates(case.shape)[0])
    def minimises(x):
        v = array(case.region.lmo(x, generator=generator(0)))
        assert twin.is_optimal(array(x), v, 1e-9)
        assert members.may_be_drawn(twin, v, 1e-9)

    minimises()


@asked_of(SMALL)
def test_lmo_is_the_best_of_all_vertices(case):
    (n,) = case.shape
    vertices = polytopes.vertices(case.twin, n)
    for seed in range(5):
        x = normal(case.shape, seed)
        v = array(case.region.lmo(x))
        values = vertices @ array(x)
        assert abs(np.dot(array(x), v) - values.min()) <= 1e-9
        assert np.max(np.abs(vertices - v), axis=1).min() <= 1e-12 * np.max(np.abs(vertices))


@asked_of(SMALL)
def test_lmo_solves_the_linear_program(case):
    (n,) = case.shape
    program = polytopes.inequalities(case.twin, n)
    for seed in range(3):
        x = normal(case.shape, seed)
        costs = np.pad(array(x), (0, len(program["bounds"]) - n))
        optimum = linprog(costs, **program).fun
        assert abs(dot(x, case.region.lmo(x)) - optimum) <= 1e-9 * max(1, abs(optimum))


@asked_of(BOUNDED)
def test_no_point_inside_beats_the_oracle(case):
    """By more than the oracle says it may miss."""
    for x in [normal(case.shape, 7), *coordinates(case.shape)[:3]]:
        points = [inside(case.region, case.shape, seed, share=1.0) for seed in range(4)]
        points.append(members.exactly(case.region).lmo(x, generator=generator(1)))
        best = dot(x, case.region.lmo(x, generator=generator(0)))
        size = max(abs(dot(x, y)) for y in points) + abs(best)
        beaten = best - 1e-12 * size - case.twin.loss(array(x))
        assert all(dot(x, y) >= beaten for y in points)


@asked_of(BOUNDED)
def test_averages_of_vertices_are_inside(case):
    for seed in range(4):
        y = inside(case.region, case.shape, seed, share=1.0)
        assert case.region.contains(y)
        assert case.twin.violation(array(y)) <= 1e-14


@asked_of(BOUNDED_ONE_EACH)
def test_membership_and_oracle_agree(case):
    region, exact = case.region, members.exactly(case.region)
    middle = centre(region, case.shape)

    @settings(max_examples=25)
    @given(any_tensor(case.shape), st.floats(0.1, 3.0))
    def agree(x, reach):
        v = exact.lmo(x, generator=generator(0))
        y = middle + reach * (v - middle)
        toward = region.project(y) - y
        separated = dot(toward, y) < dot(toward, region.lmo(toward, generator=generator(0)))
        if region.contains(y, tol=1e-9):
            # Then no direction separates it from the region by more than rounding.
            for g in [toward, x, -x, *coordinates(case.shape)[:3]]:
                best = region.lmo(g, generator=generator(1))
                gap = dot(g, best) - dot(g, y) - case.twin.loss(array(g))
                assert gap <= 1e-8 * float(g.norm()) * region.diameter(case.shape)
        else:
            assert separated

    agree()


@asked_of(BOUNDED)
def test_points_beyond_the_border_are_outside(case):
    middle = centre(case.region, case.shape)
    for seed in range(3):
        v = members.exactly(case.region).lmo(normal(case.shape, seed))
        if case.region.diameter(case.shape) > 0:
            assert not case.region.contains(middle + 1.01 * (v - middle))
            assert case.region.violation(middle + 1.01 * (v - middle)) > 1e-4
        assert not case.region.contains(normal(case.shape, seed, 1e6))


@asked_of(BOUNDED)
def test_diameter_is_attained(case):
    a, b = case.twin.antipodes(case.shape)
    d = case.region.diameter(case.shape)
    assert isinstance(d, float)
    assert abs(np.linalg.norm(a - b) - d) <= 1e-14 * d
    assert case.region.contains(tensor(a))
    assert case.region.contains(tensor(b))


@asked_of(BOUNDED)
def test_diameter_is_never_exceeded(case):
    d = case.region.diameter(torch.Size(case.shape))
    directions = [normal(case.shape, seed) for seed in range(4)] + coordinates(case.shape)
    vertices = [case.region.lmo(x, generator=generator(i)) for i, x in enumerate(directions)]
    points = torch.stack(vertices).reshape(len(vertices), -1)
    distances = torch.linalg.vector_norm(points[:, None] - points[None], dim=-1)
    assert float(distances.max()) <= d * (1 + 1e-14)


@asked_of(SEVERAL)
def test_from_diameter_inverts_diameter(case):
    region, shape = case.region, case.shape
    d = region.diameter(shape)
    again = type(region).from_diameter(3 * d, shape, **members.settings_beside_size(region))
    assert type(again) is type(region)
    assert again.diameter(shape) == pytest.approx(3 * d, rel=1e-14)


@asked_of([case for case in BOUNDED if case not in SEVERAL])
def test_from_diameter_refuses_what_has_none(case):
    kw = members.settings_beside_size(case.region)
    with pytest.raises(ValueError, match="single point"):
        type(case.region).from_diameter(1.0, case.shape, **kw)


@asked_of(CASES)
def test_violation_follows_the_twin(case):
    for seed, scale in enumerate([1e-3, 0.1, 1.0, 30.0, 1e4]):
        x = normal(case.shape, seed, scale)
        found, expected = case.region.violation(x), case.twin.violation(array(x))
        assert isinstance(found, float)
        assert (found > 1e-12) == (expected > 1e-12)
        if members.is_ball(case.twin):
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@asked_of(BOUNDED)
def test_violation_is_zero_inside(case):
    y = inside(case.region, case.shape, 3)
    assert case.region.violation(y) <= (1e-14 if members.is_flat(case.twin) else 0.0)


@asked_of(CASES)
def test_violation_has_no_scale(case):
    for factor in [1e-3, 64.0, 1e6]:
        larger = members.scaled(case.region, factor)
        for seed in range(3):
            x = normal(case.shape, seed)
            expected = case.region.violation(x)
            assert larger.violation(x * factor) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@asked_of([case for case in BOUNDED if hasattr(case.region, "region")])
def test_blocks_answer_one_by_one(case):
    x, inner = normal(case.shape, 0), case.region.region
    for ask in ("lmo", "project"):
        whole = getattr(case.region, ask)(x)
        each = torch.stack([getattr(inner, ask)(block) for block in x])
        assert torch.allclose(whole, each, rtol=1e-13, atol=0)
    worst = max(inner.violation(block) for block in x)
    assert case.region.violation(x) == pytest.approx(worst, rel=1e-13)
