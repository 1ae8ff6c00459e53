"""A training script as a user writes it: what the tools of others are tried on."""

import torch
from torch import nn

import condgrad as cg
from inputs import generator, normal
from optim.cases import build

RULES = {r".*bias": cg.Free(), r"0\.weight": cg.L2Ball(1.0), r".*": cg.LinfBall(0.3)}
BATCHES = 4


def network(seed=0, dtype=torch.float64):
    """A small network, from a seed of its own."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)


def batch(t, dtype=torch.float64):
    """The t-th batch of inputs and labels; all of them for None."""
    if t is None:
        every = [batch(i, dtype) for i in range(BATCHES)]
        return tuple(torch.cat(parts) for parts in zip(*every, strict=True))
    place = t % BATCHES
    return normal((8, 6), 50 + place, dtype=dtype), torch.arange(8).roll(place) % 3


class Script:
    """A model and its optimizer; `optim.cases.step` and `run` drive it like their own problem."""

    def __init__(self, kind, *, dtype=torch.float64, **settings):
        self.dtype = dtype
        self.model = network(dtype=dtype)
        self.optimizer = build(kind, cg.constrain(self.model, RULES), **settings)

    def loss(self, t):
        inputs, labels = batch(t, self.dtype)
        return nn.functional.cross_entropy(self.model(inputs), labels)

    def closure(self, t):
        """What zeroes the gradients and evaluates the t-th batch."""

        def evaluate():
            self.optimizer.zero_grad()
            loss = self.loss(t)
            loss.backward()
            return loss.detach()

        return evaluate

    def values(self):
        return [p.detach().clone() for p in self.model.parameters()]

    def inside(self):
        """Whether every parameter lies in its region, up to rounding."""
        return float(cg.violation(self.optimizer)) <= 32 * torch.finfo(self.dtype).eps


def close(first, second, slack=1e-12):
    """Whether two lists of tensors are equal up to rounding."""
    pairs = list(zip(first, second, strict=True))
    return all(a.shape == b.shape and torch.allclose(a, b, slack, slack) for a, b in pairs)


def shuffled(count, seed):
    """The places 0 … count − 1 in a random order."""
    return torch.randperm(count, generator=generator(seed)).tolist()
