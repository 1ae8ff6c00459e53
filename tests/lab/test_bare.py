"""A machine that only trains: torch and NumPy are there, nothing that draws, shows or fetches."""

import importlib.metadata
import subprocess
import sys

import pytest

import condgrad as condgrad_
from condgrad_lab import data, environment
from condgrad_lab.data import pieces

MISSING = ("matplotlib", "rich", "pooch", "PIL", "scipy", "hypothesis")
PROGRAM = f"""
import sys
for name in {MISSING}:
    sys.modules[name] = None
from condgrad_lab.cli import main
sys.exit(main(sys.argv[1:]))
"""


def condgrad(*words):
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "runs", "claims"), [("figure-8", 9, 9), ("table-3", 4, 2)])
def test_an_artifact_trains_and_is_judged(name, runs, claims, tmp_path):
    words = [name, "--scale", "smoke", "--out", tmp_path]
    done = condgrad("run", *words, "--jobs", 1)
    assert (done.returncode, done.stderr) == (0, f"{name}: no picture without matplotlib\n")
    assert f"{runs} to do" in done.stdout
    done = condgrad("check", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verdict" in done.stdout
    assert done.stdout.count("not judged") == claims
    assert "[dim]" not in done.stdout


@pytest.mark.parametrize("words", [["list"], ["env"], ["data", "list"], ["run", "--help"]])
def test_what_only_talks_talks(words):
    assert condgrad(*words).returncode == 0


@pytest.mark.parametrize("command", ["report", "render"])
def test_what_draws_says_what_it_needs(command, tmp_path):
    done = condgrad(command, "figure-8", "--out", tmp_path)
    assert done.returncode == 2
    assert "needs matplotlib; install 'condgrad[lab]'" in done.stderr


CIFAR = """
import sys
for name in {missing}:
    sys.modules[name] = None
import torch
from condgrad_lab import data
found = data.load("cifar-100")
assert found.train.inputs.shape == (4, 3, 32, 32), found
"""


def test_pieces_unpack_by_themselves(tmp_path, monkeypatch):
    recipe = data.RECIPES["cifar-100"]
    images = bytes(range(256)) * 12
    contents = {file.name: b"".join(bytes([i]) + images for i in range(4)) for file in recipe.files}
    pieces.write(recipe, contents, tmp_path, 2000)
    monkeypatch.setenv("CONDGRAD_DATA", str(tmp_path))
    subprocess.run([sys.executable, "-c", CIFAR.format(missing=MISSING)], check=True)


def test_the_users_cache_is_found_without_help(tmp_path):
    code = "import sys; sys.modules['pooch'] = None; from condgrad_lab.data.cache import root; "
    environment = {"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    for more, found in ((("XDG_CACHE_HOME", "x"), "x"), ((), ".cache")):
        done = subprocess.run(
            [sys.executable, "-c", code + "print(root())"],
            env={**environment, **dict([more] if more else [])},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip().endswith(f"{found}/condgrad/data")


def test_a_tree_that_was_never_installed_knows_its_version(monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    assert environment._version("condgrad") == condgrad_.__version__


def test_a_copy_without_its_repository_is_told_the_commit(monkeypatch):
    monkeypatch.setenv("CONDGRAD_COMMIT", "abc1234")
    assert environment._commit() == "abc1234"
