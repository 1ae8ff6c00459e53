"""Least values of convex finite sums, with a certificate."""

import numpy as np


def logistic_loss(theta, z):
    """The mean of log(1 + exp(-<z_i, theta>)) over the rows of z, each label times its point."""
    return float(np.logaddexp(0.0, -z @ theta).mean())


def logistic_gradient(theta, z):
    return -(1 / (1 + np.exp(z @ theta))) @ z / len(z)


def gap(theta, g, C):
    """max over v in C of <theta - v, g>: that far, at most, a convex loss is above its least."""
    return float(np.sum(g * (theta - C.lmo(g))))


def least_logistic(z, C, tol, most=10_000):
    """The theta in C of least loss, by accelerated projected gradients, and its gap, at most tol.

    The momentum starts again whenever it points uphill, so that on the face where the solution
    lies the method is as fast as on a strongly convex function (O'Donoghue, Candès 2015).
    """
    M = np.linalg.norm(z, 2) ** 2 / (4 * len(z))
    theta = y = np.zeros(z.shape[1])
    s = 1.0
    for _ in range(most):
        new = C.project(y - logistic_gradient(y, z) / M)
        if (y - new) @ (new - theta) > 0:
            s = 1.0
        following = (1 + np.sqrt(1 + 4 * s**2)) / 2
        y = new + (s - 1) / following * (new - theta)
        theta, s = new, following
        certificate = gap(theta, logistic_gradient(theta, z), C)
        if certificate <= tol:
            return theta, certificate
    raise RuntimeError(f"the gap is still {certificate} after {most} steps")
