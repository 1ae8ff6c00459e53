"""Finding a data set in a folder, in any of the forms its recipe knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from condgrad_lab.data.archives import content_of, members_of
from condgrad_lab.data.checks import Files, digest, expect, sha256_of
from condgrad_lab.data.errors import DataMissingError, damaged
from condgrad_lab.data.recipe import Form, Recipe


@dataclass(frozen=True)
class Found:
    """The files of a folder that make up one form of a data set."""

    recipe: Recipe
    form: Form
    paths: tuple[Path, ...]

    def sums(self) -> dict[str, str]:
        """The SHA-256 of each file as it lies there."""
        return {path.name: sha256_of(path) for path in self.paths}

    def contents(self, sums: Mapping[str, str]) -> Files:
        """The cached form of the data, everything checked that has a known sum."""
        form, where = self.form, self.paths[0]
        raw: dict[str, bytes] = {}
        for path, pattern in zip(self.paths, form.files, strict=True):
            if form.members:
                if pattern in form.sha256:
                    expect(path, sums[path.name], form.sha256[pattern])
                raw |= members_of(path, form.members)
            else:
                raw[pattern] = content_of(path)
        if lacking := [name for name in form.needs if name not in raw]:
            raise damaged(where, f"it lacks {', '.join(lacking)}")
        for name in raw.keys() & form.sha256.keys():
            expect(where.parent / name, digest(raw[name]), form.sha256[name])
        contents = form.convert(raw)
        self.recipe.verify(contents, where.parent)
        return contents


def find(recipe: Recipe, folder: Path) -> Found | None:
    """The first complete form in `folder`; None when there is no trace of the data.

    A form of which only some files are there is an error: whoever put them there meant it.
    """
    partial: DataMissingError | None = None
    for place in _places(recipe, folder):
        for form in recipe.forms:
            paths = [_match(place, pattern) for pattern in form.files]
            if all(paths):
                return Found(recipe, form, tuple(path for path in paths if path))
            if any(paths) and partial is None:
                lacking = [name for name, path in zip(form.files, paths, strict=True) if not path]
                partial = DataMissingError(
                    f"`{place}` holds only a part of {recipe.name}: "
                    f"{', '.join(lacking)} is missing; put it there too"
                )
    if partial is not None:
        raise partial
    return None


def _places(recipe: Recipe, folder: Path) -> Iterator[Path]:
    # A folder named after the data set comes first: the user may keep several sets side by side.
    for base in (folder / recipe.name, folder):
        yield base
        for place in recipe.places:
            yield base / place


def _match(folder: Path, pattern: str) -> Path | None:
    for candidate in (pattern, pattern + ".gz"):
        matches = sorted(folder.glob(candidate)) if folder.is_dir() else []
        if matches:
            return matches[-1]
    return None
