"""The training of a deep network: SFW beside torch's SGD, the same loop in one run.

From the source tree, nothing installed but torch (and Triton, on CUDA) and NumPy:

    PYTHONPATH=src python benchmarks/deep.py --out benchmarks/results/deep-cuda.json
    PYTHONPATH=src python benchmarks/deep.py --jobs 2 --model densenet121 --batch 64
    PYTHONPATH=src python benchmarks/deep.py --device cpu

Batches of invented images, cropped and flipped; forward, backward and the optimizer's step, as the
laboratory takes them. The contenders take turns, epoch by epoch; the first epoch of each, in which
things are compiled and recorded, is not counted. With --jobs the first of ours trains so many times
at once, beside once alone. On CUDA the checks of tests/cuda/training.py run first.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "cuda")]

from condgrad_lab.environment import environment  # noqa: E402
from condgrad_lab.spec import Data, Optimizer, Rule, Run  # noqa: E402
from condgrad_lab.train import Speed, Trial, load  # noqa: E402
from condgrad_lab.train._loop import alone  # noqa: E402

TARGET = 0.97
SFW = Optimizer("SFW", lr=0.1, momentum=0.9, rescale="gradient")
FIELD = {
    "SGD": (Optimizer("SGD", lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4), ()),
    "SFW L2": (SFW, (Rule("L2Ball", width=30),)),
    "SFW Linf": (SFW, (Rule("LinfBall", width=100),)),
}


def run_of(name: str, given: argparse.Namespace) -> Run:
    """The run of a contender: so many steps an epoch, on invented images."""
    optimizer, rules = FIELD[name]
    images = given.steps * given.batch
    return Run(
        Data("cifar-10", train=images, test=64, synthetic=True),
        given.model,
        optimizer,
        rules,
        batch=given.batch,
        measure=(),
        device=given.device,
        augment=True,
        autocast="bfloat16" if given.device == "cuda" else None,
    )


def speed_of(given: argparse.Namespace) -> Speed:
    """What is left out of the fast path."""
    return Speed(**dict.fromkeys(given.without, False))


def race(given: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each epoch of each contender, taking turns."""
    trials = {}
    with alone(given.device):
        for name in FIELD:
            run = run_of(name, given)
            began = time.perf_counter()
            trials[name] = Trial(run, load(run.data), speed=speed_of(given))
            trials[name].train_epoch()
            path = ", ".join(trials[name].steps.path) or "plain"
            print(f"  {name}: {path}; ready in {time.perf_counter() - began:.1f} s", flush=True)
        times: dict[str, list[float]] = {name: [] for name in trials}
        for _ in range(given.rounds):
            for name, trial in trials.items():
                began = time.perf_counter()
                trial.train_epoch()  # its end waits for the device
                times[name].append(time.perf_counter() - began)
    return {
        name: {
            "ms": round(1e3 * statistics.median(each) / given.steps, 3),
            "images_per_second": round(given.steps * given.batch / statistics.median(each)),
            "throughput_over_SGD": round(
                statistics.median(times["SGD"]) / statistics.median(each), 4
            ),
            "path": list(trials[name].steps.path),
        }
        for name, each in times.items()
    }


def side_by_side(given: argparse.Namespace, jobs: int) -> float:
    """Images a second of so many processes that train at once, all together."""
    context = multiprocessing.get_context("spawn")
    ready, found = context.Barrier(jobs), context.SimpleQueue()
    processes = [context.Process(target=_one, args=(given, ready, found)) for _ in range(jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a process ended with code {process.exitcode}")
    spans = [found.get() for _ in processes]
    long = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return jobs * given.rounds * given.steps * given.batch / long


def _one(given: argparse.Namespace, ready: Any, found: Any) -> None:
    run = run_of("SFW L2", given)
    with alone(given.device):
        trial = Trial(run, load(run.data), speed=speed_of(given))
        trial.train_epoch()
        ready.wait()
        began = time.time()
        for _ in range(given.rounds):
            trial.train_epoch()
        found.put((began, time.time()))


def checked() -> list[str]:
    """The names of the checks of tests/cuda/training.py that failed."""
    import training  # pyright: ignore[reportMissingImports]

    failed = []
    for name, check in training.CHECKS.items():
        began = time.perf_counter()
        try:
            check()
            print(f"  ok      {name} ({time.perf_counter() - began:.0f} s)", flush=True)
        except Exception as error:
            failed.append(name)
            print(f"  FAILED  {name}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
    return failed


def table(report: dict[str, Any]) -> str:
    """The numbers as text."""
    lines = [f"{'optimizer':12} {'ms a step':>10} {'images/s':>10} {'/ SGD':>8}  path"]
    lines += [
        f"{name:12} {row['ms']:10.3f} {row['images_per_second']:10} "
        f"{row['throughput_over_SGD']:8.3f}  {', '.join(row['path']) or 'plain'}"
        for name, row in report["contenders"].items()
    ]
    for jobs, total in report.get("side_by_side", {}).items():
        lines.append(f"{jobs} at once: {total:.0f} images/s in all")
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    """The command line, with what fits the device where nothing is said."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None)
    parser.add_argument("--model", default=None)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--steps", type=int, default=None, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=None, help="epochs that are timed")
    parser.add_argument("--jobs", type=int, default=1, help="so many side by side as well")
    parser.add_argument(
        "--without", choices=("compile", "capture", "fused"), action="append", default=[]
    )
    parser.add_argument("--out", type=Path, default=None, help="a JSON file")
    parser.add_argument("--skip-checks", action="store_true")
    given = parser.parse_args()
    given.device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    cuda = given.device == "cuda"
    given.model = given.model or ("wideresnet28x10" if cuda else "wideresnet10x1")
    given.batch = given.batch or (128 if cuda else 16)
    given.steps = given.steps or (100 if cuda else 6)
    given.rounds = given.rounds or (9 if cuda else 5)
    return given


def main() -> int:
    """Check, time, tell; 1 if a check failed."""
    given = parsed()
    failed = [] if given.device == "cpu" or given.skip_checks else checked()
    print(f"timing {given.model}, batch {given.batch}, on {given.device}", flush=True)
    settings = {n: v for n, v in vars(given).items() if n not in ("out", "skip_checks")}
    report: dict[str, Any] = {"environment": environment(given.device), "settings": settings}
    report["contenders"] = race(given)
    if given.jobs > 1:
        counts = (1, given.jobs)
        report["side_by_side"] = {n: round(side_by_side(given, n)) for n in counts}
    report |= {"target": TARGET, "failed_checks": failed}
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))
    if failed:
        print(f"{len(failed)} checks failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
