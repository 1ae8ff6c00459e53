"""How the host finds norms and the k largest of many values: accurately, and in few passes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

FLOAT_COUNTS = 1 << 24  # the largest count that float32 counts exactly
ROW = 1 << 11  # so many entries may be added in a row
LONG = 1 << 16  # and so many squares, which the host adds in several rows at once
MANY = 1 << 13  # so many values are rather counted than selected


def norm_of(x: Tensor, order: float = 2.0) -> Tensor:
    """The norm of all entries, to a few machine epsilons.

    On the host vector_norm adds in a row, and of many entries it is off by as many ulps: there it
    is told to take them in rows, and then the norm of the norms.
    """
    n = x.numel()
    if not x.is_cpu or n < (LONG if order == 2 else ROW):
        return torch.linalg.vector_norm(x, order)
    flat = x.reshape(-1)
    whole = n - n % ROW
    rows = torch.linalg.vector_norm(flat[:whole].view(-1, ROW), order, 1)
    return norm_of(torch.cat([rows, flat[whole:]]), order)


def separator(values: Tensor, k: int) -> float:
    """A value that exactly k of the values reach; or, if there is none, the k-th largest."""
    found = (
        _sought(values, k) if values.numel() >= MANY and values.dtype.is_floating_point else None
    )
    return values.kthvalue(values.numel() - k + 1).values.item() if found is None else found[0]


def _sought(values: Tensor, k: int) -> tuple[float, Tensor] | None:
    """A value that exactly k of the values reach, and ones at those; None if none was found.

    For many values a few passes that count are several times faster than a selection: from the
    same quantile of a sample down or up the sample's slope, then between the nearest on both sides.
    """
    n = values.numel()
    sample = values.reshape(-1)[:: n // 1000 | 1].sort(descending=True).values
    each = n / sample.numel()
    place = min(int(k / each), sample.numel() - 1)
    before, after = max(place * 3 // 4 - 1, 0), min(place * 5 // 4 + 1, sample.numel() - 1)
    guess = sample[place].item()
    slope = (sample[before].item() - sample[after].item()) / (each * (after - before))
    below = above = None  # the nearest values that too many and too few reach, and how many
    reached = torch.empty_like(values)
    for _ in range(16):
        count = int(torch.ge(values, guess, out=reached).sum().item())
        if count == k:
            return guess, reached
        if count > k:
            below = guess, count
        else:
            above = guess, count
        if below and above:
            share = (below[1] - k) / (below[1] - above[1])
            following = below[0] + (above[0] - below[0]) * share
        else:
            following = guess + (count - k) * slope
        if following == guess or not math.isfinite(following):
            break
        guess = following
    return None


def k_largest(values: Tensor, k: int) -> tuple[float, Tensor] | None:
    """A value that exactly k of the values reach, and ones at those; None if ties forbid it."""
    n = values.numel()
    if n >= FLOAT_COUNTS:
        return None
    if k > 1 and n >= MANY:
        return _sought(values, k)
    flat = values.flatten()
    threshold = (flat.amax() if k == 1 else flat.kthvalue(n - k + 1).values).item()
    reached = torch.ge(values, threshold, out=torch.empty_like(values))
    return (threshold, reached) if reached.sum().item() == k else None
