"""The leading singular vectors of matrices by Lanczos' method, without a decomposition.

Steps of X Xᵀ from a start q span a space of vectors; of all unit vectors u in it the one with the
longest Xᵀu is taken. That length is at most σ₁, and close to it for nearly every q, whatever X is
and however small the gaps between its singular values are: after k steps on m rows it is below
(1 − ε)^½ σ₁ for a share of at most 1.65 √m e^(−(2k−1)√ε) of all directions that q can have
(Kuczyński and Woźniakowski 1992). With k = m nothing is lost. q is the same always and everywhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ._ties import scramble

STEPS = 24
_SEED = 0x1A2C05


class Leading(NamedTuple):
    """Unit vectors u (B, m, 1) and w (B, n, 1), and uᵀXw, at most σ₁, (B, 1, 1)."""

    left: Tensor
    size: Tensor
    right: Tensor


def leading(x: Tensor) -> Leading:
    """Nearly the leading singular vectors of each matrix, and what they make of it.

    Entries should not be far from 1. Zero for a matrix of zeros, and nothing is finite for a matrix
    of which something is not.
    """
    if x.shape[1] > x.shape[2]:
        left, size, right = leading(x.mT)
        return Leading(right, size, left)
    basis, images = krylov(x)
    weights = _top(images.mT @ images)
    left = _unit(basis @ weights)
    image = x.mT @ left
    return Leading(left, _length(image), _unit(image))


def krylov(x: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal vectors Q (B, m, k), some of them zero at the end, and Xᵀ Q (B, n, k)."""
    count, rows, columns = x.shape
    steps = min(STEPS, rows)
    basis, images = x.new_zeros(count, rows, steps), x.new_zeros(count, columns, steps)
    vector = _unit(_start(x).expand(count, rows, 1))
    for step in range(steps):
        basis[:, :, step : step + 1] = vector
        image = x.mT @ vector
        images[:, :, step : step + 1] = image
        if step + 1 < steps:
            vector = _orthogonal(x @ image, basis[:, :, : step + 1])
    return basis, images


def _orthogonal(vector: Tensor, basis: Tensor) -> Tensor:
    """What the vector has beside the basis, of length 1; zero where that is rounding alone."""
    once = vector - basis @ (basis.mT @ vector)
    twice = once - basis @ (basis.mT @ once)
    # What is rounding alone shrinks again; what is not is orthogonal to working precision now.
    return torch.where(_length(twice) < _length(once) / 2, 0, _unit(twice))


def _top(squares: Tensor) -> Tensor:
    """A leading eigenvector of small positive matrices, by squaring: fixed work, no waiting."""
    for _ in range(2 - round(math.log2(torch.finfo(squares.dtype).eps))):
        size = torch.linalg.vector_norm(squares, dim=(1, 2), keepdim=True)
        squares = squares / torch.where(size == 0, 1, size)
        squares = squares @ squares
    best = squares.diagonal(dim1=1, dim2=2).argmax(1).view(-1, 1, 1)
    return squares.gather(2, best.expand(-1, squares.shape[1], 1))


def _start(x: Tensor) -> Tensor:
    """A normal vector for the rows: every entry a function of its number."""
    numbers = torch.arange(x.shape[1], device=x.device)
    uniform = ((scramble(numbers, _SEED) >> 40).to(x.dtype) + 0.5) / 2**23
    return uniform.erfinv().view(1, -1, 1)


def _length(vectors: Tensor) -> Tensor:
    return torch.linalg.vector_norm(vectors, dim=1, keepdim=True)


def _unit(vectors: Tensor) -> Tensor:
    length = _length(vectors)
    return vectors / torch.where(length == 0, 1, length)
