"""The real data, where this machine's cache has them already: nothing is fetched."""

import hashlib
from functools import cache

import numpy as np
import pytest
import torch

from condgrad_lab import data
from condgrad_lab.data import cache as store

CACHE = store.root()


@cache
def loaded(name):
    return data.load(name, cache=CACHE)


def real(name):
    if {line.name: line.state for line in data.listing(CACHE)}[name] != "ready":
        pytest.skip(f"{name} is not in the cache")
    return loaded(name)


def sums(name, algorithm):
    return {
        path.name: hashlib.new(algorithm, path.read_bytes()).hexdigest()
        for path in (CACHE / name).iterdir()
    }


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar-10", "cifar-100"])
def test_images_have_the_published_sizes_and_counts(name):
    dataset = real(name)
    shape = (28, 28) if "mnist" in name else (3, 32, 32)
    train = 60000 if "mnist" in name else 50000
    assert dataset.train.inputs.shape == (train, *shape)
    assert dataset.test.inputs.shape == (10000, *shape)
    assert dataset.train.inputs.is_contiguous()
    counts = dataset.train.labels.bincount()
    assert len(counts) == len(dataset.classes)
    if name == "mnist":
        assert counts.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert dataset.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
        mean = dataset.train.inputs.float().mean() / 255
        assert mean.item() == pytest.approx(0.1307, abs=5e-5)
    else:
        assert counts.unique().tolist() == [train // len(counts)]


def test_mnist_is_the_official_one():
    real("mnist")
    # MD5 sums of the decompressed files, as widely published.
    assert {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    }.items() <= sums("mnist", "md5").items()


def test_fashion_mnist_is_the_official_one():
    real("fashion-mnist")
    assert {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    }.items() <= sums("fashion-mnist", "md5").items()


def test_cifar_10_is_the_official_one():
    real("cifar-10")
    # SHA-1 sums of the official binary batches, as published by others who read them.
    assert {
        "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
        "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
        "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
        "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
        "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
        "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
    }.items() <= sums("cifar-10", "sha1").items()


def test_the_channels_of_cifar_have_their_known_means():
    means = {"cifar-10": (0.4914, 0.4822, 0.4465), "cifar-100": (0.5071, 0.4865, 0.4409)}
    for name, expected in means.items():
        inputs = real(name).train.inputs
        total = inputs.flatten(2).numpy().sum(2, dtype=np.uint32).sum(0, dtype=np.int64)
        np.testing.assert_allclose(total / (255 * len(inputs) * 1024), expected, atol=1e-4)


def test_cifar_100_is_mixed():
    labels = real("cifar-100").train.labels
    assert len(labels[:1000].unique()) == 100


def test_imdb_is_balanced_mixed_and_sparse():
    dataset = real("imdb")
    for split in (dataset.train, dataset.test):
        assert len(split) == 25000
        assert split.labels.bincount().tolist() == [12500, 12500]
        assert 400 < int(split.labels[:1000].sum()) < 600
        rows = split.inputs
        assert rows.width == 8185
        assert len(rows.indices) == (5034442 if split is dataset.train else 4945591)
        assert int(rows.indices.min()) >= 1
        assert int(rows.indices.max()) < rows.width
        # No index twice in a row: within rows they rise.
        inner = torch.ones(len(rows.indices), dtype=torch.bool)
        inner[rows.offsets[:-1]] = False
        assert bool((rows.indices.diff() > 0)[inner[1:]].all())
