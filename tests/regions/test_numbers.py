"""Formats of numbers and of memory: every dtype, every size of numbers, every layout."""

import itertools
import math

import numpy as np
import pytest
import torch

import condgrad as cg
from inputs import array, distinct, generator, inside, normal
from members import (
    BOUNDED,
    BOUNDED_ONE_EACH,
    CASES,
    EXAMPLES,
    FILTERS,
    MATRICES,
    ROWS,
    VECTORS,
    Case,
    asked_of,
)

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)

LARGE = {VECTORS: (70_000,), MATRICES: (70, 1000), ROWS: (7, 10_000), FILTERS: (7, 100, 100)}
LARGE_CASES = [
    Case(region, LARGE[kind.shapes])
    for kind in EXAMPLES.values()
    for region in (kind.regions if kind.shapes in (ROWS, FILTERS) else kind.first)
    if not isinstance(region, cg.Free)
]


def rounding(dtype):
    """What half a unit in the last place and a float32 computation before it may cost."""
    inner = torch.finfo(torch.float64 if dtype is torch.float64 else torch.float32)
    return torch.finfo(dtype).eps + 200 * inner.eps


def assert_near(found, expected, dtype, slack=0.0):
    assert found.dtype is dtype
    error = np.max(np.abs(array(found) - expected))
    assert error <= rounding(dtype) * np.max(np.abs(expected)) + slack


@asked_of(BOUNDED)
@every_dtype
def test_lmo_answers_in_the_same_dtype(case, dtype):
    x = distinct(case.shape, 1, dtype)
    v = case.region.lmo(x)
    assert v.shape == x.shape
    assert_near(v, case.twin.lmo(array(x)), dtype)
    assert case.region.contains(v)


@asked_of(CASES)
@every_dtype
def test_project_answers_in_the_same_dtype(case, dtype):
    x = distinct(case.shape, 2, dtype)
    p = case.region.project(x)
    assert p.shape == x.shape
    # The twin subtracts a level from |x|, and so rounds to the last place of |x| in float64.
    assert_near(p, case.twin.project(array(x)), dtype, slack=16 * 2.0**-52 * float(x.abs().max()))
    assert case.region.contains(p)


@asked_of(CASES)
def test_violation_is_as_good_as_the_input(case):
    exact = case.region.violation(distinct(case.shape, 3))
    for dtype in DTYPES:
        x = distinct(case.shape, 3, dtype)
        assert case.region.violation(x) == pytest.approx(exact, rel=200 * 2.0**-23)


@asked_of(LARGE_CASES)
def test_reductions_are_wider_than_half_precision(case):
    # The sum of these absolute values is 140,000, and of their squares 280,000: over fp16's 65,504.
    x = torch.full(case.shape, 2.0, dtype=torch.float16)
    expected = case.twin.violation(array(x))
    assert case.region.violation(x) == pytest.approx(expected, rel=1e-3)
    v = case.region.lmo(x, generator=generator(0))
    assert v.isfinite().all()
    assert case.twin.is_optimal(array(x), array(v), 3e-3)
    assert case.region.project(x).isfinite().all()


@pytest.mark.parametrize("kind", [cg.SpectralBall, cg.NuclearBall])
def test_many_singular_values_are_measured_as_well_as_few(kind):
    """The rounding of hundreds of small ones in float32 is no reason to be outside."""
    x = normal((700, 700), 0).float()
    assert kind(0.1).contains(kind(0.1).project(x))
    assert kind(0.1).contains(kind(0.1).lmo(x))


SCALES = {
    torch.float64: (1e-300, 1e-30, 1e30, 1e300),
    torch.float32: (1e-36, 1e-30, 1e30, 1e36),
    torch.bfloat16: (2.0**-100, 2.0**100),
    torch.float16: (2.0**-20, 2.0**8),
}


@asked_of(BOUNDED)
def test_lmo_does_not_see_the_scale_of_a_direction(case):
    for dtype, scales in SCALES.items():
        x = distinct(case.shape, 4, torch.float64) / (1 if dtype is torch.float16 else 100)
        x = x.to(dtype)
        expected = case.twin.lmo(array(x))
        for scale in scales:
            assert_near(case.region.lmo((x.double() * scale).to(dtype)), expected, dtype)


@asked_of(BOUNDED)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_lmo_bears_the_least_and_the_largest_numbers_of_a_format(case, dtype):
    """Whole multiples of the least number, with no digits to lose; norms that overflow."""
    info = torch.finfo(dtype)
    x = distinct(case.shape, 4)
    expected = case.twin.lmo(array(x))
    room = math.frexp(info.max)[1] - math.frexp(float(x.abs().max()))[1]
    for scale in (info.smallest_normal * info.eps, 2.0**room):
        scaled = (x * scale).to(dtype)
        assert torch.equal(scaled.double() / scale, x), "exact, and finite"
        assert_near(case.region.lmo(scaled), expected, dtype)


@asked_of(BOUNDED_ONE_EACH)
@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_violation_and_project_bear_extreme_numbers(case, scale):
    x = normal(case.shape, 0, scale)
    assert math.isfinite(case.region.violation(x))
    p = case.region.project(x)
    assert p.isfinite().all()
    assert case.region.contains(p, tol=1e-6)


def holed(x):
    """The same entries, every second of a larger tensor: neither contiguous nor dense."""
    room = x.new_zeros(*x.shape, 2)
    room[..., 0] = x
    return room[..., 0]


def layouts(x):
    """The tensor in every other layout that its shape has."""
    yield holed(x)
    if x.ndim >= 2:
        yield x.transpose(0, -1).contiguous().transpose(0, -1)
        yield x.transpose(-1, -2).contiguous().transpose(-1, -2)
        yield holed(x.flip(0)).flip(0)
    if x.ndim == 4:
        yield x.contiguous(memory_format=torch.channels_last)
    if x.ndim == 5:
        yield x.contiguous(memory_format=torch.channels_last_3d)


def strides(x):
    """The strides that mean something: those of dimensions with several places."""
    return [stride for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1]


@asked_of(CASES)
def test_any_layout_in_the_same_layout_out(case):
    x = distinct(case.shape, 5)
    asks = [case.region.project] + [case.region.lmo] * (case in BOUNDED)
    answers = [ask(x) for ask in asks]
    for y in layouts(x):
        for ask, expected in zip(asks, answers, strict=True):
            found = ask(y)
            assert torch.allclose(found, expected, rtol=1e-12, atol=1e-14)
            assert strides(found) == strides(torch.empty_like(y))
        assert case.region.violation(y) == pytest.approx(case.region.violation(x), rel=1e-12)


@asked_of(BOUNDED)
def test_a_direction_that_is_not_finite_gives_no_finite_vertex(case):
    for dtype, poison in itertools.product(DTYPES, (math.nan, math.inf, -math.inf)):
        for place in (0, -1):
            x = distinct(case.shape, 6, dtype)
            x.view(-1)[place] = poison
            assert not case.region.lmo(x).isfinite().all()
        x = torch.full(case.shape, poison, dtype=dtype)
        assert not case.region.lmo(x).isfinite().any()


@asked_of(BOUNDED)
def test_questions_change_nothing(case):
    x = distinct(case.shape, 7)
    before, state = x.clone(), torch.get_rng_state()
    case.region.project(x)
    case.region.violation(x)
    case.region.contains(x)
    case.region.lmo(x, generator=generator(0))
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)


@asked_of(BOUNDED)
def test_parameters_are_answered_like_tensors(case):
    x = torch.nn.Parameter(inside(case.region, case.shape, 8))
    for answer in (case.region.lmo(x), case.region.project(x)):
        assert not answer.requires_grad
    assert case.region.contains(x)
