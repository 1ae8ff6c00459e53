"""What a run is measured by: the gap against the slow twins, violations, active parameters."""

import copy
import math

import pytest
import torch
from torch import nn

import condgrad as cg
from inputs import array, dot, generator, inside, normal
from members import BOUNDED, BOUNDED_ONE_EACH, CASES, asked_of, exactly
from optim.cases import MIXTURE, asked_of_optimizers, build, mixture, parameters

# ---- the gap


def at_hand(groups, seed=0):
    """Give every parameter a gradient."""
    for i, p in enumerate(parameters(groups)):
        p.grad = normal(p.shape, 31 * seed + i).to(p.dtype)


class Holder:
    """What the gap asks of an optimizer, without its checks of the start."""

    def __init__(self, p, region):
        self.param_groups = [{"params": [p], "region": region}]


@asked_of(BOUNDED)
def test_the_gap_is_the_twins(case):
    """max over v of ⟨θ − v, g⟩, with the minimum as the slow twin has it, whatever the oracle."""
    for seed in range(3):
        p = inside(case.region, case.shape, seed, share=1.0).requires_grad_()
        p.grad = normal(case.shape, 40 + seed)
        expected = dot(p.detach(), p.grad) - case.twin.minimum(array(p.grad))
        size = (case.region.diameter(case.shape) or 1.0) * float(p.grad.norm())
        assert float(cg.fw_gap(cg.SFW([p], case.region))) == pytest.approx(
            expected, abs=1e-12 * size
        )
        # And no point inside gains more.
        gain = dot(p.detach() - inside(case.region, case.shape, 9), p.grad)
        assert gain <= expected + 1e-12 * size


@asked_of(BOUNDED_ONE_EACH)
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)
def test_the_gap_is_never_negative_and_zero_at_the_best_vertex(case, dtype):
    """There θ = v, up to the rounding of both."""
    for seed in range(6):
        g = normal(case.shape, seed).to(dtype)
        p = exactly(case.region).lmo(g, generator=generator(0)).requires_grad_()
        p.grad = g
        gap = float(cg.fw_gap(Holder(p, case.region)))
        size = float(p.detach().double().norm()) * float(g.double().norm())
        assert 0 <= gap <= 8 * torch.finfo(dtype).eps * size


def test_the_gap_adds_up_over_parameters_by_name():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    optimizer = cg.SFW(cg.constrain(model, {r".*weight": cg.L2Ball(9.0), r".*": cg.LinfBall(2.0)}))
    for i, p in enumerate(model.parameters()):
        p.grad = normal(p.shape, i)
    each = cg.fw_gap(optimizer, per_parameter=True)
    assert set(each) == {name for name, _ in model.named_parameters()}
    total = cg.fw_gap(optimizer)
    assert total.shape == ()
    assert total.dtype is torch.float64
    assert float(total) == pytest.approx(sum(float(gap) for gap in each.values()), rel=1e-14)
    weight = model[0].weight
    expected = dot(weight.detach() - cg.L2Ball(9.0).lmo(weight.grad), weight.grad)
    assert float(each["0.weight"]) == pytest.approx(expected, rel=1e-12)


def test_parameters_of_one_name_or_none_all_count():
    """Those of two models, say."""
    for names in ({}, {"param_names": ["weight"]}):
        groups = mixture()[:3]
        for group in groups:
            group.update(copy.deepcopy(names))
        at_hand(groups)
        alone = [float(cg.fw_gap(cg.SFW([group]))) for group in groups]
        assert float(cg.fw_gap(cg.SFW(groups))) == pytest.approx(sum(alone), rel=1e-14)
        with torch.no_grad():
            parameters(groups)[0].mul_(100.0)
        assert float(cg.violation(groups)) > 1


def test_free_parameters_and_those_without_gradient_are_left_out():
    groups = mixture()
    optimizer = cg.SFW(groups)
    at_hand(groups)
    parameters(groups)[1].grad = None
    names = cg.fw_gap(optimizer, per_parameter=True)
    free = {f"{i}.0" for i, (region, _) in enumerate(MIXTURE) if isinstance(region, cg.Free)}
    assert set(names) == {f"{i}.0" for i in range(len(MIXTURE))} - free - {"1.0"}


@asked_of_optimizers()
def test_the_gap_is_the_same_for_every_optimizer_and_turns_with_maximize(kind):
    groups = mixture()
    at_hand(groups)
    optimizer = build(kind, groups)
    plain = float(cg.fw_gap(optimizer))
    assert plain == float(cg.fw_gap(cg.SFW(groups)))
    for p in parameters(groups):
        p.grad = -p.grad
    turned = float(cg.fw_gap(build(kind, groups, maximize=True)))
    assert turned == pytest.approx(plain, rel=1e-13)
    assert float(cg.fw_gap(optimizer)) != pytest.approx(plain, rel=1e-3)


@asked_of(BOUNDED_ONE_EACH)
def test_the_gap_is_that_of_the_set_however_its_oracle_is_asked(case):
    """A vertex that is merely good makes a step, but is no measure."""
    p = inside(case.region, case.shape, 1).requires_grad_()
    p.grad = normal(case.shape, 2)
    found = float(cg.fw_gap(Holder(p, case.region)))
    assert found == float(cg.fw_gap(Holder(p, exactly(case.region))))
    short = dot(p.detach() - case.region.lmo(p.grad), p.grad)
    assert found >= short - 1e-12 * abs(found)
    assert found <= short + case.twin.loss(array(p.grad)) + 1e-12 * abs(found)


def closures(groups, sizes, missing=()):
    """(closure, size) pairs whose gradients are known."""

    def of(t):
        def closure():
            assert torch.is_grad_enabled()
            for i, p in enumerate(parameters(groups)):
                assert p.grad is None, "the gradients at hand are not the closure's"
                p.grad = None if (t, i) in missing else normal(p.shape, 100 * t + i)

        return closure

    return [(of(t), size) for t, size in enumerate(sizes)]


@pytest.mark.parametrize("missing", [(), ((1, 0), (2, 0), (0, 1), (1, 1), (2, 1))], ids=str)
def test_the_gap_over_batches_is_that_of_their_mean_weighted_by_size(missing):
    sizes = (3, 1, 4)
    groups = mixture()
    at_hand(groups)
    kept = [p.grad for p in parameters(groups)]
    found = cg.fw_gap(cg.SFW(groups), iter(closures(groups, sizes, missing)), per_parameter=True)
    assert all(p.grad is old for p, old in zip(parameters(groups), kept, strict=True))
    for i, p in enumerate(parameters(groups)):
        given = [t for t in range(3) if (t, i) not in missing]
        parts = [sizes[t] * normal(p.shape, 100 * t + i) for t in given]
        p.grad = torch.stack(parts).sum(0) / sum(sizes) if parts else None
    expected = cg.fw_gap(cg.SFW(groups), per_parameter=True)
    assert set(found) == set(expected)
    for name, gap in expected.items():
        assert float(found[name]) == pytest.approx(float(gap), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_gradients_of_batches_are_added_up_wide(dtype):
    """Their sums, each times its size, are beyond what float16 holds, and its 8 bits spoil them."""
    groups = mixture(dtype)
    at_hand(groups)
    optimizer = cg.SFW(groups)
    expected = float(cg.fw_gap(optimizer))
    found = float(cg.fw_gap(optimizer, [(lambda: at_hand(groups), 100_003)] * 3))
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_gradients_at_hand_come_back_after_a_failure():
    groups = mixture()
    at_hand(groups)
    kept = [p.grad for p in parameters(groups)]
    with pytest.raises(ZeroDivisionError):
        cg.fw_gap(cg.SFW(groups), [(lambda: 1 / 0, 1)])
    assert all(p.grad is old for p, old in zip(parameters(groups), kept, strict=True))


def test_sparse_gradients_are_refused_by_name():
    groups = mixture()
    at_hand(groups)
    kept = [p.grad for p in parameters(groups)]
    kept[0] = parameters(groups)[0].grad = kept[0].to_sparse()
    text = r"layout torch.sparse_coo was found: the gap needs dense gradients .* sparse=False"
    with pytest.raises(TypeError, match=text):
        cg.fw_gap(cg.SFW(groups))

    def closure():
        for p, grad in zip(parameters(groups), kept, strict=True):
            p.grad = grad

    with pytest.raises(TypeError, match=text):
        cg.fw_gap(cg.SFW(groups), [(closure, 1)])


def test_no_gradients_are_no_proof_of_optimality():
    optimizer = cg.SFW(mixture())
    for per_parameter in (False, True):
        with pytest.raises(ValueError, match="no parameter has a gradient: run backward first"):
            cg.fw_gap(optimizer, per_parameter=per_parameter)
    at_hand(optimizer.param_groups)
    optimizer.param_groups = [g for g in optimizer.param_groups if g["region"] == cg.Free()]
    assert float(cg.fw_gap(optimizer)) == 0, "free parameters are left out"


def test_no_batches_are_no_proof_of_optimality():
    with pytest.raises(ValueError, match=r"`batches` is empty: give the \(closure, size\) pairs"):
        cg.fw_gap(cg.SFW(mixture()), iter(()))


# ---- the violation


@asked_of(CASES)
def test_the_violation_is_the_regions(case):
    x = normal(case.shape, 1, 3.0)
    groups = [{"params": [x], "region": case.region}]
    assert float(cg.violation(groups)) == pytest.approx(case.region.violation(x), rel=1e-12)


def test_the_violation_is_the_largest_by_name_if_asked():
    groups = [
        {"params": [torch.full((3,), 2.0)], "region": cg.LinfBall(1.0), "param_names": ["a"]},
        {"params": [torch.full((3,), 4.0)], "region": cg.LinfBall(1.0), "param_names": ["b"]},
        {"params": [torch.full((3,), 9.0)], "region": cg.Free(), "param_names": ["c"]},
    ]
    assert float(cg.violation(groups)) == 3.0
    each = cg.violation(groups, per_parameter=True)
    assert {name: float(value) for name, value in each.items()} == {"a": 1.0, "b": 3.0, "c": 0.0}
    groups[0]["params"][0][1] = math.nan
    assert not math.isfinite(float(cg.violation(groups)))


# ---- active parameters


def shrunk():
    """A module of 15 parameters of which 4 have shrunk since their start, and the start."""
    model = nn.Linear(4, 3)
    initial = {name: p.detach().clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        model.weight[0, 0] *= -0.5
        model.weight[2, 1:3] *= 0.999
        model.bias[1] = 0.0
        model.weight[1] *= -1  # as large as before
        model.bias[2] *= 3
    return model, initial


def test_active_is_what_has_not_shrunk_since_the_start():
    model, initial = shrunk()
    before = copy.deepcopy(model)
    assert cg.active_parameters(model, initial) == 11
    assert cg.active_parameters(before, initial) == 11, "counting changes nothing"
    assert all(map(torch.equal, model.parameters(), before.parameters()))


def test_inactive_parameters_are_set_to_zero_and_no_others():
    model, initial = shrunk()
    before = copy.deepcopy(model)
    assert cg.zero_inactive(model, initial) == 11
    zeroed = torch.zeros(3, 4, dtype=torch.bool)
    zeroed[0, 0] = zeroed[2, 1] = zeroed[2, 2] = True
    assert torch.equal(model.weight, before.weight.masked_fill(zeroed, 0.0))
    assert torch.equal(model.bias, before.bias.masked_fill(torch.tensor([False, True, False]), 0.0))
    assert model.weight.requires_grad
    assert cg.active_parameters(model, initial) == 11


@pytest.mark.parametrize("ask", [cg.fw_gap, cg.violation, cg.make_feasible])
def test_what_has_no_regions_is_refused(ask):
    model = nn.Sequential(nn.Linear(2, 3))
    for wrong in (nn.Linear(2, 3), model):
        with pytest.raises((TypeError, ValueError), match=r"groups|`constrain` has not seen"):
            ask(wrong)
    for wrong in (torch.optim.SGD(model.parameters(), 0.1), [{"params": [model[0].bias]}]):
        model(torch.zeros(1, 2)).sum().backward()
        with pytest.raises(TypeError, match="parameter group 0 has no region: give the groups of"):
            ask(wrong)


def test_a_start_of_another_shape_is_refused():
    model, initial = shrunk()
    initial["bias"] = torch.zeros(1)
    for ask in (cg.active_parameters, cg.zero_inactive):
        text = r"`initial` has shape \(1,\) for parameter `bias`, whose shape is \(3,\)"
        with pytest.raises(ValueError, match=text):
            ask(model, initial)


def test_a_start_that_lacks_a_name_is_refused():
    model, initial = shrunk()
    del initial["bias"]
    for ask in (cg.active_parameters, cg.zero_inactive):
        with pytest.raises(ValueError, match="`initial` lacks the parameters bias"):
            ask(model, initial)
