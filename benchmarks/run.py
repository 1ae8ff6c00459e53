"""Check and time the steps on this machine; one short table last.

From the source tree, nothing installed but torch (and Triton, on CUDA):

    PYTHONPATH=src python benchmarks/run.py --device cuda --out benchmarks/results
    PYTHONPATH=src python benchmarks/run.py --device cpu --out benchmarks/results

On CUDA it first compiles what will be launched, on all processors, and runs the checks of
tests/cuda; then it times the steps of four networks, of the spectral ball beside torch.optim.Muon,
and of a captured graph, and asks the profiler which kernel takes how long. On the host it times the
paper's small network, and an epoch of it. What fails or does not fit into the time is told, and the
rest goes on; what was found so far is always on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
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
    "cuda": ("densenet121", "wideresnet28x10", "resnext50", "matrices", "transformer"),
}
PROFILED = ("densenet121", "transformer")


class Run:
    """What is known so far, and on the disk; and how much time is left."""

    def __init__(self, device: str, out: Path | None, seconds: float, report: dict[str, Any]):
        self.device, self.report = device, report
        self._out = out
        self._began, self._seconds = time.monotonic(), seconds
        self.troubles: list[str] = []
        if out:
            out.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        """The seconds left."""
        return self._seconds - (time.monotonic() - self._began)

    def stage(self, name: str, work: Callable[[], None]) -> None:
        """Do the work if there is time; a failure is told, and the rest goes on."""
        if self.left() < 0:
            self.troubles.append(f"{name}: no time was left")
            return
        print(f"[{time.monotonic() - self._began:6.1f} s] {name}", flush=True)
        try:
            work()
        except Exception as error:
            traceback.print_exc()
            self.troubled(name, error)
        self.save()

    def troubled(self, name: str, error: Exception) -> None:
        """Note a failure. After some a device answers nothing any more, and all is over."""
        self.troubles.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        if self.device == "cuda" and self._seconds > 0:
            try:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
            except RuntimeError as lost:
                self._seconds = 0.0
                self.troubles.append(f"the device answers no more: {str(lost)[:200]}")

    def save(self) -> None:
        """Write down what is known."""
        if self._out:
            self.report["troubles"] = self.troubles
            text = json.dumps(self.report, indent=1) + "\n"
            (self._out / f"{self.device}.json").write_text(text)

    def draw(self) -> None:
        """Draw the plot, where that can be done."""
        if not self._out or not self.report["rows"]:
            return
        try:
            import plot
        except ImportError:
            print(f"no plot here, for want of matplotlib: benchmarks/plot.py {self.device}.json")
            return
        plot.drawn(self.report, self._out / f"{self.device}.svg")


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
    if device == "cpu":
        return [*rivals(device), *ours(None), *ours(mark=", fused")]
    return [*rivals(device), *ours()]


def timed(
    model: str, device: str, rounds: int, steps: int, speed: float, seconds: float
) -> list[dict[str, Any]]:
    """A row for each contender, in about so many seconds."""
    shapes = MODELS[model]()
    entries = sum(torch.Size(s).numel() for s in shapes)
    field = contenders_for(model, device)
    found = race(field, shapes, device=device, rounds=rounds, steps=steps, seconds=seconds)
    return [
        {
            "model": model,
            "parameters": entries,
            "tensors": len(shapes),
            "name": each.name,
            "us": round(found[each.name].wall, 2),
            "processor_us": round(found[each.name].processor, 2),
            "low_us": round(found[each.name].low, 2),
            "spread": round(found[each.name].spread, 3),
            "rounds": found[each.name].rounds,
            "ratio": round(found[each.name].wall / found[each.name].rival, 3),
            "rival": field[0].name,
            "floor_us": round(4 * each.passes * entries / speed * 1e6, 2),
            "passes": each.passes,
            "extra_memory": round(found[each.name].memory / (4 * entries), 4),
        }
        for each in field
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each contender: microseconds, over the rival's, over those of the bytes alone."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    names = list(dict.fromkeys(row["name"] for row in rows))
    cells = {(row["model"], row["name"]): row for row in rows}
    lines = [f"{'us   / rival  / bytes':24}" + "".join(f"{model:>26}" for model in models)]
    for name in names:
        line = f"{name:24}"
        for model in models:
            row = cells.get((model, name))
            if row is None:
                line += f"{'':26}"
                continue
            line += f"{row['us']:12.1f}{row['ratio']:7.2f}{row['us'] / row['floor_us']:7.1f}"
        lines.append(line.rstrip())
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


def compiled_ahead(run: Run) -> None:
    """Have other processes compile what will be launched, so that Triton finds it in its cache."""
    import compiled

    refused = compiled.ahead("device", max(1, (os.cpu_count() or 2) - 1))
    run.troubles += [f"not compiled: {told}" for told in refused]


def checked(run: Run) -> None:
    """Run the checks of tests/cuda, and note which failed."""
    import checks  # pyright: ignore[reportMissingImports]

    found = run.report["checks"] = {}
    for name, check in checks.CHECKS.items():
        if run.left() < 0:
            return
        began = time.monotonic()
        try:
            check()
            found[name] = "ok"
        except Exception as error:
            traceback.print_exc()
            found[name] = f"{type(error).__name__}: {error}"[:500]
            run.troubled(name, error)
        seconds = time.monotonic() - began
        print(f"  {seconds:6.1f} s  {name}: {found[name][:200]}", flush=True)
        run.save()


def on_device(run: Run, models: tuple[str, ...], given: argparse.Namespace) -> None:
    """All that is done on CUDA."""
    rows = run.report["rows"]
    if not given.skip_checks:
        run.stage("compiling ahead", lambda: compiled_ahead(run))
        run.stage("checks", lambda: checked(run))
    if run.left() < 0:
        return
    speed = copied(0, "cuda")
    run.report["copy_bytes_per_second"] = speed
    print(f"a copy moves {speed / 1e12:.2f} TB/s")
    for place, model in enumerate(models):
        share = run.left() * 0.8 / (len(models) - place)

        def timing(model: str = model, share: float = share) -> None:
            rows.extend(timed(model, "cuda", given.rounds, given.steps or 20, speed, share))

        run.stage(f"timing {model}", timing)
        if model == "densenet121":
            run.stage("timing graphs", lambda: _graphs(run, given.rounds, speed))
    for model in PROFILED:
        if model in models:
            run.stage(f"profiling {model}", lambda model=model: _profiles(run, model))


def _graphs(run: Run, rounds: int, speed: float) -> None:
    import captured

    run.report["rows"] += captured.rows(MODELS["densenet121"](), rounds, speed)


def _profiles(run: Run, model: str) -> None:
    import profiled

    found = profiled.rows(model, MODELS[model]())
    run.report.setdefault("kernels", []).extend(found)
    for row in found:
        print(f"  {row['name']:24}{row['kernel'][:40]:42}{row['launches']:5.1f}{row['us']:10.1f}")


def on_host(run: Run, models: tuple[str, ...], given: argparse.Namespace) -> None:
    """All that is done on the host."""
    for model in models:
        entries = sum(torch.Size(s).numel() for s in MODELS[model]())

        def timing(model: str = model, entries: int = entries) -> None:
            speed, endless = copied(entries, "cpu"), float("inf")
            steps = given.steps or 48
            run.report["rows"] += timed(model, "cpu", given.rounds, steps, speed, endless)

        run.stage(f"timing {model}", timing)

    def epochs() -> None:
        run.report["epochs"] = epoch.race(given.rounds)

    run.stage("timing epochs", epochs)


def main() -> int:
    """Run everything; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None)
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=None)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--steps", type=int, default=None, help="steps a round, at most")
    parser.add_argument("--seconds", type=float, default=None, help="for all; 540 on CUDA")
    parser.add_argument("--threads", type=int, default=1, help="on the host")
    parser.add_argument("--out", type=Path, default=None, help="a folder for results")
    parser.add_argument("--skip-checks", action="store_true")
    given = parser.parse_args()
    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(given.threads)
    report = {
        "environment": environment(device, given.threads),
        "settings": {"rounds": given.rounds, "steps": given.steps, "momentum": 0.9},
        "rows": [],
    }
    seconds = given.seconds or (540.0 if device == "cuda" else float("inf"))
    run = Run(device, given.out, seconds, report)
    models = tuple(given.models or MODELS_OF[device])
    (on_device if device == "cuda" else on_host)(run, models, given)
    run.save()
    run.draw()
    print(json.dumps(report["environment"]))
    if report["rows"]:
        print(table(report["rows"]))
    if "epochs" in report:
        print(epoch_table(report["epochs"]))
    print("\n".join(["trouble: " + trouble for trouble in run.troubles] or ["no trouble"]))
    return int(bool(run.troubles))


if __name__ == "__main__":
    sys.exit(main())
