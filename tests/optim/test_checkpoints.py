"""State is plain data, a resumed run is the run itself, and copies live on their own."""

import copy
import io
import pickle

import pytest
import torch
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

import condgrad as cg
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

BEFORE, AFTER = 7, 8
"""Steps before and after a checkpoint: in the middle of a period, where there is one."""

TIES = {0: torch.inf, 8: 0.3, 9: torch.inf, 12: 0.0}
"""Batches with zeros in their gradients, before and after: the draws must go on as well."""

PLAIN = (int, float, bool, str, type(None), torch.Tensor)


def problem_of(groups):
    return Quadratic(parameters(groups), ties=TIES)


def begun(kind, dtype=torch.float64):
    """An optimizer in the middle of a run, and its problem."""
    groups = mixture(dtype)
    optimizer, problem = build(kind, groups, lr=0.01), problem_of(groups)
    run(optimizer, problem, BEFORE)
    return optimizer, problem


def finished(optimizer, problem):
    return run(optimizer, problem, AFTER, begin=BEFORE)


def restarted(kind, points, dtype=torch.float64):
    """A fresh optimizer whose parameters are where another run's are."""
    groups = mixture(dtype)
    for p, point in zip(parameters(groups), points, strict=True):
        p.data.copy_(point)
    return build(kind, groups, lr=0.7), problem_of(groups)  # its rate is to be loaded over


def is_plain(value):
    if isinstance(value, dict):
        return all(isinstance(k, (int, str)) and is_plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return type(value) in PLAIN


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@asked_of_optimizers()
def test_state_is_plain_data(kind):
    optimizer, _ = begun(kind)
    state = optimizer.state_dict()
    assert is_plain(state)
    assert is_plain(through_a_file(state))
    printed = [group["region"] for group in state["param_groups"]]
    assert printed == [str(region) for region, _ in MIXTURE]
    assert [group["region"] for group in optimizer.param_groups] == [r for r, _ in MIXTURE]


@asked_of_optimizers()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_resumed_run_is_the_run_itself(kind, dtype):
    optimizer, problem = begun(kind, dtype)
    points, state = values(optimizer.param_groups), through_a_file(optimizer.state_dict())
    expected = finished(optimizer, problem)
    again, problem = restarted(kind, points, dtype)
    again.load_state_dict(state)
    assert same(finished(again, problem), expected)


@asked_of_optimizers()
def test_resumed_state_keeps_its_formats(kind):
    """Momenta in half precision stay there, and what is kept wider comes back as wide."""
    optimizer, _ = begun(kind, torch.bfloat16)
    again, _ = restarted(kind, values(optimizer.param_groups), torch.bfloat16)
    again.load_state_dict(through_a_file(optimizer.state_dict()))
    for p, q in zip(
        parameters(optimizer.param_groups), parameters(again.param_groups), strict=True
    ):
        mine, other = optimizer.state[p], again.state[q]
        assert set(mine) == set(other)
        for name, value in mine.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype is other[name].dtype
                assert torch.equal(value, other[name])


@asked_of_optimizers()
def test_saving_changes_nothing(kind):
    optimizer, problem = begun(kind)
    expected = finished(*begun(kind))
    optimizer.state_dict()
    through_a_file(optimizer.state_dict())
    assert same(finished(optimizer, problem), expected)


@asked_of_optimizers()
def test_loading_does_not_touch_what_was_loaded(kind):
    optimizer, _ = begun(kind)
    state = optimizer.state_dict()
    shown = [dict(group) for group in state["param_groups"]]
    again, _ = restarted(kind, values(optimizer.param_groups))
    again.load_state_dict(state)
    again.param_groups[0]["lr"] = 0.3
    assert state["param_groups"] == shown


@asked_of_optimizers()
@pytest.mark.parametrize("place", [0, len(MIXTURE) - 1])
def test_a_checkpoint_over_another_region_is_refused(kind, place):
    optimizer, _ = begun(kind)
    state = through_a_file(optimizer.state_dict())
    groups = mixture()
    groups[place] = {"params": groups[place]["params"], "region": cg.LinfBall(50.0)}
    other = build(kind, groups, lr=0.01)
    run(other, problem_of(groups), 1)
    before = copy.deepcopy(other.state_dict())
    with pytest.raises(ValueError, match="`state_dict` was saved over") as caught:
        other.load_state_dict(state)
    for found in (str(MIXTURE[place][0]), str(cg.LinfBall(50.0)), f"group {place}"):
        assert found in str(caught.value)
    assert str(other.state_dict()) == str(before)


@asked_of_optimizers()
def test_a_checkpoint_of_torchs_own_optimizer_is_refused(kind):
    groups = mixture(members=[(cg.L2Ball(0.7), (3,))])
    state = torch.optim.SGD(parameters(groups), momentum=0.9).state_dict()
    with pytest.raises(ValueError, match="`state_dict` was saved over None in group 0"):
        build(kind, groups).load_state_dict(state)


@asked_of_optimizers()
def test_a_checkpoint_with_other_groups_is_refused(kind):
    optimizer, _ = begun(kind)
    for groups in (mixture()[:-1], mixture() + mixture(seed=99)):
        with pytest.raises(ValueError, match="different number of parameter groups"):
            build(kind, groups).load_state_dict(optimizer.state_dict())


@asked_of_optimizers()
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_goes_on_alike_and_on_its_own(kind, copied):
    optimizer, problem = begun(kind)
    expected = finished(*begun(kind))
    twin_optimizer, twin_problem = copied((optimizer, problem))
    here = values(optimizer.param_groups)
    assert same(finished(twin_optimizer, twin_problem), expected)
    assert same(values(optimizer.param_groups), here), "the copy moved the original"
    assert same(finished(optimizer, problem), expected)
    state = twin_optimizer.state_dict()
    assert [group["region"] for group in state["param_groups"]] == [str(r) for r, _ in MIXTURE]


@asked_of_optimizers()
def test_a_fresh_copy_can_load_and_be_loaded(kind):
    """Of an optimizer that has not stepped yet: there is no state to copy."""
    groups = mixture()
    fresh, problem = copy.deepcopy((build(kind, groups, lr=0.01), problem_of(groups)))
    expected = run(*begun(kind)[:0], *fresh_run(kind))
    assert same(run(fresh, problem, 3), expected)


def fresh_run(kind):
    groups = mixture()
    return build(kind, groups, lr=0.01), problem_of(groups), 3


class Holder(torch.nn.Module):
    """A module whose parameters are those of the mixture."""

    def __init__(self, groups):
        super().__init__()
        for i, p in enumerate(parameters(groups)):
            self.register_parameter(f"p{i}", torch.nn.Parameter(p.detach()))
            groups[i] = {"params": [getattr(self, f"p{i}")], "region": groups[i]["region"]}


@asked_of_optimizers()
def test_distributed_checkpointing_reads_a_fresh_optimizer(kind):
    groups = mixture()
    module = Holder(groups)
    before = values(groups)
    optimizer = build(kind, groups, lr=0.01)
    state = get_optimizer_state_dict(module, optimizer)
    assert same(values(groups), before)
    assert {f"p{i}" for i in range(len(MIXTURE))} == set(state["state"])
    assert all(group["lr"] == 0.01 for group in optimizer.param_groups)


@asked_of_optimizers()
def test_distributed_checkpointing_resumes_a_run(kind):
    def held():
        groups = mixture()
        module = Holder(groups)
        return module, build(kind, groups, lr=0.01), problem_of(groups)

    module, optimizer, problem = held()
    run(optimizer, problem, BEFORE)
    state = copy.deepcopy(get_optimizer_state_dict(module, optimizer))
    points = copy.deepcopy(module.state_dict())
    expected = finished(optimizer, problem)
    module, optimizer, problem = held()
    module.load_state_dict(points)
    set_optimizer_state_dict(module, optimizer, state)
    assert same(finished(optimizer, problem), expected)


def test_every_member_keeps_state():
    """Or the questions above ask nothing of it."""
    for kind in MEMBERS:
        optimizer, problem = begun(kind)
        step(optimizer, problem, BEFORE)
        assert all(optimizer.state[p] for p in parameters(optimizer.param_groups))
