"""The binary batches of CIFAR, the mirror's pictures of them, and the order of CIFAR-100."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from condgrad_lab.data import DataDamagedError, cifar, cifar_10, cifar_100

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
LABELS = [*range(10), 3, 1]


def batch(images=IMAGES, labels=LABELS) -> bytes:
    return cifar.encode(images.reshape(len(images), -1), labels)


def png(images: np.ndarray) -> bytes:
    """One row an image, its pixels row by row, as the mirror lays them out."""
    file = io.BytesIO()
    Image.fromarray(images.transpose(0, 2, 3, 1).reshape(len(images), 1024, 3)).save(file, "PNG")
    return file.getvalue()


def test_a_batch_is_a_label_and_three_planes():
    split = cifar.decode(bytearray(batch()), "batch", labels=1, classes=10)
    assert torch.equal(split.inputs, torch.from_numpy(IMAGES))
    assert split.inputs.is_contiguous()
    assert split.labels.dtype == torch.int64
    assert split.labels.tolist() == LABELS
    # By the format's own words: label, 1,024 of red, 1,024 of green, 1,024 of blue.
    assert batch()[0] == LABELS[0]
    assert batch()[1 + 1024] == IMAGES[0, 1, 0, 0]


def test_with_two_label_bytes_the_last_is_the_class():
    records = b"".join(b"\x07" + batch()[i : i + 3073] for i in range(0, len(batch()), 3073))
    split = cifar.decode(bytearray(records), "batch", labels=2, classes=10)
    assert split.labels.tolist() == LABELS
    assert torch.equal(split.inputs, torch.from_numpy(IMAGES))


@pytest.mark.parametrize("content", [b"", batch()[:-1]])
def test_a_batch_of_a_wrong_size_is_refused_by_name(content):
    with pytest.raises(DataDamagedError, match=r"`batch` is damaged.*3073-byte records"):
        cifar.decode(bytearray(content), "batch", labels=1, classes=10)


def test_a_label_beyond_the_classes_is_refused():
    with pytest.raises(DataDamagedError, match="label 9 where there are 9 classes"):
        cifar.decode(bytearray(batch()), "batch", labels=1, classes=9)


def sheets(train: list[int], test: list[int]) -> dict[str, bytes]:
    files = {f"{name}.png": png(np.roll(IMAGES, i, 0)) for i, name in enumerate(cifar_10.BATCHES)}
    return files | {
        "train_lables.json": json.dumps(train).encode(),
        "test_lables.json": json.dumps(test).encode(),
    }


def test_pictures_become_the_official_batches():
    train = [i % 10 for i in range(5 * 12)]
    made = cifar_10.from_sheets(sheets(train, LABELS))
    assert tuple(made) == cifar_10.BINARIES
    for i, name in enumerate(cifar_10.BINARIES[:-1]):
        assert made[name] == batch(np.roll(IMAGES, i, 0), train[12 * i : 12 * i + 12])
    assert made["test_batch.bin"] == batch(np.roll(IMAGES, 5, 0), LABELS)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("data_batch_2.png", b"\x89PNG nonsense", "no readable picture"),
        ("data_batch_2.png", png(IMAGES)[:-9000], "no readable picture"),
        ("train_lables.json", b"[1, 2", "not JSON"),
        ("train_lables.json", b'{"a": 1}', "no list of whole numbers"),
        ("train_lables.json", b"[1, 2, 3]", "no labels for all images of data_batch_1.png"),
    ],
)
def test_a_bad_picture_or_label_list_is_refused_by_name(name, content, found):
    files = sheets([0] * 60, LABELS) | {name: content}
    with pytest.raises(DataDamagedError) as caught:
        cifar_10.from_sheets(files)
    assert name in str(caught.value)
    assert found in str(caught.value)


def test_a_picture_of_another_shape_is_refused():
    file = io.BytesIO()
    Image.fromarray(IMAGES[0, 0]).save(file, "PNG")
    with pytest.raises(DataDamagedError, match="expected \\(N, 1024, 3\\) uint8"):
        cifar.sheet(file.getvalue(), "sheet.png")


def coarse_and_fine(order: np.ndarray, coarse: int) -> bytes:
    records = np.frombuffer(batch(), dtype=np.uint8).reshape(-1, 3073)[order]
    return np.insert(records, 0, coarse, axis=1).tobytes()


def test_cifar_100_is_the_same_from_any_order_and_with_any_coarse_labels():
    orders = [np.arange(12), np.argsort(LABELS), RNG.permutation(12)]
    made = []
    for coarse, order in enumerate(orders):
        content = coarse_and_fine(order, coarse)
        made.append(cifar_100.cached({"train.bin": content, "test.bin": content}))
    assert made[0] == made[1] == made[2]
    train, _ = cifar_100.read({k: bytearray(v) for k, v in made[0].items()})
    assert train.labels.tolist() != LABELS
    pairs = {(int(y), x.numpy().tobytes()) for x, y in zip(train.inputs, train.labels, strict=True)}
    assert pairs == {(y, x.tobytes()) for x, y in zip(IMAGES, LABELS, strict=True)}


def test_the_classes_of_cifar_100_are_a_hundred_in_order():
    assert len(cifar_100.CLASSES) == 100
    assert list(cifar_100.CLASSES) == sorted(set(cifar_100.CLASSES))
