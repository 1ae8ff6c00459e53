"""Regions of matrices, and regions that bind each block of a tensor on its own."""

import math

import numpy as np

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
