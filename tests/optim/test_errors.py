"""Wrong use of an optimizer: the error says what is wrong, what was found, and nothing has changed.

And what is unusual but right: parameters of one entry, or of no dimension.
"""

import copy
import inspect
import itertools
import math
import re

import pytest
import torch

import condgrad as cg
from members import FILTERS, MATRICES, SIMPLE, Case, asked_of
from optim.cases import (
    MEMBERS,
    Quadratic,
    asked_of_optimizers,
    build,
    mixture,
    parameters,
    run,
    same,
    start,
    step,
    values,
)

TRIED = asked_of_optimizers()
EVALUATED_ONCE = [kind for kind in MEMBERS if not MEMBERS[kind].needs_closure]
FIRST = [Case(each.regions[0], each.shapes[0]) for each in SIMPLE.values()]
OF_VECTORS = [case for case in FIRST if SIMPLE[type(case.region)].shapes is not MATRICES]


def has(kind, setting):
    return setting in inspect.signature(kind).parameters


def says(*parts):
    """A pattern for a text with these parts in this order."""
    return ".*".join(map(re.escape, parts))


def refused(make, error, pattern, *tensors):
    """Check that it raises, and that the tensors are as they were."""
    before = copy.deepcopy([t.detach() for t in tensors])
    with pytest.raises(error, match=pattern) as caught:
        make()
    for tensor, old in zip(tensors, before, strict=True):
        assert torch.equal(tensor, old) or old.isnan().any()
    return str(caught.value)


# ---- parameters


WRONG = [
    (torch.zeros(3, dtype=torch.int64), cg.L2Ball(1.0), TypeError, "torch.int64"),
    (torch.zeros(3, dtype=torch.bool), cg.Free(), TypeError, "torch.bool"),
    (torch.zeros(3, dtype=torch.complex64), cg.L2Ball(1.0), TypeError, "torch.complex64"),
    (torch.zeros(3, dtype=torch.complex64), cg.Free(), TypeError, "torch.view_as_real"),
    (torch.zeros(0), cg.L2Ball(1.0), ValueError, "(0,) is empty"),
    (torch.zeros(2, 0, 3), cg.PerRow(cg.L1Ball(1.0)), ValueError, "(2, 0, 3) is empty"),
    (torch.zeros(0), cg.Free(), ValueError, "(0,) is empty"),
    (torch.zeros(3), cg.KSparsePolytope(4, 1.0), ValueError, "`k` = 4"),
    (torch.zeros(()), cg.KNormBall(2, 1.0), ValueError, "`k` = 2"),
    (torch.zeros(9, 3), cg.PerRow(cg.KNormBall(4, 1.0)), ValueError, "`k` = 4"),
    (torch.zeros(3), cg.SpectralBall(1.0), ValueError, "binds matrices"),
    (torch.zeros(()), cg.NuclearBall(1.0), ValueError, "binds matrices"),
    (torch.zeros(3), cg.PerRow(cg.L2Ball(1.0)), ValueError, "binds rows"),
    (torch.zeros(3, 4), cg.PerFilter(cg.L2Ball(1.0)), ValueError, "binds the filters"),
    (torch.full((3,), 2.0), cg.L2Ball(1.0), ValueError, "starts outside L2Ball(radius=1.0)"),
    (torch.full((), -0.5), cg.UnitSimplex(1.0), ValueError, "starts outside UnitSimplex"),
    (torch.full((3,), math.nan), cg.LinfBall(1.0), ValueError, "starts outside LinfBall"),
    (torch.full((3, 2), math.inf), cg.NuclearBall(1.0), ValueError, "starts outside NuclearBall"),
]


@TRIED
@pytest.mark.parametrize(
    ("wrong", "region", "error", "text"), WRONG, ids=[f"{w[1]} {w[3]}" for w in WRONG]
)
def test_a_wrong_parameter_is_named(kind, wrong, region, error, text):
    right = start(cg.L2Ball(1.0), (3,), dtype=torch.float32)
    groups = [{"params": [right], "region": cg.L2Ball(1.0)}]
    found = refused(lambda: kind([wrong], region), error, says("parameter `0.0`", text), wrong)
    assert len(found) < 300
    refused(lambda: kind([("odd", wrong)], region), error, says("parameter `odd`", text), wrong)
    # A group that joins wrongly has not joined.
    optimizer = build(kind, groups)
    added = {"params": [wrong], "region": region}
    pattern = says("parameter `1.0`", text)
    refused(lambda: optimizer.add_param_group(added), error, pattern, right, wrong)
    assert len(optimizer.param_groups) == 1
    untouched = start(cg.L2Ball(1.0), (3,), dtype=torch.float32)
    expected = run(build(kind, [untouched], cg.L2Ball(1.0)), Quadratic([untouched]), 3)
    assert same(run(optimizer, Quadratic([right]), 3), expected)


@TRIED
def test_two_groups_sharing_a_parameter_are_refused(kind):
    p, q = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    shared = [{"params": [p], "region": cg.L2Ball(1.0)}, {"params": [p, q], "region": cg.Free()}]
    pattern = "parameters appear in more than one parameter group"
    refused(lambda: kind(shared), ValueError, pattern, p, q)
    optimizer = kind(shared[:1])
    refused(lambda: optimizer.add_param_group(shared[1]), ValueError, pattern, p, q)
    assert len(optimizer.param_groups) == 1


@TRIED
@pytest.mark.parametrize("region", [None, cg.L2Ball, 1.0, "L2Ball(1.0)"], ids=str)
def test_a_group_without_a_region_is_refused(kind, region):
    p = torch.zeros(3, requires_grad=True)
    pattern = says("`region` of a parameter group must be a region", f"got {region!r}")
    refused(lambda: kind([p], region), TypeError, pattern)
    refused(lambda: kind([{"params": [p], "region": region}], None), TypeError, pattern)


@TRIED
def test_a_tensor_or_nothing_in_place_of_parameters_is_refused(kind):
    refused(lambda: kind(torch.zeros(3), cg.Free()), TypeError, "should be an iterable of Tensors")
    refused(lambda: kind([], cg.Free()), ValueError, "empty parameter list")
    refused(lambda: kind(iter(()), cg.Free()), ValueError, "empty parameter list")


# ---- settings


OF_ALL = {"lr": (-0.1, math.nan, math.inf, torch.tensor(-1.0), "fast", None)}
OF_SOME = {
    "momentum": (-0.1, 1.0, 1.5, math.nan, "a", None),
    "rescale": ("radius", 1.0, "Diameter"),
    "ties": ("last", None, True),
    "seed": (-1, 2**63, math.nan, 0.5, "a", None),
    "foreach": ("no", 0.5),
    "betas": ((0.9,), 0.9, (0.9, 0.99, 0.999), None),
    "weight_decay": (-0.1, math.nan, math.inf),
    "inner": (0, -1, 2.5, True, None),
    "delta": (0.0, -1.0, math.nan, math.inf, "a", None),
}
SETTINGS = [
    (kind, name, value)
    for kind in MEMBERS
    for name, wrong in {**OF_ALL, **OF_SOME}.items()
    if has(kind, name)
    for value in wrong
]


@pytest.mark.parametrize(
    ("kind", "name", "value"), SETTINGS, ids=[f"{k.__name__} {n} {v}" for k, n, v in SETTINGS]
)
def test_a_wrong_setting_is_named(kind, name, value):
    p = start(cg.L2Ball(1.0), (3,))
    shown = f"{float(value)}" if isinstance(value, torch.Tensor) else f"{value!r}"
    pattern = says(f"`{name}` must", f"got {shown}")
    refused(lambda: kind([p], cg.L2Ball(1.0), **{name: value}), (ValueError, TypeError), pattern, p)
    # In a group of its own as well.
    optimizer, other = kind([p], cg.L2Ball(1.0)), start(cg.L2Ball(1.0), (3,), 1)
    group = {"params": [other], name: value}
    refused(lambda: optimizer.add_param_group(group), (ValueError, TypeError), pattern, p, other)
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9, "dampening": 0.1}], ids=str)
def test_nesterov_needs_momentum_without_dampening(settings):
    p = torch.zeros(3, requires_grad=True)
    with pytest.raises(ValueError, match="`nesterov` needs a momentum above 0 and no dampening"):
        cg.ProjectedSGD([p], cg.Free(), nesterov=True, **settings)


# ---- gradients


@asked_of_optimizers(EVALUATED_ONCE)
@pytest.mark.parametrize("begun", [0, 3])
def test_a_sparse_gradient_is_refused_before_anything_has_changed(kind, begun):
    """It is the last one that is sparse: the others would have moved already."""
    groups = mixture(members=[(cg.L2Ball(0.7), (3, 4)), (cg.Free(), (2,)), (cg.L1Ball(3.0), (3,))])
    optimizer, problem = build(kind, groups), Quadratic(parameters(groups))
    run(optimizer, problem, begun)
    state, before = copy.deepcopy(optimizer.state_dict()), values(groups)
    problem.closure(begun)()
    last = parameters(groups)[-1]
    last.grad = last.grad.to_sparse()
    pattern = says("layout torch.sparse_coo", f"{kind.__name__} needs dense", "sparse=False")
    refused(optimizer.step, TypeError, pattern, *parameters(groups))
    assert same(values(groups), before)
    assert str(optimizer.state_dict()) == str(state)
    run(optimizer, problem, 3, begin=begun)
    untroubled = mixture(members=[(g["region"], g["params"][0].shape) for g in groups])
    twin = build(kind, untroubled)
    assert same(run(twin, Quadratic(parameters(untroubled)), begun + 3), values(groups))


# ---- what is unusual but right


@TRIED
@asked_of(OF_VECTORS)
def test_a_parameter_of_no_dimension_moves_as_a_vector_of_one_entry(kind, case):
    """And so does one with more dimensions of one place each."""
    found = []
    for shape in ((1,), (), (1, 1, 1)):
        p = start(case.region, (1,)).detach().reshape(shape).requires_grad_()
        if isinstance(case.region, cg.Free):
            p = torch.full(shape, 0.3, dtype=torch.float64).requires_grad_()
        optimizer = build(kind, [p], case.region, lr=0.01)
        problem = Quadratic([p], seed=1)
        assert p.shape == shape
        found.append(run(optimizer, problem, 6)[0].reshape(()))
        assert case.region.contains(p)
    assert same(found, found[:1] * 3)


@TRIED
def test_the_region_that_is_a_single_point_stays_there(kind):
    """A probability simplex, or a permutahedron, of one entry."""
    rules = (None, "diameter", "gradient") if has(kind, "rescale") else (None,)
    points = ((cg.ProbabilitySimplex(0.3), ()), (cg.Permutahedron(0.3), (1,)))
    for (region, shape), rule in itertools.product(points, rules):
        p = torch.full(shape, 0.3, dtype=torch.float64).requires_grad_()
        settings = {"rescale": rule} if has(kind, "rescale") else {}
        optimizer = build(kind, [p], region, lr=0.5, **settings)
        for t in range(4):
            step(optimizer, Quadratic([p], seed=2), t)
            assert torch.allclose(p, torch.full_like(p, 0.3), rtol=1e-15)


@TRIED
def test_matrices_of_one_row_column_or_entry_move(kind):
    for region in (cg.SpectralBall(0.5), cg.NuclearBall(0.5), cg.PerRow(cg.L1Ball(0.5))):
        for shape in ((1, 5), (5, 1), (1, 1)):
            p = start(region, shape)
            before = p.detach().clone()
            run(build(kind, [p], region, lr=0.01), Quadratic([p]), 4)
            assert region.contains(p)
            assert not torch.equal(p, before)
    for shape in FILTERS:
        p = start(cg.PerFilter(cg.LinfBall(0.5)), shape)
        run(build(kind, [p], cg.PerFilter(cg.LinfBall(0.5)), lr=0.01), Quadratic([p]), 2)
        assert float(p.detach().abs().max()) <= 0.5
