"""Whether one method is ahead of another, or only lucky: an exact test over the seeds.

The runs of one seed start at the same parameters and see the same batches, so methods are compared
seed by seed. If neither were ahead, each difference could as well have the other sign: the p-value
is the share of all sign patterns whose sum is at least the one found. It assumes no distribution.
"""

from __future__ import annotations

import numpy as np

LEVEL = 0.05
_EXACT = 16  # seeds; beyond, patterns are drawn
_DRAWN = 100_000


def p_value(differences: np.ndarray) -> float:
    """The probability of a mean at least as large, were the signs of the differences random.

    With n seeds it cannot be below 2 ** -n.
    """
    found = np.asarray(differences, dtype=float)
    count = len(found)
    if count <= _EXACT:
        signs = 1 - 2 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)
        extra = 0
    else:
        signs = np.random.default_rng(0).choice([-1, 1], size=(_DRAWN, count))
        extra = 1  # the pattern found is one of all
    sums = signs @ found
    # Patterns that differ by zeros, or by rounding, alone are the same pattern.
    slack = 1e-12 * np.abs(found).sum()
    return float((np.sum(sums >= found.sum() - slack) + extra) / (len(signs) + extra))
