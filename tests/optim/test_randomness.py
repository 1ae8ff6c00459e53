"""Evaluations of one step differ in the parameters alone, and leave what one evaluation leaves."""

import copy

import pytest
import torch
from torch import nn

import condgrad as cg
from condgrad.optim._evaluate import Surroundings
from inputs import normal
from optim.batches import SNAPSHOTTING, VARIANCE_REDUCED, Noisy, directions, snapshot
from optim.cases import asked_of_optimizers, same

TRIED = asked_of_optimizers(VARIANCE_REDUCED)


class Stopped(Exception):
    pass


def seeded(seed=0):
    """The state of the default generator after this seed."""
    torch.manual_seed(seed)
    return torch.get_rng_state()


@TRIED
def test_where_nothing_has_moved_the_estimator_has_no_noise(kind):
    """With dropout, batch-norm and augmentation drawn inside the closure: exactly."""
    noisy = Noisy()
    optimizer = kind(noisy.groups(), lr=0.1)
    seeded()
    snapshot(optimizer, noisy)
    seen = directions(optimizer)
    for t in range(9):
        before = [s["estimate"].clone() for s in optimizer.state.values()]
        optimizer.step(noisy.closure(t))
        if kind is cg.ORGFW:
            fresh = [p.grad for group in optimizer.param_groups for p in group["params"]]
            rho = 1 - optimizer.param_groups[0]["momentum"]
            expected = [torch.lerp(m, g, rho) for m, g in zip(before or fresh, fresh, strict=True)]
        else:
            expected = before
        assert same(seen[-1], expected)


@TRIED
def test_both_evaluations_see_the_same_batch(kind):
    """At equal parameters they have equal losses, though every loss is drawn anew."""
    noisy = Noisy()
    optimizer = kind(noisy.groups(), lr=0.0)
    seeded()
    snapshot(optimizer, noisy)
    optimizer.step(noisy.closure(0))
    noisy.losses.clear()
    for _ in range(5):
        optimizer.step(noisy.closure(0))
    there, here = noisy.losses[::2], noisy.losses[1::2]
    assert there == here
    assert len(set(here)) == 5


@TRIED
def test_the_stream_goes_on_as_after_one_evaluation(kind):
    noisy = Noisy()
    optimizer = kind(noisy.groups())
    snapshot(optimizer, noisy)
    for t in range(4):
        start = seeded(t)
        optimizer.step(noisy.closure(t))
        after = torch.get_rng_state()
        torch.set_rng_state(start)
        noisy.closure(t)()
        assert torch.equal(torch.get_rng_state(), after)


def plain(noisy, steps, **settings):
    """The buffers and gradients after each step of SFW over the batches."""
    optimizer = cg.SFW(noisy.groups(), **settings)
    trail = []
    for t in range(steps):
        optimizer.step(noisy.closure(t))
        trail.append(noisy.buffers() + noisy.gradients())
    return trail


@TRIED
def test_running_statistics_and_gradients_are_those_of_plain_sfw(kind):
    """Over the same batches, with two refreshes on the way; at rate 0 the iterates are the same."""
    seeded(3)
    expected = plain(Noisy(), 8, lr=0.0)
    noisy = Noisy()
    optimizer = kind(noisy.groups(), lr=0.0)
    seeded(3)
    for t, trail in enumerate(expected):
        if t % 4 == 0:
            snapshot(optimizer, noisy)
        optimizer.step(noisy.closure(t))
        assert same(noisy.buffers() + noisy.gradients(), trail), f"step {t}"


@TRIED
def test_on_the_way_they_are_those_of_one_evaluation_at_the_parameters(kind):
    noisy = Noisy()
    optimizer = kind(noisy.groups(), lr=0.3)
    seeded()
    for t in range(8):
        if t % 4 == 0:
            snapshot(optimizer, noisy)
        twin, state = copy.deepcopy(noisy), torch.get_rng_state()
        loss = twin.closure(t)()
        torch.set_rng_state(state)
        assert optimizer.step(noisy.closure(t)) == loss
        assert same(noisy.buffers(), twin.buffers()), f"step {t}"
        assert same(noisy.gradients(), twin.gradients()), f"step {t}"
        assert not same(noisy.values(), twin.values()), "it has not moved"


@asked_of_optimizers(SNAPSHOTTING)
def test_a_refresh_leaves_no_trace_but_the_full_gradient(kind):
    noisy = Noisy()
    optimizer = kind(noisy.groups())
    stream, buffers, values = seeded(), noisy.buffers(), noisy.values()
    optimizer.refresh(noisy.pairs())
    assert torch.equal(torch.get_rng_state(), stream)
    assert same(noisy.buffers(), buffers)
    assert same(noisy.values(), values)
    total = sum(size for _, size in noisy.pairs())
    expected = [torch.zeros_like(p) for p in values]
    for closure, size in noisy.pairs():
        closure()
        for mean, gradient in zip(expected, noisy.gradients(), strict=True):
            mean += gradient * size / total
    optimizer.refresh([(noisy.closure(0), 1)])
    torch.set_rng_state(stream)
    optimizer.refresh(noisy.pairs())
    for gradient, mean in zip(noisy.gradients(), expected, strict=True):
        assert torch.allclose(gradient, mean, rtol=1e-13, atol=1e-14)
    estimates = [optimizer.state[p]["estimate"] for p in noisy.model.parameters()]
    assert same(noisy.gradients(), estimates)


@TRIED
def test_closures_may_zero_gradients_in_place(kind):
    """The gradients at the reference must not be zeroed with them."""

    def trained(set_to_none):
        noisy = Noisy(p=0.0)
        optimizer = kind(noisy.groups(), lr=0.3)

        def closure_of(t):
            def closure():
                optimizer.zero_grad(set_to_none=set_to_none)
                inputs, labels = noisy.data[t % 4]
                loss = nn.functional.cross_entropy(noisy.model(inputs), labels)
                loss.backward()
                return loss

            return closure

        for t in range(6):
            if t % 3 == 0 and kind in SNAPSHOTTING:
                optimizer.refresh((closure_of(i), 1) for i in range(4))
            optimizer.step(closure_of(t))
        return noisy.values()

    assert same(trained(True), trained(False))


@TRIED
@pytest.mark.parametrize("around", ["closure", "step"])
def test_autocast_does_not_hide_that_the_parameters_differ(kind, around):
    """It keeps its casts until its context is left, which may be after the second evaluation."""
    model = nn.Linear(4, 3)
    nn.init.constant_(model.weight, 0.1)
    inputs, losses = normal((8, 4), 0, dtype=torch.float32), []
    optimizer = kind(model.parameters(), cg.Free(), lr=0.5)

    def autocast(there):
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=around == there)

    def closure():
        optimizer.zero_grad()
        with autocast("closure"):
            loss = model(inputs).float().square().mean()
        loss.backward()
        losses.append(loss.item())

    with autocast("step"):
        if kind in SNAPSHOTTING:
            optimizer.refresh([(closure, 8)])
        for _ in range(3):
            optimizer.step(closure)
        if kind in SNAPSHOTTING:
            optimizer.refresh([(closure, 8)])
    # Which evaluations were made at which iterate: as many losses as there were iterates.
    iterates = {cg.SVRF: "0 00 01 02 3", cg.SPIDERFW: "0 0 01 12 3", cg.ORGFW: "0 01 12"}[kind]
    found = [sorted(set(losses), reverse=True).index(loss) for loss in losses]
    assert found == [int(each) for each in iterates.replace(" ", "")]


class FakeGenerators:
    """What torch tells of an accelerator's generators, for machines that have none."""

    def __init__(self):
        self.states = {}

    def get_rng_state(self, device):
        return self.states.setdefault(device, torch.zeros(1))

    def set_rng_state(self, state, device):
        self.states[device] = state


def test_generators_of_accelerators_are_put_back_too(monkeypatch):
    """Those of the devices named, and no other; the host's need not be asked for."""
    fake = FakeGenerators()
    monkeypatch.setattr(torch, "get_device_module", lambda device: fake)
    first, second = torch.device("cuda", 0), torch.device("cuda", 1)
    before = Surroundings([torch.device("cpu"), first, second, first], [])
    assert set(fake.states) == {first, second}
    drawn = {first: torch.ones(1), second: torch.ones(1), torch.device("cuda", 2): torch.ones(1)}
    fake.states.update(drawn)
    before.restore()
    assert [int(fake.states[device]) for device in drawn] == [0, 0, 1]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@TRIED
def test_both_evaluations_see_the_same_masks_on_an_accelerator(kind):
    noisy = Noisy(dtype=torch.float32)
    noisy.model.cuda()
    noisy.data = [(inputs.cuda(), labels.cuda()) for inputs, labels in noisy.data]
    optimizer = kind(noisy.groups(), lr=0.0)
    snapshot(optimizer, noisy)
    optimizer.step(noisy.closure(0))
    noisy.losses.clear()
    for _ in range(5):
        optimizer.step(noisy.closure(0))
    assert noisy.losses[::2] == noisy.losses[1::2]
    assert len(set(noisy.losses)) == 5
    torch.cuda.manual_seed(1)
    optimizer.step(noisy.closure(0))
    after = torch.cuda.get_rng_state()
    torch.cuda.manual_seed(1)
    noisy.closure(0)()
    assert torch.equal(torch.cuda.get_rng_state(), after)


# ---- buffers: which ones, and when it is too late


def leaks(optimizer, noisy):
    """Whether a step counts its batch in the buffers more than once."""
    snapshot(optimizer, noisy)
    for t in range(3):
        optimizer.step(noisy.closure(t))
    assert optimizer.evaluations > 3
    counters = [b for b in noisy.model.buffers() if not b.is_floating_point()]
    assert len(counters) == 2
    return any(int(counter) != 3 for counter in counters)


@TRIED
def test_buffers_come_with_the_groups_or_by_name(kind):
    noisy = Noisy()
    assert not leaks(kind(noisy.groups()), noisy)
    noisy = Noisy()
    parameters, buffers = noisy.model.parameters(), noisy.model.buffers()
    assert not leaks(kind(parameters, cg.Free(), buffers=buffers), noisy)
    # Nothing tells of the buffers here, and so they are not known.
    noisy = Noisy()
    assert leaks(kind(noisy.model.parameters(), cg.Free()), noisy)
    noisy = Noisy()
    assert leaks(kind(noisy.groups(), buffers=()), noisy)


@TRIED
def test_what_is_no_buffer_is_refused(kind):
    with pytest.raises(TypeError, match=r"`buffers` must hold tensors, such as model.buffers\(\)"):
        kind([torch.zeros(2, requires_grad=True)], cg.Free(), buffers=[nn.BatchNorm1d(3)])


@TRIED
def test_buffers_that_stayed_behind_are_noticed(kind):
    """As they are where a model is moved to an accelerator after `constrain`."""
    optimizer = kind([torch.zeros(2, requires_grad=True)], cg.Free())
    optimizer._buffers = (torch.zeros(2, device="meta"),)
    with pytest.raises(ValueError, match=r"`buffers` lie on meta, the parameters on cpu: .* after"):
        optimizer.step(lambda: None) if kind is cg.ORGFW else optimizer.refresh([(int, 1)])


@TRIED
def test_copies_of_model_and_optimizer_keep_their_buffers_together(kind):
    noisy = Noisy()
    optimizer = kind(noisy.groups())
    noisy, optimizer = copy.deepcopy((noisy, optimizer))
    assert not leaks(optimizer, noisy)
    assert [id(b) for b in optimizer._buffers] == [id(b) for b in noisy.model.buffers()]


# ---- when the closure fails


def everything(noisy, optimizer):
    """All that a failing closure must not change, flat."""
    groups = [{**group, "params": None} for group in optimizer.param_groups]
    state = [dict(s) for s in optimizer.state_dict()["state"].values()]
    tensors = [v.clone() for s in state for v in s.values()]
    return groups, noisy.values() + noisy.buffers() + tensors + [torch.get_rng_state()]


def failing(closure, at, after):
    """The closure, failing at that call, before or after its evaluation."""
    calls = []

    def evaluate():
        calls.append(None)
        if len(calls) < at:
            return closure()
        if after:
            closure()
        raise Stopped

    return evaluate


@TRIED
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_failing_closure_changes_nothing(kind, at, after):
    noisy = Noisy()
    optimizer = kind(noisy.groups(), lr=0.3)
    seeded()
    snapshot(optimizer, noisy)
    for t in range(3):
        optimizer.step(noisy.closure(t))
    groups, tensors = everything(noisy, optimizer)
    with pytest.raises(Stopped):
        optimizer.step(failing(noisy.closure(3), at, after))
    again, others = everything(noisy, optimizer)
    assert groups == again
    assert same(tensors, others)
    assert all(p.grad is None for p in noisy.model.parameters())
    # And so the step can be taken again, as if nothing had been.
    untroubled, other = copy.deepcopy((noisy, optimizer))
    stream = torch.get_rng_state()
    optimizer.step(noisy.closure(3))
    torch.set_rng_state(stream)
    other.step(untroubled.closure(3))
    assert same(everything(noisy, optimizer)[1], everything(untroubled, other)[1])


def interrupted(noisy):
    """What a refresh is given that fails after its second batch, in each way in which it can."""

    def stop(*_):
        raise Stopped

    def batches():
        yield from noisy.pairs()[:2]
        stop()

    pairs = noisy.pairs()
    pairs[2] = (failing(pairs[2][0], 1, after=True), 3)
    return {
        "closure": {"batches": pairs},
        "batches": {"batches": batches()},
        "progress": {
            "batches": noisy.pairs(),
            "progress": lambda done, total: done == 2 and stop(),
        },
    }


@asked_of_optimizers(SNAPSHOTTING)
@pytest.mark.parametrize("where", ["closure", "batches", "progress"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_failing_refresh_leaves_the_old_snapshot(kind, begun, where):
    noisy = Noisy()
    optimizer = kind(noisy.groups(), lr=0.3)
    seeded()
    if begun:
        optimizer.refresh(noisy.pairs())
        optimizer.step(noisy.closure(0))
    groups, tensors = everything(noisy, optimizer)
    with pytest.raises(Stopped):
        optimizer.refresh(**interrupted(noisy)[where])
    again, others = everything(noisy, optimizer)
    assert groups == again
    assert same(tensors, others)
    assert len(optimizer.state) == (len(noisy.values()) if begun else 0)
    assert all(p.grad is None for p in noisy.model.parameters()), "none is that of all data"
