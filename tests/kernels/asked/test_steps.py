"""Every region under every rule, with momentum and without, on tensors of odd sizes."""

import dataclasses

import pytest
import torch

import condgrad as cg
from inputs import normal
from kernels.cases import BLOCKS, REGIONS, Pair, gradients, off

MEMBERS = [(region, (n,)) for region in REGIONS for n in (1, 7, 1023)] + list(BLOCKS)
RATES = {None: 0.05, "diameter": 0.05, "gradient": 0.01}


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("rescale", RATES, ids=str)
def test_a_step_is_that_of_the_reference(rescale, momentum):
    pair = Pair(MEMBERS, lr=RATES[rescale], rescale=rescale, momentum=momentum)
    pair.give(gradients([shape for _, shape in MEMBERS], seed=1))
    found = pair.step()
    assert {case: off for case, off in found.items() if not off <= 1} == {}


def test_every_group_has_a_rate_of_its_own():
    members = [(region, (9,)) for region in REGIONS]
    pair = Pair(members, lr=0.0, rescale=None)
    for optimizer in (pair.kernels, pair.reference):
        for place, group in enumerate(optimizer.param_groups):
            group["lr"] = 0.01 * (place + 1)
    pair.give(gradients([shape for _, shape in members], seed=2))
    assert off(pair.step()) == {}


@pytest.mark.parametrize(("taken", "pulled"), [(14, False), (15, True)])
def test_every_sixteenth_step_pulls_points_back_inside(taken, pulled):
    members = [(region, shape) for region, shape in MEMBERS if region._drifts]
    groups = []
    for place, (region, shape) in enumerate(members):
        outer = region.project(normal(shape, place).float().abs() * 1000 + 1000)
        groups.append({"params": [outer], "region": region})
    optimizer = cg.SFW(groups, lr=0.0, rescale=None, fused=True)
    for t in range(2):
        for group in groups:
            (p,) = group["params"]
            p.grad = normal(p.shape, t).float()
        optimizer.step()
        for group in optimizer.param_groups:
            (p,) = group["params"]
            group["lr"] = 1e-7
            optimizer.state[p]["step"].fill_(taken)
            if t == 0:
                p.mul_(1 + 1e-4)
    for name, excess in cg.violation(optimizer, per_parameter=True).items():
        assert (float(excess) < 1e-5) == pulled, (members[int(name.split(".")[0])], excess)


def test_several_steps_rates_in_tensors_and_radii_that_change():
    members = [(region, (9,)) for region in REGIONS[:4]]
    pair = Pair(members, lr=0.02, momentum=0.9, maximize=True)
    for t in range(4):
        for optimizer in (pair.kernels, pair.reference):
            for group in optimizer.param_groups:
                group["lr"] = (0.02, torch.tensor(0.01), 0.5, 0.0)[t]
                group["momentum"] = (0.9, 0.9, 0.5, 0.9)[t]
                if t == 2:
                    wider = 1.5 * group["region"].radius
                    group["region"] = dataclasses.replace(group["region"], radius=wider)
        pair.give(gradients([shape for _, shape in members], seed=t))
        found = pair.step()
        assert {case: off for case, off in found.items() if not off <= 1} == {}, f"step {t}"
    states = zip(pair.kernels.state.values(), pair.reference.state.values(), strict=True)
    for mine, theirs in states:
        assert float(mine["step"]) == float(theirs["step"]) == 4
        assert torch.allclose(
            mine["momentum_buffer"].double(), theirs["momentum_buffer"], rtol=1e-5
        )
