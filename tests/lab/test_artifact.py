"""What an artifact's author leans on: lines times seeds, records by line, claims with verdicts."""

import math

import numpy as np
import pytest

from condgrad_lab.artifact import Artifact, Claim, Results
from condgrad_lab.spec import Data, Optimizer, Run
from condgrad_lab.store import Record, Store

RUN = Run(Data("mnist"), "linear", Optimizer("SGD", lr=0.1), epochs=2)


class Figure(Artifact):
    name, title = "figure", "a figure"

    def lines(self, scale):
        return {"a": RUN, "b": Run(Data("mnist"), "linear", Optimizer("Adam", lr=0.1), epochs=2)}

    def claims(self, results):
        return [Claim.near("a", 1.0, results.last("a", "loss"), 0.5)]

    def draw(self, results):
        raise NotImplementedError


def record(*losses, status="done"):
    epochs = tuple({"epoch": e, "loss": loss} for e, loss in enumerate(losses))
    return Record(RUN, epochs=epochs, status=status)


def test_runs_are_lines_times_seeds():
    runs = Figure().runs("smoke")
    assert [run.seed for run in runs["a"]] == [0]
    assert [run.seed for run in Figure().runs("paper")["b"]] == list(range(10))
    runs = Figure().runs("paper", [3, 5], "cuda")
    assert [(run.seed, run.device) for run in runs["b"]] == [(3, "cuda"), (5, "cuda")]
    assert runs["a"][0].configuration.optimizer == RUN.optimizer
    with pytest.raises(ValueError, match=r"`scale` of figure is one of smoke, small, paper: 'x'"):
        Figure().runs("x")


def test_results_hold_ended_records_by_line(tmp_path):
    store = Store(tmp_path)
    first, second = Figure().runs("paper", [0, 1])["a"]
    for run, status in ((first, "done"), (second, None)):
        with store.open(run) as journal:
            journal.resume()
            journal.append({"epoch": 0, "loss": 2.0}, {})
            if status:
                journal.finish(status)
    results = Figure().results(store, "paper", [0, 1])
    assert {label: len(line) for label, line in results.lines.items()} == {"a": 1, "b": 0}
    assert results["a"][0].run == first
    assert (len(results.records), results.wanted, results.complete) == (1, 4, False)
    assert Figure().results(store, "paper", [0]).complete is False
    assert results.last("b", "loss").shape == (0,)


def test_values_are_seeds_by_epochs_with_nan_behind_a_divergence():
    line = (record(3, 2, 1), record(3, 9, status="diverged"))
    results = Results("paper", {"a": line, "b": ()}, 4)
    np.testing.assert_array_equal(results.values("a", "loss"), [[3, 2, 1], [3, 9, math.nan]])
    np.testing.assert_array_equal(results.last("a", "loss"), [1, math.nan])
    assert results.values("b", "loss").shape == (0, 1)


def test_a_claim_of_a_number_is_judged_by_the_mean():
    claim = Claim.near("x", 10.0, [9.0, 10.0, 12.0], 0.5)
    assert claim.ours == pytest.approx(31 / 3)
    assert claim.deviation == pytest.approx(np.std([9, 10, 12], ddof=1))
    assert claim.difference == pytest.approx(1 / 3)
    assert (claim.holds, claim.verdict) == (True, "met")
    assert Claim.near("x", 10.0, [10.6], 0.5).verdict == "missed"
    assert Claim.near("x", 10.0, [10.5], 0.5).verdict == "met"
    assert Claim.near("x", 10.0, [10.5], 0.5).deviation is None
    assert Claim.near("x", 10.0, [math.nan], 0.5).verdict == "missed"
    assert Claim.near("x", 10.0, [], 0.5).verdict == "open"
    assert Claim("x", "a beats b", "so it does").difference is None


def test_claims_are_held_against_the_paper_at_the_scales_that_say_so():
    lines = {"a": (record(3, 2, 1),), "b": ()}
    assert [c.verdict for c in Figure().judge(Results("paper", lines, 2))] == ["met"]
    (claim,) = Figure().judge(Results("smoke", lines, 2))
    assert (claim.verdict, claim.ours) == ("open", 1.0)
