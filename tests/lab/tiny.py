"""Artifacts as small as can be, and a small renderer, to ask the command line with."""

import dataclasses
import os
import sys
import time
import types
from pathlib import Path
from typing import ClassVar

from matplotlib.figure import Figure

import condgrad_lab
from condgrad_lab.artifact import Artifact, Claim
from condgrad_lab.spec import Data, Optimizer, Rule, Run

DATA = Data("mnist", train=120, test=60, synthetic=True)


class Tiny(Artifact):
    """An artifact as small as can be, over invented data."""

    name, title = "figure-0", "a tiny comparison"
    seeds: ClassVar = {"smoke": 1, "small": 2, "paper": 2}
    accuracy = 50.0
    epochs = 2
    data = DATA

    def lines(self, scale):
        run = Run(self.data, "mlp-32", Optimizer("SGD", lr=0.1), epochs=self.epochs, batch=40)
        sfw = Optimizer("SFW", lr=0.3, rescale="diameter")
        rules = (Rule("L2Ball", width=300),)
        return {"SGD": run, "SFW": dataclasses.replace(run, optimizer=sfw, rules=rules)}

    def claims(self, results):
        ours = 100 * results.last("SGD", "test_accuracy")
        words = Claim("order", "SFW beats SGD", "so it does", holds=True, note="by eye")
        return [Claim.near("SGD accuracy", self.accuracy, ours, 50.0), words]

    def draw(self, results):
        return Figure()


class Missed(Tiny):
    name, title, accuracy = "table-0", "a number that nobody meets", 1000.0


class Long(Tiny):
    name, title, epochs = "figure-long", "a run without end", 100_000


def save(artifact, results, folder):
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{artifact.name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        artifact.draw(results).savefig(path)
    return paths


def report(found, page, missing=()):
    page.write_text("".join(f"<h1>{artifact.title}</h1>" for artifact, _ in found))


def markdown(found, page, missing=()):
    lines = [f"# {artifact.title}\n" for artifact, _ in found]
    page.write_text("".join([*lines, *(f"no {artifact.title}\n" for artifact in missing)]))


def install():
    """Put small papers and a small renderer in the place of the real ones."""
    papers = types.ModuleType("condgrad_lab.papers")
    papers.artifacts = lambda: (Tiny(), Missed(), Long())
    render = types.ModuleType("condgrad_lab.render")
    render.save, render.report, render.markdown = save, report, markdown
    for module in (papers, render):
        sys.modules[module.__name__] = module
        setattr(condgrad_lab, module.__name__.rpartition(".")[2], module)


def environment(**more):
    """That of a process which is to find these tests, and the sources that they are about."""
    tests = str(Path(__file__).parents[1])
    paths = [tests, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def children(parent):
    """The processes that this one started."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    yield int(pid)
        except OSError:
            continue


def gone(pids, seconds=600):
    """Whether the processes end, if not at once; a machine may be busy."""
    end = time.time() + seconds
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.time() < end:
        time.sleep(0.01)
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)
