"""What Triton's kernels alone can be asked: formats of few digits, and their tables."""

import pytest
import torch

import condgrad as cg
from kernels.cases import REGIONS, Pair, gradients, off


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_low_precision_parameters_and_gradients_of_another_format(dtype, wide):
    members = [(r, (33,)) for r in REGIONS]
    pair = Pair(members, dtype=dtype, lr=0.05, momentum=0.9, rescale="diameter", wide_average=wide)
    for t in range(2):
        pair.give(
            [g.to(torch.float32 if t else dtype) for g in gradients([(33,)] * len(members), t)]
        )
        found = pair.step()
        if wide or t == 0:  # an average in few digits is not that of the twin
            limit = 1 if wide else 3
            assert {case: x for case, x in found.items() if not x <= limit} == {}
    for p, state in pair.kernels.state.items():
        assert state["momentum_buffer"].dtype is (torch.float32 if wide else p.dtype)


def test_tables_may_hold_anything_before_they_are_written(monkeypatch):
    from condgrad.kernels._plan import Tables

    plain = Tables._empty

    def poisoned(self, count, dtype):
        x = plain(self, count, dtype)
        return x.fill_(torch.nan if dtype.is_floating_point else 77)

    monkeypatch.setattr(Tables, "_empty", poisoned)
    members = [(r, (5,)) for r in REGIONS] + [(r, (9000,)) for r in REGIONS[3:5]]
    pair = Pair(members, lr=0.05, rescale="gradient", momentum=0.9)
    pair.give(gradients([shape for _, shape in members], 1))
    assert off(pair.step()) == {}


def test_stochastic_rounding_loses_nothing_on_average():
    """Steps of a sixteenth of the last place: to nearest they are lost, at random they add up."""
    moved = {}
    for rounding in ("nearest", "stochastic"):
        p = torch.full((4096,), 1.0, dtype=torch.bfloat16)
        optimizer = cg.SFW([p], cg.Free(), fused=True, lr=2.0**-11, momentum=0.0, rounding=rounding)
        for _ in range(8):
            p.grad = torch.ones_like(p)
            optimizer.step()
        moved[rounding] = float((1 - p.float()).mean()) / (8 * 2.0**-11)
    assert moved["nearest"] == 0
    assert abs(moved["stochastic"] - 1) < 0.2
