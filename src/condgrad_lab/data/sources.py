"""The sources of a data set, tried in order until one gives it.

A folder the user names, the cache, the official download, the package mirror. Whatever the source,
the data are checked, brought into one form and put into the cache; only from there are they read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from condgrad_lab.data import cache as store
from condgrad_lab.data import forms, pieces
from condgrad_lab.data.cache import Entry
from condgrad_lab.data.download import download
from condgrad_lab.data.errors import DataDamagedError, DataError, DataMissingError
from condgrad_lab.data.progress import Progress
from condgrad_lab.data.recipe import Recipe

Contents = dict[str, bytearray]
Found = forms.Found | pieces.Packed


@dataclass(frozen=True)
class Search:
    """One search for one data set."""

    recipe: Recipe
    cache: Path
    progress: Progress
    tried: list[str]

    def note(self, source: str, why: str) -> None:
        self.tried.append(f"{source}: {why}")
        self.progress.note(f"{self.recipe.name}: {source}: {why}")


def obtain(
    recipe: Recipe, *, folder: Path | None, cache: Path, progress: Progress
) -> tuple[Entry, Contents]:
    """The data set's entry in the cache and its checked contents, fetched if need be.

    A damaged file in the folder the user named is an error; in the cache it is noted and the data
    are fetched anew.
    """
    search = Search(recipe, cache, progress, [])
    try:
        return _searched(search, folder)
    except OSError as error:
        raise DataError(f"`{recipe.name}` could not be read or kept: {error}") from error


def _searched(search: Search, folder: Path | None) -> tuple[Entry, Contents]:
    if folder is None:
        search.tried.append("folder: none was named")
    elif found := _in_folder(search, folder):
        return found
    if found := _cached(search, note=False):
        return found
    with store.lock(search.cache, search.recipe.name, search.progress):
        # Another process may have brought it while this one waited for the lock.
        found = _cached(search) or _packed(search) or _official(search) or _mirror(search)
    if found is None:
        raise DataMissingError(_report(search))
    return found


def _in_folder(search: Search, folder: Path) -> tuple[Entry, Contents] | None:
    folder = folder.expanduser()
    if not folder.is_dir():
        raise DataMissingError(f"the folder `{folder}` does not exist")
    found = _find(search.recipe, folder)
    if found is None:
        search.note(f"folder {folder}", f"holds nothing known as {search.recipe.name}")
        return None
    return _taken(search, found, f"folder {folder}")


def _taken(search: Search, found: Found, source: str) -> tuple[Entry, Contents]:
    with search.progress.task(f"{search.recipe.name}: checking {found.paths[0].parent}"):
        sums = found.sums()
    if held := _given_before(search, sums):
        return held
    with store.lock(search.cache, search.recipe.name, search.progress):
        # Several runs may start at once with the same folder: one of them unpacks it.
        return _given_before(search, sums) or _placed(search, found, source, sums)


def _given_before(search: Search, sums: dict[str, str]) -> tuple[Entry, Contents] | None:
    # The same files as last time: what they gave is in the cache already.
    held = _cached(search, note=False)
    return held if held and held[0].inputs == sums else None


def _placed(
    search: Search, found: Found, source: str, sums: dict[str, str]
) -> tuple[Entry, Contents]:
    with search.progress.task(f"{search.recipe.name}: unpacking and checking"):
        contents = found.contents(sums)
        name = search.recipe.name
        entry = store.place(search.cache, name, contents, source=source, inputs=sums)
        # Read back what was written: the disk is a source like any other.
        return entry, store.read(entry)


def _cached(search: Search, *, note: bool = True) -> tuple[Entry, Contents] | None:
    try:
        entry = store.entry(search.cache, search.recipe.name)
        if entry is None:
            why = "not there"
        elif not search.recipe.knows({k: file.sha256 for k, file in entry.files.items()}):
            why = "of another version"
        else:
            return entry, store.read(entry)
    except DataDamagedError as error:
        why = str(error)
    if note:
        search.note(f"cache {search.cache}", why)
    return None


def _packed(search: Search) -> tuple[Entry, Contents] | None:
    # Pieces in the cache folder itself unpack unasked: CONDGRAD_DATA may name a folder of them.
    try:
        if found := pieces.find(search.recipe, search.cache):
            return _placed(search, found, f"pieces in {search.cache}", found.sums())
    except DataError as error:
        search.note("pieces in the cache", str(error))
    return None


def _find(recipe: Recipe, folder: Path) -> Found | None:
    return pieces.find(recipe, folder) or forms.find(recipe, folder)


def _official(search: Search) -> tuple[Entry, Contents] | None:
    if not search.recipe.official:
        search.note("official download", "none is known")
    for addresses in search.recipe.official:
        with _attempt(search, "official download") as folder:
            for address in addresses:
                search.progress.note(f"{search.recipe.name}: trying {address}")
                download(address, folder, search.progress)
            return _from_fetched(search, folder, f"official download, {addresses[0]}")
    return None


def _mirror(search: Search) -> tuple[Entry, Contents] | None:
    mirror = search.recipe.mirror
    if mirror is None:
        search.note("package mirror", "none is known")
        return None
    with _attempt(search, "package mirror") as folder:
        search.progress.note(f"{search.recipe.name}: trying {mirror.label}")
        mirror.fetch(folder, search.progress)
        return _from_fetched(search, folder, mirror.label)
    return None


@contextmanager
def _attempt(search: Search, source: str) -> Iterator[Path]:
    # A source that fails is noted, and the next one is tried.
    with store.staging(search.cache, search.recipe.name) as folder:
        try:
            yield folder
        except DataError as error:
            search.note(source, str(error))


def _from_fetched(search: Search, folder: Path, source: str) -> tuple[Entry, Contents]:
    found = _find(search.recipe, folder)
    if found is None:
        got = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise DataMissingError(f"{source} gave {got}, which is no known form of the data")
    return _placed(search, found, source, found.sums())


def _report(search: Search) -> str:
    recipe = search.recipe
    lines = [f"`{recipe.name}` was found in none of its sources:"]
    lines += [f"  - {tried}" for tried in search.tried]
    lines.append("To put it in place by hand, bring into one folder one of")
    lines += [f"  - {', '.join(form.files)}" for form in recipe.forms]
    lines.append(f"  - the pieces that `condgrad data pack {recipe.name}` makes")
    places = [addresses[0] for addresses in recipe.official]
    places += [recipe.mirror.label] if recipe.mirror else []
    lines.append(f"as found at {' or '.join(places)},")
    lines.append(f"and run `condgrad data get {recipe.name} --from FOLDER`.")
    return "\n".join(lines)
