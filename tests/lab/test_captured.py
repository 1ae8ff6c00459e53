"""Steps that are recorded and replayed: on the host a replay is the recorded function once more.

What a graph needs (all it reads in one place, nothing that moved before the first replay) is then
held to the last bit; that a device replays what was recorded is asked in tests/cuda.
"""

import dataclasses

import pytest
import torch

from condgrad_lab.spec import Data, Optimizer, Rule, Run, Schedule
from condgrad_lab.store import Store, settled
from condgrad_lab.train import Speed, Trial, _captured, _loop, load, train
from condgrad_lab.train._captured import CapturedSteps, can_be_captured
from condgrad_lab.train._steps import Steps

SGD = Run(
    Data("cifar-10", train=35, test=10, synthetic=True), "wideresnet10x1",
    Optimizer("SGD", 0.1, 0.9, nesterov=True, weight_decay=1e-4), epochs=3, batch=16, measure=(),
    augment=True, schedule=Schedule((2,), 0.2, band=True),
)  # fmt: skip
SFW = dataclasses.replace(
    SGD,
    optimizer=Optimizer("SFW", 1.0, 0.9, rescale="gradient"),
    rules=(Rule("LinfBall", width=30),),
    measure=("sampled-gap", "top5"),
)
RUNS = {
    "SGD": SGD,
    "SFW": SFW,
    "no momentum": dataclasses.replace(SGD, optimizer=Optimizer("SGD", 0.1)),
    "no rest": dataclasses.replace(SFW, batch=7),
    "dropout": dataclasses.replace(
        SFW,
        model="googlenet-thin",
        data=dataclasses.replace(SGD.data, train=20, test=8),
        batch=8,
        epochs=2,
    ),
    "flat": Run(
        Data("mnist", train=70, test=20, synthetic=True),
        "mlp-32",
        Optimizer("SFW", 0.3, 0.9, rescale="diameter"),
        (Rule("L2Ball", width=300),),
        epochs=3,
        batch=20,
    ),
}


def recorder(parameters):
    """What records steps on machines without graphs."""

    def record(step):
        for _ in range(_captured.WARM + 1):
            step()
        places = [parameter.grad for parameter in parameters]

        def replay():
            step()
            # A graph puts its gradients where they were when it was recorded, and nowhere else.
            for parameter, place in zip(parameters, places, strict=True):
                place.copy_(parameter.grad)
                parameter.grad = None

        return replay

    return record


@pytest.fixture
def recorded(monkeypatch):
    """Every run is captured, by the recorder above."""
    made = []

    def steps(trial, speed):
        run, parts = trial.run, trial.parts
        assert can_be_captured(run, parts, trial.train)
        record = recorder(list(parts.model.parameters()))
        made.append(CapturedSteps(run, parts, trial.train, Speed().on(run), record=record))
        return made[-1]

    monkeypatch.setattr(Trial, "_steps", steps)
    return made


def trained(run, folder, **more):
    with Store(folder).open(run) as journal:
        return train(run, load(run.data), journal, **more)


def lines(run, folder):
    return settled(Store(folder).path(run))


@pytest.mark.parametrize("name", RUNS)
def test_replayed_steps_give_the_record_of_plain_ones(name, tmp_path, request):
    run = RUNS[name]
    trained(run, tmp_path / "plain")
    made = request.getfixturevalue("recorded")
    trained(run, tmp_path / "replayed")
    assert lines(run, tmp_path / "replayed") == lines(run, tmp_path / "plain")
    assert len(made) == 1
    assert made[0]._full == len(load(run.data).train) // run.batch


@pytest.mark.parametrize("name", ["SGD", "SFW", "dropout"])
def test_a_replayed_run_taken_up_again_and_again_is_the_same(name, tmp_path, request):
    run = RUNS[name]
    trained(run, tmp_path / "plain")
    made = request.getfixturevalue("recorded")
    while not trained(run, tmp_path / "replayed", stop=lambda: True).ended:
        torch.manual_seed(3)
    assert lines(run, tmp_path / "replayed") == lines(run, tmp_path / "plain")
    assert len(made) == run.epochs


def test_a_checkpoint_goes_from_one_kind_of_steps_to_the_other(tmp_path, request):
    trained(SFW, tmp_path / "plain")
    trained(SFW, tmp_path / "both", stop=lambda: True)
    request.getfixturevalue("recorded")
    trained(SFW, tmp_path / "both")
    assert lines(SFW, tmp_path / "both") == lines(SFW, tmp_path / "plain")


@pytest.mark.parametrize("name", ["SGD", "SFW", "no momentum"])
def test_kernels_of_the_optimizer_are_recorded_with_the_step(name, tmp_path, monkeypatch, request):
    """On the host the optimizer stands in for its kernels, at a rate that lies in a tensor."""
    run = RUNS[name]
    plain = trained(run, tmp_path / "plain")
    monkeypatch.setattr("condgrad_lab.train._build.Parts.fused", True)
    made = request.getfixturevalue("recorded")
    record = trained(run, tmp_path / "replayed", stop=lambda: True)
    record = trained(run, tmp_path / "replayed")
    for column in ("lr", "train_loss", "test_loss", "test_accuracy"):
        found, expected = record.column(column)[1:], plain.column(column)[1:]
        assert found == pytest.approx(expected, rel=1e-3), column
    assert record.column("lr").tolist()[1:] == plain.column("lr").tolist()[1:]
    for steps in made:
        (rate,) = {id(group["lr"]): group["lr"] for group in steps.parts.optimizer.param_groups}
        assert rate is not None
        assert steps.parts.optimizer.param_groups[0]["lr"].dtype == torch.float32


def test_a_rate_that_lies_in_a_tensor_is_a_number_in_checkpoints(recorded, monkeypatch):
    monkeypatch.setattr("condgrad_lab.train._build.Parts.fused", True)
    first, second = (Trial(SFW, load(SFW.data)) for _ in range(2))
    first.train_epoch()
    state = first.state_dict()
    assert [group["lr"] for group in state["optimizer"]["param_groups"]] == [
        first.parts.schedules.lr
    ] * len(state["optimizer"]["param_groups"])
    assert all(type(group["lr"]) is float for group in state["optimizer"]["param_groups"])
    second.load_state_dict(state)
    for group in second.parts.optimizer.param_groups:
        assert group["lr"] is second.parts.schedules._tensor


def test_recording_moves_nothing(recorded):
    trial = Trial(SFW, load(SFW.data))
    before = {name: value.clone() for name, value in trial.parts.model.state_dict().items()}
    trial.parts.model.train()
    trial.steps.prepare(trial.train.draws(0, 1))
    after = trial.parts.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert int(trial.steps._place) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": Optimizer("Adam", 0.1), "rules": ()},
        {"optimizer": Optimizer("SGD", 0.1, 0.9, dampening=0.9), "rules": ()},
        {"optimizer": Optimizer("SVRF", 0.1, rescale="diameter")},
        {"optimizer": Optimizer("ORGFW", 0.1, 0.9, rescale="diameter")},
        {"batch": 36},
    ],
)
def test_steps_that_a_graph_cannot_hold_are_not_captured(change):
    run = dataclasses.replace(SFW, measure=(), **change)
    trial = Trial(run, load(run.data))
    assert not can_be_captured(run, trial.parts, trial.train)


def test_on_the_host_nothing_is_sped_up_unless_asked():
    assert Speed().on(SFW) == Speed(compile=False, capture=False, fused=False)
    cuda = dataclasses.replace(SFW, device="cuda")
    assert Speed(capture=False).on(cuda) == Speed(compile=True, capture=False, fused=True)
    trial = Trial(SFW, load(SFW.data))
    assert type(trial.steps) is Steps
    assert trial.steps.path == ()


def test_what_is_compiled_is_the_whole_batches_alone(tmp_path, monkeypatch):
    sizes = []

    def compiled(model, options):
        assert options == {"fallback_random": True}
        return lambda inputs: sizes.append(len(inputs)) or model(inputs)

    monkeypatch.setattr(torch, "compile", compiled)
    trained(SGD, tmp_path / "plain")
    record = trained(SGD, tmp_path / "compiled", speed=Speed(compile=True))
    assert sizes == [16, 16] * SGD.epochs
    assert lines(SGD, tmp_path / "compiled") == lines(SGD, tmp_path / "plain")
    assert [start["path"] for start in record.starts] == ["compiled"]


def test_kernels_that_do_not_take_a_region_are_left_out():
    run = dataclasses.replace(SFW, rules=(Rule("Permutahedron", radius=0.1),))
    trial = Trial(run, load(run.data), speed=Speed(fused=True))
    assert not trial.parts.fused
    assert trial.steps.path == ()


def test_checkpoints_written_behind_the_training_are_the_same(tmp_path, monkeypatch):
    trained(SFW, tmp_path / "plain")
    saver = _loop._Saver
    monkeypatch.setattr(_loop, "_Saver", lambda journal, behind: saver(journal, behind=True))
    while not trained(SFW, tmp_path / "behind", stop=lambda: True).ended:
        pass
    assert lines(SFW, tmp_path / "behind") == lines(SFW, tmp_path / "plain")


def test_a_checkpoint_that_cannot_be_written_behind_is_told(tmp_path, monkeypatch):
    saver = _loop._Saver
    monkeypatch.setattr(_loop, "_Saver", lambda journal, behind: saver(journal, behind=True))

    def full(journal, state):
        raise OSError("no space left")

    monkeypatch.setattr("condgrad_lab.store.Journal.save", full)
    for run in (SFW, dataclasses.replace(SFW, epochs=1)):
        with pytest.raises(OSError, match="no space left"):
            trained(run, tmp_path)
