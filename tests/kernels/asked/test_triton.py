"""What Triton's kernels alone can be asked: formats of few digits, and their tables."""

import pytest
import torch
import triton
import triton.language as tl

import condgrad as cg
from condgrad.kernels.gpu._noise import entry_of
from condgrad.kernels.gpu._power import power
from kernels.cases import REGIONS, Pair, gradients, off


@triton.jit
def raised(x, y, exponent, N: tl.constexpr):
    place = tl.arange(0, N)
    tl.store(y + place, power(tl.load(x + place), exponent))


@triton.jit
def numbered(table, entries, N: tl.constexpr):
    offset = tl.arange(0, N)
    start, mid, inner = tl.load(table), tl.load(table + 1), tl.load(table + 2)
    tl.store(entries + offset, entry_of(start, offset, mid, inner, False))


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


def test_powers_are_right_over_the_whole_range():
    made = torch.Generator().manual_seed(0)
    spread = torch.rand(2048, generator=made, dtype=torch.float64)
    for low, exponents in ((-40.0, (1e-3, 0.5, 2.0, 7.0, 20.0)), (-1.0, (100.0, 1000.0))):
        x = torch.exp(low * spread)
        x[:4] = torch.tensor([0.0, torch.nan, 1.0, 2.0**-140])
        for exponent in exponents:
            y = torch.empty_like(x)
            raised[(1,)](x, y, exponent, 2048)
            wanted = x**exponent
            rtol = 5e-11 * (1 + exponent)
            assert torch.allclose(y, wanted, rtol=rtol, atol=1e-290, equal_nan=True), exponent


@pytest.mark.parametrize(
    ("start", "mid", "inner"),
    [
        (0, 3, 20),
        (4096, 64, 9),
        (12345, 2, 2),
        (7 * 2**31 + 5, 1 << 33, 3),
        ((1 << 33) - 9, 1 << 33, 3),
        ((1 << 33) * 3 - 9, 1 << 33, 3),
        (5 * (1 << 34) - 100, 7, 1 << 34),
        (7 * (1 << 34) - 100, 7, 1 << 34),
        ((1 << 29) - 11, 1 << 29, 1 << 3),
    ],
)
def test_entries_of_transposed_matrices_are_numbered_as_they_are_counted(start, mid, inner):
    """Also of giants, which no test could hold: columns and matrices end within the chunk."""
    entries = torch.empty(256, dtype=torch.int64)
    numbered[(1,)](torch.tensor([start, mid, inner]), entries, 256)
    places = range(start, start + 256)
    wanted = [
        place // (mid * inner) * mid * inner + place % mid * inner + place // mid % inner
        for place in places
    ]
    assert entries.tolist() == wanted
