"""Processes that share a run: they end where one would, and the record is written once."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from condgrad_lab.data import imagenet
from condgrad_lab.spec import Data, Optimizer, Rule, Run
from condgrad_lab.store import Store, settled
from condgrad_lab.train import load, train
from distributed.team import ENVIRONMENT, Lost, Nursery
from lab import ranks

# No network with normalisation here: the processes' statistics would differ from those of one.
FLAT = Run(
    Data("mnist", train=65, test=33, synthetic=True), "mlp-32",
    Optimizer("SFW", 1.0, 0.9, rescale="gradient"), (Rule("L2Ball", width=300),), epochs=3,
    batch=20, measure=("train", "gap", "top5"), ranks=2,
)  # fmt: skip
DEEP = dataclasses.replace(
    FLAT, data=Data("cifar-10", train=43, test=10, synthetic=True), model="wideresnet10x1",
    rules=(Rule("L2Ball", width=30),), measure=("sampled-gap",), augment=True, batch=16,
)  # fmt: skip
PICTURES = dataclasses.replace(
    DEEP, data=Data("imagenet", train=22, test=9, synthetic=True), model="resnext14", batch=8
)
RUNS = {"flat": FLAT, "deep": DEEP, "pictures": PICTURES}


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def ask(nursery):
    """Asks a fresh team of two."""

    def ask(*question, size=2):
        team = nursery.lone_team(size)
        try:
            return team.ask(*question)
        finally:
            team.close()

    return ask


def lines(run, folder):
    return settled(Store(folder).path(run))


def test_two_processes_end_where_one_does(ask, tmp_path):
    assert ask(ranks.trained, FLAT, tmp_path) == [(True, 4), (True, 0)]
    single = dataclasses.replace(FLAT, ranks=1)
    with Store(tmp_path).open(single) as journal:
        alone = train(single, load(single.data), journal)
    both = Store(tmp_path).read(FLAT)
    names = ["evaluations", "running_loss", "train_loss", "test_loss", "gap", "lr"]
    names += ["train_accuracy", "test_accuracy", "test_top5_accuracy", "violation"]
    for name in names:
        found, expected = both.column(name)[1:], alone.column(name)[1:]
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6, err_msg=name)
    assert both.last("train_loss") < both.column("train_loss")[0] - 0.1


@pytest.mark.parametrize("name", ["flat", "pictures"])
def test_a_shared_run_gives_the_same_record_again_and_in_pieces(name, ask, tmp_path):
    run = dataclasses.replace(RUNS[name], epochs=2)
    ask(ranks.trained, run, tmp_path / "one")
    while not all(ended for ended, _ in ask(ranks.trained, run, tmp_path / "two", True)):
        pass
    assert lines(run, tmp_path / "one") == lines(run, tmp_path / "two")
    assert len(Store(tmp_path / "two").read(run).starts) == 2


@pytest.mark.parametrize("name", ["deep", "pictures"])
def test_all_processes_have_the_same_parameters_and_statistics(name, ask):
    first, second = ask(ranks.parameters, RUNS[name])
    assert first == second


def test_a_last_batch_of_fewer_samples_than_processes_is_left_out(ask, tmp_path):
    run = dataclasses.replace(FLAT, data=dataclasses.replace(FLAT.data, train=61), epochs=1)
    assert ask(ranks.trained, run, tmp_path)[0] == (True, 2)
    assert Store(tmp_path).read(run).last("evaluations") == 60


def test_a_run_that_is_busy_is_busy_for_all(ask, tmp_path):
    short = dataclasses.replace(FLAT, epochs=1, seed=1)
    with Store(tmp_path).open(FLAT):
        assert ask(ranks.queued, [FLAT, short], tmp_path) == [
            ["busy", "begin", "epoch", "epoch", "end"],
            ["busy", "begin", "end"],
        ]


def test_a_run_says_how_many_processes_it_wants(ask, tmp_path):
    with pytest.raises(Lost, match="`ranks` is 1, but 2 processes are here"):
        ask(ranks.trained, dataclasses.replace(FLAT, ranks=1), tmp_path)
    with (
        Store(tmp_path).open(FLAT) as journal,
        pytest.raises(ValueError, match="torchrun --nproc-per-node 2"),
    ):
        train(FLAT, load(FLAT.data), journal)
    twice = dataclasses.replace(FLAT, optimizer=Optimizer("ORGFW", 0.1, 0.9))
    with pytest.raises(Lost, match="`ranks` is 2, but ORGFW trains on one"):
        ask(ranks.parameters, twice)


# ---- by the command line, from real files


@pytest.fixture
def pictures(tmp_path):
    """A small folder of classes, as one has ImageNet."""
    rng = np.random.default_rng(0)
    for split, each in (("train", 8), ("val", 3)):
        for label in range(3):
            place = tmp_path / "pictures" / split / f"n{label}"
            place.mkdir(parents=True)
            for number in range(each):
                pixels = rng.integers(0, 80, (50, 70, 3)) + 80 * (np.arange(3) == label)
                Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number}.JPEG")
    return tmp_path / "pictures"


COUNTS = imagenet.Counts(classes=3, train=24, val=9)


@pytest.mark.parametrize("size", [1, 2])
def test_a_table_of_imagenet_is_one_command(size, nursery, pictures, tmp_path):
    """Network and schedule made small; folder, crops, processes and records as they are."""
    team = nursery.lone_team(size)
    out = str(tmp_path / "runs")
    words = ["run", "table-6", "--scale", "short", "--device", "cpu", "--seeds", "1"]
    words += ["--data", str(pictures), "--out", out, "--jobs", "1", "--workers", "0"]
    try:
        answers = team.ask(ranks.commanded, words, COUNTS, str(tmp_path / "cache"))
    finally:
        team.close()
    assert [code for code, _, _ in answers] == [0] * size
    assert all(said == "" for _, said, _ in answers[1:])
    assert "4 runs: 4 to do" in answers[0][1]
    records = list(Store(out).all())
    assert [record.status for record in records] == ["done"] * 4
    for record in records:
        assert record.run.ranks == size
        assert record.last("evaluations") == 24 * record.run.epochs
        assert 0 <= record.last("test_top5_accuracy") <= 1
    assert min(record.last("train_loss") for record in records) < 0.9 * np.log(3)


@pytest.mark.slow
def test_torchrun_starts_them(tmp_path):
    words = ["run", "table-6", "--scale", "smoke", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "-m", "condgrad_lab"]
    subprocess.run([*command, *words], env={**os.environ, **ENVIRONMENT}, check=True)
    records = list(Store(tmp_path).all())
    assert [(record.status, record.run.ranks) for record in records] == [("done", 2)] * 4
