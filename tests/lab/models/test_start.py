"""Where the weights start, measured on the weights."""

import math

import pytest
import torch
from torch import nn

from condgrad_lab.models import ARCHITECTURES, InputKind, build

DEEP = [name for name, entry in ARCHITECTURES.items() if entry.input_kind is InputKind.COLOR]
SMALL = [name for name in ARCHITECTURES if name not in DEEP]


def convolutions(model):
    """Those with enough weights for their deviation to be known within a few percent."""
    return [m for m in model.modules() if isinstance(m, nn.Conv2d) and m.weight.numel() > 8_000]


@pytest.mark.parametrize("name", DEEP)
def test_deep_networks_start_as_published(name):
    model = build(name, seed=0)
    for layer in convolutions(model):
        fan_out = layer.out_channels * layer.kernel_size[0] * layer.kernel_size[1]
        assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / fan_out), rel=0.05)
        # Normal, not uniform: some weights lie beyond sqrt(3) deviations.
        assert layer.weight.abs().max() > 2.5 * layer.weight.std()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            assert (layer.weight == 1).all()
            assert not layer.bias.any()
    assert not model.classify.bias.any()
    assert uniform_over(model.classify.weight, model.classify.in_features)


@pytest.mark.parametrize("name", DEEP)
def test_deep_networks_start_at_the_defaults_of_torch_on_request(name):
    model = build(name, seed=0, init="torch")
    for layer in convolutions(model):
        assert uniform_over(layer.weight, layer.weight[0].numel())
    assert model.classify.bias.any()


@pytest.mark.parametrize("name", SMALL)
def test_small_networks_start_at_the_defaults_of_torch(name):
    for layer in build(name, seed=0).modules():
        if isinstance(layer, nn.Linear):
            assert uniform_over(layer.weight, layer.in_features)
        if isinstance(layer, nn.Conv2d):
            assert uniform_over(layer.weight, layer.weight[0].numel())


def uniform_over(weight: torch.Tensor, fan_in: int) -> bool:
    """Whether it looks uniform in ± 1 / sqrt(fan_in): its largest entry and its deviation."""
    scaled = weight.detach() * math.sqrt(fan_in)
    deviation = scaled.std().item() * math.sqrt(3)
    slack = 5 / math.sqrt(weight.numel())
    return (
        bool(1 - 50 / weight.numel() < scaled.abs().max() <= 1.0001) and abs(deviation - 1) < slack
    )
