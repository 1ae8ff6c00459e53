"""Building by name: what is drawn, what is left alone, what is refused."""

import pytest
import torch

from condgrad_lab.models import ARCHITECTURES, architecture, build

NAMES = list(ARCHITECTURES)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_the_weights(name):
    torch.manual_seed(1)
    first = weights(build(name, seed=5))
    torch.manual_seed(2)
    assert torch.equal(first, weights(build(name, seed=5)))
    assert not torch.equal(first, weights(build(name, seed=6)))


@pytest.mark.parametrize("name", ["mlp-64", "imdb-mlp", "googlenet"])
def test_the_random_state_of_the_caller_is_untouched(name, monkeypatch):
    def reseeded(*args):
        pytest.fail("an accelerator was reseeded")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded)
    torch.default_generator.manual_seed(3)
    before = torch.get_rng_state()
    build(name, seed=5)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_default_device_changes_neither_weights_nor_its_random_state():
    torch.cuda.manual_seed(3)
    before = torch.cuda.get_rng_state()
    with torch.device("cuda"):
        model = build("googlenet", seed=5)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert torch.equal(weights(model), weights(build("googlenet", seed=5)))


def test_a_default_device_is_overruled():
    with torch.device("meta"):
        model = build("mlp-32", seed=5)
    assert torch.equal(weights(model), weights(build("mlp-32", seed=5)))


def test_the_caller_keeps_the_state_when_building_fails():
    torch.default_generator.manual_seed(3)
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="classes"):
        build("linear", seed=0, classes=0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": "resnet18"}, r"`name` is 'resnet18', .* one of linear, mlp-64, .*resnext50"),
        ({"name": "linear", "classes": 0}, r"`classes` is 0: .* at least 1"),
        ({"name": "linear", "init": "he"}, r"`init` is 'he', but linear starts with 'torch'"),
        ({"name": "googlenet", "init": "xavier"}, r"starts with 'he' or 'torch'"),
    ],
)
def test_wrong_arguments_are_named(arguments, text):
    with pytest.raises(ValueError, match=text):
        build(**arguments, seed=0)


def test_the_list_cannot_be_changed_by_accident():
    with pytest.raises(TypeError):
        ARCHITECTURES["linear"] = architecture("mlp-64")
