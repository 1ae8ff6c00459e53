"""Breaks the library in many small ways, one at a time, and demands that its tests notice.

    python tests/mutants.py              all mutants; the exit status is 1 unless each was caught
    python tests/mutants.py -k gap       those whose name or file contains the word
    python tests/mutants.py --jobs 4     so many at a time
    python tests/mutants.py --trust      believe that the tests pass if nothing is changed
    python tests/mutants.py --list       names and files, nothing is run

A mutant is one change of the text of one file. It is made in a copy of the package in a temporary
folder, never in the working tree, and the tests named beside it are run against that copy. It is

    caught      if a test fails in its own course,
    survived    if all tests pass: a test is missing,
    broken      if the tests cannot even be collected, the names no longer fit, or time is up,
    stale       if the old text does not stand exactly once in its file: mend the table.

First the same tests are run against an unchanged copy, where all must pass: without that a mutant
is caught by whatever fails anyhow. The tables are in ``tests/mutations``; a new mutant costs three
strings there.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import multiprocessing
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "condgrad"
LIMIT = 900  # seconds for the tests of one mutant
ELSEWHERE = 77  # the exit status of a child that has not imported the copy
HEAVY = [
    "torch._dynamo",
    "numpy",
    "scipy.optimize",
    "scipy.stats",
    "pytest",
]  # imported once for all
NO_TEST_FAILURE = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocal")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one file, and the tests that must notice it, as pytest's arguments."""

    name: str
    file: str
    old: str
    new: str
    tests: str

    def changed(self) -> str:
        """The file's text with the change; raises `Stale` if there is not one place for it."""
        text = (SOURCE / self.file).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1 or self.old == self.new:
            raise Stale(f"{self.file} has the old text {count} times: {self.old!r}")
        return text.replace(self.old, self.new)


class Stale(Exception):
    """The table does not fit the library."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and by what it shows."""

    word: str
    detail: str = ""
    seconds: float = 0.0


def of(file: str, tests: str, *changes: tuple[str, ...]) -> list[Mutant]:
    """Mutants of one file: (name, old, new), or (name, old, new, tests) where others notice."""
    return [Mutant(name, file, old, new, *rest or (tests,)) for name, old, new, *rest in changes]


def judged(mutant: Mutant) -> Verdict:
    """Break a copy of the library so, and ask the tests."""
    try:
        text = mutant.changed()
    except Stale as error:
        return Verdict("stale", str(error))
    return _run({mutant.file: text}, mutant.tests)


@functools.cache
def unchanged(tests: str) -> Verdict:
    """What the tests say of a copy in which nothing was changed."""
    return _run({}, tests)


def _run(changes: dict[str, str], tests: str) -> Verdict:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name).resolve()
        shutil.copytree(SOURCE, folder / "condgrad", ignore=shutil.ignore_patterns("__pycache__"))
        for file, text in changes.items():
            (folder / "condgrad" / file).write_text(text, encoding="utf-8")
        word, detail = _asked(folder, tests)
    return Verdict(word, detail, time.monotonic() - begun)


def _asked(folder: Path, tests: str) -> tuple[str, str]:
    report, told = folder / "report.xml", folder / "told.txt"
    fresh = multiprocessing.get_context("forkserver")
    fresh.set_forkserver_preload(HEAVY)
    words = [*shlex.split(tests), "-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    child = fresh.Process(target=_test, args=(str(folder), words, str(told)))
    child.start()
    child.join(LIMIT)
    if child.is_alive():
        child.kill()
        child.join()
        return "broken", f"not done after {LIMIT} s"
    if child.exitcode == ELSEWHERE:
        return "broken", "the tests import another copy"
    if child.exitcode == 0:
        return "survived", ""
    if child.exitcode != 1 or not report.exists():
        return "broken", told.read_text(encoding="utf-8").strip()[-500:]
    return _read(report)


def _test(folder: str, words: list[str], told: str) -> None:
    """Run pytest on the copy in the folder, as a process of its own, and end it."""
    with open(told, "wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(ROOT)
    paths = [folder, os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["XDG_CACHE_HOME"] = folder  # kernels that are built of the copy end with it
    sys.path.insert(0, folder)
    import pytest

    import condgrad

    if not str(condgrad.__file__).startswith(folder):
        sys.exit(ELSEWHERE)
    sys.exit(pytest.main(words))


def _read(report: Path) -> tuple[str, str]:
    """What failed, and whether it was a test."""
    for case in ElementTree.parse(report).iter("testcase"):
        test = case.get("name", "")
        failure, error = case.find("failure"), case.find("error")
        found = error if failure is None else failure
        if found is not None:
            message = found.get("message", "")
            if failure is None or message.startswith(NO_TEST_FAILURE):
                return "broken", f"{test}: {message[:200]}"
            return "caught", test
    return "broken", "a failure that the report does not tell"


def mutants() -> list[Mutant]:
    """All of them."""
    from mutations import (
        around,
        foundations,
        host,
        kernels,
        matrices,
        moves,
        optimizers,
        regions,
        sharded,
    )

    tables = (regions, matrices, foundations, optimizers, moves, kernels, host, sharded, around)
    return [mutant for table in tables for mutant in table.MUTANTS]


def failed_unchanged(chosen: Iterable[Mutant], jobs: int) -> Iterator[str]:
    """The tests that fail, or cannot run, though nothing was changed."""
    every = sorted({mutant.tests for mutant in chosen})
    with ThreadPoolExecutor(jobs) as pool:
        for tests, verdict in zip(every, pool.map(unchanged, every), strict=True):
            if verdict.word != "survived":
                yield f"{tests}: {verdict.detail}"


def main(words: list[str]) -> int:
    """Run from the command line; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-k", default="", metavar="WORD", help="those with it in name or file")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    parser.add_argument("--trust", action="store_true", help="do not try the tests unchanged")
    parser.add_argument("--list", action="store_true", help="name them, run nothing")
    given = parser.parse_args(words)
    chosen = [m for m in mutants() if given.k.lower() in f"{m.file}: {m.name}".lower()]
    if given.list:
        return _say(*(f"{m.file}: {m.name}" for m in chosen))
    wrong = [] if given.trust else list(failed_unchanged(chosen, given.jobs))
    if wrong:
        _say("These tests fail though nothing was changed:", *wrong)
        return 1
    counts: dict[str, int] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, verdict in zip(chosen, pool.map(judged, chosen), strict=True):
            counts[verdict.word] = counts.get(verdict.word, 0) + 1
            label = f"{verdict.word:9}{verdict.seconds:6.1f} s  {mutant.file}: {mutant.name}"
            _say(f"{label}  [{verdict.detail}]" if verdict.detail else label)
    _say(f"{counts.get('caught', 0)} of {len(chosen)} mutants caught")
    return 0 if set(counts) <= {"caught"} else 1


def _say(*lines: str) -> int:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.modules["mutants"] = sys.modules[__name__]  # the tables import this module by its name
    sys.exit(main(sys.argv[1:]))
