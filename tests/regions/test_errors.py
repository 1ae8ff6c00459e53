"""Wrong use: the error says what is wrong, what was found, and nothing has changed."""

import dataclasses
import math
import re

import numpy as np
import pytest
import torch

import condgrad as cg
from inputs import normal
from members import EXAMPLES, ONE_EACH, SEVERAL, asked_of, settings_beside_size

NOT_POSITIVE = [0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf]
NOT_NUMBERS = [True, "1", None, 1j, [1.0], torch.tensor(1.0)]
WITH_RADIUS = [
    kind.regions[0]
    for kind in EXAMPLES.values()
    if "radius" in {f.name for f in dataclasses.fields(kind.regions[0])}
]


def says(*parts):
    """A pattern for a text with these parts in this order."""
    return ".*".join(map(re.escape, parts))


@pytest.mark.parametrize("region", WITH_RADIUS, ids=str)
def test_a_wrong_radius_is_named(region):
    name = type(region).__name__
    for value in NOT_POSITIVE:
        with pytest.raises(ValueError, match=says("`radius`", name, f"{value!r}")):
            dataclasses.replace(region, radius=value)
    for value in NOT_NUMBERS:
        with pytest.raises(TypeError, match=says("`radius`", name, f"{value!r}")):
            dataclasses.replace(region, radius=value)


@pytest.mark.parametrize("value", [1, 1.0, 0.5, 0, -2, math.nan, math.inf])
def test_a_wrong_order_is_named(value):
    with pytest.raises(ValueError, match=says("`p`", "LpBall")):
        cg.LpBall(value, 0.1)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_an_order_that_is_no_number_is_named(value):
    with pytest.raises(TypeError, match=says("`p`", "LpBall", f"{value!r}")):
        cg.LpBall(value, 0.1)


@pytest.mark.parametrize("region", WITH_RADIUS, ids=str)
def test_numbers_of_numpy_are_numbers(region):
    """And are told as Python's own, in print and in checkpoints."""
    names = {"radius", "p", "k"} & {f.name for f in dataclasses.fields(region)}
    plain = {name: getattr(region, name) for name in names}
    for kind in (np.float64, np.float16):
        made = dataclasses.replace(region, **{name: kind(value) for name, value in plain.items()})
        rounded = {name: float(kind(value)) for name, value in plain.items()}
        assert repr(made) == repr(dataclasses.replace(region, **rounded))


@pytest.mark.parametrize("kind", [cg.KSparsePolytope, cg.KNormBall])
def test_counts_of_numpy_are_counts(kind):
    for k, same in ((np.int64(3), 3), ((np.int32(2), np.float64(0.5)), (2, 0.5))):
        assert kind(k, np.int64(2)) == kind(same, 2.0)
        assert repr(kind(k, np.int64(2))) == repr(kind(same, 2.0))
    assert cg.Box(np.float32(-0.5), np.int8(3)) == cg.Box(-0.5, 3.0)


@pytest.mark.parametrize("kind", [cg.KSparsePolytope, cg.KNormBall])
def test_a_wrong_count_is_named(kind):
    for k in [0, -3, 0.0, -0.5, 1.5, math.nan, math.inf, (0, 0.5), (3, 0.0), (3, 1.5)]:
        with pytest.raises(ValueError, match=says("`k`", kind.__name__)):
            kind(k, 0.1)
    for k in [True, "3", None, 2j, (3,), (1, 2, 3), (0.5, 3), (3, 4), (True, 0.5), ("3", 0.5)]:
        with pytest.raises(TypeError, match=says("`k`", kind.__name__)):
            kind(k, 0.1)


@pytest.mark.parametrize("kind", [cg.KSparsePolytope, cg.KNormBall])
def test_a_count_above_the_entries_is_named(kind):
    region, x = kind(5, 0.1), normal((2, 2), 0)
    for ask in (region.lmo, region.project, region.violation, region.contains):
        with pytest.raises(ValueError, match=says("`k`", "5", kind.__name__, "4 entries")):
            ask(x)
    with pytest.raises(ValueError, match=says("`k`", "5", kind.__name__, "4 entries")):
        region.diameter((4,))
    with pytest.raises(ValueError, match=says("`k`", "5", kind.__name__, "4 entries")):
        cg.PerRow(region).diameter((9, 4))


def test_wrong_bounds_are_named():
    for low, high in [(1.0, 1.0), (2, 1)]:
        with pytest.raises(ValueError, match=says("`low`", "`high`")):
            cg.Box(low, high)
    for value in [math.nan, math.inf, -math.inf]:
        with pytest.raises(ValueError, match=says("`low`", "Box", f"{value!r}")):
            cg.Box(value, 1.0)
        with pytest.raises(ValueError, match=says("`high`", "Box", f"{value!r}")):
            cg.Box(-1.0, value)
    for value in NOT_NUMBERS:
        with pytest.raises(TypeError, match=says("`low`", "Box", f"{value!r}")):
            cg.Box(value, 1.0)
        with pytest.raises(TypeError, match=says("`high`", "Box", f"{value!r}")):
            cg.Box(-1.0, value)


@pytest.mark.parametrize("kind", [cg.PerRow, cg.PerFilter])
def test_blocks_hold_one_bounded_region(kind):
    for wrong in [3.0, None, cg.L2Ball, "L2Ball"]:
        with pytest.raises(TypeError, match=says("`region`", kind.__name__)):
            kind(wrong)
    for wrong in [cg.PerRow(cg.L2Ball(1.0)), cg.PerFilter(cg.L2Ball(1.0)), cg.Free()]:
        with pytest.raises(ValueError, match=says("`region`", kind.__name__)):
            kind(wrong)
    for wrong in [None, cg.L2Ball(7.0), "L2Ball", int]:
        with pytest.raises(TypeError, match=says("`region`", kind.__name__, f"got {wrong!r}")):
            kind.from_diameter(1.0, (3, 4, 5), region=wrong)
    for shape in [(), (3,), (0, 4, 5), (3, 0, 5)]:
        with pytest.raises(ValueError, match=r"tensor of shape|is empty"):
            kind.from_diameter(1.0, shape, region=cg.L2Ball)


def questions(region):
    return (region.lmo, region.project, region.violation, region.contains)


def asked_wrongly(case, x, error, pattern):
    for ask in questions(case.region):
        with pytest.raises(error, match=pattern):
            ask(x)


@asked_of(ONE_EACH)
def test_an_empty_tensor_has_no_point(case):
    for place in range(len(case.shape)):
        shape = (*case.shape[:place], 0, *case.shape[place + 1 :])
        asked_wrongly(case, torch.zeros(shape), ValueError, "empty")
        with pytest.raises(ValueError, match="empty"):
            case.region.diameter(shape)


@asked_of(ONE_EACH)
def test_a_tensor_of_other_numbers_is_refused(case):
    for dtype in (torch.int64, torch.uint8, torch.bool, torch.complex64):
        x = torch.ones(case.shape, dtype=dtype)
        asked_wrongly(case, x, TypeError, says("`x`", "floating-point", str(dtype)))
    x = torch.ones(case.shape).to_sparse()
    asked_wrongly(case, x, TypeError, says("`x`", "dense", "sparse"))


@asked_of(ONE_EACH)
def test_what_is_no_tensor_is_refused(case):
    for x in (np.ones(case.shape), 1.0, None):
        asked_wrongly(case, x, TypeError, says("`x`", "Tensor", type(x).__name__))


WRONG_SHAPES = [
    *[(r, s) for r in (cg.SpectralBall(0.1), cg.NuclearBall(0.1)) for s in [(), (1,), (7,)]],
    *[(cg.PerRow(cg.L2Ball(0.1)), s) for s in [(), (1,), (7,)]],
    *[(cg.PerRow(cg.SpectralBall(0.1)), s) for s in [(3, 4)]],
    *[(cg.PerFilter(cg.L2Ball(0.1)), s) for s in [(), (7,), (3, 4), (2, 1, 1, 1, 1, 2)]],
]


@pytest.mark.parametrize(("region", "shape"), WRONG_SHAPES, ids=str)
def test_a_tensor_of_the_wrong_shape_is_refused(region, shape):
    x = torch.ones(shape)
    for ask in questions(region):
        with pytest.raises(ValueError, match=says("tensor of shape")) as caught:
            ask(x)
        assert type(region).__name__ in str(caught.value) or "SpectralBall" in str(caught.value)
    with pytest.raises(ValueError, match=says("tensor of shape")):
        region.diameter(shape)
    assert torch.equal(x, torch.ones(shape))


@asked_of(SEVERAL)
def test_a_wrong_diameter_is_named(case):
    kw = settings_beside_size(case.region)
    for value in NOT_POSITIVE:
        with pytest.raises(ValueError, match="`diameter`"):
            type(case.region).from_diameter(value, case.shape, **kw)
    for value in (True, "1", None):
        with pytest.raises(TypeError, match="`diameter`"):
            type(case.region).from_diameter(value, case.shape, **kw)


def test_all_of_space_has_no_oracle():
    with pytest.raises(ValueError, match=says("Free()", "no vert")):
        cg.Free().lmo(torch.ones(3))
