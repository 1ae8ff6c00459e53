"""Pictures that are decoded while training goes on: the same whoever decodes them."""

import dataclasses

import numpy as np
import pytest
import torch

from condgrad_lab.data.pictures import DEVIATION, MEAN
from condgrad_lab.spec import Data, Optimizer, Run
from condgrad_lab.train import Team, load
from condgrad_lab.train import _stream as module
from condgrad_lab.train._draws import Draws
from condgrad_lab.train._samples import samples
from condgrad_lab.train._stream import Stream

RUN = Run(
    Data("imagenet", train=23, test=9, synthetic=True), "resnext14", Optimizer("SGD", 0.1),
    batch=8, augment=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def dataset():
    return load(RUN.data)


def streams(dataset, **change):
    train, test = samples(dataset, dataclasses.replace(RUN, **change), 0)
    assert isinstance(train, Stream)
    assert isinstance(test, Stream)
    return train, test


def batches(stream, *args):
    found = list(stream.batches(*args))
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def test_every_picture_comes_once_in_order_as_it_was_cropped(dataset):
    train, _ = streams(dataset)
    draws = train.draws(0, 3)
    inputs, labels = batches(train, 8, draws)
    assert sorted(draws.order.tolist()) == list(range(23))
    assert torch.equal(labels, dataset.train.labels[draws.order])
    mean, deviation = (np.array(each)[:, None, None] for each in (MEAN, DEVIATION))
    for image, number, seed in zip(inputs, draws.order, draws.moves.flatten(), strict=True):
        pixels = dataset.train.inputs.pixels(int(number), 64, int(seed))
        expected = (pixels.transpose(2, 0, 1) / 255 - mean) / deviation
        np.testing.assert_allclose(image.numpy(), expected, atol=1e-5)


def test_batches_are_as_large_as_asked_and_laid_out_for_convolutions(dataset):
    train, _ = streams(dataset)
    found = [inputs for inputs, _ in train.batches(8, train.draws(0, 1))]
    assert [len(inputs) for inputs in found] == [8, 8, 7]
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in found)
    assert {x.dtype for x in found} == {torch.float32}


def test_what_is_measured_is_not_moved(dataset):
    train, test = streams(dataset)
    still, _ = batches(train, 23)
    plain, _ = batches(streams(dataset, augment=False)[0], 5)
    assert torch.equal(still, plain)
    moved, _ = batches(train, 23, dataclasses.replace(train.draws(0, 1), order=torch.arange(23)))
    assert not torch.equal(moved, still)
    assert test.draws(0, 1).moves is None


def test_epochs_and_seeds_crop_anew(dataset):
    train, _ = streams(dataset)
    seeds = [train.draws(seed, epoch).moves for seed, epoch in ((0, 1), (0, 1), (0, 2), (1, 1))]
    assert torch.equal(seeds[0], seeds[1])
    assert not torch.equal(seeds[0], seeds[2])
    assert not torch.equal(seeds[0], seeds[3])


def test_other_processes_decode_the_same_and_no_random_number_is_used(dataset):
    train, _ = streams(dataset)
    draws = train.draws(0, 1)
    expected = batches(train, 8, draws)
    train._workers = 2
    torch.manual_seed(0)
    before = torch.get_rng_state()
    found = batches(train, 8, draws)
    assert all(map(torch.equal, found, expected))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_team_gets_parts_that_make_up_the_batches(dataset):
    train, _ = streams(dataset)
    draws = train.draws(0, 1)
    whole = [labels for _, labels in train.batches(8, draws)]
    parts = [[labels for _, labels in train.batches(8, draws, Team(r, 2))] for r in range(2)]
    for labels, first, second in zip(whole, *parts, strict=True):
        assert torch.equal(first, labels[::2])
        assert torch.equal(second, labels[1::2])


def test_few_pictures_are_decoded_here(dataset, monkeypatch):
    train, _ = streams(dataset)
    train._workers = None
    assert train._readers(len(train), Team()) == 0
    monkeypatch.setattr(module, "cores", lambda: 16)
    assert train._readers(5000, Team()) == 16
    assert train._readers(5000, Team(0, 4)) == 4
    assert train._readers(5000, Team(0, 32)) == 1
    daemon = type("Process", (), {"daemon": True})
    monkeypatch.setattr(module, "current_process", daemon)
    assert train._readers(5000, Team()) == 0


def test_some_pictures_can_be_asked_for(dataset):
    train, _ = streams(dataset)
    inputs, labels = batches(train, 4, Draws(torch.tensor([3, 1, 4, 1, 5])))
    assert len(inputs) == 5
    assert torch.equal(inputs[1], inputs[3])
    assert torch.equal(labels, dataset.train.labels[[3, 1, 4, 1, 5]])
