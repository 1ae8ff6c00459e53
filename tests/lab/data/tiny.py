"""A data set of a few bytes in MNIST's format, and recipes that look for it."""

import gzip
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from condgrad_lab.data import idx
from condgrad_lab.data.checks import digest
from condgrad_lab.data.errors import DataMissingError
from condgrad_lab.data.recipe import Mirror, Recipe

TRAIN, TEST, SIDE = 12, 6, 5


def idx_file(values: torch.Tensor) -> bytes:
    header = bytes((0, 0, 8, values.dim())) + struct.pack(f">{values.dim()}I", *values.shape)
    return header + bytes(values.flatten().tolist())


def contents() -> dict[str, bytes]:
    generator = torch.Generator().manual_seed(0)

    def draw(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=generator)

    values = (
        draw(256, TRAIN, SIDE, SIDE),
        draw(10, TRAIN),
        draw(256, TEST, SIDE, SIDE),
        draw(10, TEST),
    )
    return {name: idx_file(value) for name, value in zip(idx.NAMES, values, strict=True)}


CONTENTS = contents()


@dataclass(frozen=True)
class NoMirror:
    """A registry that does not answer."""

    label: str = "package nothing 1.0"

    def fetch(self, folder: Path, progress: object) -> None:
        raise DataMissingError(f"{self.label}: the registry does not answer")


def recipe(
    official: Iterable[str] = (), mirror: Mirror | None = None, archive: str = "tiny-*.tgz"
) -> Recipe:
    made = idx.recipe(
        "tiny",
        "A data set of a few bytes",
        classes=tuple("0123456789"),
        sha256=tuple(digest(content) for content in CONTENTS.values()),
        archive=archive,
        official=tuple(official),
        mirror=mirror or NoMirror(),
        places=("raw",),
    )
    return replace(made, shape=(SIDE, SIDE))


def put(folder: Path, *, compressed: bool = False, only: Iterable[str] | None = None) -> Path:
    """Write the files of the tiny data set into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in CONTENTS if only is None else only:
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(CONTENTS[name], mtime=1))
        else:
            (folder / name).write_bytes(CONTENTS[name])
    return folder
