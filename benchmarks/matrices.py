"""Matrix balls beside torch.optim.Muon in one run: times, violations, how good the vertices are.

    PYTHONPATH=src python benchmarks/matrices.py --device cuda --out cuda.json
    PYTHONPATH=src python benchmarks/matrices.py --device cpu --out cpu.json

On the host 4 matrices of 512 x 512, on CUDA 24 of 2048 x 2048. All take turns; medians. Then the
share of the best value that the approximate oracles miss, on matrices of known singular values.
Muon computes in bfloat16 everywhere, the spectral ball on CUDA alone: on the host it is timed in
both formats.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from contenders import Contender
from run import environment
from timing import race
from torch import Tensor

import condgrad as cg
from condgrad.regions._leading import leading
from condgrad.regions._polar import polar

SIZES = {"cpu": (4, 512), "cuda": (24, 2048)}


class AsOnCUDA(cg.SpectralBall):
    """Computes in bfloat16 on the host, too."""

    def _format(self, points: Tensor) -> torch.dtype:
        return torch.bfloat16


FAST = {
    "spectral": cg.SpectralBall(30.0, method="polynomial"),
    "nuclear": cg.NuclearBall(300.0, method="lanczos"),
}
COARSE = {"spectral, bfloat16": AsOnCUDA(30.0, method="polynomial")}
EXACT = {"spectral, SVD": cg.SpectralBall(30.0), "nuclear, SVD": cg.NuclearBall(300.0)}
MEASURED = 4
"""Of so many matrices the violation is measured: that takes a decomposition each."""


class Kept:
    """A contender that remembers what it moved, so that it can be measured afterwards."""

    def __init__(self, name: str, region: Any, lr: float = 0.1) -> None:
        self.region = region
        self.params: list[Tensor] = []
        self._lr = lr
        self.contender = Contender(name, self._made)

    def _made(self, params: list[Tensor]) -> Any:
        self.params = params
        if self.region is None:
            return torch.optim.Muon(params, lr=1e-4)
        cg.make_feasible([{"params": params, "region": self.region}])
        return cg.SFW(params, self.region, lr=self._lr, rescale="gradient")

    def violation(self) -> float | None:
        """The largest one after the steps, measured in double precision."""
        if self.region is None:
            return None
        return max(self.region.violation(p.detach().double()) for p in self.params[:MEASURED])


def timed(
    device: str, count: int, side: int, rounds: int, steps: int, exact: bool
) -> list[dict[str, Any]]:
    """A row for each contender; Muon is the first, and the others are compared with it."""
    host = device == "cpu"
    regions = {"Muon": None, **FAST, **(COARSE if host else {}), **(EXACT if exact else {})}
    field = [Kept(name, region) for name, region in regions.items()]
    found = race(
        [each.contender for each in field],
        count * [(side, side)],
        device=device,
        rounds=rounds,
        steps=steps,
    )
    # On the host the processor's time counts: the clock there is shared with others.
    taken = {name: each.processor if host else each.wall for name, each in found.items()}
    return [
        {
            "name": each.contender.name,
            "ms": round(found[each.contender.name].wall / 1e3, 3),
            "processor_ms": round(found[each.contender.name].processor / 1e3, 3),
            "ratio": round(taken[each.contender.name] / taken["Muon"], 3),
            "violation": each.violation(),
        }
        for each in field
    ]


# ---- how good the vertices are


def spectra(side: int, device: str) -> Iterator[tuple[str, Tensor, Tensor]]:
    """A matrix of each kind, and its singular values."""
    make = torch.Generator().manual_seed(0)

    def normal(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=make, dtype=torch.float64).to(device)

    for name, x in (
        ("Gaussian", normal(side, side)),
        ("Gaussian, 1 : 4", normal(side // 4, side)),
        ("rank 10", normal(side, 10) @ normal(10, side)),
        (
            "rank 10, and noise of 1 % of its norm",
            noisy(normal(side, 10) @ normal(10, side), normal),
        ),
    ):
        yield name, x, torch.linalg.svdvals(x)
    left, right = (torch.linalg.qr(normal(side, side)).Q for _ in range(2))
    i = torch.arange(1.0, side + 1, dtype=torch.float64, device=device)
    for name, values in (
        ("σᵢ = i^(−1/2)", i**-0.5),
        ("σᵢ = 1/i", 1 / i),
        ("σᵢ = i^(−2)", i**-2.0),
        ("σᵢ = e^(−i/30)", torch.exp(-i / 30)),
        ("all equal", torch.ones_like(i)),
    ):
        yield name, (left * values) @ right, values


def noisy(x: Tensor, normal: Any) -> Tensor:
    """The matrix and Gaussian noise of a hundredth of its Euclidean norm."""
    noise = normal(*x.shape)
    return x + noise * (0.01 * x.norm() / noise.norm())


def muon_response(values: Tensor) -> Tensor:
    """What Muon's five steps make of singular values, scaled to stay inside the ball."""
    settings = inspect.signature(torch.optim.Muon).parameters
    a, b, c = settings["ns_coefficients"].default

    def response(x: Tensor) -> Tensor:
        for _ in range(settings["ns_steps"].default):
            x = x * (a + b * x**2 + c * x**4)
        return x

    every = torch.linspace(0, 1, 1_000_001, dtype=torch.float64, device=values.device)
    return response(values / values.norm()) / response(every).max()


def quality(side: int, device: str) -> list[dict[str, Any]]:
    """For each kind of matrix the shares of the best value that are missed."""
    rows = []
    for name, x, values in spectra(side, device):
        best, scaled = values.sum(), (x / x.abs().max())[None].float()
        vertices = {"float32": polar(scaled), "bfloat16": polar(scaled.bfloat16())}
        missed = {
            f"spectral, {format}": 1 - float((x * v[0].double()).sum() / best)
            for format, v in vertices.items()
        }
        top = leading(scaled)
        value = float((top.left[0].T.double() @ x @ top.right[0].double()).squeeze())
        rows.append(
            {
                "matrix": name,
                "side": side,
                **{key: float(f"{each:.2e}") for key, each in missed.items()},
                "Muon's steps": float(
                    f"{1 - float((values * muon_response(values)).sum() / best):.2e}"
                ),
                "nuclear": float(f"{max(1 - value / float(values.max()), 0):.1e}"),
            }
        )
    return rows


def tables(rows: list[dict[str, Any]], found: list[dict[str, Any]]) -> str:
    """The results as text."""
    lines = [f"{'step':18} {'ms':>10} {'cpu ms':>10} {'/ Muon':>8} {'violation':>10}"]
    for row in rows:
        outside = "" if row["violation"] is None else f"{row['violation']:.1e}"
        lines.append(
            f"{row['name']:18} {row['ms']:10.3f} {row['processor_ms']:10.3f} {row['ratio']:8.2f} "
            f"{outside:>10}"
        )
    keys = ("spectral, float32", "spectral, bfloat16", "Muon's steps", "nuclear")
    lines.append(
        f"{'missed share of the best value':40} {'side':>5} " + " ".join(f"{k:>18}" for k in keys)
    )
    lines += [
        f"{row['matrix']:40} {row['side']:5} " + " ".join(f"{row[k]:18.1e}" for k in keys)
        for row in found
    ]
    return "\n".join(lines)


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None)
    parser.add_argument("--count", type=int, default=None, help="matrices")
    parser.add_argument("--side", type=int, default=None, help="their rows and columns")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=None, help="steps a round")
    parser.add_argument("--threads", type=int, default=1, help="on the host")
    parser.add_argument("--exact", action="store_true", help="the decompositions on CUDA, too")
    parser.add_argument("--sides", type=int, nargs="*", default=(512, 2048), help="of the vertices")
    parser.add_argument("--out", type=Path, default=None, help="a JSON file")
    given = parser.parse_args()
    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(given.threads)
    count, side = given.count or SIZES[device][0], given.side or SIZES[device][1]
    steps = given.steps or (2 if device == "cpu" else 32)
    exact = given.exact or device == "cpu"
    rows = timed(device, count, side, given.rounds, steps, exact)
    found = [row for each in given.sides for row in quality(each, device)]
    report = {
        "environment": environment(device, given.threads),
        "settings": {"count": count, "side": side, "rounds": given.rounds, "steps": steps},
        "rows": rows,
        "missed": found,
    }
    if given.out:
        given.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print(f"{count} matrices of {side} x {side}, float32, {device}")
    print(tables(rows, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
