"""Formats, layouts, what is not finite, what is poisoned, and what the kernels leave to others."""

import copy
import io

import pytest
import torch

import condgrad as cg
from inputs import normal
from kernels.cases import INTERPRETING, REGIONS, Pair, gradients, off

OF_VERTICES = [r for r in REGIONS if not isinstance(r, cg.Free)]


def test_channels_last_and_transposed_tensors_draw_as_others_do():
    shape = (2, 3, 4, 5)
    members = [(r, shape) for r in OF_VERTICES] + [(cg.PerFilter(cg.L1Ball(0.1)), shape)]
    pair = Pair(
        members, lr=0.1, rescale="gradient", layouts=[torch.channels_last] * len(members), seed=2
    )
    assert all(not p.is_contiguous() for p in pair.fast)
    for t in range(2):
        ties = [
            torch.where(g.abs() < 0.7, 0.0, g.sign()) for g in gradients([shape] * len(members), t)
        ]
        pair.give(ties)
        assert off(pair.step()) == {}
    transposed = normal((7, 5), 0, dtype=torch.float32).mul_(0.01).t()
    optimizer = cg.SFW([transposed], cg.LinfBall(0.1), fused=True, lr=1.0, rescale=None)
    transposed.grad = torch.zeros_like(transposed)
    plain = transposed.contiguous().double()
    twin = cg.SFW([plain], cg.LinfBall(0.1), fused=False, lr=1.0, rescale=None)
    plain.grad = torch.zeros_like(plain)
    optimizer.step()
    twin.step()
    assert torch.equal(transposed.sign(), plain.sign().float())


def test_what_is_not_finite_stays_with_its_tensor():
    for poison in (torch.nan, -torch.inf):
        members = [(r, (9,)) for r in REGIONS for _ in range(2)]
        rule = "gradient" if poison != poison else None
        pair = Pair(members, lr=0.05, momentum=0.0, rescale=rule)
        given = gradients([(9,)] * len(members), 0)
        for g in given[::2]:
            g[3] = poison
        pair.give(given)
        before = [p.clone() for p in pair.fast]
        pair.kernels.step()
        finite = [bool(p.isfinite().all()) for p in pair.fast]
        assert finite == [False, True] * len(REGIONS), poison
        assert all(
            not torch.equal(p, b) for p, b in zip(pair.fast[1::2], before[1::2], strict=True)
        )


def test_a_rate_of_zero_and_gradients_of_zero_move_nothing():
    members = [(r, (9,)) for r in REGIONS]
    pair = Pair(members, lr=0.0)
    before = [p.clone() for p in pair.fast]
    for _ in range(2):
        pair.give([torch.zeros(9)] * len(members))
        pair.kernels.step()
    assert all(torch.equal(p, b) for p, b in zip(pair.fast, before, strict=True))


def test_what_the_kernels_cannot_take_moves_with_the_others():
    """Parts of a step go one way, parts the other; fused=True names what is in the way."""
    split = torch.zeros(4)
    whole = torch.zeros(3, 4)
    groups = [
        {"params": [split], "region": cg.L2Ball(1.0), "fused": True},
        {"params": [whole], "region": cg.SpectralBall(1.0), "fused": None},
    ]
    optimizer = cg.SFW(groups, lr=0.5, rescale=None)
    for t in range(2):
        split.grad, whole.grad = normal((4,), t).float(), normal((3, 4), t).float()
        optimizer.step()
    assert float(split.norm()) > 0.1
    assert float(whole.norm()) > 0.1
    assert {float(state["step"]) for state in optimizer.state.values()} == {2}
    with pytest.raises(ValueError, match=r"`fused=True` cannot move parameter .* does not split"):
        cg.SFW([whole], cg.SpectralBall(1.0), fused=True)
    other = torch.float64 if INTERPRETING else torch.bfloat16
    with pytest.raises(ValueError, match=rf"{other}, not float32"):
        cg.SFW([torch.zeros(3, dtype=other)], cg.L2Ball(1.0), fused=True)
    gapped = torch.zeros(8)[::2]
    with pytest.raises(ValueError, match="leave gaps"):
        cg.SFW([gapped], cg.L2Ball(1.0), fused=True)


def test_whoever_has_a_gradient_moves_after_steps_in_which_nobody_had():
    split, whole = torch.zeros(4), torch.zeros(3, 4)
    groups = [
        {"params": [split], "region": cg.L2Ball(1.0), "fused": True},
        {"params": [whole], "region": cg.SpectralBall(1.0), "fused": None},
    ]
    optimizer = cg.SFW(groups, lr=0.5, rescale=None)
    both = (split, whole)
    for there in (both, (), both, (whole,), (), (whole,), (split,), both):
        before = [p.clone() for p in (split, whole)]
        for p in (split, whole):
            p.grad = normal(p.shape, 1).float() if any(p is q for q in there) else None
        optimizer.step()
        for p, b in zip((split, whole), before, strict=True):
            assert torch.equal(p, b) == all(p is not q for q in there)


def test_a_sparse_gradient_is_refused_before_anything_has_moved():
    params = [torch.zeros(4), torch.zeros(4)]
    optimizer = cg.SFW(params, cg.L2Ball(1.0), fused=True, momentum=0.0)
    for _ in range(2):
        params[0].grad, params[1].grad = torch.ones(4), torch.ones(4).to_sparse()
        with pytest.raises(TypeError, match=r"layout torch.sparse_coo was found: SFW needs dense"):
            optimizer.step()
        assert not any(p.any() for p in params)


def test_a_gradient_in_another_order_of_memory_is_named():
    p = torch.zeros(2, 3)
    optimizer = cg.SFW([p], cg.L2Ball(1.0), fused=True)
    p.grad = normal((3, 2), 0).float().t()
    with pytest.raises(ValueError, match="its gradient has other strides"):
        optimizer.step()
    assert not p.any()


def test_checkpoints_copies_and_groups_that_join():
    def made():
        params = [torch.zeros(9), torch.zeros(5)]
        return params, cg.SFW(params, cg.L2Ball(1.0), fused=True, lr=0.1)

    def walked(params, optimizer, steps):
        for t in steps:
            for p in params:
                p.grad = normal(p.shape, t).float()
            optimizer.step()

    params, optimizer = made()
    walked(params, optimizer, range(4))
    others, resumed = made()
    half, twin = made()
    walked(half, twin, range(2))
    buffer = io.BytesIO()
    torch.save(twin.state_dict(), buffer)
    buffer.seek(0)
    resumed.load_state_dict(torch.load(buffer, weights_only=True))
    for p, q in zip(others, half, strict=True):
        p.copy_(q)
    walked(others, resumed, range(2, 4))
    assert all(map(torch.equal, params, others))
    copied = copy.deepcopy(twin)
    walked(copied.param_groups[0]["params"], copied, range(2, 4))
    assert all(map(torch.equal, params, copied.param_groups[0]["params"]))
    late = torch.zeros(6)
    optimizer.add_param_group({"params": [late], "region": cg.L1Ball(1.0)})
    walked([*params, late], optimizer, range(4, 5))
    assert float(late.abs().sum()) > 0
