"""An approximate polar factor by products of matrices: nearly U Vᵀ for X = U Σ Vᵀ, never beyond.

X is divided by a bound c of its largest singular value, c⁴ = Σσ⁴, and then goes through odd
polynomials, which act on its singular values alone: what comes out is U f(Σ/c) Vᵀ. On [0, 1] f
lies in [0, 1), on [LEAST, 1] in [FLOOR, 1). So for the linear problem over the spectral ball

    Σ σ (1 − f(σ/c)) ≤ (1 − FLOOR) Σ σ + Σ {σ : σ < c LEAST}

is all that is lost of Σ σ. It takes fourteen products of matrices, on the shorter side. With the
rounding of bfloat16 nothing is beyond 1 either, and COARSE takes the place of FLOOR: in matrices of
rank two, 3 % of Σ σ have been seen lost, mostly it is as little as without rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor

QUINTICS = (
    (0.072, 0.7313, 14.5996),  # for [1/128, 1.04]
    (0.1298, 2.78, 0.4572),  # for [0.0591, 2.0162]
    (0.375, 2.4745, 0.4134),  # for [0.2072, 1.8556]
    (0.6979, 1.9383, 0.3681),  # for [0.5609, 1.4724]
)
"""x(a + b(x² − s)²): each is nearest to 1, in its largest error, on the interval that the one
before leads to, 4 % for rounding included. `docs/polar.py` computes them.

With the square completed, the rounding of x² − s is harmless just where the polynomial is least and
a relative error would be largest.
"""

EXCESS = 1 + 2.0**-8
"""What is divided out: how far the rounding of the last step can lead beyond 1.

The polynomials themselves do not. The last one, y(3 − y²)/2, is at most 1 on [0, 2], whatever the
rounding before it. It is y + ry/2 with r = 1 − y², and bfloat16 rounds r and ry by 2⁻⁸ of their
sizes, which are at most 1 and 0.4.
"""

LEAST = 1 / 128
FLOOR = 0.981
COARSE = 0.96


def polar(x: Tensor, size: float = 1.0) -> Tensor:
    """Nearly the polar factors of a batch of matrices, times `size`: no singular value reaches it.

    In at least float32, computed in the format of x, whose entries should not be far from 1. Zero
    for zero, and nothing is finite in a matrix of which something is not.
    """
    if x.shape[1] > x.shape[2]:
        return polar(x.mT, size).mT
    gram = x @ x.mT
    x = _bounded(x, gram)
    for number, (a, s, b) in enumerate(QUINTICS):
        if number:
            gram = x @ x.mT
        _diagonal(gram).sub_(s)
        square = torch.baddbmm(gram, gram, gram, beta=0, alpha=b)
        _diagonal(square).add_(a)
        x = square @ x
    one = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    rest = torch.baddbmm(one.expand_as(gram), x, x.mT, alpha=-1)
    scale = torch.full((1, 1, 1), size / EXCESS, dtype=_wide(x), device=x.device)
    half = torch.baddbmm(x, rest, x, beta=0, alpha=size / EXCESS / 2)
    return torch.addcmul(half, x, scale)  # one pass, and at least in float32, as the scale is


def _bounded(x: Tensor, gram: Tensor) -> Tensor:
    """The matrices divided by a bound of their largest singular values, and X Xᵀ, in place, too."""
    square = torch.linalg.vector_norm(gram, dim=(1, 2), keepdim=True, dtype=_wide(x))
    square = torch.where(square == 0, 1, square)
    gram.div_(square)
    return torch.div(x, square.sqrt(), out=torch.empty_like(x))


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)
