"""Small invented twins of the data sets: the same shapes, types and labels, learnable in seconds.

For tests and smoke runs. Each class of images has a smooth pattern of its own, moved about and
noisy; each kind of review has words of its own among common ones.
"""

from __future__ import annotations

import zlib

import torch
from torch import Tensor

from condgrad_lab.data.dataset import Dataset, Split
from condgrad_lab.data.pictures import Pictures
from condgrad_lab.sparse import SparseRows

GRID = 7  # a pattern is drawn on so many points a side, then made smooth
SHIFT = 2  # pixels an image may be off its place, either way
NOISE = 30.0
TOPICAL = 200  # words that tell a kind of review from the other
LONGEST = 160
SIDES = (60, 80)  # of a picture
CHUNK = 256  # reviews drawn at a time, for memory's sake
EMPHASIS = 8.0  # how much more often a review uses its topical words


def images(
    name: str, classes: tuple[str, ...], shape: tuple[int, ...], train: int, test: int, seed: int
) -> Dataset:
    """A twin of a set of images of `shape`, (28, 28) or (3, 32, 32)."""
    channels = shape[0] if len(shape) == 3 else 1
    coarse = torch.rand(len(classes), channels, GRID, GRID, generator=_generator(name, seed, 0))
    fine = torch.nn.functional.interpolate(coarse, shape[-2:], mode="bicubic").clamp(0, 1)
    patterns = 255 * fine.reshape(len(classes), *shape)

    def split(part: int, count: int) -> Split:
        generator = _generator(name, seed, part)
        labels = _labels(count, len(classes), generator)
        shifts = torch.randint(-SHIFT, SHIFT + 1, (2, count), generator=generator)
        moved = _moved(patterns[labels], *shifts)
        noise = NOISE * torch.randn(moved.shape, generator=generator)
        return Split((moved + noise).clamp(0, 255).to(torch.uint8), labels)

    return Dataset(name, split(1, train), split(2, test), classes)


def pictures(name: str, train: int, test: int, seed: int) -> Dataset:
    """A twin of a set of pictures in files, which are kept in memory; ten classes are enough."""
    import io

    from PIL import Image

    def split(of: Split) -> Split:
        files = []
        assert isinstance(of.inputs, Tensor)
        for image in of.inputs.permute(0, 2, 3, 1).numpy():
            file = io.BytesIO()
            Image.fromarray(image).save(file, "JPEG", quality=90)
            files.append(file.getvalue())
        return Split(Pictures(files), of.labels)

    classes = tuple(f"n{number:08d}" for number in range(10))
    made = images(name, classes, (3, *SIDES), train, test, seed)
    return Dataset(name, split(made.train), split(made.test), classes)


def reviews(
    name: str, classes: tuple[str, ...], width: int, train: int, test: int, seed: int
) -> Dataset:
    """A twin of a set of texts, each the set of its words."""
    # Words as in any language: the one of rank r about 1/r as common as the first. Word 0 is none.
    common = 1 / (10.0 + torch.arange(width))
    common[0] = 0
    topical = torch.randperm(width - 1, generator=_generator(name, seed, 0)) + 1
    weights = common.repeat(len(classes), 1)
    for label in range(len(classes)):
        own = topical[label * TOPICAL : (label + 1) * TOPICAL]
        weights[label, own] = EMPHASIS * common.median()

    def split(part: int, count: int) -> Split:
        generator = _generator(name, seed, part)
        labels = _labels(count, len(classes), generator)
        lengths = torch.randint(LONGEST // 2, LONGEST + 1, (count,), generator=generator)
        kept = torch.arange(LONGEST) < lengths[:, None]
        drawn = [
            torch.multinomial(weights[some], LONGEST, generator=generator)
            for some in labels.split(CHUNK)
        ]
        # Words beyond a review's length sort behind all others, and are left out.
        words = torch.where(kept, torch.cat(drawn), width).sort(1).values
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        return Split(SparseRows(words[words < width], offsets, width), labels)

    return Dataset(name, split(1, train), split(2, test), classes)


def _labels(count: int, classes: int, generator: torch.Generator) -> Tensor:
    # As even as the count allows, in random order.
    return torch.arange(count)[torch.randperm(count, generator=generator)] % classes


def _moved(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    rows = (torch.arange(height) - down[:, None]) % height
    columns = (torch.arange(width) - right[:, None]) % width
    places = (rows[:, :, None] * width + columns[:, None, :]).flatten(1)
    flat = images.flatten(-2)
    places = places.reshape(len(images), *(1,) * (flat.dim() - 2), -1).expand_as(flat)
    return flat.gather(-1, places).reshape(images.shape)


def _generator(name: str, seed: int, part: int) -> torch.Generator:
    # The test split does not change with the size of the training split.
    return torch.Generator().manual_seed(zlib.crc32(f"{name} {seed} {part}".encode()))
