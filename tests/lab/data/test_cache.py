"""The cache: whole or not there, checked at every reading."""

import json
import os

import pytest

from condgrad_lab.data import DataDamagedError, DataError, Progress
from condgrad_lab.data import cache as store

FILES = {"a.bin": b"some bytes", "b.bin": b"others"}


def place(cache, files=FILES, source="somewhere"):
    with store.lock(cache, "tiny", Progress()):
        return store.place(cache, "tiny", files, source=source, inputs={"in": "00"})


def test_what_is_placed_is_read(cache):
    placed = place(cache)
    found = store.entry(cache, "tiny")
    assert found == placed
    assert found.source == "somewhere"
    assert found.inputs == {"in": "00"}
    assert found.bytes == 16
    assert store.read(found) == FILES
    assert store.complete(found)


def test_nothing_is_nothing(cache):
    assert store.entry(cache, "tiny") is None
    cache.mkdir()
    (cache / "tiny").mkdir()
    assert store.entry(cache, "tiny") is None


def test_a_second_placing_takes_the_place_of_the_first(cache):
    place(cache)
    place(cache, {"c.bin": b"new"}, "elsewhere")
    found = store.entry(cache, "tiny")
    assert found.source == "elsewhere"
    assert store.read(found) == {"c.bin": b"new"}
    assert sorted(path.name for path in cache.iterdir()) == [".tiny.lock", "tiny"]


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda path: path.write_bytes(b"some bytez"), "its SHA-256 is"),
        (lambda path: path.write_bytes(b"some"), "it has 4 bytes, expected 10"),
        (lambda path: path.unlink(), "it is missing"),
    ],
)
def test_a_spoilt_file_is_named_with_what_to_do(cache, spoil, found):
    entry = place(cache)
    spoil(cache / "tiny" / "a.bin")
    with pytest.raises(DataDamagedError) as caught:
        store.read(entry)
    assert str(cache / "tiny" / "a.bin") in str(caught.value)
    assert found in str(caught.value)
    assert "condgrad data get tiny" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1, "files": {"a": 3}}'])
def test_an_unreadable_origin_is_damage(cache, text):
    place(cache)
    (cache / "tiny" / store.ORIGIN).write_text(text)
    with pytest.raises(DataDamagedError, match=r"origin\.json.*cannot be read"):
        store.entry(cache, "tiny")


def test_an_origin_that_cannot_be_opened_is_damage(cache):
    place(cache)
    (cache / "tiny" / store.ORIGIN).unlink()
    (cache / "tiny" / store.ORIGIN).mkdir()
    with pytest.raises(DataDamagedError, match=r"origin\.json.*cannot be read"):
        store.entry(cache, "tiny")


def test_an_entry_of_another_format_counts_as_absent(cache):
    place(cache)
    origin = cache / "tiny" / store.ORIGIN
    origin.write_text(json.dumps(json.loads(origin.read_text()) | {"format": store.FORMAT + 1}))
    assert store.entry(cache, "tiny") is None


def test_the_next_writer_clears_what_a_dead_one_left(cache):
    cache.mkdir()
    left_over, other = cache / ".tiny-abc", cache / ".tiny-er-abc"
    left_over.mkdir()
    (left_over / "half").write_bytes(b"x")
    place(cache)
    assert not left_over.exists()
    other.mkdir()
    with store.lock(cache, "other", Progress()):
        assert other.exists()


def test_unfinished_work_is_removed_after_an_error(cache):
    cache.mkdir()
    with pytest.raises(RuntimeError), store.staging(cache, "tiny"):
        raise RuntimeError
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    blocked = tmp_path / "file" / "cache"
    with (
        pytest.raises(DataError, match=r"cannot be written.*CONDGRAD_DATA"),
        store.lock(blocked, "tiny", Progress()),
    ):
        pass


def test_the_root_is_named_else_in_the_environment_else_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("CONDGRAD_DATA", str(tmp_path / "env"))
    assert store.root(tmp_path / "named") == tmp_path / "named"
    assert store.root() == tmp_path / "env"
    monkeypatch.setenv("CONDGRAD_DATA", "")
    if os.name == "posix":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        monkeypatch.setenv("HOME", str(tmp_path))
    assert store.root().is_relative_to(tmp_path)
    assert "condgrad" in store.root().parts
