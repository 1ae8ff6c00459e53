"""From rules to groups: the first match wins, nothing is forgotten, nothing else is touched."""

import copy

import pytest
import torch
from torch import nn

import condgrad as cg
from inputs import normal

FREE = {r".*": cg.Free()}


class Net(nn.Module):
    """Convolution, norm, a tied and a frozen parameter, one of no dimension, a bare one."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.conv = nn.Conv2d(2, 3, 3)
            self.norm = nn.BatchNorm2d(3)
            self.first = nn.Linear(6, 4)
            self.second = nn.Linear(6, 4, bias=False)
            self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(torch.tensor(0.5))

    def names(self):
        return [name for name, p in self.named_parameters() if p.requires_grad]


def placed(groups):
    """The region of each name."""
    return {name: group["region"] for group in groups for name in group["param_names"]}


# ---- who matches


def test_one_rule_binds_every_parameter():
    model = Net()
    groups = cg.constrain(model, cg.L2Ball(30.0))
    assert placed(groups) == dict.fromkeys(model.names(), cg.L2Ball(30.0))
    by_name = dict(model.named_parameters())
    for group in groups:
        assert all(
            by_name[n] is p for n, p in zip(group["param_names"], group["params"], strict=True)
        )


def test_the_first_match_wins():
    rules = {
        r"conv\.weight": cg.KSparsePolytope(0.1, 30.0),
        r".*weight": cg.LinfBall(3.0),
        r".*\.bias": cg.Free(),
        r".*": cg.L1Ball(40.0),
    }
    expected = {
        "scale": cg.L1Ball(40.0),
        "conv.weight": cg.KSparsePolytope(0.1, 30.0),
        "conv.bias": cg.Free(),
        "norm.weight": cg.LinfBall(3.0),
        "norm.bias": cg.Free(),
        "first.weight": cg.LinfBall(3.0),
        "first.bias": cg.Free(),
    }
    assert placed(cg.constrain(Net(), rules)) == expected
    # A general rule in front takes all of it: the one behind still matches, and comes too late.
    turned = {r".*": cg.L1Ball(40.0), r"conv\.weight": cg.LinfBall(3.0)}
    assert set(placed(cg.constrain(Net(), turned)).values()) == {cg.L1Ball(40.0)}


def test_module_types_match_the_parameters_they_own():
    rules = {nn.Linear: cg.L2Ball(30.0), r"scale": cg.Box(-1, 1), nn.Module: cg.Free()}
    found = placed(cg.constrain(Net(), rules))
    assert found["first.weight"] == found["first.bias"] == cg.L2Ball(30.0)
    assert found["scale"] == cg.Box(-1, 1)
    assert found["conv.weight"] == found["norm.bias"] == cg.Free()


def test_expressions_match_whole_names():
    with pytest.raises(ValueError, match=r"rules that match no parameter: 'conv'"):
        cg.constrain(Net(), {"conv": cg.L2Ball(1.0), **FREE})
    with pytest.raises(ValueError, match=r"match no parameter: 'weight'"):
        cg.constrain(Net(), {"weight": cg.L2Ball(1.0), **FREE})


def test_tied_parameters_count_once_and_frozen_ones_not_at_all():
    model = Net()
    groups = cg.constrain(model, cg.L2Ball(30.0))
    parameters = [p for group in groups for p in group["params"]]
    assert len(parameters) == len({id(p) for p in parameters}) == 7
    assert not any(p is model.frozen.weight for p in parameters)
    # A rule for frozen parameters matches, though nothing comes of it.
    assert set(placed(cg.constrain(model, {r"frozen.*": cg.L1Ball(1.0), **FREE}))) == set(
        model.names()
    )


def test_parameters_of_one_region_share_a_group():
    groups = cg.constrain(Net(), {r".*weight": cg.L2Ball(30.0), r".*": cg.Free()})
    assert [group["region"] for group in groups] == [cg.Free(), cg.L2Ball(30.0)]
    groups = cg.constrain(Net(), cg.L2Ball, width=30)
    assert len(groups) == 7, "each has its own radius"


# ---- what is left as it was


def surroundings(model):
    tensors = [*model.parameters(), *model.buffers()]
    return [t.detach().clone() for t in tensors] + [torch.get_rng_state()]


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        (cg.L2Ball, {"width": 300}),
        (cg.LinfBall, {"width": 30}),
        (cg.L1Ball, {"diameter": 100.0}),
        (cg.Free, {}),
        (cg.LpBall, {"width": 100, "p": 5}),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_start_inside_and_all_the_rest_stay_untouched(rule, size):
    model = Net()
    before = surroundings(model)
    pointers = [p.data_ptr() for p in model.parameters()]
    cg.constrain(model, rule, **size)
    assert all(map(torch.equal, surroundings(model), before))
    assert [p.data_ptr() for p in model.parameters()] == pointers
    assert all(p.grad is None for p in model.parameters())
    assert model.training


def test_a_start_outside_is_moved_to_its_nearest_point_and_no_other():
    model = Net()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    groups = cg.constrain(model, {r"first\.weight": cg.L2Ball(0.1), r".*": cg.L2Ball(30.0)})
    after = dict(model.named_parameters())
    assert torch.equal(after["first.weight"], cg.L2Ball(0.1).project(before["first.weight"]))
    assert all(torch.equal(after[n], p) for n, p in before.items() if n != "first.weight")
    assert float(cg.violation(groups)) < 1e-6


def test_a_start_outside_is_refused_if_asked_to_check():
    model = Net()
    before = surroundings(model)
    rules = {r"first\.weight": cg.L2Ball(0.1), r".*": cg.L2Ball(30.0)}
    text = r"these parameters start outside: first.weight outside L2Ball\(radius=0.1\) by \d"
    with pytest.raises(ValueError, match=text):
        cg.constrain(model, rules, feasible="check")
    assert all(map(torch.equal, surroundings(model), before))
    cg.constrain(model, cg.L2Ball(30.0), feasible="check")


def test_what_training_carried_outside_can_be_moved_back():
    for give in (lambda m, g: m, lambda m, g: g, lambda m, g: cg.SFW(g), lambda m, g: iter(g)):
        model = Net()
        groups = cg.constrain(model, cg.LinfBall(1.0))
        given = give(model, groups)
        with torch.no_grad():
            model.first.weight.fill_(3.0)
        cg.make_feasible(given)
        assert torch.equal(model.first.weight, torch.ones(4, 6))
    with pytest.raises(ValueError, match="`model_or_groups` is a model that `constrain` has not"):
        cg.make_feasible(Net())


# ---- sizes


def test_widths_are_measured_against_each_start():
    model = Net()
    for name, region in placed(cg.constrain(model, cg.L2Ball, width=7)).items():
        norm = float(dict(model.named_parameters())[name].detach().norm())
        assert region.diameter((1,)) == pytest.approx(2 * 7 * (norm or 1.0), rel=1e-6), name


def test_sized_rules_stand_beside_settled_ones():
    rules = {
        r".*weight": cg.sized(cg.KSparsePolytope, width=50, k=(2, 0.1)),
        r"scale": cg.sized(cg.LinfBall, diameter=8.0),
        r".*": cg.Free(),
    }
    found = placed(cg.constrain(Net(), rules))
    assert found["scale"] == cg.LinfBall(4.0)
    assert found["first.weight"].k == (2, 0.1)
    assert found["conv.bias"] == cg.Free()


# ---- what is shown


def test_the_summary_tells_what_was_set():
    groups = cg.constrain(Net(), {r".*weight": cg.L2Ball(30.0), r".*": cg.Free()})
    lines = str(groups).splitlines()
    assert str(groups) == cg.summary(groups)
    assert lines[0].split() == ["parameter", "shape", "region", "diameter"]
    cells = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert cells["first.weight"] == ["4×6", "L2Ball(radius=30.0)", "60"]
    assert cells["conv.weight"] == ["3×2×3×3", "L2Ball(radius=30.0)", "60"]
    assert cells["scale"] == ["1", "Free()", "inf"]
    assert len(cells) == 7
    assert cg.summary(cg.SFW(groups).param_groups) == str(groups)


def test_the_groups_are_lists_of_dicts_like_any_others():
    groups = cg.constrain(Net(), cg.L2Ball(30.0))
    assert isinstance(groups, list)
    assert all(type(group) is dict for group in groups)
    assert len(copy.deepcopy(groups)) == len(groups)
    assert len(groups.buffers) == 3
    groups[0]["lr"] = 0.3
    assert cg.SFW(groups, lr=0.1).param_groups[0]["lr"] == 0.3


# ---- wrong use


UNKNOWN = [
    (lambda: cg.constrain(Net(), {}), ValueError, "`rules` is empty: give at least one"),
    (
        lambda: cg.constrain(Net(), {r"fc.*": cg.L2Ball(1.0), nn.LSTM: cg.Free(), **FREE}),
        ValueError,
        r"`rules` has rules that match no parameter: 'fc\.\*', LSTM; .*: scale, conv.weight, ",
    ),
    (
        lambda: cg.constrain(Net(), {nn.Conv2d: cg.L2Ball(9.0), r"scale": cg.Free()}),
        ValueError,
        r"without a region: norm.weight, norm.bias, first.weight, first.bias; the rules are: "
        r"Conv2d, 'scale'; add",
    ),
    (lambda: cg.constrain(Net(), {"(": cg.Free()}), ValueError, r"`rules` has '\(', no regular"),
    (lambda: cg.constrain(Net(), {3: cg.Free()}), TypeError, "or module types .* got 3"),
    (lambda: cg.constrain(Net(), {int: cg.Free()}), TypeError, "module types .* got <class 'int'>"),
    (lambda: cg.constrain(Net(), [cg.Free()]), TypeError, r"a rule must be a region.* got \[Free"),
    (lambda: cg.constrain(Net(), {".*": "L2Ball"}), TypeError, "a rule must be .* got 'L2Ball'"),
    (
        lambda: cg.constrain(Net().parameters(), cg.Free()),
        TypeError,
        r"`model` must be a torch.nn.Module, got generator: .* SFW\(parameters, region\)",
    ),
    (lambda: cg.constrain(Net(), cg.L2Ball), TypeError, "either `width` or `diameter` for L2Ball"),
    (
        lambda: cg.constrain(Net(), cg.L2Ball, width=3, diameter=3),
        TypeError,
        "either `width` or `diameter` for L2Ball, not both",
    ),
    (lambda: cg.constrain(Net(), cg.L2Ball, width=-3), ValueError, "`width` must .* got -3"),
    (
        lambda: cg.constrain(Net(), cg.L2Ball(1.0), width=3),
        TypeError,
        r"`width` cannot size L2Ball\(radius=1.0\), whose size is settled",
    ),
    (
        lambda: cg.constrain(Net(), cg.sized(cg.L2Ball, width=3), width=30),
        TypeError,
        "`width` cannot size a rule for L2Ball, whose size is settled",
    ),
    (
        lambda: cg.constrain(Net(), {r"scale": cg.Free(), r".*": cg.LinfBall}, width=3),
        TypeError,
        r"cannot size Free\(\), .* among several rules give each its own, such as cg.sized",
    ),
    (lambda: cg.sized(cg.L2Ball, width="3"), TypeError, "`width` must be a number, got '3'"),
    (lambda: cg.sized(cg.L2Ball, width=3, std=-1.0), ValueError, "`std` must be .* got -1.0"),
    (
        lambda: cg.constrain(nn.LazyLinear(3), cg.L2Ball(1.0)),
        ValueError,
        "parameter `weight` has no shape yet: let the model see a batch first",
    ),
    (
        lambda: cg.constrain(Net(), cg.SpectralBall(1.0)),
        ValueError,
        r"parameter `scale`: SpectralBall\(radius=1.0\) binds matrices",
    ),
    (
        lambda: cg.constrain(Net(), {r"first.*": cg.KNormBall(5, 9.0), **FREE}),
        ValueError,
        "parameter `first.bias`: `k` = 5 of KNormBall exceeds the 4 entries",
    ),
    (
        lambda: cg.constrain(Net(), cg.ProbabilitySimplex, width=3),
        ValueError,
        "parameter `scale`: .* makes every ProbabilitySimplex a single point",
    ),
    (
        lambda: cg.constrain(Net(), cg.Free(), feasible="no"),
        ValueError,
        "`feasible` must be \"move\" or \"check\", got 'no'",
    ),
    (lambda: cg.sized(cg.L2Ball(1.0), width=3), TypeError, "`kind` must be a region class"),
    (lambda: cg.sized(cg.L2Ball, width=3, at_zero=0), ValueError, "`at_zero` must be positive"),
    (lambda: cg.sized(cg.L2Ball, diameter=float("nan")), ValueError, "`diameter` must be positive"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "text"), UNKNOWN, ids=[u[2][:50] for u in UNKNOWN])
def test_wrong_use_is_named(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("odd", [torch.zeros(2, dtype=torch.complex64), torch.zeros(0, 3)], ids=str)
def test_nothing_is_moved_before_all_is_known_to_be_right(odd):
    model = Net()
    model.odd = nn.Parameter(odd)
    before = surroundings(model)
    with pytest.raises((TypeError, ValueError), match="parameter `odd`: `x`"):
        cg.constrain(model, cg.L2Ball(0.1))
    assert all(map(torch.equal, surroundings(model), before))


@pytest.mark.parametrize("rule", [cg.L1Ball(0.1), cg.LinfBall(0.1), cg.sized(cg.L2Ball, width=1)])
def test_a_start_that_is_not_a_number_is_refused_before_anything_is_moved(rule):
    model = Net()
    groups = cg.constrain(model, cg.L2Ball(30.0))
    for group in groups:
        group["region"] = cg.L2Ball(0.1)
    with torch.no_grad():
        model.norm.bias[1] = torch.nan
    before = [t.nan_to_num(7.0) for t in surroundings(model)]
    for make in (lambda: cg.constrain(model, rule), lambda: cg.make_feasible(groups)):
        with pytest.raises(ValueError, match=r"parameter `norm.bias` is not finite: no point of"):
            make()
        after = [t.nan_to_num(7.0) for t in surroundings(model)]
        assert all(map(torch.equal, after, before))


def test_a_half_precision_start_is_measured_wide():
    """Its norm, 400 · 300, is more than float16 holds."""
    model = nn.Linear(400, 400, bias=False, dtype=torch.float16)
    with torch.no_grad():
        model.weight.copy_(normal((400, 400), 0).sign() * 300)
    (region,) = placed(cg.constrain(model, cg.L2Ball, width=1)).values()
    assert region.radius == pytest.approx(120_000, rel=1e-3)
