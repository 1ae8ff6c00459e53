"""The searches for settings: as many tries for each method, and the test images left alone."""

import dataclasses
import math

import pytest

from condgrad_lab import papers, queue
from condgrad_lab.papers.dnn_fw_2020._search import SEED, Search
from condgrad_lab.papers.dnn_fw_2020.tuning_3 import Tuning3
from condgrad_lab.render import save
from condgrad_lab.store import Store
from lab.papers.records import results, verdicts

ARTIFACTS = {artifact.name: artifact for artifact in papers.artifacts()}
TUNINGS = [name for name, artifact in ARTIFACTS.items() if isinstance(artifact, Search)]
METHODS = ("SGD with decay", "SFW L2", "SFW L∞")
BEST = {"SGD with decay": (0.1, 0.0005), "SFW L2": (1, 2), "SFW L∞": (2, 10)}
asked_of_each = pytest.mark.parametrize("name", TUNINGS)


class Found3(Tuning3):
    """After the search."""

    name, best = "tuning-3", BEST


def test_the_networks_of_cifar_are_tuned():
    assert TUNINGS == ["tuning-2", "tuning-3", "tuning-4"]


@asked_of_each
def test_every_method_has_as_many_tries(name):
    lines = ARTIFACTS[name].lines("search")
    for method in METHODS:
        tries = [run for label, run in lines.items() if label.startswith(f"{method}: ")]
        assert len(tries) == len(set(tries)) == 9
        assert len({run.optimizer.lr for run in tries}) == 3
    assert len(lines) == 27


@asked_of_each
def test_tries_differ_in_rate_and_size_alone_and_see_no_test_image(name):
    artifact = ARTIFACTS[name]
    table = artifact.of.runs("short")
    for label, (run,) in artifact.runs("search").items():
        method = label.partition(":")[0]
        assert run.seed == SEED
        assert run.data.validation == 5000
        assert (run.epochs, run.schedule.band) == (15, True)
        (like,) = table[method]
        plain = dataclasses.replace(
            run, seed=0, epochs=like.epochs, measure=like.measure, schedule=like.schedule,
            data=dataclasses.replace(run.data, validation=None),
        )  # fmt: skip
        decay = like.optimizer.weight_decay
        optimizer = dataclasses.replace(plain.optimizer, lr=0.1, weight_decay=decay)
        rules = tuple(dataclasses.replace(rule, width=like.rules[0].width) for rule in plain.rules)
        assert dataclasses.replace(plain, optimizer=optimizer, rules=rules) == like
    milestones = {run.schedule.milestones for run in artifact.lines("search").values()}
    assert milestones == {(7, 14) if name == "tuning-2" else (5, 9, 12)}


@asked_of_each
def test_each_runs_draws_and_names_at_smoke_scale(name, tmp_path):
    artifact = ARTIFACTS[name]
    runs = [run for line in artifact.runs("smoke").values() for run in line]
    queue.execute(runs, queue.Settings(tmp_path), jobs=1, listen=lambda event: None)
    found = artifact.results(Store(tmp_path), "smoke")
    assert found.complete
    assert {claim.verdict for claim in artifact.judge(found)} == {"open"}
    assert all(claim.ours.startswith("lr ") for claim in artifact.claims(found))
    assert len(artifact.table(found).rows) == 3
    assert all(path.stat().st_size > 1000 for path in save(artifact, found, tmp_path))


def searched(accuracy, artifact=None):
    """Records of a search that end at these accuracies, one a try."""
    artifact = artifact or ARTIFACTS["tuning-3"]

    def numbers(label, seed):
        value = accuracy(label)
        return value and {
            "train_loss": [1.0, 0.5],
            "test_loss": [1.0, 0.5],
            "test_accuracy": [0.1, value],
        }

    return results(artifact, numbers, scale="search")


def test_the_best_of_each_is_named_and_a_diverged_try_is_last():
    good = {"SGD with decay: lr 0.3, decay 0.0005", "SFW L2: lr 2, width 1"}

    def accuracy(label):
        if label.startswith("SFW L∞"):
            return None
        return math.nan if label.endswith("lr 1, width 4") else 0.93 if label in good else 0.9

    found = searched(accuracy)
    claims = verdicts(ARTIFACTS["tuning-3"], found)
    assert claims["best of SGD with decay"].ours == "lr 0.3, decay 0.0005, 93.00 %"
    assert claims["best of SFW L2"].ours == "lr 2, width 1, 93.00 %"
    assert claims["best of SFW L2"].note == "9 of 9 tries"
    assert claims["best of SFW L∞"].ours == "–"
    assert claims["best of SFW L∞"].note == "0 of 9 tries"
    table = ARTIFACTS["tuning-3"].table(found)
    labels = [label for label, _ in table.rows]
    assert len(labels) == 18
    assert labels[0] == "SGD with decay: lr 0.3, decay 0.0005"
    assert labels[9] == "SFW L2: lr 2, width 1"
    assert labels[-1] == "SFW L2: lr 1, width 4"
    assert "training images held out" in table.said


@asked_of_each
def test_there_is_nothing_to_compare_before_the_search_has_run(name):
    artifact = ARTIFACTS[name]
    assert ("compare" in artifact.scales) == bool(artifact.best)
    if not artifact.best:
        with pytest.raises(ValueError, match="is one of smoke, search: 'compare'"):
            artifact.runs("compare")


def test_what_was_found_is_compared_on_the_test_images():
    artifact = Found3()
    lines = artifact.runs("compare")
    assert [run.seed for run in next(iter(lines.values()))] == [0, 1, 2]
    assert [(run.optimizer.lr, run.optimizer.weight_decay) for run, *_ in lines.values()] == [
        (0.1, 0.0005), (1, 0.0), (2, 0.0),
    ]  # fmt: skip
    assert [rule.width for run, *_ in lines.values() for rule in run.rules] == [2, 10]
    for run, *_ in lines.values():
        assert run.data.validation is None
        assert (run.epochs, run.schedule.milestones) == (40, (12, 24, 32))


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.94, "met"), (0.93, "met"), (0.92, "missed"), (math.nan, "missed")]
)
def test_the_comparison_is_judged(ours, verdict):
    artifact = Found3()

    def numbers(label, seed):
        value = ours if label.startswith("SFW L2") else 0.93
        return {"test_accuracy": [0.1, value]} if "∞" not in label else None

    found = verdicts(artifact, results(artifact, numbers, scale="compare"))
    assert found["SFW L2 ends at or above SGD with decay, each at its best"].verdict == verdict
    assert found["SFW L∞ ends at or above SGD with decay, each at its best"].verdict == "open"
    assert all(claim.paper == "not of the paper" for claim in found.values())
