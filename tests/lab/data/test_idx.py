"""The idx format: what is read, and what is refused by the file's name."""

import pytest
import torch

from condgrad_lab.data import DataDamagedError, idx
from lab.data import tiny

GOOD = tiny.idx_file(torch.arange(24).reshape(2, 3, 4))


def test_a_file_gives_its_numbers():
    decoded = idx.decode(bytearray(GOOD), "images")
    assert decoded.dtype == torch.uint8
    assert torch.equal(decoded, torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "does not start as an idx file"),
        (b"\x00\x00\x0d" + GOOD[3:], "does not start as an idx file of unsigned bytes"),
        (GOOD[:10], "ends within its header"),
        (GOOD[:-1], "holds 23 bytes of data where (2, 3, 4) needs 24"),
        (GOOD + b"\x00", "holds 25 bytes of data where (2, 3, 4) needs 24"),
    ],
)
def test_a_bad_file_is_refused_by_name(content, found):
    with pytest.raises(DataDamagedError) as caught:
        idx.decode(bytearray(content), "images")
    assert "`images` is damaged" in str(caught.value)
    assert found in str(caught.value)
    assert "replace it by a good copy" in str(caught.value)


def test_four_files_give_two_splits():
    train, test = idx.read({k: bytearray(v) for k, v in tiny.CONTENTS.items()})
    assert train.inputs.shape == (tiny.TRAIN, tiny.SIDE, tiny.SIDE)
    assert test.inputs.shape == (tiny.TEST, tiny.SIDE, tiny.SIDE)
    assert train.labels.dtype == test.labels.dtype == torch.int64
    assert len(train) == tiny.TRAIN
    # The last byte of a file is its last number.
    assert int(test.labels[-1]) == tiny.CONTENTS["t10k-labels-idx1-ubyte"][-1]
    assert int(train.inputs[-1, -1, -1]) == tiny.CONTENTS["train-images-idx3-ubyte"][-1]


def test_images_and_labels_must_fit():
    files = {k: bytearray(v) for k, v in tiny.CONTENTS.items()}
    files["train-labels-idx1-ubyte"] = files["t10k-labels-idx1-ubyte"]
    with pytest.raises(DataDamagedError, match=r"train-images-idx3-ubyte.*does not fit its labels"):
        idx.read(files)
