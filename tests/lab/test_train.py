"""A record is a function of its run alone: of no clock, no core count, no kill, no caller."""

import dataclasses
import math
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from condgrad_lab import models
from condgrad_lab.spec import Data, Optimizer, Rule, Run, Schedule
from condgrad_lab.store import Store, settled
from condgrad_lab.train import Trial, _build, load, train
from condgrad_lab.train._draws import generator, seed_of
from condgrad_lab.train._samples import samples
from lab.tiny import environment

MNIST = Data("mnist", train=230, test=90, synthetic=True)
IMDB = Data("imdb", train=120, test=60, synthetic=True)
CIFAR = Data("cifar-10", train=60, test=30, synthetic=True)
BALLS = (Rule("L2Ball", width=300),)

SGD = Run(MNIST, "mlp-32", Optimizer("SGD", lr=0.1), epochs=3, batch=50)
DEEP = Run(
    CIFAR, "wideresnet10x1", Optimizer("SGD", 0.1, 0.9, nesterov=True, weight_decay=1e-4),
    epochs=3, batch=25, measure=(), augment=True, schedule=Schedule((2,), 0.2, band=True),
)  # fmt: skip
SFW = Run(
    MNIST, "mlp-32", Optimizer("SFW", lr=0.3, rescale="diameter"), BALLS, epochs=3, batch=50,
    measure=("train", "gap", "active", "weights"),
)  # fmt: skip
RUNS = {
    "SGD": SGD,
    "momentum": dataclasses.replace(SGD, optimizer=Optimizer("SGD", 0.1, 0.9, nesterov=True)),
    "Adam": dataclasses.replace(SGD, optimizer=Optimizer("Adam", lr=0.001)),
    "Adagrad": dataclasses.replace(SGD, optimizer=Optimizer("Adagrad", lr=0.1)),
    "Adadelta": dataclasses.replace(SGD, optimizer=Optimizer("Adadelta", lr=1)),
    "running": dataclasses.replace(SGD, measure=()),
    "SFW": SFW,
    "MSFW": dataclasses.replace(SFW, optimizer=Optimizer("SFW", 0.1, 0.9, rescale="gradient")),
    "SVRF": dataclasses.replace(SFW, optimizer=Optimizer("SVRF", 0.1, rescale="diameter")),
    "SPIDER-FW": dataclasses.replace(SFW, optimizer=Optimizer("SPIDERFW", 0.1, rescale="diameter")),
    "ORGFW": dataclasses.replace(SFW, optimizer=Optimizer("ORGFW", 0.1, 0.9, rescale="diameter")),
    "SVRF running": dataclasses.replace(
        SFW, optimizer=Optimizer("SVRF", 0.1, rescale="diameter"), measure=()
    ),
    "cube": dataclasses.replace(SFW, rules=(Rule("LinfBall", radius=1),)),
    "k-sparse": dataclasses.replace(
        SFW, rules=(Rule("KSparsePolytope", radius=300, k=(100, 0.1)),)
    ),
    "schedule": dataclasses.replace(SFW, schedule=Schedule((1, 2), 0.5, band=True)),
    "linear": dataclasses.replace(SFW, model="linear", rules=(Rule("LpBall", radius=100, p=5),)),
    "convnet": dataclasses.replace(
        SFW,
        model="convnet",
        epochs=2,
        optimizer=Optimizer("SFW", 0.3, 0.9, rescale="gradient"),
        rules=(Rule("KSparsePolytope", radius=300, k=(100, 0.03)),),
    ),
    "imdb": dataclasses.replace(SFW, data=IMDB, model="imdb-mlp"),
    "float64": dataclasses.replace(SFW, dtype="float64"),
    "deep": DEEP,
    "deep SFW": dataclasses.replace(
        DEEP,
        model="densenet13",
        optimizer=Optimizer("SFW", 1.0, 0.9, rescale="gradient"),
        rules=(Rule("L2Ball", width=13),),
        measure=("sampled-gap", "top5"),
        autocast="bfloat16",
    ),
    "dropout": dataclasses.replace(
        DEEP, data=dataclasses.replace(CIFAR, train=20, test=8), model="googlenet-thin", batch=8
    ),
}


def trained(run, folder, **more):
    store = Store(folder)
    with store.open(run) as journal:
        return train(run, load(run.data), journal, **more)


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_gives_the_same_record_twice(name, tmp_path):
    run = RUNS[name]
    record = trained(run, tmp_path / "a")
    torch.rand(3)  # whatever the caller draws in between
    trained(run, tmp_path / "b")
    path = Store(tmp_path / "a").path(run)
    assert settled(path) == settled(Store(tmp_path / "b").path(run))
    assert record.status == "done"
    assert record.epoch == run.epochs
    assert record.last("train_loss") < record.column("running_loss")[1]
    assert all(math.isfinite(value) for row in record.epochs for value in row.values())


@pytest.mark.parametrize(
    "name",
    ["SGD", "MSFW", "schedule", "imdb", "SVRF", "SPIDER-FW", "ORGFW", "convnet", "deep SFW",
     "dropout"],
)  # fmt: skip
def test_a_run_taken_up_again_and_again_gives_the_same_record(name, tmp_path):
    run = RUNS[name]
    trained(run, tmp_path / "whole")
    while not trained(run, tmp_path / "pieces", stop=lambda: True).ended:
        torch.manual_seed(random.randrange(1000))
    path = Store(tmp_path / "pieces").path(run)
    assert settled(path) == settled(Store(tmp_path / "whole").path(run))
    assert len(Store(tmp_path / "pieces").read(run).starts) == run.epochs


def test_dropout_and_buffers_are_taken_up_too(tmp_path, monkeypatch):
    def noisy(name, *, classes, seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(784, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 10))

    monkeypatch.setattr(_build.models, "build", noisy)
    trained(SGD, tmp_path / "whole")
    while not trained(SGD, tmp_path / "pieces", stop=lambda: True).ended:
        torch.manual_seed(5)
    path = Store(tmp_path / "pieces").path(SGD)
    assert settled(path) == settled(Store(tmp_path / "whole").path(SGD))


CHILD = """
import sys
import time
from condgrad_lab.store import Store
from condgrad_lab.train import load, train
from lab.test_train import KILLED
folder, last = sys.argv[1:]
# However late the blow comes, it finds the run alive.
wait = lambda row: time.sleep(1e6 if row["epoch"] >= int(last) else 0)
with Store(folder).open(KILLED) as journal:
    train(KILLED, load(KILLED.data), journal, watch=wait)
"""
KILLED = dataclasses.replace(RUNS["schedule"], epochs=100)


def under_way(path, starts, epoch):
    """Whether the run has begun, or gone on, so many times, and is beyond this epoch."""
    text = path.read_text() if path.exists() else ""
    return text.count('{"start"') == starts and text.count('\n{"epoch"') > epoch + 1


@pytest.mark.slow
def test_a_run_killed_at_any_moment_gives_the_same_record(tmp_path):
    trained(KILLED, tmp_path / "whole")
    store, rng = Store(tmp_path / "killed"), random.Random(0)
    path = store.path(KILLED)
    for starts, (goal, last) in enumerate(((1, 30), (31, 60), (61, 90)), 1):
        command = [sys.executable, "-c", CHILD, str(store.folder), str(last)]
        child = subprocess.Popen(command, env=environment())
        while not under_way(path, starts, goal):
            assert child.poll() is None
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.03))
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert not store.read(KILLED).ended
    trained(KILLED, store.folder)
    assert settled(path) == settled(Store(tmp_path / "whole").path(KILLED))
    assert len(store.read(KILLED).starts) == 4


def test_a_record_that_has_ended_is_left_alone(tmp_path):
    trained(SGD, tmp_path)
    before = Store(tmp_path).path(SGD).read_bytes()
    assert trained(SGD, tmp_path).ended
    assert Store(tmp_path).path(SGD).read_bytes() == before


def test_the_loop_is_the_plain_one(tmp_path):
    # The slow twin: the paper's loop, written down once more without any of the machinery.
    record = trained(SGD, tmp_path)
    dataset = load(MNIST)
    inputs, labels = dataset.train.inputs.flatten(1) / 255, dataset.train.labels
    model = models.build("mlp-32", seed=seed_of(0, "model"), classes=10)
    for epoch in (1, 2, 3):
        order = torch.randperm(len(labels), generator=generator(0, "order", epoch))
        for start in range(0, len(labels), 50):
            chosen = order[start : start + 50]
            loss = cross_entropy(model(inputs[chosen]), labels[chosen])
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter -= 0.1 * gradient
        outputs = model(inputs)
        assert record.column("train_loss")[epoch] == pytest.approx(
            cross_entropy(outputs, labels).item(), rel=1e-5
        )
        assert record.column("train_accuracy")[epoch] == pytest.approx(
            (outputs.argmax(1) == labels).float().mean().item()
        )


@pytest.mark.parametrize(
    ("name", "each", "first"),
    [("SGD", 230, 0), ("MSFW", 230, 0), ("SVRF", 690, 0), ("ORGFW", 460, 50)],
)
def test_every_gradient_of_a_sample_is_counted(name, each, first, tmp_path):
    # Two a sample where a batch is evaluated twice, three where the full gradient comes on top;
    # the very first batch of ORGFW has nothing before it.
    counted = trained(RUNS[name], tmp_path).column("evaluations")
    assert counted.tolist() == [0, each - first, 2 * each - first, 3 * each - first]


def test_spider_starts_each_epoch_from_the_full_gradient(tmp_path):
    # Its first step after a refresh has its reference where it is, and need not look twice.
    counted = trained(RUNS["SPIDER-FW"], tmp_path).column("evaluations")
    assert counted.tolist() == [0, 640, 1280, 1920]


def test_looking_changes_nothing(tmp_path):
    much = trained(SFW, tmp_path / "much")
    little = trained(dataclasses.replace(SFW, measure=()), tmp_path / "little")
    for name in ("running_loss", "test_loss", "test_accuracy", "violation"):
        np.testing.assert_array_equal(much.column(name)[1:], little.column(name)[1:])


def test_without_measuring_it_the_training_loss_is_the_running_one(tmp_path):
    record = trained(RUNS["running"], tmp_path)
    np.testing.assert_array_equal(
        record.column("train_loss")[1:], record.column("running_loss")[1:]
    )
    accuracy = record.column("train_accuracy")
    assert math.isnan(accuracy[0])
    assert 0 < accuracy[1] < accuracy[3] <= 1
    np.testing.assert_allclose(accuracy[1:] * 230, np.round(accuracy[1:] * 230), atol=1e-4)


def test_caller_keeps_threads_and_random_state(tmp_path):
    torch.manual_seed(0)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    trained(SGD, tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("autocast", [None, "bfloat16"])
def test_forward_passes_are_in_the_format_that_is_asked_for(autocast):
    run = dataclasses.replace(RUNS["deep SFW"], autocast=autocast)
    trial = Trial(run, load(run.data))
    formats = []
    trial.parts.model.register_forward_hook(lambda _, inputs, output: formats.append(output.dtype))
    trial.train_epoch()
    trial.measure()
    assert set(formats) == {torch.bfloat16 if autocast else torch.float32}
    assert len(formats) == 3 + 1 + 1  # the steps, the test split, the samples of the gap
    assert {p.dtype for p in trial.parts.model.parameters()} == {torch.float32}


def test_epoch_zero_is_the_start(tmp_path):
    start = trained(SFW, tmp_path).epochs[0]
    assert start["epoch"] == start["evaluations"] == 0
    assert start["active"] == sum(p.numel() for p in models.build("mlp-32", seed=0).parameters())
    assert start["sparse_test_loss"] == start["test_loss"]
    assert start["train_loss"] == pytest.approx(math.log(10), rel=0.05)
    assert start["gap"] > 0
    assert start["violation"] == 0


def test_active_parameters_fall_and_the_thin_network_is_measured(tmp_path):
    record = trained(RUNS["k-sparse"], tmp_path)
    assert record.last("active") < record.column("active")[0] / 2
    assert record.last("sparse_test_loss") != record.last("test_loss")


def test_weights_are_the_final_ones(tmp_path):
    record = trained(SFW, tmp_path)
    trial = Trial(SFW, load(MNIST))
    with torch.no_grad():
        for name, parameter in trial.parts.model.named_parameters():
            parameter.copy_(torch.from_numpy(record.weights[name].copy()))
    row = trial.measure()
    assert row["test_loss"] == pytest.approx(record.last("test_loss"), rel=1e-6)
    assert row["gap"] == pytest.approx(record.last("gap"), rel=1e-5)


def test_learning_rate_follows_milestones_and_band_rule(tmp_path):
    run = dataclasses.replace(SGD, epochs=5, schedule=Schedule((1, 3), 0.1))
    lr = trained(run, tmp_path / "milestones").column("lr")[1:]
    np.testing.assert_allclose(lr, [0.1, 0.01, 0.01, 0.001, 0.001])
    run = dataclasses.replace(SGD, epochs=8, schedule=Schedule((2,), 0.1, band=True))
    record = trained(run, tmp_path / "band")
    assert all(np.diff(record.column("running_loss")[1:]) < 0)
    # The means of the last 5 and 10 epochs are equal until the sixth; then the loss is falling.
    up = 0.7 ** (-1 / 6)
    expected = [0.1, 0.1, *[0.01] * 4, 0.01 * up, 0.01 * up**2]
    np.testing.assert_allclose(record.column("lr")[1:], expected, rtol=1e-6)


def test_a_loss_that_is_no_number_ends_the_run(tmp_path):
    run = dataclasses.replace(SGD, optimizer=Optimizer("SGD", lr=1e30), epochs=9)
    record = trained(run, tmp_path)
    assert record.status == "diverged"
    assert record.ended
    assert record.epoch < 9
    assert math.isnan(record.last("running_loss"))


def test_watch_sees_every_epoch(tmp_path):
    seen = []
    record = trained(SGD, tmp_path, watch=seen.append)
    assert [row["epoch"] for row in seen] == [0, 1, 2, 3]
    assert seen[3]["test_loss"] == pytest.approx(record.last("test_loss"), rel=1e-6)


def test_a_subset_is_the_same_for_every_seed_and_mixes_the_classes(monkeypatch):
    whole = load(Data("mnist", train=400, test=100, synthetic=True))
    order = whole.train.labels.argsort()
    sorted_split = dataclasses.replace(
        whole.train, inputs=whole.train.inputs[order], labels=whole.train.labels[order]
    )
    whole = dataclasses.replace(whole, train=sorted_split)
    monkeypatch.setattr("condgrad_lab.data.load", lambda name, folder: whole)
    cut = load(Data("mnist", train=100, test=50))
    assert (len(cut.train), len(cut.test)) == (100, 50)
    assert len(cut.train.labels.unique()) == 10
    assert torch.equal(cut.train.inputs, load(Data("mnist", train=100)).train.inputs)
    with pytest.raises(ValueError, match="400 samples cannot be cut to 500"):
        load(Data("mnist", train=500))


def test_colour_images_are_normalised_by_the_channels_of_the_training_split():
    dataset = load(CIFAR)
    run = Run(CIFAR, "wideresnet28x10", Optimizer("SGD", lr=0.1), dtype="float64")
    train_split, test_split = samples(dataset, run)
    inputs, _ = next(train_split.batches(len(train_split)))
    assert inputs.shape == (60, 3, 32, 32)
    torch.testing.assert_close(inputs.mean((0, 2, 3)), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(
        inputs.std((0, 2, 3), correction=0), torch.ones(3, dtype=torch.float64)
    )
    values = dataset.train.inputs.double() / 255
    mean, std = values.mean((0, 2, 3)), values.std((0, 2, 3), correction=0)
    expected = (dataset.test.inputs.double() / 255 - mean.view(3, 1, 1)) / std.view(3, 1, 1)
    inputs, _ = next(test_split.batches(len(test_split)))
    torch.testing.assert_close(inputs, expected)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"optimizer": Optimizer("Sgd", 0.1)}, "'Sgd': neither condgrad nor torch.optim has it"),
        ({"optimizer": Optimizer("Adam", 0.1, 0.9)}, "`momentum` is given, but Adam has no such"),
        ({"optimizer": Optimizer("SFW", 0.1)}, "`rules` is empty, but condgrad.SFW needs"),
        ({"rules": BALLS}, "torch.optim.SGD knows no regions"),
        (
            {"optimizer": Optimizer("SFW", 0.1), "rules": (Rule("Ball", radius=1),)},
            "`region` is 'Ball', which condgrad does not have",
        ),
        ({"model": "mlp"}, "'mlp', which is no architecture"),
        ({"data": Data("mnist7", 5, 5, synthetic=True)}, "must be one of .*mnist.*got 'mnist7'"),
    ],
)
def test_a_run_that_cannot_be_is_refused(change, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        trained(dataclasses.replace(SGD, **change), tmp_path)
