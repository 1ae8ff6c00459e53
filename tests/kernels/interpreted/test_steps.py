"""Every region under every rule, with momentum and without, on tensors of odd sizes."""

import pytest
import torch

from kernels.cases import BLOCKS, REGIONS, Pair, gradients

MEMBERS = [(region, (n,)) for region in REGIONS for n in (1, 7, 1023)] + list(BLOCKS)
RATES = {None: 0.05, "diameter": 0.05, "gradient": 0.01}


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("rescale", RATES, ids=str)
def test_a_step_is_that_of_the_reference(rescale, momentum):
    pair = Pair(MEMBERS, lr=RATES[rescale], rescale=rescale, momentum=momentum)
    pair.give(gradients([shape for _, shape in MEMBERS], seed=1))
    found = pair.step()
    assert {case: off for case, off in found.items() if not off <= 1} == {}


def test_several_steps_rates_in_tensors_and_radii_that_change():
    members = [(region, (9,)) for region in REGIONS[:4]]
    pair = Pair(members, lr=0.02, momentum=0.9, maximize=True)
    for t in range(4):
        for optimizer in (pair.kernels, pair.reference):
            for group in optimizer.param_groups:
                group["lr"] = (0.02, torch.tensor(0.01), 0.5, 0.0)[t]
                group["momentum"] = (0.9, 0.9, 0.5, 0.9)[t]
        pair.give(gradients([shape for _, shape in members], seed=t))
        found = pair.step()
        assert {case: off for case, off in found.items() if not off <= 1} == {}, f"step {t}"
    states = zip(pair.kernels.state.values(), pair.reference.state.values(), strict=True)
    for mine, theirs in states:
        assert float(mine["step"]) == float(theirs["step"]) == 4
        assert torch.allclose(
            mine["momentum_buffer"].double(), theirs["momentum_buffer"], rtol=1e-5
        )
