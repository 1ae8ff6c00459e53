"""Tensors of millions of float32 entries: sums of so many numbers keep their digits."""

import pytest
import torch

import condgrad as cg
from inputs import generator

N = 3_000_000


def entries():
    return torch.rand(N, generator=generator(0)) + 0.5


EXCESS = {
    cg.L1Ball(1e5): lambda x: x.sum() / 1e5,
    cg.L2Ball(100.0): lambda x: x.norm() / 100,
    cg.LpBall(3.0, 10.0): lambda x: (x**3).sum() ** (1 / 3) / 10,
    cg.KSparsePolytope(0.5, 0.1): lambda x: max(x.sum() / (N // 2), x.max()) / 0.1,
    cg.KNormBall(1.0, 1e5): lambda x: x.sum() / 1e5,
}


@pytest.mark.parametrize("region", EXCESS, ids=str)
def test_violation_of_many_entries_keeps_its_digits(region):
    x = entries()
    assert region.violation(x) == pytest.approx(float(EXCESS[region](x.double())) - 1, rel=2e-6)


@pytest.mark.parametrize("foreach", [True, False])
def test_a_step_of_many_entries_keeps_the_digits_of_its_length(foreach):
    moved = []
    for dtype in (torch.float32, torch.float64):
        p = torch.zeros(N, dtype=dtype)
        p.grad = entries().to(dtype)
        cg.SFW([p], cg.L2Ball(1.0), lr=1e-5, momentum=0.0, foreach=foreach).step()
        moved.append(p.double())
    assert float((moved[0] - moved[1]).norm() / moved[1].norm()) < 1e-6
