"""Scaled, clipped and accumulated gradients, autocast, averaged models, hooks, files."""

import copy
import io

import pytest
import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import condgrad as cg
from integration.scripts import BATCHES, RULES, Script, close, network, shuffled
from optim.cases import MEMBERS, asked_of_optimizers, run, same, step

EVALUATED_ONCE = [kind for kind in MEMBERS if not MEMBERS[kind].needs_closure]
TRIED = asked_of_optimizers()


def trained(kind, steps=8, **settings):
    """The parameters of a script after some steps."""
    script = Script(kind, **settings)
    run(script.optimizer, script, steps)
    return script.values()


# ---- gradient scaling


def scaled_step(script, scaler, t, poison=1.0):
    script.optimizer.zero_grad()
    scaler.scale(script.loss(t) * poison).backward()
    scaler.step(script.optimizer)
    scaler.update()


@asked_of_optimizers(EVALUATED_ONCE)
def test_scaled_gradients_move_alike(kind):
    """The scale is a power of two, so scaling and unscaling round nothing."""
    expected = trained(kind)
    script, scaler = Script(kind), torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for t in range(8):
        scaled_step(script, scaler, t)
    assert scaler.get_scale() == 2.0**10
    assert same(script.values(), expected)


@asked_of_optimizers(EVALUATED_ONCE)
@pytest.mark.parametrize("begun", [0, 3])
def test_a_step_whose_gradients_overflowed_has_never_been(kind, begun):
    script = Script(kind)
    run(script.optimizer, script, begun)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    before, state = script.values(), copy.deepcopy(script.optimizer.state_dict())
    scaled_step(script, scaler, begun, poison=torch.inf)
    assert scaler.get_scale() == 2.0**9
    assert same(script.values(), before)
    assert str(script.optimizer.state_dict()) == str(state)
    assert len(script.optimizer.state) == (len(before) if begun else 0)
    for t in range(begun, 6):
        scaled_step(script, scaler, t)
    assert same(script.values(), trained(kind, 6))


@asked_of_optimizers(EVALUATED_ONCE)
def test_clipping_between_unscaling_and_the_step(kind):
    expected = Script(kind)
    for t in range(4):
        expected.closure(t)()
        clip_grad_norm_(expected.model.parameters(), 0.01)
        expected.optimizer.step()
    script, scaler = Script(kind), torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for t in range(4):
        script.optimizer.zero_grad()
        scaler.scale(script.loss(t)).backward()
        scaler.unscale_(script.optimizer)
        clip_grad_norm_(script.model.parameters(), 0.01)
        scaler.step(script.optimizer)
        scaler.update()
    assert same(script.values(), expected.values())


@TRIED
def test_autocast_needs_no_scaler(kind):
    script = Script(kind, dtype=torch.float32)
    before, first = script.values(), script.loss(None).item()

    class Cast:
        closure = staticmethod(lambda t: torch.autocast("cpu", torch.bfloat16)(script.closure(t)))

    run(script.optimizer, Cast, 12)
    assert script.loss(None).item() < first
    assert script.inside()
    for p, old in zip(script.model.parameters(), before, strict=True):
        assert p.dtype is torch.float32
        assert p.isfinite().all()
        assert not torch.equal(p, old)


# ---- clipping


class Changed:
    """A script whose gradients are changed after each evaluation."""

    def __init__(self, script, change):
        self.script, self.change = script, change

    def closure(self, t):
        def evaluate():
            loss = self.script.closure(t)()
            self.change(list(self.script.model.parameters()))
            return loss

        return evaluate


def by_hand(parameters):
    """What `clip_grad_norm_(parameters, 0.05)` is meant to do."""
    total = torch.sqrt(sum(p.grad.square().sum() for p in parameters))
    for p in parameters:
        p.grad = p.grad * min(1.0, 0.05 / float(total))


@TRIED
def test_clipped_gradients_are_the_gradients_that_count(kind):
    clipped, scaled = Script(kind), Script(kind)
    run(clipped.optimizer, Changed(clipped, lambda ps: clip_grad_norm_(ps, 0.05)), 6)
    run(scaled.optimizer, Changed(scaled, by_hand), 6)
    # torch divides by the norm plus a millionth.
    assert close(clipped.values(), scaled.values(), slack=1e-4)
    assert not close(clipped.values(), trained(kind, 6), slack=1e-3)
    # What is left in the gradients is what was clipped, not something evaluated elsewhere.
    norms = [p.grad.norm() for p in clipped.model.parameters()]
    assert float(torch.stack(norms).norm()) == pytest.approx(0.05, rel=1e-4)


@TRIED
def test_clipped_values_are_the_gradients_that_count(kind):
    clipped = Script(kind)
    run(clipped.optimizer, Changed(clipped, lambda ps: clip_grad_value_(ps, 1e-3)), 6)
    assert all(float(p.grad.abs().max()) <= 1e-3 for p in clipped.model.parameters())
    assert not close(clipped.values(), trained(kind, 6), slack=1e-4)
    assert clipped.inside()


# ---- accumulation


class Accumulated:
    """A script whose every batch is all the data, in parts that add up."""

    def __init__(self, script):
        self.script = script

    def closure(self, t):
        def evaluate():
            self.script.optimizer.zero_grad()
            losses = [self.script.loss(place) / BATCHES for place in shuffled(BATCHES, t or 0)]
            for loss in losses:
                loss.backward()
            return sum(losses).detach()

        return evaluate


class Whole(Accumulated):
    """The same, in one piece."""

    def closure(self, t):
        return self.script.closure(None)


@TRIED
@pytest.mark.parametrize("set_to_none", [True, False])
def test_accumulated_gradients_are_those_of_the_whole_batch(kind, set_to_none, monkeypatch):
    zero = torch.optim.Optimizer.zero_grad
    monkeypatch.setattr(
        torch.optim.Optimizer, "zero_grad", lambda self: zero(self, set_to_none=set_to_none)
    )
    parts, whole = Script(kind), Script(kind)
    for t in range(6):
        found = step(parts.optimizer, Accumulated(parts), t)
        expected = step(whole.optimizer, Whole(whole), t)
        assert float(found) == pytest.approx(float(expected), rel=1e-12)
    assert close(parts.values(), whole.values())


# ---- averages


@TRIED
@pytest.mark.parametrize("rule", [None, get_ema_multi_avg_fn(0.7)], ids=["mean", "moving"])
def test_averages_of_iterates_stay_inside(kind, rule):
    """A region is convex; here the iterates come to its border."""
    script = Script(kind, lr=0.5)
    averaged = AveragedModel(script.model, multi_avg_fn=rule)
    trail = []
    for t in range(12):
        step(script.optimizer, script, t)
        averaged.update_parameters(script.model)
        trail.append(script.values())
    means = list(averaged.module.parameters())
    groups = cg.constrain(network(), RULES)
    by_name = dict(averaged.module.named_parameters())
    for group in groups:
        group["params"] = [by_name[name].detach() for name in group["param_names"]]
    assert float(cg.violation(groups)) <= 1e-14
    if rule is None:
        every = [torch.stack(points).mean(0) for points in zip(*trail, strict=True)]
        assert close(means, every)
    assert not close(means, script.values(), slack=1e-6)


# ---- hooks and files


@TRIED
def test_hooks_are_called(kind):
    script, told = Script(kind), []
    optimizer = script.optimizer
    optimizer.register_step_pre_hook(lambda *_: told.append("before"))
    optimizer.register_step_post_hook(lambda *_: told.append("after"))
    run(optimizer, script, 2)
    assert told == ["before", "after"] * 2
    optimizer.register_state_dict_post_hook(lambda _, state: told.append(set(state)))
    optimizer.register_load_state_dict_pre_hook(lambda _, state: told.append(len(state["state"])))
    optimizer.load_state_dict(optimizer.state_dict())
    assert told[4:] == [{"state", "param_groups"}, len(optimizer.state)]


@TRIED
def test_a_whole_script_resumes_from_one_file(kind):
    def parts():
        script = Script(kind)
        return script, torch.optim.lr_scheduler.CosineAnnealingLR(script.optimizer, 10)

    def go_on(script, scheduler, begin, steps):
        for t in range(begin, begin + steps):
            step(script.optimizer, script, t)
            scheduler.step()
        return script.values()

    script, scheduler = parts()
    go_on(script, scheduler, 0, 5)
    file = io.BytesIO()
    torch.save([x.state_dict() for x in (script.model, script.optimizer, scheduler)], file)
    expected = go_on(script, scheduler, 5, 5)
    file.seek(0)
    script, scheduler = parts()
    states = torch.load(file, weights_only=True)
    for each, state in zip((script.model, script.optimizer, scheduler), states, strict=True):
        each.load_state_dict(state)
    assert same(go_on(script, scheduler, 5, 5), expected)
