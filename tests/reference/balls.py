"""The balls of vector norms."""

import math

import numpy as np

from . import projections
from .geometry import Ball, close, largest_sum, norm, unit


class L1(Ball):
    def lmo(self, x):
        i = int(np.argmax(np.abs(x)))
        return unit(x.shape, i, -self.tau * np.sign(x.ravel()[i]))

    def minimum(self, x):
        return -self.tau * norm(x, math.inf)

    def gauge(self, x):
        return norm(x, 1) / self.tau

    def diameter(self, shape):
        return 2 * self.tau

    def widest(self, shape):
        return unit(shape, 0, self.tau)

    def is_extreme(self, v, tol=1e-12):
        expected = unit((v.size,), 0, self.tau)
        return close(np.sort(np.abs(v).ravel())[::-1], expected, tol)

    def project(self, x):
        return projections.l1(x, self.tau)


class L2(Ball):
    def lmo(self, x):
        return -self.tau * x / norm(x, 2)

    def minimum(self, x):
        return -self.tau * norm(x, 2)

    def gauge(self, x):
        return norm(x, 2) / self.tau

    def diameter(self, shape):
        return 2 * self.tau

    def widest(self, shape):
        return unit(shape, 0, self.tau)

    def is_extreme(self, v, tol=1e-12):
        return abs(self.gauge(v) - 1) <= tol

    def project(self, x):
        return x / max(self.gauge(x), 1.0)


class Linf(Ball):
    def lmo(self, x):
        return -self.tau * np.sign(x)

    def minimum(self, x):
        return -self.tau * norm(x, 1)

    def gauge(self, x):
        return norm(x, math.inf) / self.tau

    def diameter(self, shape):
        return 2 * self.tau * math.sqrt(math.prod(shape))

    def widest(self, shape):
        return np.full(shape, self.tau)

    def is_extreme(self, v, tol=1e-12):
        return close(np.abs(v), np.full(v.shape, self.tau), tol)

    def project(self, x):
        return np.clip(x, -self.tau, self.tau)


class Lp(Ball):
    """1 < p < infinity; q is the complementary order, 1/p + 1/q = 1."""

    def __init__(self, p, tau):
        super().__init__(tau)
        self.p, self.q = p, p / (p - 1)

    def lmo(self, x):
        return -self.tau * np.sign(x) * (np.abs(x) / norm(x, self.q)) ** (self.q / self.p)

    def minimum(self, x):
        return -self.tau * norm(x, self.q)

    def gauge(self, x):
        return norm(x, self.p) / self.tau

    def diameter(self, shape):
        return 2 * self.tau * max(1.0, math.prod(shape) ** (1 / 2 - 1 / self.p))

    def widest(self, shape):
        if self.p < 2:
            return unit(shape, 0, self.tau)
        return np.full(shape, self.tau * math.prod(shape) ** (-1 / self.p))

    def is_extreme(self, v, tol=1e-12):
        return abs(self.gauge(v) - 1) <= tol

    def project(self, x):
        return projections.lp(x, self.p, self.tau)


class KSparse(Ball):
    """conv of the vectors with K entries +-tau, and all others 0."""

    def __init__(self, K, tau):
        super().__init__(tau)
        self.K = K

    def lmo(self, x):
        v = np.zeros(x.size)
        top = np.argsort(np.abs(x).ravel())[::-1][: self.K]
        v[top] = -self.tau * np.sign(x.ravel()[top])
        return v.reshape(x.shape)

    def minimum(self, x):
        return -self.tau * largest_sum(x, self.K)

    def gauge(self, x):
        return max(norm(x, 1) / (self.tau * self.K), norm(x, math.inf) / self.tau)

    def diameter(self, shape):
        return 2 * self.tau * math.sqrt(self.K)

    def widest(self, shape):
        v = np.zeros(math.prod(shape))
        v[: self.K] = self.tau
        return v.reshape(shape)

    def is_extreme(self, v, tol=1e-12):
        return close(np.sort(np.abs(v).ravel())[::-1], self.widest((v.size,)), tol)

    def project(self, x):
        return projections.k_sparse(x, self.K, self.tau)


class KNorm(Ball):
    """conv(B_1(tau), B_inf(tau/K)) = {sum of the K largest absolute entries <= tau}."""

    def __init__(self, K, tau):
        super().__init__(tau)
        self.K = K
        self.parts = (L1(tau), Linf(tau / K))

    def lmo(self, x):
        return min((part.lmo(x) for part in self.parts), key=lambda v: float(np.sum(x * v)))

    def minimum(self, x):
        return -self.tau * max(norm(x, math.inf), norm(x, 1) / self.K)

    def gauge(self, x):
        return largest_sum(x, self.K) / self.tau

    def diameter(self, shape):
        return max(2 * self.tau, 2 * self.tau * math.sqrt(math.prod(shape)) / self.K)

    def widest(self, shape):
        if math.prod(shape) <= self.K**2:
            return unit(shape, 0, self.tau)
        return np.full(shape, self.tau / self.K)

    def is_extreme(self, v, tol=1e-12):
        # At K = 1 the ball is the hypercube, at K = n the L1 ball: the other family lies inside it.
        sparse, dense = (part.is_extreme(v, tol) for part in self.parts)
        return (sparse and (self.K > 1 or v.size == 1)) or (dense and v.size > self.K)

    def project(self, x):
        return projections.k_norm(x, self.K, self.tau)
