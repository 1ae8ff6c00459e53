"""Synthetic twins: the shapes and types of the real sets, and something to learn."""

import numpy as np
import pytest
import torch

from condgrad_lab import data
from condgrad_lab.sparse import SparseRows

SHAPES = {
    "mnist": (28, 28),
    "fashion-mnist": (28, 28),
    "cifar-10": (3, 32, 32),
    "cifar-100": (3, 32, 32),
}
CLASSES = dict.fromkeys(data.NAMES, 10) | {"cifar-100": 100, "imdb": 2}


def dense(split):
    if isinstance(split.inputs, SparseRows):
        return split.inputs.dense()
    if isinstance(split.inputs, data.Pictures):
        pixels = [split.inputs.pixels(number, 24) for number in range(len(split))]
        return torch.tensor(np.array(pixels)).flatten(1) / 255
    return split.inputs.flatten(1) / 255


def same(one, other):
    return torch.equal(dense(one), dense(other)) and torch.equal(one.labels, other.labels)


@pytest.mark.parametrize("name", data.NAMES)
def test_a_twin_looks_like_the_real_set(name):
    twin = data.synthetic(name, train=210, test=110)
    assert twin.name == name
    assert len(twin.classes) == CLASSES[name]
    for split, count in ((twin.train, 210), (twin.test, 110)):
        assert len(split) == len(split.inputs) == count
        assert split.labels.dtype == torch.int64
        assert split.labels.shape == (count,)
        # Every class is there, none more than once more often than another.
        counts = split.labels.bincount(minlength=CLASSES[name])
        assert counts.max() - counts.min() <= 1
        if name == "imdb":
            assert isinstance(split.inputs, SparseRows)
            assert split.inputs.width == 8185
            assert int(split.inputs.indices.min()) >= 1  # 0 is padding
            assert torch.equal(split.inputs.dense().sum(1), split.inputs.lengths.float())
        elif name == "imagenet":
            assert isinstance(split.inputs, data.Pictures)
            assert split.inputs.folder is None
        else:
            assert split.inputs.dtype == torch.uint8
            assert split.inputs.shape == (count, *SHAPES[name])


@pytest.mark.parametrize("name", data.NAMES)
def test_a_twin_follows_its_seed_alone(name):
    one = data.synthetic(name, train=60, test=30)
    torch.manual_seed(5)
    again = data.synthetic(name, train=60, test=30)
    assert same(one.train, again.train)
    assert same(one.test, again.test)
    assert not same(one.train, data.synthetic(name, train=60, test=30, seed=1).train)
    # The test split does not depend on how much there is to train on.
    assert same(one.test, data.synthetic(name, train=10, test=30).test)


def test_twins_of_different_sets_differ():
    assert not same(data.synthetic("mnist").train, data.synthetic("fashion-mnist").train)


@pytest.mark.parametrize("name", data.NAMES)
def test_a_twin_can_be_learnt(name):
    twin = data.synthetic(name)
    inputs, labels = dense(twin.train), twin.train.labels
    weight = torch.zeros(inputs.shape[1], len(twin.classes), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        for batch in torch.randperm(len(labels), generator=generator).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(inputs[batch] @ weight, labels[batch]).backward()
            optimizer.step()
    right = (dense(twin.test) @ weight).argmax(1) == twin.test.labels
    assert right.float().mean() > 0.75
