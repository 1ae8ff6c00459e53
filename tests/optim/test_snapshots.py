"""The full gradient of the methods that evaluate each batch twice; and how they are misused."""

import pytest
import torch

import condgrad as cg
from optim.batches import SNAPSHOTTING, VARIANCE_REDUCED, Batches, Noisy
from optim.cases import asked_of_optimizers, build, mixture, parameters, run, same, values

TRIED = asked_of_optimizers(VARIANCE_REDUCED)
TAKING_SNAPSHOTS = asked_of_optimizers(SNAPSHOTTING)


# ---- wrong use


@TAKING_SNAPSHOTS
def test_a_step_without_a_snapshot_is_refused(kind):
    noisy = Noisy()
    optimizer = kind(noisy.groups())
    before = noisy.values() + noisy.buffers()
    text = rf"group 0 has no snapshot: {kind.__name__} needs the full gradient; call refresh\(\["
    with pytest.raises(ValueError, match=text):
        optimizer.step(noisy.closure(0))
    assert noisy.calls == 0
    assert same(noisy.values() + noisy.buffers(), before)
    optimizer.refresh(noisy.pairs())
    optimizer.step(noisy.closure(0))


@TAKING_SNAPSHOTS
def test_the_state_that_checkpointing_prepares_is_no_snapshot(kind):
    groups = mixture()
    for p in parameters(groups):
        p.grad = torch.zeros_like(p)
    optimizer = build(kind, groups, lr=0.0)
    assert optimizer.step(closure=None) is None
    assert all(set(s) == {"step", "reference", "estimate"} for s in optimizer.state.values())
    assert len(optimizer.state) == len(groups)
    with pytest.raises(ValueError, match="has no snapshot"):
        optimizer.step(Batches(parameters(groups)).closure(0))


def test_orgfw_begins_afresh_after_checkpointing_has_prepared_its_state():
    plain, prepared = mixture(), mixture()
    expected = run(build(cg.ORGFW, plain), Batches(parameters(plain)), 4)
    for p in parameters(prepared):
        p.grad = torch.zeros_like(p)
    optimizer = build(cg.ORGFW, prepared, lr=0.0)
    optimizer.step(closure=None)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    assert same(run(optimizer, Batches(parameters(prepared)), 4), expected)


@TRIED
def test_a_step_without_a_closure_is_refused(kind):
    groups = mixture()
    optimizer = build(kind, groups)
    text = rf"`closure` is missing: {kind.__name__} evaluates each batch at two settings"
    with pytest.raises(ValueError, match=text):
        optimizer.step()
    assert same(values(groups), values(mixture()))
    assert not optimizer.state


@TRIED
def test_a_gradient_scaler_is_refused(kind):
    """It would scale the gradients of one evaluation and check another's."""
    p = torch.zeros(2, requires_grad=True)
    scaler, optimizer = torch.amp.GradScaler("cpu", init_scale=8.0), kind([p], cg.Free())
    scaler.scale(p.sum()).backward()
    text = f"`GradScaler` cannot drive {kind.__name__}.* bfloat16 autocast.* fixed scale"
    with pytest.raises(ValueError, match=text):
        scaler.step(optimizer)
    with pytest.raises(ValueError, match=text):
        scaler.step(optimizer, lambda: None)
    assert not p.any()
    if kind is cg.ORGFW:  # the refusal leaves nothing behind
        optimizer.step(p.sum().backward)
        assert p.any()


@TAKING_SNAPSHOTS
@pytest.mark.parametrize(
    ("batches", "error", "text"),
    [
        ([], ValueError, "`batches` is empty"),
        ([(int, 0)], ValueError, "`batches` must yield positive sizes of the batches, got 0"),
        ([(int, -1.0)], ValueError, "positive sizes of the batches, got -1.0"),
        ([(int, float("nan"))], ValueError, "positive sizes of the batches, got nan"),
        ([(int, "3")], ValueError, "positive sizes of the batches, got '3'"),
        ([int], TypeError, r"`batches` must yield \(closure, size\) pairs, got type"),
        ([(3, int)], TypeError, r"`batches` must yield \(closure, size\) pairs, got tuple"),
        ([torch.zeros(2)], TypeError, r"`batches` must yield \(closure, size\) pairs, got Tensor"),
    ],
)
def test_wrong_batches_are_refused(kind, batches, error, text):
    optimizer = kind([torch.zeros(2, requires_grad=True)], cg.Free())
    with pytest.raises(error, match=text):
        optimizer.refresh(batches)
    assert not optimizer.state


@TRIED
def test_sparse_gradients_are_refused_before_anything_moves(kind):
    p = torch.zeros(4, 2, requires_grad=True)
    optimizer = kind([p], cg.Free())

    def closure():
        p.grad = torch.eye(4, 2).to_sparse()

    with pytest.raises(TypeError, match=rf"layout torch.sparse_coo .* {kind.__name__} needs dense"):
        optimizer.step(closure) if kind is cg.ORGFW else optimizer.refresh([(closure, 1)])
    assert not p.any()


# ---- refresh


@TAKING_SNAPSHOTS
def test_the_full_gradient_weights_batches_by_their_sizes(kind):
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups)
    optimizer.refresh(problem.pairs())
    for place, p in enumerate(parameters(groups)):
        expected = problem.gradient(place, p.detach(), None)
        found = optimizer.state[p]["estimate"]
        assert torch.allclose(found, expected, rtol=1e-14, atol=1e-15)
        assert torch.equal(optimizer.state[p]["reference"], p)
        assert torch.equal(p.grad, found)


@TAKING_SNAPSHOTS
def test_batches_that_do_not_reach_a_parameter_count_as_zero(kind):
    groups = mixture()
    problem = Batches(parameters(groups), missing={1: {0}, 4: {0}})
    optimizer = build(kind, groups)
    optimizer.refresh(problem.pairs())
    p = parameters(groups)[0]
    present = [problem.sizes[i] * problem.gradient(0, p.detach(), i) for i in (0, 2, 3)]
    expected = torch.stack(present).sum(0) / sum(problem.sizes)
    assert torch.allclose(optimizer.state[p]["estimate"], expected, rtol=1e-14, atol=1e-15)


@TAKING_SNAPSHOTS
def test_one_batch_is_its_own_mean(kind):
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups)
    optimizer.refresh([(problem.closure(0), 3)])
    for place, p in enumerate(parameters(groups)):
        expected = problem.gradient(place, p.detach(), 0)
        assert torch.equal(optimizer.state[p]["estimate"], expected)


@TAKING_SNAPSHOTS
def test_progress_is_told(kind):
    groups = mixture()
    problem = Batches(parameters(groups))
    optimizer = build(kind, groups)
    told = []
    optimizer.refresh(problem.pairs(), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]
    told.clear()
    lazily = (pair for pair in problem.pairs())
    optimizer.refresh(lazily, progress=lambda done, total: told.append((done, total)))
    assert told == [(i, None) for i in range(1, 6)]


@TAKING_SNAPSHOTS
def test_the_gap_can_be_read_off_after_a_refresh(kind):
    for maximize in (False, True):
        groups = mixture(members=[(cg.L2Ball(0.7), (3, 4)), (cg.LinfBall(0.1), (7,))])
        problem = Batches(parameters(groups))
        optimizer = build(kind, groups, maximize=maximize)
        optimizer.refresh(problem.pairs())
        gap = cg.fw_gap(optimizer)
        assert gap > 0
        assert torch.allclose(gap, cg.fw_gap(optimizer, problem.pairs()), rtol=1e-13)
