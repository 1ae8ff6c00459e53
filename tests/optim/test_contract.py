"""What makes an optimizer an optimizer: each question is asked of every member of the registry."""

import inspect
import random
import weakref

import pytest
import torch
from torch.optim import Optimizer

import condgrad as cg
from condgrad import optim
from condgrad.optim._move import RECALL_EVERY
from members import scaled
from optim.cases import (
    MEMBERS,
    MIXTURE,
    Quadratic,
    asked_of_optimizers,
    build,
    mixture,
    parameters,
    run,
    same,
    step,
    values,
)

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


class Poisoned(Quadratic):
    """In the third batch one entry of one parameter's gradient, or of each, is not finite."""

    place, poison = 0, torch.nan

    def gradient(self, place, theta, t):
        gradient = super().gradient(place, theta, t)
        if self.place in (place, None) and t == 2:
            gradient.view(-1)[-1] = self.poison
        return gradient


class Negative(Quadratic):
    """The same losses with the opposite sign."""

    def gradient(self, place, theta, t):
        return -super().gradient(place, theta, t)


def bounds_entries(group):
    """Whether the region bounds each entry on its own."""
    region = getattr(group["region"], "region", group["region"])
    return isinstance(region, (cg.LinfBall, cg.Box))


def trained(kind, groups, steps=6, **settings):
    """The parameters after some steps from these groups."""
    return run(build(kind, groups, **settings), Quadratic(parameters(groups)), steps)


@asked_of_optimizers()
@pytest.mark.parametrize("momentum", [None, 0.0])
def test_no_gradient_outlives_zero_grad(kind, momentum):
    """Its memory is what the next backward pass needs."""
    groups = mixture()
    settings = (
        {}
        if momentum is None or "momentum" not in MEMBERS[kind].settings
        else {"momentum": momentum}
    )
    optimizer, problem = build(kind, groups, **settings), Quadratic(parameters(groups))
    for t in range(3):
        step(optimizer, problem, t)
    found = [weakref.ref(p.grad) for p in parameters(groups)]
    optimizer.zero_grad()
    assert not any(gradient() is not None for gradient in found)


def test_every_exported_optimizer_has_an_entry():
    kinds = {getattr(optim, name) for name in optim.__all__}
    assert all(issubclass(kind, Optimizer) for kind in kinds)
    assert kinds == set(MEMBERS), "add the optimizer's entry to tests/optim/cases.py"
    assert all(getattr(cg, kind.__name__) is kind for kind in kinds)


def test_every_exported_region_is_in_the_mixture():
    kinds = {getattr(cg.regions, name) for name in cg.regions.__all__} - {cg.Region}
    assert {type(region) for region, _ in MIXTURE} == kinds, "add the region to MIXTURE"


@asked_of_optimizers()
def test_a_step_returns_the_loss_of_its_closure(kind):
    groups = mixture()
    problem = Quadratic(parameters(groups))
    optimizer = build(kind, groups)
    if MEMBERS[kind].period:
        optimizer.refresh([(problem.closure(None), 1.0)])
    expected, enabled = problem.closure(0)(), []

    def closure():
        enabled.append(torch.is_grad_enabled())
        return problem.closure(0)()

    with torch.no_grad():
        assert optimizer.step(closure=closure) == expected
        assert not torch.is_grad_enabled()
    assert enabled
    assert all(enabled), "a closure needs gradients"


@asked_of_optimizers(kind for kind in MEMBERS if not MEMBERS[kind].needs_closure)
def test_a_closure_moves_as_a_gradient_at_hand_does(kind):
    groups = mixture()
    problem = Quadratic(parameters(groups))
    optimizer = build(kind, groups)
    for t in range(6):
        optimizer.step(problem.closure(t))
    assert same(values(groups), trained(kind, mixture()))


@asked_of_optimizers(kind for kind in MEMBERS if not MEMBERS[kind].needs_closure)
def test_a_step_without_any_gradient_does_nothing(kind):
    groups = mixture()
    optimizer = build(kind, groups)
    assert optimizer.step() is None
    assert same(values(groups), values(mixture()))


@asked_of_optimizers()
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_steps_move_and_stay_inside_and_in_their_format(kind, dtype):
    groups = mixture(dtype)
    problem = Quadratic(parameters(groups))
    optimizer = build(kind, groups)
    for t in range(20):
        for group in optimizer.param_groups:
            group["lr"] = 0.05 * t
        step(optimizer, problem, t)
        assert float(cg.violation(optimizer)) <= 32 * torch.finfo(dtype).eps
    for p, before in zip(parameters(groups), values(mixture(dtype)), strict=True):
        assert p.dtype is dtype
        assert p.isfinite().all()
        assert not torch.equal(p, before), "it has not moved"


@asked_of_optimizers()
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_rate_no_move(kind, dtype):
    assert same(trained(kind, mixture(dtype), 20, lr=0.0), values(mixture(dtype)))


@asked_of_optimizers()
@pytest.mark.parametrize("lr", [0.0, torch.tensor(0.0)], ids=["number", "tensor"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_fresh_optimizer_may_be_stepped_at_rate_zero_and_gradient_zero(kind, dtype, lr):
    """As distributed checkpointing does, to learn what state there is."""
    groups = mixture(dtype)
    for p in parameters(groups):
        p.grad = torch.zeros_like(p)
    optimizer = build(kind, groups, lr=lr)
    optimizer.step(closure=None)
    assert same(values(groups), values(mixture(dtype)))
    for state in optimizer.state.values():
        assert all(v.isfinite().all() for v in state.values() if isinstance(v, torch.Tensor))


@asked_of_optimizers()
def test_a_group_at_rate_zero_rests_while_the_others_move(kind):
    groups = mixture()
    problem = Quadratic(parameters(groups))
    optimizer = build(kind, groups, lr=0.002)
    before = run(optimizer, problem, 3)
    for place, group in enumerate(optimizer.param_groups):
        group["lr"] = 0.0 if place % 2 else 0.002
    after = run(optimizer, problem, 3, begin=3)
    rested = [torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert rested == [place % 2 == 1 for place in range(len(groups))]


@asked_of_optimizers()
def test_a_rate_in_a_tensor_is_that_rate(kind):
    plain, boxed = mixture(), mixture()
    lr = torch.tensor(0.05, dtype=torch.float64)
    first, second = build(kind, plain, lr=0.05), build(kind, boxed, lr=lr)
    for optimizer, groups in ((first, plain), (second, boxed)):
        problem = Quadratic(parameters(groups))
        run(optimizer, problem, 3)
        for group in first.param_groups:
            group["lr"] = 0.02
        lr.fill_(0.02)
        run(optimizer, problem, 3, begin=3)
        lr.fill_(0.05)
        for group in first.param_groups:
            group["lr"] = 0.05
    for a, b in zip(values(plain), values(boxed), strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-14)


@asked_of_optimizers()
def test_ascent_is_descent_of_the_negative(kind):
    groups = mixture()
    up = trained(kind, groups, maximize=True)
    groups = mixture()
    down = run(build(kind, groups), Negative(parameters(groups)), 6)
    assert same(up, down)
    assert not any(map(torch.equal, up, trained(kind, mixture())))


@asked_of_optimizers()
def test_parameters_are_bound_to_their_regions_whichever_have_gradients(kind):
    """Other subsets at every step: each parameter moves as if it were the only one."""
    rng, count, steps = random.Random(0), len(MIXTURE), 8
    missing = {t: set(rng.sample(range(count), rng.randint(1, count))) for t in range(steps)}
    together = mixture()
    optimizer = build(kind, together)
    problem = Quadratic(parameters(together), missing=missing)
    for t in range(steps):
        before = values(together)
        step(optimizer, problem, t)
        for place in missing[t]:
            assert torch.equal(parameters(together)[place], before[place]), "it had no gradient"
    for place in range(count):
        alone = mixture()
        problem = Quadratic(parameters(alone), missing=missing)
        run(build(kind, [alone[place]]), problem, steps)
        assert torch.equal(parameters(alone)[place], parameters(together)[place])


@asked_of_optimizers()
@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_passed_on(kind, poison):
    """Into its own parameter and no other, and never as a silent change of a healthy number."""
    expected = trained(kind, mixture(), 4)
    for place in range(len(MIXTURE)):
        groups = mixture()
        problem = Poisoned(parameters(groups))
        problem.place, problem.poison = place, poison
        found = run(build(kind, groups), problem, 4)
        clipped = poison == poison and MEMBERS[kind].projects and bounds_entries(groups[place])
        assert found[place].isfinite().all() == clipped
        others = [i for i in range(len(MIXTURE)) if i != place]
        assert same([found[i] for i in others], [expected[i] for i in others])


@asked_of_optimizers()
@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_what_is_not_finite_outlasts_the_pull_inside(kind, poison):
    """Which comes after so many steps and, in 16 bits, after each; nor does it raise there."""
    for dtype, steps in ((torch.float32, 2 * RECALL_EVERY), (torch.bfloat16, 6)):
        groups = mixture(dtype)
        problem = Poisoned(parameters(groups))
        problem.place, problem.poison = None, poison
        for group, p in zip(groups, run(build(kind, groups), problem, steps), strict=True):
            clipped = poison == poison and MEMBERS[kind].projects and bounds_entries(group)
            assert p.isfinite().all() == clipped, group["region"]


@asked_of_optimizers()
def test_params_come_as_groups_names_or_a_generator(kind):
    region = cg.L2Ball(0.7)

    def moved(give):
        module = torch.nn.Linear(3, 2).double()
        with torch.no_grad():
            for i, p in enumerate(module.parameters()):
                p.copy_(0.1 * (1 + i + torch.arange(p.numel()).reshape(p.shape)))
        cg.make_feasible([{"params": list(module.parameters()), "region": region}])
        optimizer = build(kind, give(module), region)
        return run(optimizer, Quadratic(module.parameters()), 4), optimizer

    expected, _ = moved(lambda module: list(module.parameters()))
    for give in (
        lambda module: module.parameters(),
        lambda module: (p for p in module.parameters()),
        lambda module: module.named_parameters(),
        lambda module: [{"params": module.parameters()}],
        lambda module: [{"params": module.weight}, {"params": [module.bias]}],
        lambda module: ({"params": p, "region": region} for p in module.parameters()),
        lambda module: cg.constrain(module, region),
    ):
        assert same(moved(give)[0], expected)
    _, named = moved(lambda module: module.named_parameters())
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]


@asked_of_optimizers()
@pytest.mark.parametrize("container", [list, tuple, cg.ParameterGroups, iter])
def test_the_callers_groups_stay_as_they_are(kind, container):
    groups = mixture()
    before = [dict(group) for group in groups]
    optimizer = build(kind, container(groups), lr=0.3)
    optimizer.param_groups[0]["lr"] = 0.7
    assert groups == before


@asked_of_optimizers()
def test_a_group_may_join_later_with_settings_of_its_own(kind):
    early, late = mixture(), mixture()
    optimizer = build(kind, late[:2], lr=0.05)
    for group in late[2:]:
        optimizer.add_param_group({**group, "lr": 0.02})
    for group in early[2:]:
        group["lr"] = 0.02
    expected = run(build(kind, early, lr=0.05), Quadratic(parameters(early)), 4)
    assert same(run(optimizer, Quadratic(parameters(late)), 4), expected)


@asked_of_optimizers()
def test_a_group_without_a_region_takes_the_default(kind):
    groups = mixture(members=[(cg.L2Ball(0.7), (3,)), (cg.L1Ball(30.0), (4,))])
    expected = trained(kind, groups)
    groups = mixture(members=[(cg.L2Ball(0.7), (3,)), (cg.L1Ball(30.0), (4,))])
    del groups[0]["region"]
    optimizer = build(kind, groups, cg.L2Ball(0.7))
    assert same(run(optimizer, Quadratic(parameters(groups)), 6), expected)


@asked_of_optimizers()
def test_any_layout_moves_alike(kind):
    def moved(arranged):
        groups = mixture()
        for group in groups:
            group["params"] = [arranged(p.detach()).requires_grad_() for p in group["params"]]
        problem = Quadratic(parameters(groups))
        problem.q = [arranged(q) for q in problem.q]
        run(build(kind, groups), problem, 6)
        return parameters(groups)

    expected = moved(lambda x: x)
    turned = moved(
        lambda x: x.mT.contiguous().mT if x.ndim > 1 else x.repeat(2)[: x.numel()].view(x.shape)
    )
    assert any(not p.is_contiguous() for p in turned)
    for a, b in zip(turned, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-14)


class Constant(Quadratic):
    """Gradients that do not depend on where the parameters are."""

    def gradient(self, place, theta, t):
        return self.tilt(place, t)


@asked_of_optimizers()
@pytest.mark.parametrize("factor", [2.0**-80, 2.0**80])
def test_the_size_of_a_region_is_a_unit_of_length(kind, factor):
    """Everything that is so many times as large moves so many times as far."""

    def moved(size, rule):
        groups = mixture(members=[each for each in MIXTURE if each[0] != cg.Free()])
        for group in groups:
            group["region"] = scaled(group["region"], size)
            group["params"] = [
                (size * p.detach()).float().requires_grad_() for p in group["params"]
            ]
        cg.make_feasible(groups)
        settings = {"rescale": rule} if "rescale" in known else {}
        if "weight_decay" in known:
            settings["weight_decay"] = 0.0  # which adds a length to a gradient
        rate = 0.05 * (size if rule else 1.0)
        problem = Constant(parameters(groups))
        return run(build(kind, groups, lr=rate, **settings), problem, 6)

    known = inspect.signature(kind).parameters
    for rule in (None, "diameter", "gradient") if "rescale" in known else ("gradient",):
        for small, large in zip(moved(1.0, rule), moved(factor, rule), strict=True):
            assert torch.allclose(large / factor, small, rtol=1e-4, atol=1e-6), rule


@asked_of_optimizers()
def test_random_numbers_are_left_to_the_user(kind):
    groups = mixture()
    before = torch.get_rng_state()
    zero = dict.fromkeys(range(3), torch.inf)  # every gradient is zero: nothing but ties
    run(build(kind, groups), Quadratic(parameters(groups), ties=zero), 3)
    assert torch.equal(torch.get_rng_state(), before)


@asked_of_optimizers()
def test_printing_shows_the_regions(kind):
    text = repr(build(kind, mixture()))
    assert kind.__name__ in text
    for region, _ in MIXTURE:
        assert str(region) in text
