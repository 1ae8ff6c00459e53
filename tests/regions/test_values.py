"""Regions are values: equal, hashable, printable, copied and stored like numbers."""

import copy
import dataclasses
import pickle

import pytest

import condgrad as cg
from members import EXAMPLES, scaled

REGIONS = [region for kind in EXAMPLES.values() for region in kind.regions]
every_region = pytest.mark.parametrize("region", REGIONS, ids=str)


@every_region
def test_equal_regions_are_one(region):
    again = dataclasses.replace(region)
    assert again == region
    assert hash(again) == hash(region)
    assert len({again, region}) == 1
    assert isinstance(region, cg.Region)


def test_no_two_examples_are_equal():
    assert len(set(REGIONS)) == len(REGIONS)


@every_region
def test_another_size_is_another_region(region):
    if not isinstance(region, cg.Free):
        assert scaled(region, 2.0) != region


@every_region
def test_repr_reads_back(region):
    again = eval(repr(region), {name: getattr(cg, name) for name in cg.regions.__all__})
    assert again == region
    assert type(again) is type(region)


@every_region
def test_pickle_brings_the_same_back(region):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(region, protocol))
        assert again == region
        assert type(again) is type(region)


@every_region
def test_copies_are_equal(region):
    assert copy.copy(region) == region
    assert copy.deepcopy(region) == region


@every_region
def test_regions_are_frozen(region):
    before = repr(region)
    for name in [f.name for f in dataclasses.fields(region)] or ["radius"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(region, name, 5.0)
    assert repr(region) == before


def test_whole_numbers_are_sizes_like_any_other():
    assert cg.L2Ball(3) == cg.L2Ball(3.0)
    assert repr(cg.L2Ball(3)) == repr(cg.L2Ball(3.0))
    assert cg.Box(-1, 1) == cg.Box(-1.0, 1.0)


def test_a_count_and_a_fraction_are_different_things():
    assert cg.KSparsePolytope(1, 0.1) != cg.KSparsePolytope(1.0, 0.1)
    assert cg.KSparsePolytope(1, 0.1).diameter((9,)) == pytest.approx(0.2)
    assert cg.KSparsePolytope(1.0, 0.1).diameter((9,)) == pytest.approx(0.6)


def test_a_pair_may_be_written_as_a_list():
    assert cg.KNormBall([3, 0.5], 1.0) == cg.KNormBall((3, 0.5), 1.0)


@pytest.mark.parametrize("kind", [cg.KSparsePolytope, cg.KNormBall])
def test_fractions_mean_the_nearest_count(kind):
    # 0.29 * 100 is 28.999999999999996, 0.1 * 30 is 3.0000000000000004.
    for k, n, means in [
        (0.29, 100, 29),
        (0.1, 30, 3),
        (0.5, 8, 4),
        (1e-9, 5, 1),
        ((100, 0.1), 5000, 500),
        ((100, 0.1), 500, 100),
        ((100, 0.1), 50, 50),
    ]:
        assert kind(k, 1.0).diameter((n,)) == pytest.approx(kind(means, 1.0).diameter((n,)))
