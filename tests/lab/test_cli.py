"""The command line: what it says, what it writes, and the code it ends with."""

import shutil
import sys
import time
import types

import pytest
import torch

import condgrad_lab
from condgrad_lab import data, queue
from condgrad_lab.cli import _common, main
from condgrad_lab.spec import Data
from condgrad_lab.store import Store
from condgrad_lab.train import Speed
from lab.tiny import Tiny, install


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(condgrad_lab, "papers", None, raising=False)
    monkeypatch.setattr(condgrad_lab, "render", None, raising=False)
    for name in ("papers", "render"):
        monkeypatch.setitem(sys.modules, f"condgrad_lab.{name}", None)
    install()
    _common.console.cache_clear()
    yield
    _common.console.cache_clear()


@pytest.fixture
def condgrad(capsys, tmp_path):
    """Asks the command line; returns exit code, output, errors."""

    def ask(*words):
        out = ["--out", str(tmp_path / "runs")] if words[0] not in ("data", "env") else []
        _common.console.cache_clear()
        code = main([*words, *out])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return ask


def test_run_trains_and_answers(condgrad, tmp_path):
    code, out, err = condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    assert code == 0
    assert err == ""  # nothing moves in a pipe
    first = out.splitlines()[0]
    assert first.startswith("figure-0 at paper scale: 2 runs: 2 to do; about ")
    assert first.endswith("with 1 worker")
    row = next(line for line in out.splitlines() if "SGD accuracy" in line).split()
    ours = 100 * Store(tmp_path / "runs").read(Tiny().runs("paper", [0])["SGD"][0]).last(
        "test_accuracy"
    )
    assert row == [
        "SGD",
        "accuracy",
        "50.00",
        f"{ours:.2f}",
        f"{ours - 50:+.2f}",
        "(±",
        "50)",
        "met",
    ]
    assert (tmp_path / "runs/figures/figure-0.png").stat().st_size > 0
    assert (tmp_path / "runs/figures/figure-0.svg").stat().st_size > 0


def test_run_does_nothing_twice(condgrad, tmp_path):
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.jsonl")}
    assert len(times) == 2
    code, out, _ = condgrad("run", "figure-0", "--jobs", "1")
    assert code == 0
    assert "4 runs: 2 there already, 2 to do; about" in out
    assert all(path.stat().st_mtime_ns == before for path, before in times.items())
    _, out, _ = condgrad("run", "figure-0")
    assert out.startswith("figure-0 at paper scale: 4 runs: 4 there already\n")


def test_a_dry_run_only_talks(condgrad, tmp_path):
    code, out, _ = condgrad("run", "figure-0", "table-0", "--dry-run", "--jobs", "2")
    assert code == 0
    assert "figure-0, table-0 at paper scale: 4 runs: 4 to do; about" in out
    assert "with 2 workers" in out
    assert not (tmp_path / "runs").exists()


def test_check_ends_with_what_it_found(condgrad):
    assert condgrad("check", "figure-0")[0] == 3
    condgrad("run", "figure-0", "--jobs", "1")
    code, out, _ = condgrad("check", "figure-0")
    assert code == 0
    assert "met" in out
    assert "by eye" in out
    code, out, _ = condgrad("check")
    assert code == 1  # table-0 has the same runs, and misses
    assert "missed" in out


def test_small_scales_are_shown_but_not_judged(condgrad):
    condgrad("run", "table-0", "--scale", "smoke", "--jobs", "1")
    code, out, _ = condgrad("check", "table-0", "--scale", "smoke")
    assert code == 0
    assert out.count("not judged") == 2
    assert "missed" not in out


def test_a_claim_without_its_records_is_open(condgrad):
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    code, out, _ = condgrad("check", "figure-0", "--seeds", "3-4")
    assert code == 3
    assert "0 of 4 records" in out
    assert "open" in out


def test_a_run_that_fails_is_told_and_fails_the_command(condgrad, monkeypatch):
    monkeypatch.setattr("condgrad_lab.queue._work.train", lambda *args, **kw: 1 / 0)
    code, _, err = condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    assert code == 1
    assert err.count("ZeroDivisionError") == 2
    assert "failed mnist_mlp-32_SGD_s0_" in err


def test_minutes_stop_the_run_and_it_goes_on(condgrad, monkeypatch):
    began, asked = time.time(), []

    def now():
        """The beginning, until it has been asked for a few times: then an hour later."""
        asked.append(began)
        return began if len(asked) < 6 else began + 3600

    monkeypatch.setattr(queue._work, "time", types.SimpleNamespace(time=now))
    code, _, err = condgrad("run", "figure-long", "--minutes", "10", "--jobs", "1")
    assert code == 3
    assert "4 of 4 runs are unfinished; the same command goes on" in err
    _, out, _ = condgrad("run", "figure-long", "--dry-run")
    assert "4 runs: 1 to finish, 3 to do" in out


def test_what_speeds_up_can_be_left_out(condgrad, monkeypatch):
    asked = []
    train = queue._work.train
    monkeypatch.setattr(
        "condgrad_lab.queue._work.train",
        lambda *args, speed, **more: asked.append(speed) or train(*args, speed=speed, **more),
    )
    words = ["run", "figure-0", "--seeds", "1", "--jobs", "1"]
    assert condgrad(*words, "--without", "compile", "--without", "fused")[0] == 0
    assert asked == [Speed(compile=False, fused=False)] * 2


def test_render_and_report(condgrad, tmp_path):
    code, _, err = condgrad("render", "figure-0")
    assert code == 3
    assert "figure-0 has no records here" in err
    assert condgrad("report")[0] == 3
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    code, out, _ = condgrad("render", "figure-0")
    assert code == 0
    assert str(tmp_path / "runs/figures/figure-0.svg") in out
    code, out, _ = condgrad("report", "--page", str(tmp_path / "page.html"))
    assert code == 0
    assert "<h1>a tiny comparison</h1>" in (tmp_path / "page.html").read_text()
    assert condgrad("report")[0] == 0
    assert (tmp_path / "runs/report.html").exists()
    code, out, _ = condgrad("report", "--markdown", str(tmp_path / "docs/page.md"))
    assert code == 0
    assert (tmp_path / "docs/page.md").read_text() == (
        "# a tiny comparison\n# a number that nobody meets\nno a run without end\n"
    )


def test_list_shows_what_is_there(condgrad):
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    code, out, _ = condgrad("list")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert rows["figure-0"].rstrip().endswith("2 of 4")
    assert rows["figure-long"].rstrip().endswith("0 of 4")


def test_show_tells_a_record_whole(condgrad, tmp_path):
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    run = Tiny().runs("paper", [0])["SFW"][0]
    code, out, _ = condgrad("show", run.digest)
    assert code == 0
    for text in (run.key, "done, epoch 2 of 2", "test_accuracy", "violation", "processor"):
        assert text in out
    code, _, err = condgrad("show", "mnist")
    assert code == 2
    assert "`mnist` names 2 records" in err


def test_a_damaged_record_is_named(condgrad, tmp_path):
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1")
    path = Store(tmp_path / "runs").path(Tiny().runs("paper", [0])["SGD"][0])
    path.write_text(path.read_text().replace("}", "", 1))
    code, _, err = condgrad("check", "figure-0")
    assert code == 2
    assert f"{path} is damaged" in err


def test_env_tells_versions(condgrad):
    code, out, _ = condgrad("env")
    assert code == 0
    assert torch.__version__ in out
    assert "processor" in out


def test_data_lists_gets_and_packs(condgrad, tmp_path, monkeypatch):
    monkeypatch.setenv("CONDGRAD_DATA", str(tmp_path / "cache"))
    code, out, _ = condgrad("data", "list")
    assert code == 0
    assert out.count("absent") == len(data.NAMES) == 6
    code, _, err = condgrad("data", "get", "mnist", "--from", str(tmp_path / "nowhere"))
    assert code == 2
    assert "nowhere` does not exist" in err
    code, _, err = condgrad("data", "get", "minst")
    assert code == 2
    assert "there is no data set 'minst'; there are mnist, fashion-mnist" in err
    code, _, err = condgrad("data", "pack", "mnist", "--max-size", "large")
    assert code == 2
    assert "large" in err


def test_packing_takes_the_files_that_are_named(condgrad, tmp_path, monkeypatch):
    asked = []

    def pack(*where, folder):
        asked.append((*where, folder))
        return [tmp_path / "index"]

    monkeypatch.setattr(data, "pack", pack)
    words = ["data", "pack", "mnist", "--max-size", "1MB", "--to", "there", "--from", "here"]
    code, out, _ = condgrad(*words)
    assert (code, out) == (0, f"{tmp_path / 'index'}\n")
    assert asked == [("mnist", "there", "1MB", "here")]


def test_run_gets_the_data_before_it_trains(condgrad, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(Tiny, "data", Data("fashion-mnist", train=50, test=20))
    monkeypatch.setattr(data, "get", lambda name, folder: asked.append((name, folder)))
    monkeypatch.setattr(data, "load", lambda name, folder: data.synthetic(name))
    code, _, _ = condgrad("run", "figure-0", "--jobs", "1", "--data", "there", "--scale", "smoke")
    assert code == 0
    assert asked == [("fashion-mnist", "there")]
    (record, *_) = Store(tmp_path / "runs").all()
    assert record.run.data.name == "fashion-mnist"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "figure-99"], "there is no artifact 'figure-99'; there are figure-0, table-0"),
        (["run", "figure-0", "--scale", "huge"], "no scale 'huge'; it has smoke, small, paper"),
        (["check", "--scale", "huge"], "no artifact has the scale 'huge'"),
        (["show", "abc"], "`abc` names no record"),
        pytest.param(
            ["run", "figure-0", "--device", "cuda"],
            "the runs need CUDA, which torch does not find",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="here is CUDA"),
        ),
    ],
)
def test_wrong_words_are_named(condgrad, words, text):
    code, _, err = condgrad(*words)
    assert code == 2
    assert text in err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "figure-0", "--scale", "smoke", "--jobs", "1", "--out", "taken"],
        ["render", "figure-0", "--scale", "smoke"],
        ["report", "figure-0", "--scale", "smoke", "--page", "taken/report.html"],
    ],
)
def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    main(["run", "figure-0", "--scale", "smoke", "--jobs", "1"])
    shutil.rmtree("runs/figures")
    for name in ("taken", "runs/figures"):
        (tmp_path / name).write_text("a file, no folder")
    capsys.readouterr()
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith(("condgrad: taken", "condgrad: runs/figures"))
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run"], "ARTIFACT"),
        (["run", "figure-0", "--jobs", "0"], "0 is not positive"),
        (["run", "figure-0", "--seeds", "x"], "'x' is neither 5 nor 3-7 nor 0,2,9"),
        (["run", "figure-0", "--seeds", "0,5-3"], "'5-3' counts backwards; give 3-5"),
        (["dance"], "invalid choice"),
    ],
)
def test_wrong_options_are_argparse_errors(words, text, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "found"),
    [("3", (0, 1, 2)), ("3-5", (3, 4, 5)), ("3,", (3,)), ("0,2,0", (0, 2)), ("1-2,7", (1, 2, 7))],
)
def test_seeds_are_said_in_several_ways(text, found):
    assert _common.seeds(text) == found


def test_what_is_not_installed_is_named(monkeypatch, capsys):
    monkeypatch.setattr("condgrad_lab.cli._main.find_spec", lambda name: name != "numpy")
    assert main(["list"]) == 2
    assert "numpy is missing; install 'condgrad[lab]'" in capsys.readouterr().err


# ---- trackers


def test_tensorboard_hears_of_every_epoch(condgrad, tmp_path):
    pytest.importorskip("tensorboard")
    condgrad("run", "figure-0", "--jobs", "1", "--seeds", "1", "--tracker", "tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = Tiny().runs("paper", [0])["SFW"][0]
    events = EventAccumulator(str(tmp_path / "runs/tensorboard" / run.key)).Reload()
    record = Store(tmp_path / "runs").read(run)
    logged = events.Scalars("test_loss")
    assert [event.step for event in logged] == [0, 1, 2]
    assert [event.value for event in logged] == pytest.approx(list(record.column("test_loss")))


def test_a_tracker_that_is_not_installed_is_named(condgrad, monkeypatch):
    monkeypatch.setattr("condgrad_lab.trackers.find_spec", lambda name: None)
    code, _, err = condgrad("run", "figure-0", "--tracker", "wandb")
    assert code == 2
    assert "wandb is not installed: pip install 'condgrad[wandb]'" in err
