"""A machine that only trains: torch and NumPy are there, nothing that draws, shows or fetches."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

import condgrad
from condgrad_lab import data, environment
from condgrad_lab.data import cache, pieces

MISSING = ("matplotlib", "rich", "pooch", "PIL", "scipy", "hypothesis")
BARE = f"""
import sys
for name in {MISSING}:
    sys.modules[name] = None
"""
COMMANDS = f"""{BARE}
import contextlib, io, json
from condgrad_lab.cli import _common, main

def answered(words):
    _common.console.cache_clear()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()

answers = [answered(words) for words in json.loads(sys.argv[1])]
print(json.dumps(answers))
"""
ARTIFACTS = {"figure-8": (9, 9), "table-3": (4, 2)}  # runs and claims of each
SILENT = (["list"], ["env"], ["data", "list"])
DRAWN = ("report", "render")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The answers to all commands, by their words: exit code, output, errors."""
    out = ["--out", str(tmp_path_factory.mktemp("runs"))]
    commands = [["run", name, "--scale", "smoke", "--jobs", "1"] for name in ARTIFACTS]
    commands += [["check", name, "--scale", "smoke"] for name in ARTIFACTS]
    commands += [*SILENT, *([name, "figure-8"] for name in DRAWN)]
    said = [[*words, *(out if words[0] not in ("env", "data") else [])] for words in commands]
    program = [sys.executable, "-c", COMMANDS, json.dumps(said)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)
    return {" ".join(words): each for words, each in zip(commands, answers, strict=True)}


@pytest.mark.parametrize("name", ARTIFACTS)
def test_an_artifact_trains_and_is_judged(name, asked):
    runs, claims = ARTIFACTS[name]
    code, out, err = asked[f"run {name} --scale smoke --jobs 1"]
    assert (code, err) == (0, f"{name}: no picture without matplotlib\n")
    assert f"{runs} to do" in out
    code, out, err = asked[f"check {name} --scale smoke"]
    assert (code, err) == (0, "")
    assert "verdict" in out
    assert out.count("not judged") == claims
    assert "[dim]" not in out


@pytest.mark.parametrize("words", SILENT, ids=" ".join)
def test_what_only_talks_talks(words, asked):
    code, out, err = asked[" ".join(words)]
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 5


@pytest.mark.parametrize("command", DRAWN)
def test_what_draws_says_what_it_needs(command, asked):
    code, _, err = asked[f"{command} figure-8"]
    assert code == 2
    assert f"{command} needs matplotlib; install 'condgrad[lab]'" in err


CIFAR = f"""{BARE}
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
    subprocess.run([sys.executable, "-c", CIFAR], check=True)


def test_the_users_cache_is_found_without_help(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("CONDGRAD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "there")
    assert cache.root() == Path("there/condgrad/data")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.root() == Path.home() / ".cache/condgrad/data"


def test_a_tree_that_was_never_installed_knows_its_version(monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    assert environment._version("condgrad") == condgrad.__version__


def test_a_copy_without_its_repository_is_told_the_commit(monkeypatch):
    monkeypatch.setenv("CONDGRAD_COMMIT", "abc1234")
    assert environment._commit() == "abc1234"
