"""The queue: what is left, how long it takes, and runs side by side that are the runs alone."""

import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types

import pytest

from condgrad_lab import queue, train
from condgrad_lab.queue import Event, Settings, _pool, _work, execute, plan
from condgrad_lab.spec import Data, Optimizer, Rule, Run
from condgrad_lab.store import Store, settled
from condgrad_lab.train import _probe
from lab.tiny import children, environment, gone

DATA = Data("mnist", train=120, test=60, synthetic=True)
RUN = Run(DATA, "mlp-32", Optimizer("SGD", lr=0.1), epochs=2, batch=40)
SFW = dataclasses.replace(
    RUN, optimizer=Optimizer("SFW", 0.3, rescale="diameter"), rules=(Rule("L2Ball", width=300),)
)
RUNS = [dataclasses.replace(run, seed=seed) for run in (RUN, SFW) for seed in range(2)]
BAD = dataclasses.replace(RUN, model="no-such")
LONG = dataclasses.replace(RUN, epochs=100_000)


def heard(runs, folder, jobs=1, **settings):
    events: list[Event] = []
    execute(runs, Settings(folder, **settings), jobs=jobs, listen=events.append)
    return events


def kinds(events, run):
    return [event.kind for event in events if event.run == run]


class Clock:
    """A time that stands still until a run has passed an epoch: then the deadline, 1, is over."""

    def __init__(self):
        self.now = 0.0

    def time(self):
        return self.now

    def listen(self, event):
        if event.kind == "epoch" and event.row["epoch"] > 0:
            self.now = 2.0


@pytest.fixture
def cut_short(monkeypatch):
    """Runs until the first epoch of one of them has passed; returns what was heard."""

    def run(runs, folder):
        clock, events = Clock(), []

        def listen(event):
            events.append(event)
            clock.listen(event)

        with monkeypatch.context() as patch:
            patch.setattr(_work, "time", clock)
            execute(runs, Settings(folder, deadline=1.0), jobs=1, listen=listen)
        return events

    return run


def test_events_tell_a_run_from_beginning_to_end(tmp_path):
    events = heard([RUN], tmp_path)
    assert kinds(events, RUN) == ["begin", "epoch", "epoch", "epoch", "end"]
    assert [event.row["epoch"] for event in events[1:4]] == [0, 1, 2]


@pytest.mark.slow
def test_side_by_side_is_one_after_the_other(tmp_path):
    heard(RUNS, tmp_path / "one")
    events = heard([*RUNS, BAD], tmp_path / "two", jobs=2)
    for run in RUNS:
        path = Store(tmp_path / "two").path(run)
        assert settled(path) == settled(Store(tmp_path / "one").path(run))
        assert kinds(events, run) == ["begin", "epoch", "epoch", "epoch", "end"]
    assert kinds(events, BAD) == ["begin", "failed"]
    assert "'no-such', which is no architecture" in events[-1].text or any(
        "'no-such', which is no architecture" in event.text for event in events
    )


def test_a_run_that_fails_leaves_the_others(tmp_path):
    events = heard([BAD, RUN], tmp_path)
    assert kinds(events, BAD) == ["begin", "failed"]
    assert kinds(events, RUN)[-1] == "end"


def test_a_run_busy_elsewhere_is_left_to_it(tmp_path):
    with Store(tmp_path).open(RUN):
        events = heard([RUN], tmp_path)
    assert kinds(events, RUN) == ["busy"]
    assert RUN.key in events[0].text


def test_the_deadline_stops_between_epochs_and_the_rest_goes_on_later(tmp_path, cut_short):
    events = heard([RUN, SFW], tmp_path, deadline=time.time() - 1)
    assert events == []
    events = cut_short([LONG, SFW], tmp_path)
    assert kinds(events, LONG) == ["begin", "epoch", "epoch", "stopped"]
    assert kinds(events, SFW) == []
    assert Store(tmp_path).read(LONG).epoch == 1
    events = cut_short([LONG], tmp_path)
    assert kinds(events, LONG) == ["begin", "epoch", "stopped"]
    assert [event.row.get("epoch") for event in events] == [1, 2, None]


def test_an_epoch_that_would_outlast_the_deadline_is_not_begun(tmp_path, monkeypatch):
    clock, events = types.SimpleNamespace(now=0.0, time=lambda: clock.now), []
    monkeypatch.setattr(_work, "time", clock)

    def listen(event):
        events.append(event)
        clock.now += 10.0 if event.kind == "epoch" and event.row["epoch"] else 0.0

    execute([LONG], Settings(tmp_path, deadline=35.0), jobs=1, listen=listen)
    assert kinds(events, LONG) == ["begin", *["epoch"] * 4, "stopped"]
    assert clock.now == 30.0


@pytest.mark.slow
def test_a_worker_that_dies_fails_its_run_alone(tmp_path):
    events: list[Event] = []

    def listen(event):
        events.append(event)
        if event.run == LONG and event.kind == "epoch" and event.row["epoch"] == 3:
            parent = os.getpid()
            for pid in children(parent):
                if LONG.key in " ".join(_open_files(pid)):
                    os.kill(pid, signal.SIGKILL)

    execute([LONG, *RUNS], Settings(tmp_path), jobs=2, listen=listen)
    assert kinds(events, LONG)[-1] == "failed"
    assert "SIGKILL: out of memory?" in next(e.text for e in events if e.kind == "failed")
    assert all(Store(tmp_path).read(run).ended for run in RUNS)
    assert Store(tmp_path).read(LONG).epoch >= 3


@pytest.mark.slow
def test_a_worker_that_dies_between_two_runs_fails_the_next_one(tmp_path):
    events: list[Event] = []

    def listen(event):
        events.append(event)
        if event.kind == "end" and len(dead) == 0:
            for process in multiprocessing.active_children():
                process.kill()
                process.join()
                dead.append(process)

    dead = []
    execute(RUNS, Settings(tmp_path), jobs=2, listen=listen)
    last = {run: kinds(events, run)[-1] for run in RUNS}
    assert len(dead) == 2
    assert last[RUNS[2]] == "failed"  # what the first to end was to do next
    assert set(last.values()) == {"end", "failed"}


def _open_files(pid):
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            yield os.readlink(f"{folder}/{name}")
        except OSError:
            continue


PARENT = """
import sys
from condgrad_lab.queue import Settings, execute
from lab.test_queue import LONG, dataclasses
runs = [dataclasses.replace(LONG, seed=seed) for seed in range(2)]
if __name__ == "__main__":
    execute(runs, Settings(sys.argv[1]), jobs=2, listen=lambda event: None)
"""


@pytest.mark.slow
def test_no_worker_outlives_a_parent_that_is_killed(tmp_path, cut_short):
    runs = [dataclasses.replace(LONG, seed=seed) for seed in range(2)]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env=environment())
    paths = [Store(tmp_path).path(run) for run in runs]
    while not all(path.exists() and path.read_text().count("\n{") > 3 for path in paths):
        assert parent.poll() is None
        time.sleep(0.01)
    workers = list(children(parent.pid))
    assert len(workers) >= 2
    parent.send_signal(signal.SIGKILL)
    assert parent.wait() == -signal.SIGKILL
    assert gone(workers)
    # And the work can be taken up at once, by another.
    for run in runs:
        begun = Store(tmp_path).read(run).epoch
        events = cut_short([run], tmp_path)
        assert kinds(events, run)[-1] == "stopped"
        assert Store(tmp_path).read(run).epoch >= begun > 0


def test_the_plan_tells_what_is_there(tmp_path, cut_short):
    store = Store(tmp_path)
    heard([RUN], tmp_path)
    cut_short([LONG], tmp_path)
    found = plan([SFW, RUN, LONG, SFW], store)
    assert found.ended == (RUN,)
    assert set(found.left) == {SFW, LONG}
    assert found.begun == (LONG,)


def test_times_come_from_the_like_before_they_are_tried(tmp_path, monkeypatch):
    store, tried = Store(tmp_path), []
    monkeypatch.setattr(train, "probe", lambda run: tried.append(run) or 2.0)
    heard([RUN], tmp_path)
    seeds = [dataclasses.replace(RUN, seed=seed) for seed in (1, 2)]
    other = dataclasses.replace(RUN, optimizer=Optimizer("SGD", lr=0.5))
    found = plan([*seeds, other], store)
    assert tried == []
    record = store.read(RUN)
    pace = sum(row["train"] + row["measure"] for row in record.times[1:]) / 2
    assert found.seconds == pytest.approx(dict.fromkeys([*seeds, other], 2 * pace))
    assert found.duration(1) == pytest.approx(6 * pace)
    assert found.duration(2) == pytest.approx(3 * pace)
    assert found.duration(9) == pytest.approx(2 * pace)  # no shorter than the longest
    sfw = [dataclasses.replace(SFW, seed=seed) for seed in range(3)]
    assert plan(sfw, store).seconds == dict.fromkeys(sfw, 4.0)
    assert len(tried) == 1
    monkeypatch.setattr(train, "probe", lambda run: None)
    assert plan(sfw, store).duration(1) is None


def test_what_is_left_of_a_begun_run_takes_less(tmp_path, cut_short):
    begun = dataclasses.replace(RUN, epochs=3)
    cut_short([begun], tmp_path)
    store = Store(tmp_path)
    (pace,) = [row["train"] + row["measure"] for row in store.read(begun).times if row["epoch"]]
    assert plan([begun], store).seconds == {begun: pytest.approx(2 * pace)}


def test_the_long_begin_and_one_data_set_follows_the_other(tmp_path, monkeypatch):
    fashion = dataclasses.replace(DATA, name="fashion-mnist")
    runs = [
        dataclasses.replace(RUN, data=data, epochs=epochs)
        for epochs, data in [(1, DATA), (9, fashion), (5, DATA), (2, fashion)]
    ]
    monkeypatch.setattr(train, "probe", lambda run: 1.0)
    order = [(run.data.name, run.epochs) for run in plan(runs, Store(tmp_path)).left]
    assert order == [("fashion-mnist", 9), ("fashion-mnist", 2), ("mnist", 5), ("mnist", 1)]


def test_a_probe_is_in_proportion_to_the_data(monkeypatch):
    """By a clock that counts the samples, those of the first epoch, which pays more, left out."""
    samples = [0]
    monkeypatch.setattr(_probe, "time", types.SimpleNamespace(perf_counter=lambda: samples[0]))
    for name in ("train_epoch", "measure"):
        monkeypatch.setattr(train.Trial, name, counted(getattr(train.Trial, name), samples))
    run = dataclasses.replace(RUN, data=Data("mnist", train=3000, test=500))
    assert train.probe(run) == pytest.approx(3500, rel=0.01)
    whole = dataclasses.replace(RUN, data=Data("imdb"), model="imdb-mlp")
    assert train.probe(whole) == pytest.approx(50_000, rel=0.01)
    deep = dataclasses.replace(run, data=Data("cifar-10"), model="wideresnet28x10")
    assert train.probe(deep) is None


def counted(method, samples):
    def measured(trial):
        samples[0] += len(trial.train if method.__name__ == "train_epoch" else trial.test)
        return method(trial)

    return measured


def test_cores_are_those_of_this_process():
    assert 1 <= queue.cores() <= os.cpu_count()


def test_one_data_set_is_kept_at_a_time(tmp_path, monkeypatch):
    loaded = []
    true = _work.load
    monkeypatch.setattr(_work, "load", lambda spec: loaded.append(spec) or true(spec))
    _work._dataset.cache_clear()
    heard(RUNS, tmp_path)
    assert loaded == [DATA]


def test_reasons_name_the_signal():
    assert _pool._reason(-signal.SIGTERM) == "SIGTERM"
    assert _pool._reason(3) == "exit code 3"
