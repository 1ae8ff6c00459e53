"""What the methods that evaluate each batch twice have in common: costs, state, compilers.

Wrong use, and the full gradient, are in `test_snapshots.py`.
"""

import copy
import io
import pickle

import pytest
import torch

import condgrad as cg
from inputs import normal
from optim.batches import SNAPSHOTTING, VARIANCE_REDUCED, Batches, Noisy, directions, snapshot
from optim.cases import asked_of_optimizers, build, mixture, parameters, same, start, values

TRIED = asked_of_optimizers(VARIANCE_REDUCED)
TAKING_SNAPSHOTS = asked_of_optimizers(SNAPSHOTTING)
PERIOD = 5


def train(optimizer, problem, steps, begin=0):
    """Take the steps, a new period every five; returns the parameters after them."""
    for t in range(begin, begin + steps):
        if t % PERIOD == 0:
            snapshot(optimizer, problem)
        optimizer.step(problem.closure(t))
    return values(optimizer.param_groups)


# ---- costs


@TRIED
def test_a_step_evaluates_its_batch_twice_unless_there_is_nothing_to_compare_with(kind):
    noisy = Noisy()
    optimizer = kind(noisy.groups())
    costs, counts = [], []
    for t in range(2 * PERIOD):
        if t % PERIOD == 0:
            before = noisy.calls
            snapshot(optimizer, noisy)
            assert noisy.calls - before == (0 if kind is cg.ORGFW else len(noisy.data))
        before, count = noisy.calls, optimizer.evaluations
        optimizer.step(noisy.closure(t))
        costs.append(noisy.calls - before)
        counts.append(optimizer.evaluations - count)
    rest = [2] * (PERIOD - 1)
    expected = {
        cg.SVRF: 2 * [2, *rest],
        cg.SPIDERFW: 2 * [1, *rest],
        cg.ORGFW: [1, *rest, 2, *rest],
    }
    assert costs == counts == expected[kind]
    assert optimizer.evaluations == noisy.calls


@TRIED
def test_the_count_of_evaluations_is_part_of_the_state(kind):
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups)
    assert optimizer.evaluations == 0
    train(optimizer, problem, 3)
    count = optimizer.evaluations
    assert count == {cg.SVRF: 5 + 6, cg.SPIDERFW: 5 + 5, cg.ORGFW: 5}[kind]
    fresh = build(kind, mixture())
    fresh.load_state_dict(optimizer.state_dict())
    assert fresh.evaluations == count
    optimizer.add_param_group({"params": [start(cg.Free(), (2,))], "region": cg.Free()})
    assert optimizer.evaluations == count


@TRIED
def test_memory_is_a_copy_of_the_parameters_and_an_estimate(kind):
    groups = mixture()
    optimizer = build(kind, groups)
    train(optimizer, Batches(parameters(groups)), 2)
    for p in parameters(groups):
        state = {name: v.shape for name, v in optimizer.state[p].items() if name != "step"}
        assert state == {"reference": p.shape, "estimate": p.shape}


@TRIED
def test_parameters_are_swapped_where_they_lie(kind):
    """A view of their memory, such as a flattened weight or a captured graph has, sees it too."""
    p = start(cg.L2Ball(0.7), (4,))
    view = p.detach()
    problem = Batches([p])
    optimizer = kind([p], cg.L2Ball(0.7), lr=0.3)
    snapshot(optimizer, problem)
    seen = []

    def closure():
        assert torch.equal(view, p)
        seen.append(view.clone())
        return problem.closure(0)()

    optimizer.step(closure)
    first = seen[-1]
    optimizer.step(closure)
    there, here = seen[-2:]
    assert torch.equal(there, first)
    assert not torch.equal(here, first)
    assert view.data_ptr() == p.data_ptr()


# ---- whatever is in the groups


@TRIED
def test_parameters_that_a_batch_does_not_reach_stay(kind):
    """Their estimate stays too, and their part of the iterate before still follows them."""
    groups = mixture(members=[(cg.L2Ball(0.7), (3,)), (cg.Free(), (2,))])
    problem = Batches(parameters(groups), missing={2: {0}, 3: {1}, 4: {0, 1}})
    optimizer = build(kind, groups)
    estimates = [[], []]
    for t in range(6):
        if t == 0:
            snapshot(optimizer, problem)
        before = values(groups)
        optimizer.step(problem.closure(t))
        for place, (old, p) in enumerate(zip(before, parameters(groups), strict=True)):
            assert torch.equal(old, p) == (place in problem.missing.get(t, ()))
            estimates[place].append(optimizer.state[p]["estimate"].clone())
            if kind is not cg.SVRF:
                assert torch.equal(optimizer.state[p]["reference"], old)
    assert torch.equal(estimates[0][2], estimates[0][1])
    assert torch.equal(estimates[1][3], estimates[1][2])


@TRIED
def test_a_gradient_that_is_absent_at_the_reference_counts_as_zero(kind):
    p = start(cg.Free(), (3,))
    optimizer = build(kind, [p], cg.Free(), **({"momentum": 0.7} if kind is cg.ORGFW else {}))
    gradients = []

    def closure():
        value = gradients.pop(0)
        p.grad = None if value is None else torch.full_like(p, value)

    def step(*given):
        gradients.extend(given)
        optimizer.step(closure)
        assert not gradients

    if kind in SNAPSHOTTING:
        gradients.append(1.0)
        optimizer.refresh([(closure, 1)])
    step(*[1.0, 1.0][: 2 if kind is cg.SVRF else 1])
    seen = directions(optimizer)
    step(None, 2.0)
    # h + (2 − 0), and for ORGFW 2 + (1 − ρ) (1 − 0)
    expected = 2.7 if kind is cg.ORGFW else 3.0
    assert torch.allclose(seen[0][0], torch.full_like(p, expected), rtol=1e-14)
    step(1.0, None)
    assert not any(seen[1:]), "without a gradient here it does not move"


@TRIED
def test_frozen_parameters_are_let_be_and_tied_ones_swapped_once(kind):
    noisy = Noisy()
    noisy.model[4].weight.requires_grad_(False)
    noisy.model[7].bias.requires_grad_(False)
    tied = noisy.model[0].bias
    noisy.model[4].bias = tied
    optimizer = kind([{"params": list(noisy.model.parameters()), "region": cg.Free()}], lr=0.1)
    frozen = noisy.model[4].weight.clone()
    train(optimizer, noisy, 7)
    assert torch.equal(noisy.model[4].weight, frozen)
    assert noisy.model[4].weight not in optimizer.state
    assert noisy.model[4].bias is tied
    assert tied in optimizer.state


@TAKING_SNAPSHOTS
def test_what_joins_in_the_middle_of_a_period_needs_a_snapshot(kind):
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups[:4])
    train(optimizer, problem, 2)
    optimizer.add_param_group(groups[4])
    before = values(groups)
    with pytest.raises(ValueError, match=f"group 4 has no snapshot: {kind.__name__} needs"):
        optimizer.step(problem.closure(2))
    assert same(values(groups), before)
    snapshot(optimizer, problem)
    optimizer.step(problem.closure(2))
    assert not torch.equal(values(groups)[4], before[4])


@TAKING_SNAPSHOTS
def test_what_is_unfrozen_in_the_middle_of_a_period_needs_a_snapshot(kind):
    noisy = Noisy()
    noisy.model[7].bias.requires_grad_(False)
    optimizer = kind([{"params": list(noisy.model.parameters()), "region": cg.Free()}])
    train(optimizer, noisy, 2)
    noisy.model[7].bias.requires_grad_(True)
    with pytest.raises(ValueError, match=r"group 0 has no snapshot: .* added or unfrozen"):
        optimizer.step(noisy.closure(2))


def test_what_joins_orgfw_later_begins_with_its_own_first_gradient():
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(cg.ORGFW, groups[:4], lr=0.1)
    train(optimizer, problem, 3)
    optimizer.add_param_group({**groups[4], "lr": 0.1})
    seen, p = directions(optimizer), parameters(groups)[4]
    expected = problem.gradient(4, p.detach(), 3)
    optimizer.step(problem.closure(3))
    assert torch.equal(seen[0][4], expected)


# ---- checkpoints and copies


@TRIED
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("steps", [1, 3, 7])
def test_a_run_resumed_in_the_middle_of_a_period_is_the_same_run(kind, dtype, steps):
    noisy = Noisy(dtype=dtype)
    optimizer = kind(noisy.groups(), lr=0.2)
    torch.manual_seed(0)
    train(optimizer, noisy, steps)
    file = io.BytesIO()
    torch.save((noisy.model.state_dict(), optimizer.state_dict(), torch.get_rng_state()), file)
    expected = train(optimizer, noisy, 8, begin=steps)

    again = Noisy(dtype=dtype, seed=1)
    again.data = noisy.data
    file.seek(0)
    weights, state, stream = torch.load(file, weights_only=True)
    again.model.load_state_dict(weights)
    resumed = kind(again.groups(), lr=0.7)
    resumed.load_state_dict(state)
    torch.set_rng_state(stream)
    assert same(train(resumed, again, 8, begin=steps), expected)
    assert same(again.buffers(), noisy.buffers())
    assert resumed.evaluations == optimizer.evaluations
    assert same([p.grad for p in again.model.parameters()], noisy.gradients())


@TRIED
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))], ids=["copy", "pickle"]
)
def test_copies_go_on_alike_and_apart(kind, copied):
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups)
    train(optimizer, problem, 3)
    other, twin = copied((optimizer, problem))
    expected = train(optimizer, problem, 6, begin=3)
    between = values(optimizer.param_groups)
    assert same(train(other, twin, 6, begin=3), expected)
    assert same(values(optimizer.param_groups), between)


@TRIED
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_estimates_of_short_formats_are_long(kind, dtype):
    """A sum of thousands of corrections in bfloat16 would stand still; and it is saved long."""
    groups = mixture(dtype)
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups)
    train(optimizer, problem, 3)
    fresh = build(kind, mixture(dtype))
    fresh.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for old, new in zip(optimizer.state.values(), fresh.state.values(), strict=True):
        assert new["estimate"].dtype is torch.float32
        assert new["reference"].dtype is dtype
        assert torch.equal(old["estimate"], new["estimate"])
    assert any(
        not torch.equal(s["estimate"].to(dtype), s["estimate"]) for s in fresh.state.values()
    )


@TAKING_SNAPSHOTS
def test_the_full_gradient_of_many_batches_is_not_lost_in_a_short_format(kind):
    p = torch.zeros(1, dtype=torch.bfloat16, requires_grad=True)
    optimizer = kind([p], cg.Free())

    def closure_of(value):
        def closure():
            p.grad = torch.full((1,), value, dtype=torch.bfloat16)

        return closure

    optimizer.refresh((closure_of(1.0 + (i % 2) / 128), 1) for i in range(4000))
    assert abs(float(optimizer.state[p]["estimate"]) - (1 + 1 / 256)) < 1e-5


# ---- compilers


def compiled(kind, around):
    """Iterates on a small problem whose model, or whose whole step, is compiled, or neither."""
    p = start(cg.L2Ball(0.7), (4,))
    target = normal((4,), 1)
    optimizer = kind([p], cg.L2Ball(0.7), lr=0.1)

    def loss_at(point):
        return (point - target).square().sum()

    model = torch.compile(loss_at, backend="eager") if around == "model" else loss_at

    def closure():
        p.grad = None
        loss = model(p)
        loss.backward()
        return loss.detach()

    def step():
        return optimizer.step(closure)

    if kind in SNAPSHOTTING:
        optimizer.refresh([(closure, 1)])
    move = torch.compile(step, backend="eager") if around == "step" else step
    return [(move(), p.detach().clone()) for _ in range(4)]


@TRIED
@pytest.mark.parametrize("around", ["model", "step"])
def test_the_model_or_the_whole_step_may_be_compiled(kind, around):
    for found, expected in zip(compiled(kind, around), compiled(kind, None), strict=True):
        assert same(found, expected)
