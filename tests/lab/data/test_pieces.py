"""Packed pieces: small enough, complete, checked, and unpacked by whoever finds them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from condgrad_lab.data import DataDamagedError, DataMissingError, Progress, pieces
from condgrad_lab.data.packing import Bz2, Foretold
from condgrad_lab.data.sources import obtain
from lab.data import tiny

LIMIT = 900


@pytest.fixture
def packed(tmp_path):
    """A folder of pieces of the tiny data set."""
    out = tmp_path / "out"
    pieces.write(tiny.recipe(), tiny.CONTENTS, out, LIMIT)
    return out


def get(folder, cache):
    return obtain(tiny.recipe(), folder=folder, cache=cache, progress=Progress())


def test_pieces_are_within_the_size_and_the_index_names_them(tmp_path):
    index, *parts = pieces.write(tiny.recipe(), tiny.CONTENTS, tmp_path, LIMIT)
    assert index.name == "tiny.pack.json"
    assert len(parts) > 1
    assert all(0 < part.stat().st_size <= LIMIT for part in parts)
    assert {part.name for part in parts} == set(json.loads(index.read_text())["pieces"])
    assert sorted(tmp_path.iterdir()) == sorted([index, *parts])


def test_packing_again_gives_the_same_pieces_and_removes_old_ones(tmp_path):
    first = {path: path.read_bytes() for path in pieces.write(*arguments(tmp_path, 500))}
    larger = pieces.write(*arguments(tmp_path, 10**6))
    assert sorted(tmp_path.iterdir()) == sorted(larger)
    assert {path: path.read_bytes() for path in pieces.write(*arguments(tmp_path, 500))} == first


def arguments(out, limit):
    return tiny.recipe(), tiny.CONTENTS, out, limit


def test_a_folder_of_pieces_is_a_source(packed, cache):
    entry, contents = get(packed, cache)
    assert contents == tiny.CONTENTS
    assert entry.source == f"folder {packed}"
    # A second time the pieces are checked, but what they gave is in the cache.
    before = (cache / "tiny").stat().st_ino
    assert get(packed, cache)[1] == tiny.CONTENTS
    assert (cache / "tiny").stat().st_ino == before


def test_pieces_in_the_cache_folder_unpack_by_themselves(packed):
    entry, contents = get(None, packed)
    assert contents == tiny.CONTENTS
    assert entry.source == f"pieces in {packed}"
    assert entry.folder == packed / "tiny"


def test_a_missing_piece_is_named(packed, cache):
    (packed / "tiny.pack-001").unlink()
    with pytest.raises(DataMissingError, match=r"lacks tiny\.pack-001 of the \d pieces of tiny"):
        get(packed, cache)
    with pytest.raises(DataMissingError, match=r"pieces in the cache: .* lacks tiny\.pack-001"):
        get(None, packed)


def test_a_damaged_piece_is_named(packed, cache):
    piece = packed / "tiny.pack-001"
    piece.write_bytes(piece.read_bytes()[:-1] + b"?")
    with pytest.raises(
        DataDamagedError, match=r"tiny\.pack-001` is damaged: its SHA-256"
    ) as caught:
        get(packed, cache)
    assert "condgrad data pack" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99, "name": "tiny"}', '{"format": 1}'])
def test_a_damaged_index_is_named(packed, cache, text):
    (packed / "tiny.pack.json").write_text(text)
    with pytest.raises(DataDamagedError, match=r"tiny\.pack\.json` is damaged: it is no index"):
        get(packed, cache)


def test_pieces_of_other_contents_are_refused(tmp_path, cache):
    other = dict(tiny.CONTENTS) | {"t10k-labels-idx1-ubyte": b"other"}
    pieces.write(tiny.recipe(), other, tmp_path, LIMIT)
    with pytest.raises(DataDamagedError, match=r"t10k-labels-idx1-ubyte` is damaged"):
        get(tmp_path, cache)


class Lossy(Bz2):
    def decode(self, packed):
        return {name: content[:-1] for name, content in super().decode(packed).items()}


def test_a_packing_that_loses_anything_is_never_written(tmp_path):
    with pytest.raises(RuntimeError, match="packing tiny loses data"):
        pieces.write(replace(tiny.recipe(), packing=Lossy()), tiny.CONTENTS, tmp_path / "out", 900)
    assert not (tmp_path / "out").exists()


def batch(images):
    """A CIFAR batch of these images, each with its number as the label."""
    labels = np.arange(len(images), dtype=np.uint8)[:, None]
    return np.hstack([labels, images.reshape(len(images), 3072)]).tobytes()


def smooth(count):
    """Images in colour without an edge, as photographs mostly are."""
    y, x, n = np.meshgrid(np.arange(32), np.arange(32), np.arange(count), indexing="ij")
    planes = [3 * x + 2 * y, 2 * x + 3 * y + n, 90 + x + y]
    return np.stack(planes).transpose(3, 0, 1, 2).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    "images",
    [
        np.random.default_rng(0).integers(0, 256, (7, 3, 32, 32), dtype=np.uint8),
        np.random.default_rng(1).choice(np.array([0, 255], np.uint8), (5, 3, 32, 32)),
        smooth(1),
        smooth(70),
    ],
    ids=["noise", "extremes", "one", "smooth"],
)
def test_images_come_back_to_the_last_pixel(images):
    files = {"one.bin": batch(images), "two.bin": batch(images[::-1])}
    assert Foretold().decode(Foretold().encode(files)) == files


def test_neighbours_foretell_a_photograph():
    files = {"batch.bin": batch(smooth(70))}
    size = sum(map(len, Foretold().encode(files).values()))
    assert size < 0.5 * sum(map(len, Bz2().encode(files).values()))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (5000, 5000),
        ("5000", 5000),
        ("60MiB", 60 * 2**20),
        ("60 MB", 60 * 10**6),
        ("1.5kib", 1536),
        (" 2 GB ", 2 * 10**9),
        ("7B", 7),
    ],
)
def test_sizes_are_read(text, size):
    assert pieces.size_of(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-5", "5 apples", "1e6", "0"])
def test_other_sizes_are_refused(text, tmp_path):
    with pytest.raises(ValueError, match="`max_size` must be"):
        pieces.write(tiny.recipe(), tiny.CONTENTS, tmp_path, pieces.size_of(text))
