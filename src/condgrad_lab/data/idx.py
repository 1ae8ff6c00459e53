"""The idx format of MNIST and its kin: a type, the sizes, then plain numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import torch
from torch import Tensor

from condgrad_lab.data.dataset import Split
from condgrad_lab.data.errors import damaged
from condgrad_lab.data.recipe import File, Form, Mirror, Recipe
from condgrad_lab.data.recipe import archive as archived

UNSIGNED_BYTE = 0x08
SHAPE = (28, 28)
IMAGES = "{}-images-idx3-ubyte"
LABELS = "{}-labels-idx1-ubyte"
NAMES = tuple(kind.format(part) for part in ("train", "t10k") for kind in (IMAGES, LABELS))


def decode(content: bytearray, name: str) -> Tensor:
    """The uint8 tensor in an idx file; it shares the content's memory."""
    if len(content) < 4 or content[:3] != bytes((0, 0, UNSIGNED_BYTE)):
        raise damaged(name, "it does not start as an idx file of unsigned bytes")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise damaged(name, "it ends within its header")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    found, expected = len(content) - start, math.prod(shape)
    if found != expected:
        raise damaged(name, f"it holds {found:,} bytes of data where {shape} needs {expected:,}")
    return torch.frombuffer(content, dtype=torch.uint8, offset=start).reshape(shape)


def read(files: Mapping[str, bytearray]) -> tuple[Split, Split]:
    """The training and test split of four idx files with MNIST's names."""
    return _split(files, "train"), _split(files, "t10k")


def _split(files: Mapping[str, bytearray], part: str) -> Split:
    images, labels = (
        decode(files[name], name) for name in (IMAGES.format(part), LABELS.format(part))
    )
    if images.dim() != 3 or labels.dim() != 1 or len(images) != len(labels):
        found = f"images {tuple(images.shape)}, labels {tuple(labels.shape)}"
        raise damaged(IMAGES.format(part), f"it does not fit its labels: {found}")
    return Split(images, labels.long())


def recipe(
    name: str,
    title: str,
    *,
    classes: tuple[str, ...],
    sha256: tuple[str, ...],
    archive: str,
    official: tuple[str, ...],
    mirror: Mirror,
    places: tuple[str, ...],
) -> Recipe:
    """A data set of four idx files; `official` are the folders to download them from.

    `sha256` are the sums of the decompressed files, in the order of `NAMES`: compressors differ,
    contents must not.
    """
    return Recipe(
        name=name,
        title=title,
        classes=classes,
        shape=SHAPE,
        files=tuple(File(file, (sum_,)) for file, sum_ in zip(NAMES, sha256, strict=True)),
        forms=(Form(NAMES), archived(archive, *NAMES)),
        read=read,
        official=tuple(tuple(f"{base}{file}.gz" for file in NAMES) for base in official),
        mirror=mirror,
        places=places,
    )
