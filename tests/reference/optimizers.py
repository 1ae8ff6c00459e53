"""The algorithms, as printed in the paper (SPIDER-FW, SVRF with the slips of its listing mended).

theta is a list of arrays, C the list of their regions (twins of ``reference.regions``), and every
algorithm yields theta_1, theta_2, ..., theta_T. The stochastic gradient is asked for as
``grad(theta, t)``: the gradients of the t-th batch, at any theta; ``full(theta)`` is that of L.
``alpha`` is a number or a sequence with one number a step, ``rho`` is 1 - momentum.
"""

import numpy as np

from .regions import Free


def at(alpha, t):
    """The learning rate of step t."""
    return alpha if np.isscalar(alpha) else alpha[t]


def move(theta, m, C, alpha, rescale):
    """theta + a (v - theta) with v = argmin <m, v>, for each tensor; m is the direction.

    The free region has no v: there the step is -alpha m.
    """
    return [_move_one(*each, alpha, rescale) for each in zip(theta, m, C, strict=True)]


def _move_one(theta, m, C, alpha, rescale):
    if isinstance(C, Free):
        return theta - alpha * m
    v = C.lmo(m)
    if rescale is None:
        a = alpha
    elif rescale == "diameter":
        D = C.diameter(theta.shape)
        a = alpha / D if alpha < D else 1.0
    elif rescale == "gradient":
        distance = np.linalg.norm(v - theta)
        a = min(alpha * np.linalg.norm(m) / distance, 1.0) if distance > 0 else 0.0
    else:
        raise ValueError(rescale)
    return theta + a * (v - theta)


def zeros(theta):
    return [np.zeros_like(x) for x in theta]


def combine(a, x, b, y):
    """The sums a x + b y, tensor by tensor."""
    return [a * p + b * q for p, q in zip(x, y, strict=True)]


def sfw(theta, C, grad, T, alpha, rho=1.0, rescale=None):
    """Stochastic Frank-Wolfe; the momentum starts at zero, not at the first gradient."""
    m = zeros(theta)
    for t in range(T):
        m = combine(1 - rho, m, rho, grad(theta, t))
        theta = move(theta, m, C, at(alpha, t), rescale)
        yield theta


def svrf(theta, C, grad, full, T, K, alpha, rescale=None):
    """SVRF: a snapshot every K steps, and the batch's change since the snapshot added to it.

    The listing subtracts the loss at the snapshot where its gradient is meant.
    """
    for t in range(T):
        if t % K == 0:
            x0, mean = theta, full(theta)
        change = combine(1, grad(theta, t), -1, grad(x0, t))
        theta = move(theta, combine(1, mean, 1, change), C, at(alpha, t), rescale)
        yield theta


def spider_fw(theta, C, grad, full, T, K, alpha, rescale=None):
    """SPIDER-FW: like SVRF, but each change is taken against the step before and accumulates."""
    previous = theta
    for t in range(T):
        if t % K == 0:
            estimate = full(theta)
        else:
            change = combine(1, grad(theta, t), -1, grad(previous, t))
            estimate = combine(1, estimate, 1, change)
        previous = theta
        theta = move(theta, estimate, C, at(alpha, t), rescale)
        yield theta


def orgfw(theta, C, grad, T, alpha, rho, rescale=None):
    """ORGFW: momentum that carries its memory over from theta_{t-1} to theta_t."""
    previous = theta
    for t in range(T):
        if t == 0:
            m = grad(theta, t)
        else:
            stale = combine(1, m, -1, grad(previous, t))
            m = combine(1, grad(theta, t), 1 - rho, stale)
        previous = theta
        theta = move(theta, m, C, at(alpha, t), rescale)
        yield theta


def quadratic_steps(theta, g, H, C, lr, K):
    """K Frank-Wolfe steps from theta on Q(y) = <g, y> + (1/2 lr) ||y - theta||_H^2.

    Along y + a (v - y) the model is a parabola, so the best a is known; it is clipped to [0, 1].
    The free region needs no steps: its minimum is known.
    """
    if isinstance(C, Free):
        return theta - lr * g / H
    y = theta
    for _ in range(K):
        slope = g + H * (y - theta) / lr
        d = C.lmo(slope) - y
        curvature = np.sum(H * d**2) / lr
        a = np.clip(-np.sum(slope * d) / curvature, 0.0, 1.0) if curvature > 0 else 0.0
        y = y + a * d
    return y


def ada_sfw(theta, C, grad, T, lr, K, delta):
    """AdaSFW: H = delta + sqrt(sum of all squared gradients)."""
    s = zeros(theta)
    for t in range(T):
        g = grad(theta, t)
        s = [a + b**2 for a, b in zip(s, g, strict=True)]
        theta = [
            quadratic_steps(x, d, delta + np.sqrt(h), c, at(lr, t), K)
            for x, d, h, c in zip(theta, g, s, C, strict=True)
        ]
        yield theta


def adam_sfw(theta, C, grad, T, lr, K, delta, betas=(0.9, 0.99)):
    """AdamSFW: H = delta + sqrt(largest second moment so far), and momentum in the model's slope.

    Neither moment is corrected for its start at zero.
    """
    m, s, top = zeros(theta), zeros(theta), zeros(theta)
    for t in range(T):
        g = grad(theta, t)
        m = combine(betas[0], m, 1 - betas[0], g)
        s = combine(betas[1], s, 1 - betas[1], [b**2 for b in g])
        top = [np.maximum(a, b) for a, b in zip(top, s, strict=True)]
        theta = [
            quadratic_steps(x, d, delta + np.sqrt(h), c, at(lr, t), K)
            for x, d, h, c in zip(theta, m, top, C, strict=True)
        ]
        yield theta


def projected_sgd(theta, C, grad, T, lr, momentum=0.0, nesterov=False, weight_decay=0.0):
    """torch.optim.SGD's step, then the nearest point; its momentum starts at the first gradient."""
    buffer = None
    for t in range(T):
        g = combine(1, grad(theta, t), weight_decay, theta)
        if momentum:
            buffer = g if buffer is None else combine(momentum, buffer, 1, g)
            g = combine(1, g, momentum, buffer) if nesterov else buffer
        moved = combine(1, theta, -at(lr, t), g)
        theta = [c.project(x) for x, c in zip(moved, C, strict=True)]
        yield theta
