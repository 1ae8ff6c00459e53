"""ImageNet: 1,281,167 photographs of a thousand things, and 50,000 to test on.

Nobody may hand the pictures on, so they are never fetched and never copied: the user keeps them,
class by class, in FOLDER/train/CLASS/ and FOLDER/val/CLASS/, and the cache remembers the folder and
what is in it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from condgrad_lab.data.cache import Entry
from condgrad_lab.data.dataset import Dataset, Split
from condgrad_lab.data.errors import DataMissingError, damaged
from condgrad_lab.data.pictures import Pictures
from condgrad_lab.data.progress import Progress

NAME = "imagenet"
TITLE = "ImageNet, photographs of a thousand things"
ENDINGS = (".jpeg", ".jpg", ".png")
SPLITS = ("train", "val")
_INDEX = "index.npz"


@dataclass(frozen=True)
class Counts:
    """How much there must be of it."""

    classes: int
    train: int
    val: int


WHOLE = Counts(classes=1000, train=1_281_167, val=50_000)


def get(folder: Path | None, cache: Path, progress: Progress) -> Entry:
    """Where the pictures lie; what `folder` holds is looked through and remembered."""
    found = None if folder is None else _root(folder.expanduser())
    if found is not None:
        with progress.task(f"{NAME}: looking through {found}"):
            _remember(found, cache)
    if (entry := entry_of(cache)) is None:
        raise DataMissingError(_report(folder))
    return entry


def entry_of(cache: Path) -> Entry | None:
    """What the cache remembers, None where that is nothing."""
    try:
        with np.load(cache / NAME / _INDEX) as index:
            folder = Path(str(index["folder"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        remedy = f"run `condgrad data get {NAME} --from FOLDER` again"
        raise damaged(cache / NAME / _INDEX, f"it cannot be read ({error})", remedy) from error
    return Entry(NAME, folder, f"folder {folder}", {}, {})


def load(folder: Path | None, cache: Path, progress: Progress) -> Dataset:
    """The data set; its pictures are decoded when they are asked for."""
    entry = get(folder, cache, progress)
    if not all((entry.folder / split).is_dir() for split in SPLITS):
        raise DataMissingError(f"`{entry.folder}` has gone. {_report(None)}")
    with np.load(cache / NAME / _INDEX) as index:
        classes = tuple(map(str, index["classes"]))
        train, val = (
            Split(
                Pictures(index[split], str(entry.folder / split)),
                torch.from_numpy(index[f"{split} labels"]),
            )
            for split in SPLITS
        )
    return Dataset(NAME, train, val, classes)


def _root(folder: Path) -> Path | None:
    """The folder that holds the splits: the one that is named, or one of its own name in there."""
    if not folder.is_dir():
        raise DataMissingError(f"the folder `{folder}` does not exist")
    places = (folder / NAME, folder)
    found = [p for p in places if all((p / split).is_dir() for split in SPLITS)]
    return found[0].resolve() if found else None


def _remember(root: Path, cache: Path) -> None:
    classes = _classes(root)
    index = {"folder": np.array(str(root)), "classes": np.array(classes)}
    for split, wanted in (("train", WHOLE.train), ("val", WHOLE.val)):
        names, labels = _listed(root / split, classes)
        if len(names) != wanted:
            raise damaged(root / split, f"it has {len(names):,} pictures, expected {wanted:,}")
        index |= {split: np.array(names), f"{split} labels": np.array(labels, dtype=np.int64)}
    place = cache / NAME
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place, suffix=".part", delete=False) as file:
        np.savez(file, **index)  # type: ignore[arg-type]
    os.replace(file.name, place / _INDEX)


def _classes(root: Path) -> list[str]:
    train, val = (
        sorted(entry.name for entry in os.scandir(root / split) if entry.is_dir())
        for split in SPLITS
    )
    if train != val:
        odd = sorted(set(train) ^ set(val))
        raise damaged(root, f"train and val have different classes, such as {odd[0]}")
    if len(train) != WHOLE.classes:
        raise damaged(root, f"it has {len(train)} classes, expected {WHOLE.classes}")
    return train


def _listed(folder: Path, classes: list[str]) -> tuple[list[bytes], list[int]]:
    """The pictures as CLASS/NAME, class after class in order of their names."""
    names, labels = [], []
    for label, name in enumerate(classes):
        with os.scandir(folder / name) as entries:
            found = sorted(e.name for e in entries if e.name.lower().endswith(ENDINGS))
        names += [os.fsencode(f"{name}/{file}") for file in found]
        labels += [label] * len(found)
    return names, labels


def _report(folder: Path | None) -> str:
    where = "" if folder is None else f"`{folder}` has no train/ and val/. "
    return (
        f"{where}ImageNet is not handed out freely: get it from image-net.org, put its pictures "
        "into FOLDER/train/CLASS/ and FOLDER/val/CLASS/, and run "
        f"`condgrad data get {NAME} --from FOLDER`."
    )
