"""A run is data: it goes to JSON and back, and its key stands for all of it."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from condgrad_lab.spec import Data, Optimizer, Rule, Run, Schedule

PLAIN = Run(Data("mnist"), "linear", Optimizer("SGD", lr=0.1))
FULL = Run(
    Data("mnist", train=500, test=100, synthetic=True),
    "convnet",
    Optimizer("SFW", lr=0.3, momentum=0.9, rescale="gradient", ties="first"),
    rules=(
        Rule("Free", pattern=".*bias"),
        Rule("KSparsePolytope", radius=300, k=(100, 0.03)),
    ),
    schedule=Schedule((60, 120), 0.2, band=True),
    epochs=3,
    batch=50,
    seed=4,
    measure=("weights", "gap"),
    dtype="float64",
)

OTHERS = {
    "data": [
        Data("fashion-mnist"),
        Data("mnist", train=100),
        Data("mnist", test=100),
        Data("mnist", validation=100),
    ],
    "model": ["mlp-64"],
    "optimizer": [
        dataclasses.replace(PLAIN.optimizer, **{name: value})
        for name, value in [
            ("name", "Adam"),
            ("lr", 0.2),
            ("momentum", 0.9),
            ("nesterov", True),
            ("weight_decay", 1e-4),
            ("rescale", "diameter"),
            ("ties", "first"),
        ]
    ],
    "rules": [
        (Rule("L2Ball", radius=1),),
        (Rule("L2Ball", radius=2),),
        (Rule("L2Ball", diameter=1),),
        (Rule("L2Ball", width=1),),
        (Rule("L2Ball", ".*w", radius=1),),
        (Rule("LpBall", radius=1, p=5),),
        (Rule("KSparsePolytope", radius=1, k=3),),
        (Rule("KSparsePolytope", radius=1, k=0.3),),
    ],
    "schedule": [Schedule((5,), 0.1), Schedule((5,), 0.2), Schedule(band=True)],
    "epochs": [11],
    "batch": [65],
    "seed": [1],
    "measure": [(), ("train", "active"), ("train", "weights"), ("top5",)],
    "device": ["cuda"],
    "dtype": ["float64"],
    "augment": [True],
    "autocast": ["bfloat16"],
    "ranks": [2],
}


@pytest.mark.parametrize("run", [PLAIN, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("defaults", [True, False])
def test_a_run_survives_json(run, defaults):
    text = json.dumps(run.to_dict(defaults=defaults))
    again = Run.from_dict(json.loads(text))
    assert again == run
    assert again.key == run.key
    assert hash(again) == hash(run)


def test_every_field_decides_the_key():
    assert set(OTHERS) == {field.name for field in dataclasses.fields(Run)}
    runs = [PLAIN, FULL]
    runs += [dataclasses.replace(PLAIN, **{n: v}) for n, values in OTHERS.items() for v in values]
    assert len({run.digest for run in runs}) == len(set(runs)) == len(runs)


def test_a_field_at_its_default_stays_out_of_the_key():
    # So that a field added tomorrow leaves the records of today where they are.
    assert PLAIN.to_dict(defaults=False) == {
        "data": {"name": "mnist"},
        "model": "linear",
        "optimizer": {"name": "SGD", "lr": 0.1},
    }


def test_keys_are_for_ever():
    # Committed records are found by these. Whoever changes them loses the records.
    text = '{"data":{"name":"mnist"},"model":"linear","optimizer":{"lr":0.1,"name":"SGD"}}'
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    assert PLAIN.key == f"mnist_linear_SGD_s0_{digest}" == "mnist_linear_SGD_s0_ba9dc417"
    assert FULL.key.startswith("mnist_convnet_SFW-Free-KSparse_s4_")


RESULTS = sorted((Path(__file__).parents[2] / "results").rglob("*.jsonl"))


def test_every_committed_record_is_found_by_its_name():
    assert len(RESULTS) >= 238
    for path in RESULTS:
        with path.open() as file:
            run = Run.from_dict(json.loads(file.readline())["run"])
        assert f"{run.key}.jsonl" == path.name


def test_one_number_has_one_key():
    assert dataclasses.replace(PLAIN, optimizer=Optimizer("SGD", lr=1)).digest == (
        dataclasses.replace(PLAIN, optimizer=Optimizer("SGD", lr=1.0)).digest
    )
    assert dataclasses.replace(FULL, measure=("gap", "weights")) == FULL


def test_seeds_of_one_line_share_their_configuration():
    runs = [dataclasses.replace(FULL, seed=seed) for seed in range(3)]
    assert len({run.key for run in runs}) == 3
    assert {run.configuration for run in runs} == {dataclasses.replace(FULL, seed=0)}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Data("mnist", train=0), "`train` must be positive and finite, got 0"),
        (lambda: Data("mnist", synthetic=True), "give `train` and `test`"),
        (lambda: Rule("L2Ball"), "takes 1 of radius, diameter and width; got none of them"),
        (lambda: Rule("L2Ball", radius=1, width=2), "got radius and width"),
        (lambda: Rule("Free", radius=1), "`Free` takes 0 of radius"),
        (lambda: Rule("L2Ball", radius=float("inf")), "`radius` must be positive and finite"),
        (lambda: Rule("KSparsePolytope", radius=1, k=1.0), "a count .* or a fraction below 1"),
        (lambda: Optimizer("SGD", lr=-1), "`lr` must be finite and not negative, got -1.0"),
        (lambda: Schedule((3, 2)), "`milestones` must increase"),
        (lambda: dataclasses.replace(PLAIN, device="tpu"), "`device` must be one of cpu, cuda"),
        (lambda: dataclasses.replace(PLAIN, dtype="int8"), "`dtype` must be one of float32"),
        (lambda: dataclasses.replace(PLAIN, epochs=0), "`epochs` must be positive"),
        (lambda: dataclasses.replace(PLAIN, seed=-1), "`seed` must not be negative, got -1"),
        (lambda: dataclasses.replace(PLAIN, measure=("x",)), "`measure` knows train, gap, "),
        (lambda: dataclasses.replace(PLAIN, measure=("gap",)), "no rule constrains the run"),
        (lambda: dataclasses.replace(PLAIN, measure=("sampled-gap",)), "no rule constrains the"),
        (lambda: Data("mnist", validation=0), "`validation` must be positive"),
        (
            lambda: dataclasses.replace(PLAIN, autocast="half"),
            "`autocast` must be one of None, bfloat16, got 'half'",
        ),
        (lambda: dataclasses.replace(PLAIN, ranks=0), "`ranks` must be positive"),
        (lambda: dataclasses.replace(PLAIN, batch=2, ranks=3), "2, too few for 3 `ranks`"),
        (
            lambda: dataclasses.replace(PLAIN, rules=(Rule("L2Ball", radius=1),) * 2),
            "two rules for one pattern",
        ),
        (lambda: Run.from_dict({**PLAIN.to_dict(), "epoch": 3}), "`Run` has no field .'epoch'."),
    ],
)
def test_wrong_values_are_named(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_run_is_told_without_torch():
    # `condgrad list` answers at once.
    code = "import sys, condgrad_lab.spec; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
