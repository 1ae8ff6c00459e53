"""Pictures in files of their own, too many to hold: decoded when they are asked for."""

from __future__ import annotations

import io
import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from condgrad_lab.data.errors import damaged

if TYPE_CHECKING:
    from PIL.Image import Image

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""Of the channels of ImageNet's pictures, in [0, 1]: what everybody normalises them by."""

AREA = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
TRIES = 10
MARGIN = 224 / 256
"""The share of the shorter side that a centre crop has."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Pictures:
    """N pictures: the names of files below a folder, or, without a folder, files in memory."""

    sources: np.ndarray | Sequence[bytes]
    folder: str | None = None

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, rows: Tensor | slice) -> Pictures:
        """The chosen pictures in the order asked for."""
        numbers = range(len(self))[rows] if isinstance(rows, slice) else rows.tolist()
        if isinstance(self.sources, np.ndarray):
            return Pictures(self.sources[list(numbers)], self.folder)
        return Pictures([self.sources[number] for number in numbers], self.folder)

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        return f"Pictures({len(self)} {where})"

    def pixels(self, number: int, side: int, seed: int | None = None) -> np.ndarray:
        """One picture as (side, side, 3): its middle, or with a seed a random part, maybe flipped.

        These are the crops that networks for ImageNet are usually trained and tested with.
        """
        from PIL import Image, ImageOps

        picture = self._opened(number)
        box, flip = middle(*picture.size) if seed is None else part(*picture.size, seed)
        picture = picture.resize((side, side), Image.Resampling.BILINEAR, box=box)
        return np.array(ImageOps.mirror(picture) if flip else picture)

    def _opened(self, number: int) -> Image:
        from PIL import Image, UnidentifiedImageError

        source = self.sources[number]
        path = None if self.folder is None else os.path.join(self.folder, os.fsdecode(source))
        try:
            with Image.open(io.BytesIO(source) if path is None else path) as picture:
                return picture.convert("RGB")
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            name = f"picture {number}" if path is None else path
            raise damaged(name, f"it is no readable picture ({error})") from error


def middle(width: int, height: int) -> tuple[Box, bool]:
    """The square in the middle, of 224/256 of the shorter side; never flipped."""
    side = MARGIN * min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return (left, top, left + side, top + side), False


def part(width: int, height: int, seed: int) -> tuple[Box, bool]:
    """A window of 8 to 100 % of the area, of ratio 3/4 to 4/3, anywhere; flipped or not.

    Where ten draws have not fitted, it is the largest window in the middle of an allowed ratio.
    """
    rng = random.Random(seed)
    flip = rng.random() < 0.5
    for _ in range(TRIES):
        area = width * height * rng.uniform(*AREA)
        ratio = math.exp(rng.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, top = rng.randint(0, width - wide), rng.randint(0, height - high)
            return (left, top, left + wide, top + high), flip
    wide, high = min(width, height * RATIO[1]), min(height, width / RATIO[0])
    left, top = (width - wide) / 2, (height - high) / 2
    return (left, top, left + wide, top + high), flip
