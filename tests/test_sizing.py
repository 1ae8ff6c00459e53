"""Sizes: the expected norm to the last digits for every n, widths and diameters kept exactly."""

import math

import pytest
import torch
from scipy.special import gammaln

import condgrad as cg
from inputs import generator
from members import EXAMPLES, settings_beside_size


def series(n):
    """√2 Γ((n+1)/2)/Γ(n/2) by a recursion that loses nothing: E_n E_{n+1} = n."""
    found = math.sqrt(2 / math.pi)
    for m in range(1, n):
        found = m / found
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 299, 300, 301, 1000, 20_000])
def test_the_expected_norm_follows_its_recursion(n):
    assert cg.expected_norm(n) == pytest.approx(series(n), rel=1e-13)
    assert cg.expected_norm(n, 0.02) == pytest.approx(0.02 * series(n), rel=1e-13)


@pytest.mark.parametrize("n", [10**5, 10**6, 10**8, 10**9])
def test_the_expected_norm_of_many_numbers(n):
    """There √n (1 − 1/4n) is exact to double precision, and a difference of logarithms is not."""
    exact = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (32 * n * n))
    assert cg.expected_norm(n) == pytest.approx(exact, rel=4e-16)
    if n == 10**8:
        naive = math.sqrt(2) * math.exp(gammaln((n + 1) / 2) - gammaln(n / 2))
        assert abs(naive - exact) / exact > 1e-9


def test_the_expected_norm_is_what_samples_have():
    x = torch.randn(20_000, 5, generator=generator(0), dtype=torch.float64)
    assert float(x.norm(dim=1).mean()) == pytest.approx(cg.expected_norm(5), rel=0.01)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, None, math.nan], ids=str)
def test_a_wrong_number_of_entries_is_named(n):
    with pytest.raises(ValueError, match="`n` must be a positive int, got"):
        cg.expected_norm(n)


@pytest.mark.parametrize("std", [-1.0, math.nan, math.inf])
def test_a_wrong_deviation_is_named(std):
    with pytest.raises(ValueError, match="`std` must be finite and at least 0, got"):
        cg.expected_norm(3, std)


BOUNDED = [k for k in EXAMPLES if k not in (cg.Free, cg.Box)]


@pytest.mark.parametrize("kind", [*BOUNDED, cg.Box], ids=lambda kind: kind.__name__)
def test_every_region_can_be_sized(kind):
    """By a diameter, by the norm of the start, and by its expectation."""
    shape = (2, 3, 2, 2)
    options = {} if kind is cg.Box else settings_beside_size(EXAMPLES[kind].regions[0])
    p = torch.full(shape, 0.5, dtype=torch.float64)
    norm = 0.5 * math.sqrt(24)
    for size, diameter in (
        ({"diameter": 7.0}, 7.0),
        ({"width": 3}, 2 * 3 * norm),
        ({"width": 3, "std": 0.1}, 2 * 3 * cg.expected_norm(24, 0.1)),
    ):
        region = cg.sized(kind, **size, **options).region_for(p)
        assert type(region) is kind
        assert region.diameter(shape) == pytest.approx(diameter, rel=1e-12)


def test_a_start_at_zero_counts_as_one_unless_told():
    zero = torch.zeros(5)
    assert cg.sized(cg.L2Ball, width=3).region_for(zero) == cg.L2Ball(3.0)
    assert cg.sized(cg.L2Ball, width=3, at_zero=0.1).region_for(zero).radius == pytest.approx(0.3)
    assert cg.sized(cg.L2Ball, width=3, at_zero=0.1).region_for(zero + 1) != cg.L2Ball(3.0)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_a_start_of_any_size_is_measured(scale):
    """The squares of its entries are beyond what float32 holds."""
    x = torch.full((3, 4), scale)
    assert cg.sized(cg.L2Ball, width=3).region_for(x).radius == pytest.approx(3 * 12**0.5 * scale)


def test_rules_are_values():
    assert cg.sized(cg.LpBall, width=3, p=5) == cg.sized(cg.LpBall, width=3, p=5)
    assert cg.sized(cg.LpBall, width=3, p=5) != cg.sized(cg.LpBall, width=3, p=4)
