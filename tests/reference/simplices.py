"""The sets that are not symmetric about the origin: simplices, permutahedron, box."""

import math

import numpy as np

from . import projections
from .geometry import Region, close, unit


class UnitSimplex(Region):
    def __init__(self, tau):
        self.tau = tau

    def lmo(self, x):
        i = int(np.argmin(x))
        return unit(x.shape, i, self.tau if x.ravel()[i] < 0 else 0.0)

    def minimum(self, x):
        return self.tau * min(float(np.min(x)), 0.0)

    def diameter(self, shape):
        return self.tau * (math.sqrt(2) if math.prod(shape) > 1 else 1.0)

    def antipodes(self, shape):
        n = math.prod(shape)
        return unit(shape, 0, self.tau), unit(shape, 1, self.tau) if n > 1 else np.zeros(shape)

    def violation(self, x):
        return max(-float(np.min(x)) / self.tau, float(np.sum(x)) / self.tau - 1, 0.0)

    def is_extreme(self, v, tol=1e-12):
        origin = bool(np.all(np.abs(v) <= tol * self.tau))
        return origin or ProbabilitySimplex(self.tau).is_extreme(v, tol)

    def project(self, x):
        return projections.unit_simplex(x, self.tau)


class ProbabilitySimplex(Region):
    def __init__(self, tau):
        self.tau = tau

    def lmo(self, x):
        return unit(x.shape, int(np.argmin(x)), self.tau)

    def minimum(self, x):
        return self.tau * float(np.min(x))

    def diameter(self, shape):
        return self.tau * math.sqrt(2) if math.prod(shape) > 1 else 0.0

    def antipodes(self, shape):
        return unit(shape, 0, self.tau), unit(shape, min(1, math.prod(shape) - 1), self.tau)

    def violation(self, x):
        return max(-float(np.min(x)) / self.tau, abs(float(np.sum(x)) / self.tau - 1))

    def is_extreme(self, v, tol=1e-12):
        return close(np.sort(v.ravel())[::-1], unit((v.size,), 0, self.tau), tol)

    def project(self, x):
        return projections.probability_simplex(x, self.tau)


class Permutahedron(Region):
    """conv of all permutations of (1, ..., n), times tau."""

    def __init__(self, tau=1.0):
        self.tau = tau

    def ladder(self, n):
        return self.tau * np.arange(1.0, n + 1)

    def lmo(self, x):
        v = np.empty(x.size)
        v[np.argsort(x.ravel())] = self.ladder(x.size)[::-1]
        return v.reshape(x.shape)

    def minimum(self, x):
        # Rearrangement inequality: one sequence rising, the other falling.
        return float(np.sort(x.ravel())[::-1] @ self.ladder(x.size))

    def diameter(self, shape):
        n = math.prod(shape)
        return self.tau * math.sqrt(n * (n**2 - 1) / 3)

    def antipodes(self, shape):
        v = self.ladder(math.prod(shape))
        return v.reshape(shape), v[::-1].reshape(shape).copy()

    def violation(self, x):
        # Rado: the sums of the k largest entries are at most those of the ladder, all sums equal.
        ladder = self.ladder(x.size)
        excess = np.cumsum(np.sort(x.ravel())[::-1]) - np.cumsum(ladder[::-1])
        return max(float(np.max(excess)), abs(float(excess[-1]))) / float(np.sum(ladder))

    def is_extreme(self, v, tol=1e-12):
        return close(np.sort(v.ravel()), self.ladder(v.size), tol)

    def project(self, x):
        return projections.permutahedron(x, self.tau)


class Box(Region):
    """low <= v <= high, entry by entry."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def lmo(self, x):
        return np.where(x > 0, self.low, self.high)

    def minimum(self, x):
        return float(np.sum(np.minimum(x * self.low, x * self.high)))

    def diameter(self, shape):
        return (self.high - self.low) * math.sqrt(math.prod(shape))

    def antipodes(self, shape):
        return np.full(shape, self.low), np.full(shape, self.high)

    def violation(self, x):
        excess = max(self.low - float(np.min(x)), float(np.max(x)) - self.high, 0.0)
        return excess / (self.high - self.low)

    def is_extreme(self, v, tol=1e-12):
        slack = tol * (self.high - self.low)
        return bool(np.all((np.abs(v - self.low) <= slack) | (np.abs(v - self.high) <= slack)))

    def project(self, x):
        return np.clip(x, self.low, self.high)
