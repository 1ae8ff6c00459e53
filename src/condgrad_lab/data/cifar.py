"""The binary format of CIFAR: a byte or two of labels, then an image in three planes."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import numpy as np
import torch

from condgrad_lab.data.checks import Buffer
from condgrad_lab.data.dataset import Split
from condgrad_lab.data.errors import damaged

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32


def decode(content: bytearray, name: str, *, labels: int, classes: int) -> Split:
    """The split in one binary batch whose records start with `labels` bytes, the class the last."""
    size = labels + PIXELS
    if not content or len(content) % size:
        raise damaged(
            name, f"its {len(content):,} bytes are no whole number of {size}-byte records"
        )
    records = torch.frombuffer(content, dtype=torch.uint8).reshape(-1, size)
    wanted = records[:, labels - 1].long()
    if int(wanted.max()) >= classes:
        raise damaged(name, f"it has label {int(wanted.max())} where there are {classes} classes")
    return Split(records[:, labels:].contiguous().view(-1, *SHAPE), wanted)


def joined(splits: Sequence[Split]) -> Split:
    """Several batches as one split."""
    inputs = torch.cat([split.inputs for split in splits if isinstance(split.inputs, torch.Tensor)])
    return Split(inputs, torch.cat([split.labels for split in splits]))


def encode(images: np.ndarray, labels: Sequence[int]) -> bytes:
    """The binary batch with one label byte of images (N, 3072) in planes."""
    return np.hstack([np.asarray(labels, dtype=np.uint8)[:, None], images]).tobytes()


def sheet(content: Buffer, name: str) -> np.ndarray:
    """The images (N, 3072) in planes of a picture whose every row is one image, pixel by pixel."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as picture:
            pixels = np.asarray(picture)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise damaged(name, f"it is no readable picture ({error})") from error
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[1:] != (1024, 3):
        raise damaged(name, f"it is {pixels.shape} {pixels.dtype}, expected (N, 1024, 3) uint8")
    return pixels.transpose(0, 2, 1).reshape(len(pixels), PIXELS)


def label_list(content: Buffer, name: str) -> list[int]:
    """The labels in a JSON list."""
    try:
        labels = json.loads(content)
    except ValueError as error:
        raise damaged(name, f"it is not JSON ({error})") from error
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
        raise damaged(name, "it is no list of whole numbers")
    return labels
