"""Nearest points: Euclidean projections of batches of vectors and matrices, as pure functions.

Every function takes points (B, n), or matrices (B, r, c), in float32 or float64 and returns the
nearest point of each row in the same dtype. A row that only rounding could tell from one inside
comes back bit for bit; a row that is not finite comes back as NaN. Arithmetic is in float64, and
no result depends on the order in which a device happens to add.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._isotonic import centred_blocks, isotonic, running_sum

SLACK = 4.0
"""How many machine epsilons outside still count as inside: what rounding the entries may do."""


# ---- simplices and the L1 ball


def onto_simplex(points: Tensor, total: float) -> Tensor:
    """The nearest points of {v ≥ 0, Σv = total}: max(x − t, 0) for one level t of each row."""
    x, finite = _opened(points)
    off = (x.sum(1, keepdim=True) - total).abs()
    inside = (x >= 0).all(1, keepdim=True) & (off <= _slack(points) * total)
    return _closed(points, _tips(x, total), finite, inside)


def onto_unit_simplex(points: Tensor, total: float) -> Tensor:
    """The nearest points of {v ≥ 0, Σv ≤ total}: the positive part, or its face Σv = total."""
    x, finite = _opened(points)
    positive = x.clamp(min=0)
    fits = positive.sum(1, keepdim=True) <= total * (1 + _slack(points))
    inside = fits & (x >= 0).all(1, keepdim=True)
    return _closed(points, torch.where(fits, positive, _tips(x, total)), finite, inside)


def onto_l1_ball(points: Tensor, radius: float) -> Tensor:
    """The nearest points of {‖v‖₁ ≤ radius}: soft thresholding at one level of each row."""
    x, finite = _opened(points)
    sizes = x.abs()
    inside = sizes.sum(1, keepdim=True) <= radius * (1 + _slack(points))
    return _closed(points, x.sign() * _tips(sizes, radius), finite, inside)


def _tips(heights: Tensor, volume: float | Tensor) -> Tensor:
    """What stands above the level t of each row at which Σ max(h − t, 0) = volume."""
    # Measured downwards from the top, a small volume under a high top keeps all of its digits.
    depths = heights.amax(1, keepdim=True) - heights
    tips = (_depth(depths, volume) - depths).clamp(min=0)
    return _trued(tips, volume, tips > 0)


def _depth(starts: Tensor, volume: float | Tensor, span: float | None = None) -> Tensor:
    """The D of each row at which Σ clamp(D − start, 0, span) = volume, in one sort.

    The sum grows at a rate that steps up at each start and, with a span, down at each start + span.
    The areas up to all of these edges are sums of nonnegative terms: nothing cancels.
    """
    edges = starts if span is None else torch.cat([starts, starts + span], dim=1)
    edges, order = edges.sort(dim=1)
    rates = torch.where(order < starts.shape[1], 1, -1).cumsum(1)
    areas = pad(running_sum(rates[:, :-1] * edges.diff(dim=1)), (1, 0))
    last = (areas < volume).sum(1, keepdim=True).clamp(min=1) - 1
    rest = volume - areas.gather(1, last)
    return edges.gather(1, last) + rest / rates.gather(1, last)


def _trued(values: Tensor, volume: float | Tensor, free: Tensor) -> Tensor:
    """The values with their free ones moved together, by a rounding error, to sum to volume."""
    error = values.sum(1, keepdim=True) - volume
    return (values - free * (error / free.sum(1, keepdim=True).clamp(min=1))).clamp(min=0)


# ---- L2 and Lp balls


def onto_l2_ball(points: Tensor, radius: float) -> Tensor:
    """The nearest points of {‖v‖₂ ≤ radius}: the row scaled down."""
    x, finite = _opened(points)
    peak, shares = _shares(x)
    norm = _norm(shares, 2)
    inside = peak * norm <= radius * (1 + _slack(points))
    return _closed(points, shares * (radius / norm), finite, inside)


def onto_lp_ball(points: Tensor, p: float, radius: float) -> Tensor:
    """The nearest points of {‖v‖ₚ ≤ radius} for 1 < p < ∞, to about 1e-14·max(1, 1/(p−1)).

    The answer is v = radius·u with ‖u‖ₚ = 1, where with the row scaled to a largest entry of 1 and
    the radius to r, every entry balances r·u + λ·u^(p−1) = |x|. All is done with logarithms, so
    that no power overflows; far points (r → 0) turn into the vertex of the linear oracle.
    """
    if p == 2:
        return onto_l2_ball(points, radius)
    x, finite = _opened(points)
    peak, shares = _shares(x.abs())
    norm = _norm(shares, p)
    inside = peak * norm <= radius * (1 + _slack(points))
    # Rows with nothing to solve take part as rows of ones that lie on the boundary.
    log_z = shares.masked_fill(inside, 1.0).log().clamp(min=_LOG_OF_ZERO)
    log_r = (radius / peak).log().masked_fill(inside, math.log(x.shape[1]) / p)
    nearest = radius * _balanced(log_z, log_r, p).exp()
    return _closed(points, x.sign() * nearest, finite, inside)


_LOG_OF_ZERO = -800.0
"""Below the logarithm of every positive float64; its powers vanish from every sum."""


def _balanced(log_z: Tensor, log_r: Tensor, p: float) -> Tensor:
    """The log u with r·u + λ·u^(p−1) = z, for the multiplier λ of each row at which ‖u‖ₚ = 1.

    λ lies in (0, ‖z‖_q]. Newton's method seeks it between brackets, on the scale in which it is
    nearly linear: ‖u‖ₚ^(1−p) for p > 2 (exactly linear as r → 0), log‖u‖ₚ for p < 2.
    """
    q = p / (p - 1)
    bend = p - 1 if p > 2 else 0.0
    tolerance = 64 * torch.finfo(log_z.dtype).eps * max(1.0, 1 / (p - 1))
    high = _log_norm(log_z, q).exp()
    low = torch.zeros_like(high)
    # The multiplier if u were proportional to z, which is right at both ends of the range.
    multiplier = high * -torch.expm1(log_r - _log_norm(log_z, p)).clamp(max=0)
    log_u = log_z - log_r
    excess = low
    for _ in range(60):
        log_u, sway = _entries(log_z, log_r, multiplier.log(), p, log_u)
        excess = _log_norm(log_u, p)
        settled = (excess.abs() <= tolerance) | (high <= low)
        if settled.all():
            break
        low = torch.where(excess > 0, multiplier, low)
        high = torch.where(excess > 0, high, multiplier)
        fall = (torch.exp(p * (log_u - excess)) * sway).sum(1, keepdim=True) / multiplier
        rise = torch.expm1(bend * excess) / bend if bend else excess
        guess = multiplier + rise / fall
        guess = torch.where((guess > low) & (guess < high), guess, (low + high) / 2)
        multiplier = torch.where(settled, multiplier, guess)
    return log_u - excess


def _entries(
    log_z: Tensor, log_r: Tensor, log_multiplier: Tensor, p: float, guess: Tensor
) -> tuple[Tensor, Tensor]:
    """The log u with r·u + λ·u^(p−1) = z, and how fast each falls as log λ grows.

    The logarithm of the left side is convex in log u, with slopes between 1 and p − 1: Newton's
    method from the right of the root goes straight down to it, in a handful of steps for all p.
    """
    power = p - 1
    linear, curved = log_r - log_z, log_multiplier - log_z
    most = torch.minimum(-linear, curved / -power)  # where one of the two terms alone reaches z
    log_u = torch.minimum(guess, most)
    sway = log_u
    for _ in range(60):
        a, b = torch.exp(linear + log_u), torch.exp(curved + power * log_u)
        both, slope = a + b, a + power * b
        step = both.log() * both / slope
        log_u, sway = torch.minimum(log_u - step, most), b / slope
        if (step.abs() <= 1e-8).all():  # the next step would be its square
            break
    return log_u, sway


def _norm(x: Tensor, p: float) -> Tensor:
    # A plain sum adds in pairs; vector_norm adds in a row, and is off by n ulps on the CPU.
    return x.pow(p).sum(1, keepdim=True).pow(1 / p)


def _log_norm(log_x: Tensor, p: float) -> Tensor:
    return torch.logsumexp(p * log_x, 1, keepdim=True) / p


# ---- balls of the K largest


def onto_k_sparse(points: Tensor, k: int, radius: float) -> Tensor:
    """The nearest points of {‖v‖₁ ≤ k·radius, ‖v‖_∞ ≤ radius}: soft thresholding, then clipping."""
    x, finite = _opened(points)
    sizes = x.abs()
    nearest = sizes.clamp(max=radius)
    if k < x.shape[1]:
        volume = k * radius
        fits = nearest.sum(1, keepdim=True) <= volume * (1 + _slack(points))
        # The threshold lies within a radius below the k-th largest, so nothing further counts.
        depths = (sizes.topk(k, dim=1).values[:, -1:] - sizes).clamp(-radius, radius)
        cut = (_depth(depths, volume, radius) - depths).clamp(0, radius)
        cut = _trued(cut, volume, (cut > 0) & (cut < radius)).clamp(max=radius)
        nearest = torch.where(fits, nearest, cut)
    return _closed(points, torch.copysign(nearest, x), finite)


def onto_k_norm(points: Tensor, k: int, radius: float) -> Tensor:
    """The nearest points of {sum of the k largest absolute values ≤ radius}.

    The answer cuts |x| at a level θ and adds to each entry what stands above a higher level, of
    which radius − kθ is left: min(|x|, θ) + max(|x| − w, 0).
    """
    if k >= points.shape[1]:
        return onto_l1_ball(points, radius)
    x, finite = _opened(points)
    sizes = x.abs()
    sorted_sizes = sizes.sort(dim=1, descending=True).values
    inside = sorted_sizes[:, :k].sum(1, keepdim=True) <= radius * (1 + _slack(points))
    level = _flat_level(sorted_sizes, k, radius)
    nearest = torch.minimum(sizes, level) + _tips(sizes, radius - k * level)
    return _closed(points, x.sign() * nearest, finite, inside)


def _flat_level(sizes: Tensor, k: int, radius: float) -> Tensor:
    """The level θ at which the projection onto the k-norm ball cuts rows of falling sizes.

    Let E(t) = Σ max(|x| − t, 0). By Moreau's identity x less its projection is the nearest point of
    the K-sparse polytope of some radius s. Its own condition Σ min(max(|x| − θ, 0), s) = k·s and
    E(θ + s) + kθ = radius together say w = θ + s = (E(θ) + 2kθ − radius)/k, so that θ is the root
    of F(θ) = E(w(θ)) + kθ − radius in [0, k-th largest], or 0 if F(0) ≥ 0. F is piecewise linear,
    with breaks where θ, and where w, passes an entry: take the piece of the first kind, then of
    the second, in which F changes sign, and solve there.
    """
    levels = pad(sizes, (0, 1))
    ranks = torch.arange(1, levels.shape[1], device=sizes.device)
    areas = pad(running_sum(ranks * -levels.diff(dim=1)), (1, 0))  # E at every level
    upper = (areas + 2 * k * levels - radius) / k
    count = torch.searchsorted(-levels, -upper)
    base = (count - 1).clamp(min=0)
    above = areas.gather(1, base) + count * (levels.gather(1, base) - upper)
    F = above + k * levels - radius

    index = torch.arange(levels.shape[1], device=sizes.device)
    below = (F < 0) & (index >= k)  # the k-th largest itself (index k − 1) has F ≥ 0
    end = torch.where(below, index, levels.shape[1] - 1).amin(1, keepdim=True)
    ends = torch.cat([end, end - 1], dim=1)
    (t0, t1), (w0, w1), F_ends = (
        levels.gather(1, ends).split(1, dim=1),
        upper.gather(1, ends).split(1, dim=1),
        F.gather(1, ends),
    )
    # Within the piece both θ and w are linear in one share, from 0 at its lower end to 1.
    share = torch.cat([torch.zeros_like(t0), torch.ones_like(t0), (levels - w0) / (w1 - w0)], dim=1)
    F = torch.cat([F_ends, areas + k * (t0 + (t1 - t0) * share[:, 2:]) - radius], dim=1)
    within = (share >= 0) & (share <= 1)
    s0, i0 = torch.where(within & (F < 0), share, -1.0).max(1, keepdim=True)
    s1, i1 = torch.where(within & (F >= 0), share, 2.0).min(1, keepdim=True)
    F0, F1 = F.gather(1, i0), F.gather(1, i1)
    root = t0 + (t1 - t0) * (s0 - (s1 - s0) * F0 / (F1 - F0))
    return torch.where(F_ends[:, :1] < 0, root, 0.0)


# ---- the permutahedron


def onto_permutahedron(points: Tensor, scale: float) -> Tensor:
    """The nearest points of the convex hull of all orderings of scale·(1, …, n).

    In sorted order the answer is x less the isotonic regression of x − scale·(1, …, n).
    """
    x, finite = _opened(points)
    n = x.shape[1]
    ordered, order = x.sort(dim=1)
    rungs = torch.arange(1, n + 1, dtype=x.dtype, device=x.device) * scale
    # Adding a constant to x moves nothing: the set lies in a hyperplane Σv = constant.
    levelled = ordered - ordered[:, n // 2, None]
    fit = isotonic(levelled - rungs)
    nearest = rungs + centred_blocks(levelled - fit - rungs, fit)
    moved = (ordered - nearest).abs().amax(1, keepdim=True)
    inside = moved <= _slack(points) * scale * n
    return _closed(points, torch.empty_like(x).scatter_(1, order, nearest), finite, inside)


# ---- matrices


def clip_singular_values(matrices: Tensor, radius: float) -> Tensor:
    """The nearest matrices whose largest singular value is at most the radius."""
    peak, finite, (left, values, right) = _decomposed(matrices)
    values = values * peak
    inside = values.amax(1) <= radius * (1 + _slack(matrices))
    nearest = (left * values.clamp(max=radius).unsqueeze(1)) @ right
    return _closed(matrices, nearest, finite, inside[:, None, None])


def project_singular_values_l1(matrices: Tensor, radius: float) -> Tensor:
    """The nearest matrices whose singular values sum to at most the radius."""
    peak, finite, (left, values, right) = _decomposed(matrices)
    values = values * peak
    inside = values.sum(1) <= radius * (1 + _slack(matrices))
    nearest = (left * _tips(values, radius).unsqueeze(1)) @ right
    return _closed(matrices, nearest, finite, inside[:, None, None])


def _decomposed(matrices: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The largest entry and finiteness of each matrix, and the SVD of its entries' shares."""
    x, finite = _opened(matrices)
    peak, shares = _shares(x.flatten(1))
    left, values, right = torch.linalg.svd(shares.view_as(x), full_matrices=False)
    return peak, finite, (left, values, right)


# ---- what all of them share


def _opened(points: Tensor) -> tuple[Tensor, Tensor]:
    """The points in working precision, zeros for rows that are not finite, and which rows are."""
    finite = points.isfinite().flatten(1).all(1).view(-1, *[1] * (points.ndim - 1))
    # Metal has no float64: there the working precision is the points' own.
    wide = points.dtype if points.device.type == "mps" else torch.float64
    return points.masked_fill(~finite, 0.0).to(wide), finite


def _closed(
    points: Tensor, nearest: Tensor, finite: Tensor, inside: Tensor | None = None
) -> Tensor:
    """The nearest points in the points' dtype, untouched where inside, NaN where not finite."""
    nearest = nearest.to(points.dtype)
    if inside is not None:
        nearest = torch.where(inside, points, nearest)
    return nearest.masked_fill(~finite, torch.nan)


def _slack(points: Tensor) -> float:
    return SLACK * torch.finfo(points.dtype).eps


def _shares(x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest absolute entry of each row, and the row in units of it."""
    peak = x.abs().amax(1, keepdim=True)
    return peak, x / peak.masked_fill(peak == 0, 1.0)
