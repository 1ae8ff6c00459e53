"""Where the kernels cannot run: what is said then, and what the options mean all the same."""

import copy

import pytest
import torch

import condgrad as cg
from inputs import normal


def test_fused_is_refused_where_it_cannot_be_and_says_why():
    p = torch.zeros(3, 3)
    with pytest.raises(ValueError, match=r"`fused=True` cannot move .* in SpectralBall.*not split"):
        cg.SFW([p], cg.SpectralBall(1.0), fused=True)
    optimizer = cg.SFW([p], cg.SpectralBall(1.0))
    with pytest.raises(ValueError, match="`fused=True` cannot move"):
        optimizer.add_param_group({"params": [torch.zeros(2, 2)], "fused": True})
    assert len(optimizer.param_groups) == 1
    with pytest.raises(ValueError, match="`fused` must be one of True, False, None"):
        cg.SFW([p], cg.L2Ball(1.0), fused="yes")  # pyright: ignore


def test_random_rounding_is_refused_where_it_would_be_left_out():
    with pytest.raises(ValueError, match="`rounding='stochastic'` cannot move"):
        cg.SFW([torch.zeros(3, dtype=torch.bfloat16)], cg.L2Ball(1.0), rounding="stochastic")
    cg.SFW([torch.zeros(3)], cg.L2Ball(1.0), rounding="stochastic")  # nothing to round at random
    with pytest.raises(ValueError, match="`rounding` must be one of"):
        cg.SFW([torch.zeros(3)], cg.L2Ball(1.0), rounding="up")  # pyright: ignore


@pytest.mark.parametrize("fused", [None, False])
def test_without_a_device_nothing_changes(fused):
    params = [normal((5,), 0) for _ in range(2)]
    for p, settings in zip(params, ({"fused": fused}, {"foreach": False}), strict=True):
        optimizer = cg.SFW([p], cg.L2Ball(10.0), **settings)
        for t in range(3):
            p.grad = normal((5,), t)
            optimizer.step()
    assert torch.allclose(*params, rtol=1e-14)


def test_a_wide_average_keeps_what_few_digits_lose_and_is_saved_so():
    def made(wide):
        p = torch.zeros(64, dtype=torch.bfloat16)
        return p, cg.SFW([p], cg.LinfBall(1.0), wide_average=wide, momentum=0.99)

    kept = {}
    for wide in (False, True):
        p, optimizer = made(wide)
        for _ in range(300):
            p.grad = torch.ones_like(p)
            optimizer.step()
        average = optimizer.state[p]["momentum_buffer"]
        assert average.dtype is (torch.float32 if wide else torch.bfloat16)
        kept[wide] = abs(float(average.double().mean()) - (1 - 0.99**300))
        _, other = made(wide)
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        (loaded,) = other.state.values()
        assert loaded["momentum_buffer"].dtype is average.dtype
        assert torch.equal(loaded["momentum_buffer"], average)
    assert kept[True] < 1e-4 < 0.02 < kept[False]


def test_checkpoints_from_before_these_options_load():
    p = normal((5,), 0, 0.1)
    optimizer = cg.SFW([p], cg.L2Ball(10.0))
    p.grad = normal((5,), 1)
    optimizer.step()
    old = copy.deepcopy(optimizer.state_dict())
    for name in ("fused", "wide_average", "rounding"):
        del old["param_groups"][0][name]
    other = cg.SFW([p], cg.L2Ball(10.0), fused=False)
    other.load_state_dict(old)
    assert other.param_groups[0]["fused"] is False
    assert other.param_groups[0]["rounding"] == "nearest"
    other.step()
