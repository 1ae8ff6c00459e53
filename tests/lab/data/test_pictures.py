"""Pictures in files: their crops, and the folder of ImageNet as users have it."""

import io
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from condgrad_lab import data
from condgrad_lab.data import DataDamagedError, DataMissingError, imagenet, pictures
from condgrad_lab.data.imagenet import Counts
from condgrad_lab.data.pictures import Pictures, middle, part

CLASSES = ("n01", "n02", "n10")


def gradient(width, height, blue=0):
    """A picture whose colours tell where in it one is."""
    y, x = np.mgrid[:height, :width]
    planes = [255 * x / max(width - 1, 1), 255 * y / max(height - 1, 1), np.full_like(x, blue)]
    return Image.fromarray(np.stack(planes, 2).round().astype(np.uint8))


def stored(picture, kind="PNG"):
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three classes of pictures in files of several kinds; and what is no picture."""
    root = tmp_path / "pictures"
    for split, each in (("train", 2), ("val", 1)):
        for label, name in enumerate(CLASSES):
            place = root / split / name
            place.mkdir(parents=True)
            for number in range(each):
                ending = (".JPEG", ".png", ".jpg")[label]
                gradient(40 + number, 30, 60 * label).save(place / f"a{number}{ending}")
            (place / "notes.txt").write_text("not a picture")
    monkeypatch.setattr(imagenet, "WHOLE", Counts(classes=3, train=6, val=3))
    return root


# ---- crops


@pytest.mark.parametrize(("width", "height"), [(100, 60), (60, 100), (256, 256), (3, 1)])
def test_the_middle_is_a_square_of_seven_eighths(width, height):
    (left, top, right, bottom), flip = middle(width, height)
    assert right - left == bottom - top == pytest.approx(0.875 * min(width, height))
    assert (left + right, top + bottom) == pytest.approx((width, height))
    assert not flip


def test_parts_are_of_all_sizes_ratios_and_places():
    found = [part(100, 100, seed) for seed in range(4000)]
    boxes = np.array([box for box, _ in found])
    assert part(100, 100, 7) == found[7]
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    assert boxes.min() >= 0
    assert boxes[:, 2].max() == 100
    assert boxes[:, 3].max() == 100
    share, ratio = wide * high / 10_000, wide / high
    assert 0.075 < share.min() < 0.09
    assert 0.95 < share.max() <= 1
    assert 0.72 < ratio.min() < 0.8
    assert 1.25 < ratio.max() < 1.38
    assert np.log(ratio).mean() == pytest.approx(0, abs=0.02)
    centres = (boxes[:, 0] + boxes[:, 2]) / 2
    assert centres.mean() == pytest.approx(50, abs=1)
    assert np.mean([flip for _, flip in found]) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("size", "box"), [((1000, 10), (1000, 10)), ((10, 1000), (10, 1000)), ((1, 1), (1, 1))]
)
def test_where_no_part_fits_it_is_in_the_middle(size, box):
    for seed in range(20):
        (left, top, right, bottom), _ = part(*size, seed)
        assert 0 <= left < right <= box[0]
        assert 0 <= top < bottom <= box[1]
        assert 0.74 <= (right - left) / (bottom - top) <= 1.34


def test_pixels_are_those_of_the_box():
    found = Pictures([stored(gradient(256, 128))])
    pixels = found.pixels(0, 28)
    assert pixels.shape == (28, 28, 3)
    assert pixels.dtype == np.uint8
    # The middle of a picture twice as wide as high: x from 72 to 184, y from 8 to 120.
    pixels = pixels.astype(int)
    assert pixels[14, [0, -1], 0] == pytest.approx([72, 184], abs=4)
    assert pixels[[0, -1], 14, 1] == pytest.approx([16, 239], abs=4)
    seed = next(seed for seed in range(99) if part(256, 128, seed)[1])
    moved = found.pixels(0, 28, seed).astype(int)
    assert moved[14, 0, 0] > moved[14, -1, 0]  # flipped
    left, _, right, _ = part(256, 128, seed)[0]
    assert moved[14, [0, -1], 0] == pytest.approx([right, left], abs=6)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK"])
def test_pictures_of_other_kinds_become_colour(mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    found = Pictures([stored(gradient(20, 20).convert(mode), kind)])
    assert found.pixels(0, 8).shape == (8, 8, 3)


def test_some_of_the_pictures_are_pictures():
    found = Pictures([stored(gradient(8, 8, blue)) for blue in (0, 100, 200)])
    some = found[torch.tensor([2, 0])]
    assert len(some) == 2
    assert some.pixels(0, 4)[0, 0, 2] == 200
    assert found[1:].pixels(0, 4)[0, 0, 2] == 100
    assert repr(some) == "Pictures(2 in memory)"


def test_a_bad_picture_is_named(folder, tmp_path):
    path = folder / "train" / "n01" / "a1.JPEG"
    path.write_bytes(b"no picture")
    found = data.load("imagenet", folder=folder, cache=tmp_path / "cache").train.inputs
    with pytest.raises(DataDamagedError, match=r"a1\.JPEG` is damaged: it is no readable picture"):
        found.pixels(1, 8)
    with pytest.raises(DataDamagedError, match="`picture 0` is damaged"):
        Pictures([b"no picture"]).pixels(0, 8)


# ---- the folder


@pytest.mark.parametrize("place", [".", "imagenet"])
def test_a_folder_of_classes_is_read(folder, tmp_path, place):
    if place != ".":
        (tmp_path / "sets").mkdir()
        folder = folder.rename(tmp_path / "sets" / place).parent
    found = data.load("imagenet", folder=folder, cache=tmp_path / "cache")
    assert found.classes == CLASSES
    assert found.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.test.labels.tolist() == [0, 1, 2]
    for split in (found.train, found.test):
        blues = [int(split.inputs.pixels(number, 8)[0, 0, 2]) for number in range(len(split))]
        assert blues == pytest.approx([60 * label for label in split.labels.tolist()], abs=4)
    assert found.train.inputs.pixels(1, 8).shape == (8, 8, 3)
    again = pickle.loads(pickle.dumps(found.train.inputs))
    assert np.array_equal(again.pixels(3, 8), found.train.inputs.pixels(3, 8))


def test_the_folder_is_remembered(folder, tmp_path):
    cache = tmp_path / "cache"
    assert listed(cache) == "absent"
    entry = data.get("imagenet", folder=folder, cache=cache)
    assert (entry.folder, entry.source) == (folder.resolve(), f"folder {folder.resolve()}")
    assert listed(cache) == "ready"
    assert len(data.load("imagenet", cache=cache).train) == 6
    # A folder that holds other sets does not make it forgotten.
    other = tmp_path / "other"
    other.mkdir()
    assert data.get("imagenet", folder=other, cache=cache).folder == folder.resolve()
    folder.rename(tmp_path / "gone")
    assert listed(cache) == "damaged"
    with pytest.raises(DataMissingError, match=r"has gone\. ImageNet is not handed out freely"):
        data.load("imagenet", cache=cache)
    (cache / "imagenet" / "index.npz").write_bytes(b"?")
    assert listed(cache) == "damaged"
    with pytest.raises(DataDamagedError, match=r"index\.npz` is damaged: it cannot be read"):
        data.load("imagenet", cache=cache)


def listed(cache):
    return {line.name: line.state for line in data.listing(cache)}["imagenet"]


def test_without_a_folder_one_is_told_what_to_do(tmp_path):
    with pytest.raises(DataMissingError, match=r"condgrad data get imagenet --from FOLDER"):
        data.get("imagenet", cache=tmp_path)
    with pytest.raises(DataMissingError, match="has no train/ and val/"):
        data.get("imagenet", folder=tmp_path, cache=tmp_path)
    with pytest.raises(DataMissingError, match="nowhere` does not exist"):
        data.get("imagenet", folder=tmp_path / "nowhere", cache=tmp_path)
    with pytest.raises(ValueError, match="'imagenet', whose pictures stay where they are"):
        data.pack("imagenet", tmp_path, 100)


def test_a_part_of_it_is_not_taken_for_it(folder, tmp_path, monkeypatch):
    def refused(match):
        with pytest.raises(DataDamagedError, match=match):
            data.get("imagenet", folder=folder, cache=tmp_path / "cache")

    (folder / "val" / "n10" / "a0.jpg").unlink()
    refused("it has 2 pictures, expected 3")
    monkeypatch.undo()
    refused("it has 3 classes, expected 1000")
    (folder / "val" / "n77").mkdir()
    refused("train and val have different classes, such as n77")
    assert not (tmp_path / "cache" / "imagenet" / "index.npz").exists()


def test_the_crops_of_training_are_the_usual_ones():
    assert (pictures.AREA, pictures.RATIO) == ((0.08, 1.0), (3 / 4, 4 / 3))
    assert pictures.MARGIN == 224 / 256
