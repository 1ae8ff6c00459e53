"""What the laboratory sees of data: names, loading, listing, getting, packing."""

import pytest
import torch

from condgrad_lab import data
from lab.data import tiny


@pytest.fixture
def known(web, monkeypatch):
    """The tiny data set among the known ones, and served officially."""
    monkeypatch.setitem(data.RECIPES, "tiny", tiny.recipe([web.address]))


def test_six_data_sets_are_known():
    assert data.NAMES == ("mnist", "fashion-mnist", "cifar-10", "cifar-100", "imdb", "imagenet")


@pytest.mark.parametrize("function", [data.load, data.get, data.synthetic])
def test_an_unknown_name_is_refused_with_the_known_ones(function):
    with pytest.raises(ValueError, match=r"`name` must be one of mnist, .*, imagenet, got 'svhn'"):
        function("svhn")


def test_loading_gives_splits_and_classes(known, cache):
    dataset = data.load("tiny", cache=cache)
    assert dataset.name == "tiny"
    assert dataset.classes == tuple("0123456789")
    assert dataset.train.inputs.shape == (tiny.TRAIN, tiny.SIDE, tiny.SIDE)
    assert dataset.train.inputs.dtype == torch.uint8
    assert dataset.test.labels.shape == (tiny.TEST,)
    assert repr(dataset.test) == f"Split(uint8 ({tiny.TEST}, {tiny.SIDE}, {tiny.SIDE}))"


def test_the_environment_names_the_cache(known, cache, monkeypatch):
    monkeypatch.setenv("CONDGRAD_DATA", str(cache))
    data.load("tiny")
    assert (cache / "tiny" / "origin.json").is_file()


def test_the_tensors_may_be_written_to(known, cache):
    inputs = data.load("tiny", cache=cache).train.inputs
    before = inputs.clone()
    inputs += 1
    assert not torch.equal(inputs, before)
    assert torch.equal(data.load("tiny", cache=cache).train.inputs, before)


def test_getting_from_a_folder_replaces_what_the_cache_had(known, cache, tmp_path):
    first = data.get("tiny", cache=cache)
    assert first.source.startswith("official download")
    second = data.get("tiny", folder=tiny.put(tmp_path / "mine"), cache=cache)
    assert second.source == f"folder {tmp_path / 'mine'}"
    assert second.folder == cache / "tiny"
    # A folder without the data changes nothing.
    assert data.get("tiny", folder=tmp_path, cache=cache) == second


def listed(cache):
    return {line.name: line for line in data.listing(cache)}["tiny"]


def test_a_listing_tells_what_is_there(known, cache):
    assert sorted(line.name for line in data.listing(cache)) == sorted([*data.NAMES, "tiny"])
    assert {line.state for line in data.listing(cache)} == {"absent"}
    data.get("tiny", cache=cache)
    line = listed(cache)
    assert line.state == "ready"
    assert line.source.startswith("official download, http://127.0.0.1")
    assert line.bytes == sum(map(len, tiny.CONTENTS.values()))
    assert line.folder == cache / "tiny"


@pytest.mark.parametrize("file", ["origin.json", "t10k-labels-idx1-ubyte"])
def test_a_listing_tells_of_damage(known, cache, file):
    data.get("tiny", cache=cache)
    (cache / "tiny" / file).write_text("x")
    assert listed(cache).state == "damaged"


def test_packed_pieces_load_elsewhere(known, web, cache, tmp_path):
    index, *parts = data.pack("tiny", tmp_path / "out", "1KB", cache=cache)
    assert index.parent == tmp_path / "out"
    assert len(parts) > 1
    web.files.clear()
    here = data.load("tiny", cache=cache)
    there = data.load("tiny", folder=tmp_path / "out", cache=tmp_path / "elsewhere")
    assert torch.equal(here.train.inputs, there.train.inputs)
    assert torch.equal(here.test.labels, there.test.labels)


def test_a_split_needs_a_label_for_each_input():
    with pytest.raises(
        ValueError, match="`labels` must be as many as `inputs`, got 1 labels for 2"
    ):
        data.Split(torch.zeros(2, 3), torch.zeros(1))
