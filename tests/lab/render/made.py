"""Records and artifacts made by hand: what is drawn of them can be told beforehand.

A paragraph with `code`, *stress* and <angles>.

- one item,
  on two lines;
- another.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from condgrad_lab.artifact import Artifact, Claim, Results
from condgrad_lab.render import curves, pictures
from condgrad_lab.spec import Data, Optimizer, Rule, Run
from condgrad_lab.store import Record

RUN = Run(Data("mnist"), "linear", Optimizer("SFW", lr=0.1), (Rule("L2Ball", radius=1),), epochs=3)
LONG = "B < A; " + "; ".join(f"in the trial {n}, A 0.{n}234 and B 0.{n}123" for n in range(1, 9))
START = {"epoch": 0, "condgrad": "0.1", "torch": "2.13", "python": "3.11", "platform": "Linux"}
START |= {"processor": "A fast one", "commit": "abc1234"}


def record(numbers, seed=0, *, status="done", epochs=3, evaluations=100, starts=(START,), **more):
    """A record with these numbers, each by epoch, from epoch 0."""
    rows = tuple(
        {"epoch": epoch, "evaluations": evaluations * epoch, **dict(zip(numbers, row, strict=True))}
        for epoch, row in enumerate(zip(*numbers.values(), strict=True))
    )
    run = dataclasses.replace(RUN, seed=seed, epochs=epochs)
    times = ({"epoch": 1, "train": 60.0, "measure": 40.0},)
    return Record(run, rows, times, starts, status=status, **more)


def line(label, *seeds, name="test_loss", **more):
    """A line whose records have these values of one number."""
    return curves.Line(label, [record({name: v}, s, **more) for s, v in enumerate(seeds)])


def results(scale="paper", wanted=None, **lines):
    """Results of lines of records."""
    count = sum(map(len, lines.values()))
    return Results(scale, {k: tuple(v) for k, v in lines.items()}, wanted or count)


class Curved(Artifact):
    """An artifact of curves, with a claim of every kind."""

    name, title = "figure-5", 'A "<title>" & more'

    def lines(self, scale):
        return {"SFW": RUN}

    def claims(self, results):
        return [
            Claim.near("a <number>", 92.15, [92.0, 92.4], 0.6),
            Claim("far", 50.0, 40.0, tolerance=1.0, holds=False, note="too few `epochs`"),
            Claim("an | order", "A < B", LONG, holds=None),
        ]

    def draw(self, results):
        lines = [curves.Line(label, records) for label, records in results.lines.items()]
        return curves.grid(lines, ("test_loss",), across=("epoch", "evaluations"))


class Pictured(Curved):
    name, title = "figure-8", "Pictures"
    judged: ClassVar[tuple[str, ...]] = ()

    def draw(self, results):
        return pictures.table([pictures.Column("SGD", [np.eye(4)], "92 %")], ["0"])


class Silent(Curved):
    name, title = "table-1", "Nothing claimed"

    def claims(self, results):
        return []


def found():
    """Artifacts and results; two of them share their records."""
    one = results(
        SFW=[
            record({"test_loss": (2.3, 0.5, 0.3, 0.2)}),
            record({"test_loss": (2, 0.7, 0.5, 0.2)}, 1),
        ],
        MSFW=[record({"test_loss": (2.3, 0.4, 0.2, 0.1)}, 2)],
    )
    return [(Curved(), one), (Pictured(), one), (Silent(), dataclasses.replace(one, wanted=5))]
