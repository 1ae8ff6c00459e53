"""Regions of matrices, and regions that bind each block of a tensor on its own."""

import math

import numpy as np
from scipy.special import erfinv

from .geometry import Ball, Region, norm
from .projections import l1


def as_matrix(x):
    """A tensor (out, ...) as the matrix (out, rest)."""
    return x.reshape(x.shape[0], -1)


def singular_values(x):
    return np.linalg.svd(as_matrix(x), compute_uv=False)


def diagonal(shape, count, value):
    """The matrix of the given shape with ``count`` leading diagonal entries ``value``."""
    m = np.zeros((shape[0], math.prod(shape[1:])))
    m[np.arange(count), np.arange(count)] = value
    return m.reshape(shape)


def rank(shape):
    """The number of singular values."""
    return min(shape[0], math.prod(shape[1:]))


class Spectral(Ball):
    """Largest singular value at most tau."""

    def lmo(self, x):
        U, _, Vt = np.linalg.svd(as_matrix(x), full_matrices=False)
        return (-self.tau * U @ Vt).reshape(x.shape)

    def minimum(self, x):
        return -self.tau * norm(singular_values(x), 1)

    def gauge(self, x):
        return norm(singular_values(x), math.inf) / self.tau

    def diameter(self, shape):
        return 2 * self.tau * math.sqrt(rank(shape))

    def widest(self, shape):
        return diagonal(shape, rank(shape), self.tau)

    def is_extreme(self, v, tol=1e-12):
        return bool(np.all(np.abs(singular_values(v) - self.tau) <= tol * self.tau))

    def project(self, x):
        U, s, Vt = np.linalg.svd(as_matrix(x), full_matrices=False)
        return ((U * np.minimum(s, self.tau)) @ Vt).reshape(x.shape)


class Nuclear(Ball):
    """Sum of the singular values at most tau."""

    def lmo(self, x):
        U, _, Vt = np.linalg.svd(as_matrix(x), full_matrices=False)
        return (-self.tau * np.outer(U[:, 0], Vt[0])).reshape(x.shape)

    def minimum(self, x):
        return -self.tau * norm(singular_values(x), math.inf)

    def gauge(self, x):
        return norm(singular_values(x), 1) / self.tau

    def diameter(self, shape):
        return 2 * self.tau

    def widest(self, shape):
        return diagonal(shape, 1, self.tau)

    def is_extreme(self, v, tol=1e-12):
        s = singular_values(v)
        s[0] -= self.tau
        return bool(np.all(np.abs(s) <= tol * self.tau))

    def project(self, x):
        U, s, Vt = np.linalg.svd(as_matrix(x), full_matrices=False)
        return ((U * l1(s, self.tau)) @ Vt).reshape(x.shape)


class Polynomial(Spectral):
    """The same set; the oracle lets polynomials act on the singular values, in place of 1."""

    QUINTICS = (  # x (a + c (x² − s)²)
        (0.072, 0.7313, 14.5996),
        (0.1298, 2.78, 0.4572),
        (0.375, 2.4745, 0.4134),
        (0.6979, 1.9383, 0.3681),
    )
    FLOOR, LEAST = 0.981, 1 / 128

    def bound(self, s):
        """At least the largest singular value: the root of the sum of their fourth powers."""
        return norm(s, 4)

    def response(self, s):
        y = s / self.bound(s)
        for a, shift, c in self.QUINTICS:
            y = y * (a + c * (y**2 - shift) ** 2)
        return y * (3 - y**2) / 2 / (1 + 2**-8)

    def lmo(self, x):
        U, s, Vt = np.linalg.svd(as_matrix(x), full_matrices=False)
        return (-self.tau * (U * self.response(s)) @ Vt).reshape(x.shape)

    def loss(self, x):
        s = singular_values(x)
        small = s[s < self.LEAST * self.bound(s)]
        return self.tau * ((1 - self.FLOOR) * s.sum() + small.sum())

    def is_extreme(self, v, tol=1e-12):
        """No more than nearly: from the floor on, in the direction of the largest."""
        return self.FLOOR - tol <= self.gauge(v) <= 1 + tol


class Lanczos(Nuclear):
    """The same set; the oracle takes the best unit vector in a Krylov space of X Xᵀ."""

    STEPS = 24

    def lmo(self, x):
        X = as_matrix(x)
        if X.shape[0] > X.shape[1]:
            u, w = self.leading(X.T)[::-1]
        else:
            u, w = self.leading(X)
        return (-self.tau * np.outer(u, w)).reshape(x.shape)

    def leading(self, X):
        """The unit u in span{q, XXᵀq, (XXᵀ)²q, …} with the longest Xᵀu, and Xᵀu/‖Xᵀu‖."""
        q = self.start(X.shape[0])
        Q = (q / norm(q, 2))[:, None]
        for _ in range(min(self.STEPS, X.shape[0]) - 1):
            Q = np.linalg.qr(np.column_stack([Q, X @ (X.T @ Q[:, -1])]))[0]
        Y, _, _ = np.linalg.svd(Q.T @ X)
        u = Q @ Y[:, 0]
        return u, X.T @ u / norm(X.T @ u, 2)

    def start(self, m):
        """Normal numbers from the integer hash splitmix64, the i-th a function of i alone."""
        words, mask = np.array([splitmix64(i, 0x1A2C05) for i in range(m)], dtype=object), 2**64
        words = np.where(words >= mask // 2, words - mask, words)  # as signed numbers
        return erfinv((np.array([w >> 40 for w in words], dtype=np.float64) + 0.5) / 2**23)

    def loss(self, x):
        """What happens to one start in a million at most, whatever X is; nothing in m steps."""
        m = rank(x.shape)
        if m <= self.STEPS:
            return 0.0
        epsilon = (math.log(1.65 * math.sqrt(m) * 1e6) / (2 * self.STEPS - 1)) ** 2
        return self.tau * norm(singular_values(x), math.inf) * (1 - math.sqrt(1 - epsilon))


def splitmix64(counter, key):
    mask = 2**64 - 1
    z = (counter * 0x9E3779B97F4A7C15 + key) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


class Blocks(Region):
    """Every block x[0], x[1], ... of a tensor in a set of its own: the product of those sets.

    A row is a block that is flattened first, a filter keeps its shape; that only matters to the
    matrix regions.
    """

    def __init__(self, region):
        self.region = region

    def each(self, answer, x):
        return np.stack([answer(block) for block in x])

    def lmo(self, x):
        return self.each(self.region.lmo, x)

    def minimum(self, x):
        return sum(self.region.minimum(block) for block in x)

    def loss(self, x):
        return sum(self.region.loss(block) for block in x)

    def project(self, x):
        return self.each(self.region.project, x)

    def diameter(self, shape):
        return math.sqrt(shape[0]) * self.region.diameter(shape[1:])

    def antipodes(self, shape):
        a, b = self.region.antipodes(shape[1:])
        return np.stack([a] * shape[0]), np.stack([b] * shape[0])

    def violation(self, x):
        return max(self.region.violation(block) for block in x)

    def is_extreme(self, v, tol=1e-12):
        return all(self.region.is_extreme(block, tol) for block in v)
