"""Find the learning rate of SPIDER-FW, which the paper does not print.

One run a rate, of a seed that no figure uses; the best is the one with the least training loss
after the last epoch. What is found is written into figures 5, 6 and 7 by hand.

    python -m condgrad_lab.papers.dnn_fw_2020._tuning --out results/tuning
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from condgrad_lab import data, queue
from condgrad_lab.papers.dnn_fw_2020._comparison import Comparison
from condgrad_lab.papers.dnn_fw_2020.figure_5 import Figure5
from condgrad_lab.papers.dnn_fw_2020.figure_6 import Figure6
from condgrad_lab.papers.dnn_fw_2020.figure_7 import Figure7
from condgrad_lab.spec import Run
from condgrad_lab.store import Store

_FIGURES: Sequence[Comparison] = (Figure5(), Figure6(), Figure7())
_RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
_SEED = 1000


def tries(figure: Comparison) -> Iterator[Run]:
    """One run for each rate."""
    for rate in _RATES:
        setup = dataclasses.replace(figure.setup, lr={"SPIDER-FW": rate})
        (run,) = setup.lines("paper").values()
        yield dataclasses.replace(run, seed=_SEED)


def main() -> None:
    """Run what is missing and print the rates with their losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", default="results/tuning", metavar="DIR", help="the records' folder"
    )
    parser.add_argument("--jobs", type=int, default=queue.cores(), metavar="N", help="side by side")
    arguments = parser.parse_args()
    store = Store(arguments.out)
    left = queue.plan([run for figure in _FIGURES for run in tries(figure)], store).left
    for name in dict.fromkeys(run.data.name for run in left):
        data.get(name)
    queue.execute(
        left, queue.Settings(arguments.out), jobs=arguments.jobs, listen=lambda event: None
    )
    for figure in _FIGURES:
        losses = {run.optimizer.lr: _loss(store, run) for run in tries(figure)}
        best = min(losses, key=lambda rate: losses[rate])
        shown = ", ".join(f"{rate:g}: {loss:.4f}" for rate, loss in losses.items())
        sys.stdout.write(f"{figure.name}: {shown}; best {best:g}\n")


def _loss(store: Store, run: Run) -> float:
    record = store.read(run)
    loss = np.nan if record is None else record.last("train_loss")
    return loss if np.isfinite(loss) else np.inf


if __name__ == "__main__":
    main()
