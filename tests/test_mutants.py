"""The mutants fit the library as it is, and a few of them are let loose; `mutants.py` runs all."""

import dataclasses
import shlex

import pytest

import mutants
from mutants import ROOT, SOURCE, Mutant, Stale, judged, main
from mutants import mutants as table

EVERY = table()
BAND = "tests/test_schedules.py -k 'band_rule_compares or equal_losses'"
CAUGHT = Mutant("the longer mean shrinks", "schedules.py", "recent > past", "past > recent", BAND)


def test_there_are_mutants_of_every_room():
    assert len(EVERY) >= 45
    names = [(each.file, each.name) for each in EVERY]
    assert len(set(names)) == len(names)
    rooms = {"regions", "optim", "constrain.py", "sizing.py", "schedules.py", "metrics.py"}
    assert rooms <= {each.file.partition("/")[0] for each in EVERY}


@pytest.mark.parametrize("file", sorted({each.file for each in EVERY}))
def test_no_mutant_is_stale_and_each_compiles(file):
    """After a change of the file: find the same slip in the new lines, or another."""
    for mutant in EVERY:
        if mutant.file == file:
            assert mutant.changed() != (SOURCE / file).read_text(encoding="utf-8")
            if file.endswith(".py"):
                compile(mutant.changed(), file, "exec")


def test_the_tests_of_every_mutant_exist():
    for mutant in EVERY:
        words = shlex.split(mutant.tests)
        paths = [word for word in words if word.startswith("tests")]
        assert paths
        assert all((ROOT / path).exists() for path in paths), mutant.name
        assert set(words) - set(paths) == set() or words[-2] == "-k", mutant.name


def test_a_mutant_is_caught_by_a_test():
    verdict = judged(CAUGHT)
    assert verdict.word == "caught"
    assert verdict.detail.startswith("test_the_band_rule_compares")


def test_a_change_that_changes_nothing_survives():
    same = dataclasses.replace(CAUGHT, new="past < recent")
    assert judged(same).word == "survived"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("from torch import Tensor\n", "from torch import Tenser\n", "Tenser"),
        ("recent > past", "recent > passed", "NameError"),
    ],
)
def test_what_does_not_run_is_not_caught(old, new, told):
    verdict = judged(dataclasses.replace(CAUGHT, old=old, new=new))
    assert verdict.word == "broken"
    assert told in verdict.detail


def test_a_stale_mutant_is_refused(monkeypatch, capsys):
    for old in ("no such line", "self", CAUGHT.new):
        stale = dataclasses.replace(CAUGHT, old=old)
        with pytest.raises(Stale, match=r"schedules.py has the old text \d+ times"):
            stale.changed()
        assert judged(stale).word == "stale"
    monkeypatch.setattr(mutants, "unchanged", lambda tests: mutants.Verdict("survived"))
    monkeypatch.setattr(mutants, "mutants", lambda: [stale])
    assert main([]) == 1
    assert "0 of 1 mutants caught" in capsys.readouterr().out
    assert main(["-k", "nobody"]) == 0


def test_tests_that_fail_unchanged_catch_nothing(monkeypatch, capsys):
    monkeypatch.setattr(mutants, "unchanged", lambda tests: mutants.Verdict("caught", "test_x"))
    monkeypatch.setattr(mutants, "mutants", lambda: [CAUGHT])
    assert main([]) == 1
    assert "fail though nothing was changed" in capsys.readouterr().out
