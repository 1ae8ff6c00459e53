"""Isotonic regression of many rows at once, by merging instead of a loop over entries."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def running_sum(x: Tensor) -> Tensor:
    """The sums of x up to each entry of the last dimension; the same bits on every run."""
    # On accelerators cumsum adds in any order, and torch's deterministic mode refuses it.
    return x.cumsum(-1) if x.device.type == "cpu" else doubling_sum(x)


def doubling_sum(x: Tensor, first: Tensor | None = None) -> Tensor:
    """The sums of x up to each entry, from the place `first` says (the start), by log₂ n additions.

    The order of the additions is fixed, and their rounding grows with log n instead of n.
    """
    place = torch.arange(x.shape[-1], device=x.device)
    first = torch.zeros_like(place) if first is None else first
    reach = 1
    while reach < x.shape[-1]:
        earlier = pad(x[..., :-reach], (reach, 0))
        x = torch.where(place - reach >= first, x + earlier, x)
        reach *= 2
    return x


def isotonic(y: Tensor) -> Tensor:
    """The nondecreasing rows nearest to the rows of y (B, n), in the Euclidean norm.

    Pool adjacent violators, in the order of a merge sort: the fits of two neighbouring runs become
    the fit of their union by pooling a tail of the left with a head of the right at one common
    level. All pairs of a round are merged together, so n entries take log₂ n rounds of vectorised
    work whatever the data, where pooling one violator at a time takes up to n of them.
    """
    rows, n = y.shape
    whole = 1 << (n - 1).bit_length()
    # Entries no smaller than the largest extend a row without pulling at its fit.
    fit = torch.cat([y, y.amax(1, keepdim=True).expand(rows, whole - n)], dim=1)
    run = 1
    while run < n:
        fit = _merged(fit.view(rows, whole // (2 * run), 2, run)).view(rows, whole)
        run *= 2
    return fit[:, :n]


def _merged(pairs: Tensor) -> Tensor:
    """The fits (..., 2, h) of neighbouring runs, made the fit of both together.

    The common level m is the root of φ(m) = Σ max(l − m, 0) + Σ min(r − m, 0), which falls: the
    left entries above m and the right ones below it are the pool, and φ at an entry tells by its
    sign on which side of m that entry lies.
    """
    left, right = (half.contiguous() for half in pairs.unbind(-2))
    h = left.shape[-1]
    place = torch.arange(h, device=pairs.device)
    # Summed from the seam outwards, so that a small pool carries a small rounding error.
    tails = pad(running_sum(left.flip(-1)).flip(-1), (0, 1))
    heads = pad(running_sum(right), (1, 0))
    smaller = torch.searchsorted(right, left)
    larger = h - torch.searchsorted(left, right, right=True)
    phi_left = tails[..., :-1] + heads.gather(-1, smaller) - (h - place + smaller) * left
    phi_right = heads[..., 1:] + tails.gather(-1, h - larger) - (place + 1 + larger) * right
    violated = left[..., -1:] > right[..., :1]
    # Both sides of a violated seam are in the pool, and a level is in it whole or not at all,
    # whatever rounding says of φ there: a level once pooled never comes apart again.
    tail = (phi_left < 0).sum(-1, keepdim=True).clamp(min=1)
    tail = (h - torch.searchsorted(left, left.gather(-1, h - tail))) * violated
    head = (phi_right > 0).sum(-1, keepdim=True).clamp(min=1)
    head = torch.searchsorted(right, right.gather(-1, head - 1), right=True) * violated
    level = (tails.gather(-1, h - tail) + heads.gather(-1, head)) / (tail + head).clamp(min=1)
    # Rounding may put the level past a neighbour, which then joins it: halves must stay sorted.
    left_level = level.masked_fill(~violated, torch.inf)
    right_level = level.masked_fill(~violated, -torch.inf)
    left = torch.where(place >= h - tail, left_level, left.minimum(left_level))
    right = torch.where(place < head, right_level, right.maximum(right_level))
    return torch.stack([left, right], dim=-2)


def centred_blocks(x: Tensor, fit: Tensor) -> Tensor:
    """The rows of x less their means over each run of equal entries of `fit`."""
    n = x.shape[-1]
    place = torch.arange(n, device=x.device).expand_as(x)
    opens = pad(fit[:, 1:] != fit[:, :-1], (1, 0), value=True)
    first = torch.where(opens, place, 0).cummax(-1).values
    closes = pad(opens[:, 1:], (0, 1), value=True)
    last = torch.where(closes, place, n - 1).flip(-1).cummin(-1).values.flip(-1)
    # Sums that start afresh in every block: differences of running sums would carry the rounding
    # errors of long blocks into short ones.
    sums = doubling_sum(x, first).gather(-1, last)
    return x - sums / (last - first + 1)
