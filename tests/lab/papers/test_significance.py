"""The exact test over the seeds."""

import itertools

import numpy as np
import pytest

from condgrad_lab.papers.dnn_fw_2020._significance import LEVEL, p_value


@pytest.mark.parametrize("count", range(1, 12))
def test_all_seeds_agreeing_is_one_pattern_of_all(count):
    assert p_value(np.linspace(1, 2, count)) == 2.0**-count
    assert p_value(-np.linspace(1, 2, count)) == 1.0


def test_it_is_the_share_of_sign_patterns_that_reach_the_sum():
    found = np.array([0.3, -0.1, 0.7, 0.2, -0.4])
    sums = [np.dot(signs, found) for signs in itertools.product((1, -1), repeat=5)]
    assert p_value(found) == np.mean([total >= found.sum() - 1e-12 for total in sums])


def test_no_difference_proves_nothing():
    assert p_value(np.zeros(10)) == 1.0
    assert p_value(np.array([1.0, -1.0])) > LEVEL


def test_five_seeds_suffice_and_four_do_not():
    assert p_value(np.ones(5)) <= LEVEL < p_value(np.ones(4))


def test_many_seeds_are_sampled_alike():
    rng = np.random.default_rng(0)
    found = rng.normal(0.2, 1.0, 16)
    doubled = p_value(np.concatenate([found, np.zeros(4)]))  # zeros change no sum
    assert abs(doubled - p_value(found)) < 0.01


def test_lucky_differences_are_rarely_significant():
    rng = np.random.default_rng(0)
    share = np.mean([p_value(rng.normal(size=10)) <= LEVEL for _ in range(1000)])
    assert 0.03 < share < 0.07
