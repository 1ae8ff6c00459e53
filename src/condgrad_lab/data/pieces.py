"""A data set as a few files of bounded size, to carry to a machine without network.

The cached files are packed losslessly into one archive, which is cut into pieces; an index says
the size and SHA-256 of every piece and of every file they unpack to.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from condgrad_lab.data.cache import Stored
from condgrad_lab.data.checks import Files, digest, expect, sha256_of
from condgrad_lab.data.errors import DataMissingError, damaged
from condgrad_lab.data.recipe import Recipe

FORMAT = 2
REMEDY = "copy it again, or pack the data set again with `condgrad data pack`"
UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


@dataclass(frozen=True)
class Packed:
    """The pieces of a data set that lie in a folder."""

    recipe: Recipe
    index: Path
    pieces: Mapping[str, Stored]
    files: Mapping[str, Stored]

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.index, *(self.index.with_name(piece) for piece in self.pieces))

    def sums(self) -> dict[str, str]:
        """The SHA-256 of each piece, checked against the index."""
        sums = {path.name: sha256_of(path) for path in self.paths}
        for name, piece in self.pieces.items():
            expect(self.index.with_name(name), sums[name], [piece.sha256], REMEDY)
        return sums

    def contents(self, sums: Mapping[str, str]) -> Files:
        """The cached form of the data, every file checked."""
        del sums  # the pieces have been checked on the way to them
        joined = b"".join(path.read_bytes() for path in self.paths[1:])
        try:
            contents = self.recipe.packing.decode(_unzipped(joined))
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise damaged(self.index, f"its pieces do not unpack ({error})", REMEDY) from error
        for name, stored in self.files.items():
            found = digest(contents[name]) if name in contents else "none"
            expect(self.index.with_name(name), found, [stored.sha256], REMEDY)
        self.recipe.verify(contents, self.index.parent, REMEDY)
        return contents


def find(recipe: Recipe, folder: Path) -> Packed | None:
    """The pieces of a data set in `folder`; None when there is no index of them."""
    for base in (folder / recipe.name, folder):
        index = base / index_name(recipe.name)
        if index.is_file():
            found = _indexed(recipe, index)
            lacking = [path.name for path in found.paths if not path.is_file()]
            if lacking:
                raise DataMissingError(
                    f"`{base}` lacks {', '.join(lacking)} of the {len(found.pieces)} pieces "
                    f"of {recipe.name}; copy them there too"
                )
            return found
    return None


def _indexed(recipe: Recipe, index: Path) -> Packed:
    try:
        listed = json.loads(index.read_bytes())
        if listed["format"] != FORMAT or listed["name"] != recipe.name:
            raise ValueError("of another format or data set")
        pieces, files = (
            {name: Stored(**stored) for name, stored in listed[key].items()}
            for key in ("pieces", "files")
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(index, f"it is no index of pieces ({error})", REMEDY) from error
    return Packed(recipe, index, pieces, files)


def write(recipe: Recipe, contents: Files, out: Path, max_size: int) -> tuple[Path, ...]:
    """Pack the cached files of a data set into `out`; the index comes first in the answer.

    What the pieces unpack to is compared with the contents before anything is written.
    """
    if max_size < 1:
        raise ValueError(f"`max_size` must be positive, got {max_size}")
    members = recipe.packing.encode(contents)
    if dict(recipe.packing.decode(members)) != dict(contents):
        raise RuntimeError(f"packing {recipe.name} loses data; this is a bug, please report it")
    archive = _zipped(members)
    parts = -(-len(archive) // max_size)
    size = -(-len(archive) // parts)
    cut = [archive[i : i + size] for i in range(0, len(archive), size)]
    pieces = {f"{recipe.name}.pack-{i:03d}": piece for i, piece in enumerate(cut)}
    out.mkdir(parents=True, exist_ok=True)
    index = out / index_name(recipe.name)
    # An index always tells of pieces that are there: the old one goes first, the new comes last.
    index.unlink(missing_ok=True)
    for stale in out.glob(f"{recipe.name}.pack-*"):
        stale.unlink()
    paths = [_write(out / name, piece) for name, piece in pieces.items()]
    listed = {"format": FORMAT, "name": recipe.name}
    listed |= {"pieces": _listed(pieces), "files": _listed(contents)}
    return _write(index, json.dumps(listed, indent=1).encode() + b"\n"), *paths


def index_name(name: str) -> str:
    return f"{name}.pack.json"


def size_of(text: str | int) -> int:
    """The bytes in a size such as ``60MiB``, ``1.5 GB`` or ``5000``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Z]*)", str(text).strip().upper())
    if match is None or match[2] not in UNITS:
        raise ValueError(f"`max_size` must be a size such as 60MiB, got {text!r}")
    return int(float(match[1]) * UNITS[match[2]])


def _listed(files: Files) -> dict[str, dict[str, int | str]]:
    return {name: asdict(Stored(len(data), digest(data))) for name, data in files.items()}


def _write(path: Path, content: bytes) -> Path:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)
    return path


def _zipped(members: Files) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            # A fixed date: the same data set gives the same pieces.
            archive.writestr(zipfile.ZipInfo(name), bytes(content))
    return file.getvalue()


def _unzipped(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
