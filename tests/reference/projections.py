"""Euclidean projections, each by solving its optimality conditions in the plainest way there is."""

import numpy as np


def threshold(total, breakpoints, target):
    """The mu with total(mu) = target, for a falling piecewise-linear function of known breakpoints.

    Between two neighbouring breakpoints the function is a straight line, so that evaluating it at
    all of them and interpolating once is exact.
    """
    breakpoints = np.unique(breakpoints)
    values = np.array([total(mu) for mu in breakpoints])
    right = int(np.argmax(values <= target))
    if right == 0:
        return breakpoints[0]
    a, b = breakpoints[right - 1], breakpoints[right]
    fa, fb = values[right - 1], values[right]
    return a + (b - a) * (fa - target) / (fa - fb)


def probability_simplex(x, tau):
    # v = max(x - mu, 0); at mu = max(x) the sum is 0, at min(x) - tau it is at least tau.
    def total(mu):
        return np.maximum(x - mu, 0).sum()

    mu = threshold(total, np.append(x.ravel(), np.min(x) - tau), tau)
    return np.maximum(x - mu, 0)


def unit_simplex(x, tau):
    v = np.maximum(x, 0)
    return v if v.sum() <= tau else probability_simplex(x, tau)


def l1(x, tau):
    if np.abs(x).sum() <= tau:
        return x
    return np.sign(x) * probability_simplex(np.abs(x), tau)


def k_sparse(x, K, tau):
    size = np.abs(x).ravel()

    def total(mu):
        return np.clip(size - mu, 0, tau).sum()

    if total(0.0) <= K * tau:
        return np.clip(x, -tau, tau)
    corners = np.concatenate([size, size - tau, [0.0]])
    mu = threshold(total, corners[corners >= 0], K * tau)
    return np.sign(x) * np.clip(np.abs(x) - mu, 0, tau)


def k_norm(x, K, tau):
    """Projection on {sum of the K largest <= tau}, by trying every shape the answer can have.

    With |x| sorted, the answer lowers the first a entries by a multiplier lam, flattens entries
    a .. b-1 to a common level c, and keeps the rest; a < K <= b unless the level is 0.
    """
    order = np.argsort(np.abs(x).ravel())[::-1]
    y = np.abs(x).ravel()[order]
    if y[:K].sum() <= tau:
        return x
    n, best, error = y.size, y, np.inf
    for a in range(K):
        for b in range(K, n + 1):
            v, broken = _k_norm_candidate(y, a, b, K, tau)
            if broken < error:
                best, error = v, broken
    for a in range(1, K + 1):
        lam = (y[:a].sum() - tau) / a
        v = np.where(np.arange(n) < a, y - lam, 0.0)
        # What is cut away must be a subgradient: at most lam an entry, at most K lam in all.
        broken = max(np.max(y - v) - lam, (y - v).sum() - K * lam, -np.min(v))
        if broken < error:
            best, error = v, broken
    v = np.empty(n)
    v[order] = best
    return np.sign(x) * v.reshape(x.shape)


def _k_norm_candidate(y, a, b, K, tau):
    # sum(y[:a]) - a lam + (K - a) c = tau   and   sum(y[a:b]) - (b - a) c = (K - a) lam
    top, tied = y[:a].sum(), y[a:b].sum()
    c, lam = np.linalg.solve([[K - a, -a], [b - a, K - a]], [tau - top, tied])
    v = np.concatenate([y[:a] - lam, np.full(b - a, c), y[b:]])
    cut = y - v
    order_broken = max(np.max(v[a:]) - np.min(v[: a + 1]), np.max(y[b:], initial=0.0) - c)
    return v, max(order_broken, np.max(cut) - lam, -np.min(cut), -lam, -c)


def lp(x, p, tau):
    """The v with v + lam v^(p-1) = |x| in every entry, for the one lam that puts v on the sphere.

    Both unknowns are found by bisection: v between 0 and |x| for a given lam, then lam itself.
    """
    size = np.abs(x)

    def entries(lam):
        low, high = np.zeros_like(size), size.copy()
        for _ in range(80):
            v = (low + high) / 2
            above = v + lam * v ** (p - 1) > size
            low, high = np.where(above, low, v), np.where(above, v, high)
        return (low + high) / 2

    def excess(lam):
        return np.sum((entries(lam) / tau) ** p) - 1

    if excess(0.0) <= 0:
        return x
    low, high = 0.0, 1.0
    while excess(high) > 0:
        high *= 2
    for _ in range(100):
        lam = (low + high) / 2
        low, high = (lam, high) if excess(lam) > 0 else (low, lam)
    return np.sign(x) * entries((low + high) / 2)


def permutahedron(x, tau):
    """x minus the falling sequence nearest to (sorted x) - ladder, by the min-max formula."""
    n = x.size
    order = np.argsort(x.ravel())[::-1]
    a = x.ravel()[order] - tau * np.arange(n, 0, -1.0)
    fit = [
        min(max(a[j:k].mean() for k in range(i + 1, n + 1)) for j in range(i + 1)) for i in range(n)
    ]
    v = np.empty(n)
    v[order] = x.ravel()[order] - fit
    return v.reshape(x.shape)
