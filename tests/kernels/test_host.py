"""The host's side of a step by Triton's kernels, without a device: what is asked, kept, let go."""

import importlib.util
import struct
import weakref

import pytest
import torch

import condgrad as cg
from condgrad.kernels import _step
from condgrad.kernels._launch import Launch
from condgrad.kernels._moving import Moving

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="Triton, which numbers the tables, is missing",
)


class Recorder:
    """Programs that launch nothing and remember what they were handed."""

    def __init__(self, tables):
        self.tables, self.tables_of_moves = tables, []

    def run(self, moving, stream):
        self.tables_of_moves.append(moving.clone())


@pytest.fixture
def recorded(monkeypatch):
    """The programs that fused steps make, on parameters that lie on the host."""
    made = []

    def programs(tables):
        made.append(Recorder(tables))
        return made[-1]

    monkeypatch.setattr(_step, "Programs", programs)
    monkeypatch.setattr(_step, "misfit", lambda parameter, region: None)
    for module in ("_step", "_fit"):
        monkeypatch.setattr(f"condgrad.kernels.{module}.on_host", lambda parameter: False)
    monkeypatch.setattr("condgrad.optim._sfw.misfit", lambda parameter, region: None)
    return made


def made(shapes=((3,), (2, 4), (5,)), **settings):
    params = [torch.zeros(shape) for shape in shapes]
    regions = (cg.L2Ball(1.0), cg.LinfBall(1.0), cg.L2Ball(2.0))
    groups = [{"params": [p], "region": r} for p, r in zip(params, regions, strict=False)]
    return params, cg.SFW(groups, fused=True, **settings)


def give(params):
    for p in params:
        p.grad = torch.ones_like(p)


def test_a_plan_is_made_once_and_told_where_gradients_lie(recorded):
    params, optimizer = made(lr=0.25)
    for _ in range(3):
        give(params)
        optimizer.step()
        (programs,) = recorded
        addresses, rates, tensors = programs.tables_of_moves[-1].tolist()
        order = programs.tables.order
        assert addresses == [params[place].grad.data_ptr() for place in order]
        assert [struct.unpack("d", struct.pack("q", rate))[0] for rate in rates] == [0.25] * 3
        assert tensors == [0, 0, 0]
    optimizer.param_groups[order[1]]["lr"] = 0.5
    optimizer.step()
    rates = programs.tables_of_moves[-1][1].view(torch.float64)
    assert rates.tolist() == [0.25, 0.5, 0.25]
    assert len(recorded) == 1


def swapped(params, optimizer):
    params[1].data = torch.zeros_like(params[1])


def other_buffer(params, optimizer):
    optimizer.state[params[0]]["momentum_buffer"] = torch.zeros(3)


def other_counter(params, optimizer):
    optimizer.state[params[0]]["step"] = torch.tensor(9.0)


def no_buffer(params, optimizer):
    del optimizer.state[params[0]]["momentum_buffer"]


def transposed(params, optimizer):
    params[1].data = torch.zeros(4, 2).t()
    optimizer.state[params[1]]["momentum_buffer"] = torch.zeros(4, 2).t()


def without(params, optimizer):
    params[2].grad = None


def joined(params, optimizer):
    params.append(torch.zeros(7))
    optimizer.add_param_group({"params": params[-1:], "region": cg.L1Ball(1.0)})


def loaded(params, optimizer):
    optimizer.load_state_dict(optimizer.state_dict())


def other_rule(params, optimizer):
    optimizer.param_groups[0]["rescale"] = "diameter"


def other_format(params, optimizer):
    params[0].grad_dtype = None  # which allows any
    params[0].grad = torch.ones(3, dtype=torch.bfloat16)


def unaligned(params, optimizer):
    params[0].grad = torch.ones(4)[1:]


@pytest.mark.parametrize(
    "change",
    [
        swapped,
        other_buffer,
        other_counter,
        no_buffer,
        transposed,
        without,
        joined,
        loaded,
        other_rule,
        other_format,
        unaligned,
    ],
)
def test_whatever_a_plan_depends_on_makes_a_new_one(recorded, change):
    params, optimizer = made()
    for _ in range(2):
        give(params)
        optimizer.step()
    assert len(recorded) == 1
    give(params)
    change(params, optimizer)
    if change is transposed:
        params[1].grad = torch.ones(4, 2).t()
    if change is joined:
        give(params)
    optimizer.step()
    assert len(recorded) == 2
    tables = recorded[1].tables
    present = [p for p in params if p.grad is not None]
    assert tables.ints[0].tolist() == [present[place].data_ptr() for place in tables.order]
    optimizer.step()
    assert len(recorded) == 2


def test_a_gradient_that_comes_in_another_order_is_refused_in_any_step(recorded):
    params, optimizer = made()
    give(params)
    optimizer.step()
    params[1].grad = torch.ones(4, 2).t()
    with pytest.raises(ValueError, match=r"number 1 .* its gradient has other strides"):
        optimizer.step()
    give(params)
    optimizer.step()
    assert len(recorded) == 2


def test_numbers_that_change_are_written_into_the_tables_that_are_there(recorded):
    params, optimizer = made(momentum=0.9)
    give(params)
    optimizer.step()
    (programs,) = recorded
    reals = programs.tables.reals
    row = programs.tables.order.index(2)
    assert reals[0, row] == 2.0
    assert torch.allclose(reals[5], torch.tensor(0.1).double())
    optimizer.param_groups[2].update(momentum=0.5, region=cg.L2Ball(3.0), maximize=True)
    optimizer.step()
    assert [reals[column, row].item() for column in (0, 5, 6)] == [3.0, 0.5, -1.0]
    assert reals[6].sum() == 1
    assert len(recorded) == 1


def test_gradients_are_not_held_between_steps(recorded):
    params, optimizer = made()
    for _ in range(3):
        give(params)
        optimizer.step()
        held = [weakref.ref(p.grad) for p in params]
        optimizer.zero_grad()
        assert [ref() for ref in held] == [None] * 3


def test_a_captured_table_is_never_written_again():
    moving = Moving([1, 0], [0, 1], torch.device("cpu"))
    first = moving.table([10, 20], [0.5, 0.25])
    assert first.tolist()[0] == [20, 10]
    rate = torch.tensor(0.5)
    captured, *kept = moving.captured([30, 40], [rate, 0.25])
    assert any(each is rate for each in kept)
    second = moving.table([10, 20], [0.5, 0.25])
    assert second.data_ptr() == first.data_ptr() != captured.data_ptr()
    assert captured.tolist()[0] == [40, 30]
    assert captured[1].view(torch.float64).tolist() == [0.5, 0.25]


def test_a_launch_remembers_its_variant_and_hands_over_addresses():
    calls = []

    class Variant:
        def __getitem__(self, grid):
            return lambda *values, stream: calls.append((grid, values, stream))

    class Kernel:
        arg_names = ("moving", "table", "KIND", "TYPE")

        def __getitem__(self, grid):
            return self.launched

        def launched(self, **arguments):
            calls.append(arguments)
            return Variant()

    table, moving = torch.zeros(2), [torch.zeros(1) for _ in range(2)]
    launch = Launch(
        Kernel(), 7, {"table": table, "KIND": 3, "TYPE": "x", "moving": None}, num_warps=8
    )
    launch(moving[0], None)
    assert list(calls[0]) == ["moving", "table", "KIND", "TYPE", "num_warps"]
    assert calls[0]["moving"] is moving[0]
    for each in moving:
        launch(each, 5)
        assert calls[-1] == ((7, 1, 1), (each.data_ptr(), table.data_ptr(), 3, "x"), 5)
