"""A record is whole at every moment, whatever dies while it is written."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
import torch

from condgrad_lab import store as module
from condgrad_lab.spec import Data, Optimizer, Run
from condgrad_lab.store import BusyError, RecordError, Store, settled

RUN = Run(Data("mnist"), "linear", Optimizer("SGD", lr=0.1), epochs=4)
WEIGHTS = {"classify.weight": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}


class CrashError(BaseException):
    """The process dies here."""


def number(epoch):
    return {"epoch": epoch, "evaluations": 100 * epoch, "test_loss": 1 / (epoch + 1)}


def work(journal, epochs=RUN.epochs):
    """What training does to a journal."""
    state = journal.resume()
    if state is None:
        journal.append(number(0), {"measure": 0.1})
    for epoch in range(state["epoch"] + 1 if state else 1, epochs + 1):
        journal.append(number(epoch), {"train": 1.5, "measure": 0.5})
        journal.save({"epoch": epoch, "tensor": torch.full((3,), float(epoch))})
    if epochs == RUN.epochs:
        journal.finish("done", WEIGHTS)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


@pytest.fixture
def whole(store):
    """The lines of a record whose process lived."""
    with store.open(RUN) as journal:
        work(journal)
    lines = settled(store.path(RUN))
    store.path(RUN).unlink()
    return lines


def test_a_record_gives_back_what_was_written(store):
    assert store.read(RUN) is None
    with store.open(RUN) as journal:
        work(journal)
    record = store.read(RUN)
    assert record.run == RUN
    assert record.status == "done"
    assert record.ended
    assert record.epoch == 4
    assert [row["epoch"] for row in record.epochs] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(record.column("test_loss"), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5], 1e-6)
    assert record.last("test_loss") == pytest.approx(0.2)
    assert record.seconds == pytest.approx(0.1 + 4 * 2)
    np.testing.assert_array_equal(record.weights["classify.weight"], WEIGHTS["classify.weight"])
    assert record.starts[0]["torch"] == torch.__version__
    assert not list((store.folder / ".state").iterdir())  # neither checkpoint nor lock is left


def test_the_day_is_told_apart_from_the_numbers(store, whole):
    kinds = [next(iter(json.loads(line))) for line in whole]
    assert kinds == ["run", *["epoch"] * 5, "weights", "end"]
    assert "processor" not in "".join(whole)


def test_no_name_of_the_machine_is_written(store):
    import getpass
    import socket

    with store.open(RUN) as journal:
        work(journal)
    text = store.path(RUN).read_text()
    assert socket.gethostname() not in text
    assert str(store.folder) not in text
    assert f"/{getpass.getuser()}" not in text


def test_numbers_that_are_not_finite_are_null_on_disk(store):
    with store.open(RUN) as journal:
        journal.resume()
        journal.append({"epoch": 0, "test_loss": math.inf, "gap": math.nan}, {})
        journal.finish("diverged")
    record = store.read(RUN)
    assert record.status == "diverged"
    assert record.ended
    assert "null" in store.path(RUN).read_text()
    assert math.isnan(record.last("test_loss"))


def test_a_column_that_is_not_there_is_named(store):
    with store.open(RUN) as journal:
        work(journal)
    with pytest.raises(KeyError, match="has no `gap`; it has epoch, evaluations, test_loss"):
        store.read(RUN).column("gap")


@pytest.mark.parametrize("operation", ["fsync", "replace"])
def test_a_crash_at_any_moment_loses_no_number(store, whole, monkeypatch, operation):
    true = getattr(module.os, operation)
    for survived in range(100):
        left = survived

        def dying(*args):
            nonlocal left
            if left == 0:
                raise CrashError
            left -= 1
            return true(*args)

        monkeypatch.setattr(module.os, operation, dying)
        try:
            with store.open(RUN) as journal:
                work(journal)
        except CrashError:
            pass
        else:
            break
        monkeypatch.undo()
        with store.open(RUN) as journal:
            work(journal)
        assert settled(store.path(RUN)) == whole
        store.path(RUN).unlink()
    assert survived >= 5  # else the operation was never met


def test_a_line_cut_short_is_no_line(store, whole):
    with store.open(RUN) as journal:
        work(journal, epochs=3)
    text = store.path(RUN).read_bytes()
    for cut in range(text.index(b"\n") + 1, len(text), 7):
        store.path(RUN).write_bytes(text[:cut])
        assert len(store.read(RUN).epochs) == sum(
            line.startswith(b'{"epoch"') and line.endswith(b"\n")
            for line in text[:cut].splitlines(keepends=True)
        )
    # The numbers of an epoch are written before its checkpoint: behind this one all are whole.
    store.path(RUN).write_bytes(text + b'{"epoch": {"epoch": 4, "eval')
    with store.open(RUN) as journal:
        work(journal)
    assert settled(store.path(RUN)) == whole


def test_numbers_without_a_checkpoint_are_found_again(store, whole):
    with store.open(RUN) as journal:
        work(journal, epochs=2)
    (store.folder / ".state" / f"{RUN.key}.pt").unlink()
    with store.open(RUN) as journal:
        assert journal.resume() is None
        assert journal.record().epochs == ()
        work(journal)
    assert settled(store.path(RUN)) == whole


def test_a_checkpoint_that_does_not_load_is_left_behind(store, whole):
    with store.open(RUN) as journal:
        work(journal, epochs=2)
    checkpoint = store.folder / ".state" / f"{RUN.key}.pt"
    good = checkpoint.read_bytes()
    first, last = good.index(b"PK"), len(good) - 1
    for bad in (
        b"not a checkpoint",
        good[: len(good) // 2],
        good[first : len(good) // 2],  # one of an older version, without its sum
        *(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(0, last, last // 40)),
    ):
        checkpoint.write_bytes(bad)
        with store.open(RUN) as journal:
            assert journal.resume() is None
    checkpoint.write_bytes(bad)
    with store.open(RUN) as journal:
        work(journal)
    assert settled(store.path(RUN)) == whole


def test_a_checkpoint_of_an_older_version_is_taken_up(store):
    with store.open(RUN) as journal:
        work(journal, epochs=2)
        content = journal.checkpoint.read_bytes()
        journal.checkpoint.write_bytes(content[content.index(b"PK") :])
        assert journal.resume()["epoch"] == 2


def test_a_checkpoint_ahead_of_its_record_is_left_behind(store, whole):
    with store.open(RUN) as journal:
        work(journal, epochs=3)
    path = store.path(RUN)
    path.write_text(path.read_text().partition('{"epoch": {"epoch": 2')[0])
    with store.open(RUN) as journal:
        work(journal)
    assert settled(path) == whole


def test_every_start_is_noted(store):
    with store.open(RUN) as journal:
        work(journal, epochs=2)
    with store.open(RUN) as journal:
        work(journal)
    assert [start["epoch"] for start in store.read(RUN).starts] == [0, 2]


def test_one_record_has_one_writer(store):
    with store.open(RUN), pytest.raises(BusyError, match=RUN.key), store.open(RUN):
        pass
    with store.open(RUN):
        pass


def test_a_damaged_record_is_named(store):
    with store.open(RUN) as journal:
        work(journal)
    path = store.path(RUN)
    path.write_text(path.read_text().replace('{"epoch"', '{"epoch', 1))
    with pytest.raises(ValueError, match=f"{RUN.key}.jsonl is damaged at .*delete it"):
        store.read(RUN)
    path.write_text("")
    with pytest.raises(ValueError, match=r"is no record"):
        store.read(RUN)


DAMAGES = {
    "other bytes": lambda text: "\udc92" + text,
    "a list": lambda text: "[1, 2]\n" + text,
    "two things in a line": lambda text: text.replace('{"start"', '{"end": "done", "start"', 1),
    "no run": lambda text: '{"run": 3}\n',
    "half a run": lambda text: '{"run": {"data": {"name": "mnist"}}}\n',
    "a newer run": lambda text: text.replace('"batch"', '"bunch"', 1),
    "an epoch without its number": lambda text: text.replace('{"epoch": 2', '{"epoc": 2'),
    "an epoch lost": lambda text: re.sub(r'{"epoch": {"epoch": 2.*\n', "", text),
    "an epoch twice": lambda text: re.sub(r'({"epoch": {"epoch": 2.*\n)', r"\1\1", text),
    "half an array": lambda text: re.sub(r'("float32": ").', r"\1", text),
    "another run": lambda text: text.replace('"seed": 0', '"seed": 7', 1),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_whatever_is_wrong_with_a_record_is_said_with_its_name(store, how):
    with store.open(RUN) as journal:
        work(journal)
    path = store.path(RUN)
    text = path.read_text()
    path.write_text(DAMAGES[how](text), errors="surrogateescape")
    assert path.read_text(errors="surrogateescape") != text
    with pytest.raises(RecordError, match=rf"{RUN.key}\.jsonl .*: delete it and run again"):
        store.read(RUN)


def test_a_record_that_cannot_be_read_is_named(store):
    store.path(RUN).mkdir(parents=True)
    with pytest.raises(RecordError, match=rf"{RUN.key}\.jsonl cannot be read: "):
        store.read(RUN)


def test_records_are_found_by_the_start_of_their_key_or_by_digest(store):
    other = dataclasses.replace(RUN, seed=1)
    for run in (RUN, other):
        with store.open(run) as journal:
            work(journal)
    assert store.find(RUN.digest).run == RUN
    assert store.find("mnist_linear_SGD_s1").run == other
    assert {record.run for record in store.all()} == {RUN, other}
    with pytest.raises(KeyError, match="names 2 records"):
        store.find("mnist")
    with pytest.raises(KeyError, match="names no record"):
        store.find("cifar")
