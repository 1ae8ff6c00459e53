"""What every region C answers: linear minimiser, its value, diameter, membership, extreme points.

``x`` is a direction (or a point to be judged), ``v`` a vertex, ``tau`` the radius, ``n`` the number
of entries of a point. One array of any shape is one point, unless the region says otherwise.
"""

import math

import numpy as np


def norm(x, p):
    """The p-norm of all entries, safe from overflow and underflow."""
    x = np.abs(np.asarray(x, dtype=np.float64)).ravel()
    largest = x.max()
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sum((x / largest) ** p)) ** (1 / p) if p < math.inf else largest


def largest_sum(x, k):
    """Sum of the k largest absolute entries."""
    return float(np.sort(np.abs(x).ravel())[::-1][:k].sum())


def unit(shape, i, value=1.0):
    """``value`` times the i-th unit vector, in the given shape."""
    e = np.zeros(math.prod(shape))
    e[i] = value
    return e.reshape(shape)


def close(a, b, tol):
    """Whether a and b differ by at most tol, relative to the larger entries of b (at least 0)."""
    return bool(np.all(np.abs(a - b) <= tol * max(np.max(np.abs(b)), 1e-300)))


class Region:
    """What every twin answers."""

    def lmo(self, x):
        """argmin <x, v> over the region, for a direction where it is unique."""
        raise NotImplementedError

    def minimum(self, x):
        """The value min <x, v>, by a formula that does not go through ``lmo``."""
        raise NotImplementedError

    def loss(self, x):
        """By how much <x, v> of the oracle's v may miss the minimum; nothing if it is exact."""
        return 0.0

    def diameter(self, shape):
        """Largest Euclidean distance of two points."""
        raise NotImplementedError

    def antipodes(self, shape):
        """Two points of the region that lie a diameter apart."""
        raise NotImplementedError

    def violation(self, x):
        """0 inside, and outside how far, relative to the size of the region."""
        raise NotImplementedError

    def is_extreme(self, v, tol=1e-12):
        """Whether v is an extreme point (for a polytope: a vertex)."""
        raise NotImplementedError

    def project(self, x):
        """The nearest point of the region."""
        raise NotImplementedError

    def is_optimal(self, x, v, tol=1e-9):
        """Whether v solves the linear problem at x, ties or not, as well as the oracle promises."""
        scale = float(np.sum(np.abs(x) * np.abs(v))) + abs(self.minimum(x))
        optimal = float(np.sum(x * v)) <= self.minimum(x) + self.loss(x) + tol * scale
        return optimal and self.violation(v) <= tol


class Ball(Region):
    """{v : gauge(v) <= 1}, symmetric about the origin."""

    def __init__(self, tau):
        self.tau = tau

    def gauge(self, x):
        raise NotImplementedError

    def violation(self, x):
        return max(self.gauge(x) - 1, 0.0)

    def antipodes(self, shape):
        v = self.widest(shape)
        return v, -v


class Free(Region):
    """All of the space: there is no oracle, and nothing is outside."""

    def diameter(self, shape):
        return math.inf

    def violation(self, x):
        return 0.0

    def project(self, x):
        return x
