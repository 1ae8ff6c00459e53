"""What processes that share a run are asked, each for itself."""

import contextlib
import dataclasses
import hashlib
import io
import os

from condgrad_lab import cli, queue
from condgrad_lab.cli import _common
from condgrad_lab.data import imagenet
from condgrad_lab.papers.dnn_fw_2020 import table_6
from condgrad_lab.store import Store
from condgrad_lab.train import Speed, Trial, joined, load, train


def trained(run, folder, stop=False):
    """Whether the record has ended, and how many epochs were heard of on this rank."""
    with joined("cpu") as team:
        store, found = Store(folder), []
        with contextlib.ExitStack() as stack:
            journal = stack.enter_context(store.open(run)) if team.leads else store.look(run)
            record = train(
                run,
                load(run.data),
                journal,
                watch=found.append,
                stop=lambda: stop,
                speed=Speed(workers=0),
                team=team,
            )
        return record.ended, len(found)


def parameters(run):
    """A digest of parameters and buffers after an epoch, on this rank."""
    with joined("cpu") as team:
        return _digest(run, team)


def _digest(run, team):
    trial = Trial(run, load(run.data), speed=Speed(workers=0), team=team)
    trial.train_epoch()
    state = trial.parts.model.state_dict().values()
    return hashlib.sha256(b"".join(t.double().numpy().tobytes() for t in state)).hexdigest()


def queued(runs, folder):
    """The events that this rank hears of."""
    events = []
    with joined("cpu") as team:
        settings = queue.Settings(folder, team=team)
        queue.execute(runs, settings, jobs=1, listen=events.append)
    return [event.kind for event in events]


def commanded(words, counts, cache):
    """The exit code and the output of the command line on this rank, with a small ImageNet."""
    os.environ["CONDGRAD_DATA"] = cache
    imagenet.WHOLE = counts
    table_6.Table6.setup = dataclasses.replace(
        table_6.Table6.setup, model="resnext14", epochs=15, batch=6, milestones=(10,)
    )
    _common.console.cache_clear()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(words)
    return code, out.getvalue(), err.getvalue()
