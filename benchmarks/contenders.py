"""What is timed: steps of our optimizers, of torch's, and of a twin written without any care."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import condgrad as cg

REGIONS: dict[str, Callable[[], cg.regions.Region]] = {
    "L2": lambda: cg.L2Ball(1e3),
    "Linf": lambda: cg.LinfBall(1.0),
    "L1": lambda: cg.L1Ball(1e7),
    "K-norm 10 %": lambda: cg.KNormBall(0.1, 1e7),
    "K-sparse 10 %": lambda: cg.KSparsePolytope(0.1, 1.0),
}
"""Wide enough for every start, so that none has to be projected first."""
RULES = ("diameter", "gradient")
RATES = {"diameter": 0.3, "gradient": 0.1}

# Bytes per parameter entry, over the 4 of float32, that a step must move at least: g, m, θ read, m
# and θ written; what must be known of a whole point before any entry can move costs a second
# reading of m. A rule of "gradient" reads θ once more, a spike needs no m the second time.
PASSES = {
    ("L2", "diameter"): 6,
    ("L2", "gradient"): 7,
    ("Linf", "diameter"): 5,
    ("Linf", "gradient"): 7,
    ("L1", "diameter"): 5,
    ("L1", "gradient"): 6,
    ("K-norm 10 %", "diameter"): 6,
    ("K-norm 10 %", "gradient"): 7,
    ("K-sparse 10 %", "diameter"): 7,
    ("K-sparse 10 %", "gradient"): 8,
}


@dataclass(frozen=True)
class Contender:
    """A step to time: its name, its optimizer over given parameters, its least traffic."""

    name: str
    make: Callable[[list[Tensor]], Any]
    passes: int = 5


class Naive(torch.optim.Optimizer):
    """SFW on L2 balls as one would write it down: tensor by tensor, numbers fetched at once."""

    def __init__(self, params: list[Tensor], radius: float, lr: float) -> None:
        super().__init__(params, {"lr": lr, "radius": radius})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                m = state.setdefault("momentum_buffer", torch.zeros_like(p))
                m.mul_(0.9).add_(p.grad, alpha=0.1)
                v = -group["radius"] * m / m.norm().item()
                gap = (v - p).norm().item()
                a = min(group["lr"] * m.norm().item() / gap, 1.0) if gap else 0.0
                p.mul_(1 - a).add_(v, alpha=a)


def rivals(device: str) -> list[Contender]:
    """What torch offers, the one that all others are compared with first."""
    sgd, fused = torch.optim.SGD, device == "cuda"
    plain = {"lr": 1e-4, "momentum": 0.9}
    return [
        Contender("SGD fused" if fused else "SGD", lambda p: sgd(p, fused=fused or None, **plain)),
        Contender("SGD foreach", lambda p: sgd(p, foreach=True, **plain)),
        *([] if fused else [Contender("SGD fused", lambda p: sgd(p, fused=True, **plain))]),
        Contender("AdamW fused", lambda p: torch.optim.AdamW(p, lr=1e-5, fused=True), 7),
        Contender("naive L2 twin", lambda p: Naive(p, 30.0, 0.1), 7),
    ]


def ours(
    fused: bool | None = True, regions: tuple[str, ...] = tuple(REGIONS), mark: str = ""
) -> list[Contender]:
    """SFW with momentum 0.9 on every region under every rule; names end with the mark."""
    return [
        Contender(f"{name} {rule}{mark}", _maker(name, rule, fused), PASSES[name, rule])
        for name in regions
        for rule in RULES
    ]


def _maker(name: str, rule: str, fused: bool | None) -> Callable[[list[Tensor]], Any]:
    region = REGIONS[name]()

    def make(params: list[Tensor]) -> Any:
        groups = [{"params": [p], "region": region} for p in params]
        cg.make_feasible(groups)
        return cg.SFW(groups, lr=RATES[rule], momentum=0.9, rescale=rule, fused=fused)  # pyright: ignore

    return make


def spectral() -> list[Contender]:
    """Steps that need matrices whole, beside torch's own."""
    found = []
    if hasattr(torch.optim, "Muon"):
        found.append(Contender("Muon", lambda p: torch.optim.Muon(p, lr=1e-4)))
    region = cg.SpectralBall(30.0, method="polynomial")

    def make(params: list[Tensor]) -> Any:
        return cg.SFW([{"params": params, "region": region}], lr=0.1, rescale="gradient")

    return [*found, Contender("spectral gradient", make)]
