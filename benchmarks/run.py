"""Check and time the steps on this machine; one short table last.

From the source tree, nothing installed but torch (and Triton, on CUDA):

    PYTHONPATH=src python benchmarks/run.py --device cuda --out benchmarks/results/cuda.json
    PYTHONPATH=src python benchmarks/run.py --device cpu --out benchmarks/results/cpu.json

On CUDA it first runs the checks of tests/cuda, and then times the steps of four networks, of the
spectral ball beside torch.optim.Muon, and of a captured graph. On the host it times the paper's
small network, and an epoch of it.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "cuda")]

import epoch  # noqa: E402
from contenders import Contender, ours, rivals, spectral  # noqa: E402
from shapes import MODELS  # noqa: E402
from timing import copied, race  # noqa: E402

MODELS_OF = {
    "cpu": ("mlp",),
    "cuda": ("densenet121", "wideresnet28x10", "resnext50", "transformer", "matrices"),
}


def environment(device: str, threads: int) -> dict[str, Any]:
    """What a reader needs to repeat or doubt a number; neither host names nor paths."""
    found: dict[str, Any] = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "threads": threads,
    }
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        found["triton"] = None
    if device == "cuda":
        found |= {"accelerator": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def contenders_for(model: str, device: str) -> list[Contender]:
    """Who runs on this network's shapes."""
    if model == "matrices":
        return [*rivals(device)[:1], *spectral()]
    both = ours(fused=None) if device == "cpu" else []
    return [*rivals(device), *both, *ours(fused=True)]


def timed(model: str, device: str, rounds: int, steps: int) -> list[dict[str, Any]]:
    """A row for each contender."""
    shapes = MODELS[model]()
    entries = sum(torch.Size(s).numel() for s in shapes)
    field = contenders_for(model, device)
    found = race(field, shapes, device=device, rounds=rounds, steps=steps)
    speed = copied(entries, device)
    first = found[field[0].name]
    return [
        {
            "model": model,
            "parameters": entries,
            "tensors": len(shapes),
            "name": each.name,
            "us": round(found[each.name].wall, 2),
            "processor_us": round(found[each.name].processor, 2),
            "low_us": round(found[each.name].low, 2),
            "ratio": round(found[each.name].wall / first.wall, 3),
            "low_ratio": round(found[each.name].low / first.low, 3),
            "rival": field[0].name,
            "floor_us": round(4 * each.passes * entries / speed * 1e6, 2),
            "passes": each.passes,
            "extra_memory": round(found[each.name].memory / (4 * entries), 4),
        }
        for each in field
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as text."""
    lines = [f"{'network':18} {'step':24} {'us':>10} {'cpu us':>10} {'/ SGD':>7} {'/ bytes':>8}"]
    lines += [
        f"{row['model']:18} {row['name']:24} {row['us']:10.1f} {row.get('processor_us', 0):10.1f} "
        f"{row['ratio']:7.2f} {row['us'] / row['floor_us']:8.1f}"
        for row in rows
    ]
    return "\n".join(lines)


def epoch_table(found: dict[str, dict[str, float]]) -> str:
    """The epochs as text."""
    base = found["SGD"]["median_us"]
    lines = [f"{'a batch of the training loop':43} {'us':>10} {'/ SGD':>7}"]
    lines += [
        f"{name:43} {each['median_us']:10.1f} {each['median_us'] / base:7.2f}"
        for name, each in found.items()
    ]
    return "\n".join(lines)


def checked() -> list[str]:
    """The names of the checks of tests/cuda that failed."""
    import checks  # pyright: ignore[reportMissingImports]

    failed = []
    for name, check in checks.CHECKS.items():
        try:
            check()
            print(f"  ok      {name}", flush=True)
        except Exception as error:
            failed.append(name)
            print(f"  FAILED  {name}: {type(error).__name__}: {error}", flush=True)
    return failed


def main() -> int:
    """Run everything; 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None)
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=None)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--steps", type=int, default=None, help="steps a round")
    parser.add_argument("--threads", type=int, default=1, help="on the host")
    parser.add_argument("--out", type=Path, default=None, help="a JSON file; a plot goes beside")
    parser.add_argument("--skip-checks", action="store_true")
    given = parser.parse_args()
    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(given.threads)
    steps = given.steps or (48 if device == "cpu" else 20)

    failed = [] if device == "cpu" or given.skip_checks else checked()
    rows: list[dict[str, Any]] = []
    for model in given.models or MODELS_OF[device]:
        print(f"timing {model}", flush=True)
        rows += timed(model, device, given.rounds, steps)
    report: dict[str, Any] = {"environment": environment(device, given.threads), "rows": rows}
    report["settings"] = {"rounds": given.rounds, "steps": steps, "momentum": 0.9}
    if device == "cpu":
        print("timing epochs", flush=True)
        report["epochs"] = epoch.race(given.rounds)
    else:
        import captured

        rows += captured.rows(MODELS["densenet121"](), given.rounds)
        report["failed_checks"] = failed
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
        try:
            import plot

            plot.drawn(report, given.out.with_suffix(".svg"))
        except ImportError:
            print("no plot: matplotlib is missing")
    print(table(rows))
    if "epochs" in report:
        print(epoch_table(report["epochs"]))
    if failed:
        print(f"{len(failed)} checks failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
