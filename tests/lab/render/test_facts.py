"""What pages tell of records beside their numbers."""

import sys
import types

from condgrad_lab.artifact import Artifact, Results
from condgrad_lab.render import _facts
from lab.render.made import START, Curved, found, record, results

LOSS = {"test_loss": (1, 1, 1, 1)}


def test_environments_are_told_once_with_their_commits():
    resumed = {**START, "epoch": 2, "commit": "def5678+"}
    moved = {**START, "torch": "2.14", "processor": "Another", "cuda": "13.0", "accelerator": "X"}
    records = [
        record(LOSS, starts=(START,)),
        record(LOSS, 1, starts=(START, resumed)),
        record(LOSS, 2, starts=(START, moved)),
    ]
    assert _facts.environments(records) == [
        "3 records: condgrad 0.1, torch 2.13, python 3.11, Linux, A fast one; "
        "commits abc1234, def5678+",
        "1 record: condgrad 0.1, torch 2.14, python 3.11, cuda 13.0, Linux, Another, X; "
        "commit abc1234",
    ]
    assert _facts.environments([record(LOSS, starts=({"torch": "2.13"},))]) == [
        "1 record: torch 2.13"
    ]
    assert _facts.environments([]) == []


def test_the_command_names_the_scale_where_it_is_not_the_papers():
    assert _facts.command(Curved(), results()) == "condgrad run figure-5"
    assert (
        _facts.command(Curved(), Results("smoke", {}, 0)) == "condgrad run figure-5 --scale smoke"
    )


def test_records_that_artifacts_share_count_once():
    pairs = found()
    assert sum(len(some.records) for _, some in pairs) == 9
    assert len(_facts.distinct(pairs)) == 3
    assert _facts.time(_facts.distinct(pairs)) == "5 min"


def test_texts_that_artifacts_share_are_told_once(monkeypatch):
    def module(name, doc):
        made = types.ModuleType(f"tests.{name}", doc)
        monkeypatch.setitem(sys.modules, made.__name__, made)
        return made.__name__

    def kind(base, name, doc):
        label = name.replace("_", "-")
        return type(name, (base,), {"__module__": module(name, doc), "name": label})

    both = kind(Artifact, "_both", "What they\nshare.")
    first, second = kind(both, "figure_1", "Figure 1: a thing."), kind(both, "figure_2", "Two.")
    for some in (first, second):
        some.__abstractmethods__ = frozenset()
    pairs = [(first(), results()), (second(), results())]
    assert _facts.about(first()) == "A thing."
    assert _facts.about(second()) == "Two."
    assert _facts.shared(pairs) == {"What they\nshare.": ["figure-1", "figure-2"]}
