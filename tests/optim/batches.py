"""Problems made of batches, for the methods that evaluate each batch more than once."""

import math

import numpy as np
import torch
from torch import nn

import condgrad as cg
from inputs import array, generator, normal
from members import Case
from optim.cases import MIXTURE, Quadratic, start

VARIANCE_REDUCED = (cg.SVRF, cg.SPIDERFW, cg.ORGFW)
SNAPSHOTTING = (cg.SVRF, cg.SPIDERFW)


class Batches(Quadratic):
    """Batches of uneven sizes whose curvatures differ, so that a gradient's change depends on them.

    The t-th step sees batch t modulo their number; None is the mean over all, weighted by size.
    """

    sizes = (3, 1, 4, 1, 5)

    def __init__(self, params, seed=0, *, curvature=1.0, **more):
        super().__init__(params, seed, curvature=curvature, **more)
        self.factors = [0.4 + 0.3 * i for i in range(len(self.sizes))]

    def gradient(self, place, theta, t):
        if t is not None:
            batch = t % len(self.sizes)
            tilt = self.tilt(place, batch)
            return self.factors[batch] * self.q[place] * theta - tilt
        each = [size * self.gradient(place, theta, i) for i, size in enumerate(self.sizes)]
        return torch.stack(each).sum(0) / sum(self.sizes)

    def pairs(self):
        """What ``refresh`` takes."""
        return [(self.closure(i), size) for i, size in enumerate(self.sizes)]


class Noisy:
    """A module with dropout and batch-norm (statistics and a counter), and batches for it."""

    def __init__(self, *, p=0.5, seed=0, dtype=torch.float64):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = nn.Sequential(
                nn.Linear(6, 8),
                nn.Dropout(p),
                nn.BatchNorm1d(8),
                nn.ReLU(),
                nn.Linear(8, 8),
                nn.BatchNorm1d(8),
                nn.Dropout(p),
                nn.Linear(8, 3),
            ).to(dtype)
        self.data = [
            (
                normal((n, 6), 10 * seed + i, dtype=dtype),
                torch.randint(3, (n,), generator=generator(i)),
            )
            for i, n in enumerate((7, 5, 8, 4))
        ]
        self.calls = 0
        self.losses = []

    def groups(self):
        """The groups of the model, its biases free."""
        return cg.constrain(self.model, {r".*bias": cg.Free(), r".*": cg.L2Ball(5.0)})

    def closure(self, t):
        inputs, labels = self.data[t % len(self.data)]

        def evaluate():
            self.calls += 1
            for p in self.model.parameters():
                p.grad = None
            # An augmentation of the batch, drawn inside the closure.
            shaken = inputs + 0.1 * torch.randn_like(inputs)
            loss = nn.functional.cross_entropy(self.model(shaken), labels)
            loss.backward()
            self.losses.append(float(loss.detach()))
            return loss

        return evaluate

    def pairs(self):
        return [(self.closure(i), len(labels)) for i, (_, labels) in enumerate(self.data)]

    def buffers(self):
        return [buffer.clone() for buffer in self.model.buffers()]

    def gradients(self):
        return [p.grad.clone() for p in self.model.parameters()]

    def values(self):
        return [p.detach().clone() for p in self.model.parameters()]


def directions(optimizer):
    """The list that each step from now on adds its directions to, instead of moving along them."""
    seen = []
    optimizer._move = lambda works, foreach: seen.append([work.direction.clone() for work in works])
    return seen


def snapshot(optimizer, problem):
    """Refresh, where the method does."""
    if isinstance(optimizer, SNAPSHOTTING):
        optimizer.refresh(problem.pairs())


# ---- following the slow twins

STEPS = 60
PERIOD = 7
RESCALES = (None, "diameter", "gradient")
ONE_OF_EACH_KIND = [Case(region, shape) for region, shape in MIXTURE]


def twin_steps(listing, problem, C, *, full=False, **settings):
    """The iterates of a slow twin on the problem's only parameter."""

    def grad(theta, t):
        return [array(problem.gradient(0, torch.as_tensor(theta[0]), t))]

    given = [grad, lambda theta: grad(theta, None)] if full else [grad]
    return listing([array(problem.params[0]).copy()], [C], *given, STEPS, **settings)


def follow(optimizer, problem, expected, lr=None):
    """Check every iterate of the optimizer against the twin's, to 1e-12 of their size."""
    (p,) = problem.params
    for t, (theta,) in enumerate(expected):
        if lr is not None:
            optimizer.param_groups[0]["lr"] = lr[t]
        if isinstance(optimizer, SNAPSHOTTING) and t % PERIOD == 0:
            optimizer.refresh(problem.pairs())
        optimizer.step(problem.closure(t))
        size = max(np.abs(theta).max(), getattr(optimizer.param_groups[0]["region"], "radius", 0.0))
        assert np.abs(array(p) - theta).max() <= 1e-12 * size, f"step {t}"


def scenario(case):
    """A start in the case's region, and batches whose curvature fits its size.

    Much steeper, and the iterates are driven to where the oracle jumps, so that rounding decides.
    The seed is one whose gradients have no singular value near zero, where the oracle of a
    spectral ball would magnify rounding.
    """
    p = start(case.region, case.shape, seed=3)
    return p, Batches([p], seed=2, curvature=0.6 / max(1.0, float(p.detach().norm())))


def rates(case, rescale):
    """A learning rate for each step: some percent of the way, now and then all of it."""
    shares = [0.02 + 0.05 * (t % 7) if t % 40 != 39 else 1.5 for t in range(STEPS)]
    if rescale is None or isinstance(case.region, cg.Free):
        return [min(share, 1.0) for share in shares]
    size = case.region.diameter(case.shape) or 1.0
    # Directions of norm about √n are rescaled to unit length by "gradient", not by "diameter".
    typical = size if rescale == "diameter" else size / np.sqrt(math.prod(case.shape))
    return [share * typical for share in shares]
