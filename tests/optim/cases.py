"""The registry of the optimizers' tests, and the small problem that all of them are set.

An optimizer joins with one entry in ``MEMBERS``; every question of ``test_contract.py``,
``test_checkpoints.py`` and ``test_errors.py`` is then asked of it.
"""

import dataclasses
import functools
from typing import Any

import pytest
import torch

import condgrad as cg
from inputs import inside, normal


@dataclasses.dataclass(frozen=True)
class Member:
    """How an optimizer is built and driven.

    ``settings`` make it use all of its state. ``needs_closure`` tells that a step evaluates the
    batch itself, ``period`` that a full gradient is due every so many steps; ``projects`` that a
    step ends at the nearest point, which takes an infinite entry to its bound.
    """

    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    needs_closure: bool = False
    period: int = 0
    projects: bool = False


MEMBERS = {
    cg.SFW: Member({"momentum": 0.9}),
    cg.SVRF: Member(needs_closure=True, period=3),
    cg.SPIDERFW: Member(needs_closure=True, period=3),
    cg.ORGFW: Member({"momentum": 0.7}, needs_closure=True),
    cg.AdaSFW: Member({"lr": 0.1}),
    cg.AdamSFW: Member({"lr": 0.1}),
    cg.ProjectedSGD: Member({"momentum": 0.9, "weight_decay": 0.01}, projects=True),
}


def asked_of_optimizers(kinds=MEMBERS):
    """Ask the question of each of these optimizers."""
    return pytest.mark.parametrize("kind", list(kinds), ids=lambda kind: kind.__name__)


def build(kind, params, region=None, **settings):
    """The optimizer, with the settings of its entry and these."""
    return kind(params, region, **(MEMBERS[kind].settings | settings))


def step(optimizer, problem, t):
    """One step on the t-th batch, whichever way the optimizer takes its gradients."""
    kind = next(k for k in type(optimizer).__mro__ if k in MEMBERS)
    member = MEMBERS[kind]
    if member.period and t % member.period == 0:
        optimizer.refresh([(problem.closure(None), 1.0)])
    if member.needs_closure:
        return optimizer.step(problem.closure(t))
    loss = problem.closure(t)()
    optimizer.step()
    return loss


class Quadratic:
    """L(θ) = ½ Σ q θ², and the t-th batch adds a linear term of its own; no gradient ties.

    ``missing`` holds, for each batch, the places of the parameters that it says nothing about;
    ``ties`` the batches whose gradients have zeros, or are all zero.
    """

    def __init__(self, params, seed=0, *, curvature=1.0, missing=None, ties=None):
        self.params, self.seed = list(params), seed
        self.missing, self.ties = missing or {}, ties or {}
        noise = [normal(p.shape, 91 * seed + i).abs() for i, p in enumerate(self.params)]
        self.q = [curvature * (each + 0.5) for each in noise]

    def tilt(self, place, t):
        """The linear term of the t-th batch; the mean of all of them for None."""
        p = self.params[place]
        return normal(p.shape, 7919 * self.seed + 104729 * place + (0 if t is None else t + 1))

    def gradient(self, place, theta, t):
        """The gradient of the t-th batch at theta, for the parameter at this place."""
        gradient = self.q[place] * theta - self.tilt(place, t)
        if t in self.ties:
            gradient = torch.where(gradient < self.ties[t], 0.0, gradient)
        return gradient

    def closure(self, t):
        """What evaluates the t-th batch at the parameters as they then are."""

        def evaluate():
            total = 0.0
            for place, p in enumerate(self.params):
                p.grad = None
                if place in self.missing.get(t, ()):
                    continue
                theta = p.detach().double()
                p.grad = self.gradient(place, theta, t).to(p.dtype)
                total += float((self.q[place] * theta**2 / 2 - self.tilt(place, t) * theta).sum())
            return total

        return evaluate


MIXTURE = (
    (cg.L2Ball(0.7), (3, 4)),
    (cg.LinfBall(0.1), (7,)),
    (cg.L1Ball(30.0), (5,)),
    (cg.KSparsePolytope(0.5, 0.1), (2, 3, 2, 2)),
    (cg.KNormBall(2, 0.1), (5,)),
    (cg.LpBall(3.0, 0.1), (2, 3)),
    (cg.UnitSimplex(0.3), (6,)),
    (cg.ProbabilitySimplex(0.1), (6,)),
    (cg.Permutahedron(0.1), (4,)),
    (cg.Box(-0.1, 0.3), ()),
    (cg.SpectralBall(0.1), (3, 4)),
    (cg.SpectralBall(0.1, method="polynomial"), (4, 3)),
    (cg.NuclearBall(0.1), (2, 3, 2, 2)),
    (cg.NuclearBall(0.1, method="lanczos"), (3, 5)),
    (cg.PerRow(cg.L1Ball(0.1)), (3, 4)),
    (cg.PerFilter(cg.LinfBall(0.1)), (3, 2, 2)),
    (cg.Free(), (3,)),
)
"""A region of every kind on a parameter each: what the questions are asked about."""


@functools.cache
def _inside(region, shape, seed):
    return normal(shape, seed) if isinstance(region, cg.Free) else inside(region, shape, seed)


def start(region, shape, seed=0, dtype=torch.float64):
    """A parameter inside its region."""
    parameter = _inside(region, shape, seed).to(dtype, copy=True).requires_grad_()
    cg.make_feasible([{"params": [parameter], "region": region}])
    return parameter


def mixture(dtype=torch.float64, seed=0, members=MIXTURE):
    """Fresh groups, a parameter and a region each."""
    return [
        {"params": [start(region, shape, seed + i, dtype)], "region": region}
        for i, (region, shape) in enumerate(members)
    ]


def parameters(groups):
    return [p for group in groups for p in group["params"]]


def values(groups):
    """Copies of the parameters as they are now."""
    return [p.detach().clone() for p in parameters(groups)]


def same(first, second):
    """Whether two lists of tensors are equal to the bit."""
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def run(optimizer, problem, steps, begin=0):
    """Take the steps; returns the parameters as they are after them."""
    for t in range(begin, begin + steps):
        step(optimizer, problem, t)
    return values(optimizer.param_groups)
