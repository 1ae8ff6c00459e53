"""Matrices of many spectra and patterns, from explicit seeds: what approximate oracles are asked.

Random ones, those without full rank, badly conditioned ones, equal singular values, values where a
polynomial is least or steepest, and patterns whose entries all round the same way.
"""

import torch

from inputs import generator, normal


def _values(count):
    """Singular values, the largest first, by name."""
    i = torch.arange(1.0, count + 1, dtype=torch.float64)
    first = i == 1
    return {
        "equal": torch.ones_like(i),
        "geometric": torch.logspace(0, -12, count, dtype=torch.float64),
        "slow": i**-0.5,
        "harmonic": 1 / i,
        "two leading": torch.where(i <= 2, 1.0, 0.3),
        "nearly two leading": torch.where(first, 1.0, torch.where(i == 2, 0.999, 0.3)),
        "two close and no more": torch.where(first, 1.0, torch.where(i == 2, 0.95, 0.0)),
        "half": torch.where(i <= (count + 1) // 2, 1.0, 0.0),
        "one": torch.where(first, 1.0, 0.0),
        "two levels": torch.where(i <= (count + 1) // 2, 1.0, 0.01),
        "where the first polynomial is least": torch.where(first, 1.0, 0.83),
        "at the end of the interval": torch.where(first, 1.0, 1 / 128),
        "below the interval": torch.where(first, 1.0, 1e-3),
    }


def turned(values, rows, columns, seed=0):
    """A matrix with these singular values and random singular vectors."""
    count = len(values)
    left = torch.linalg.qr(normal((rows, count), 2 * seed)).Q
    right = torch.linalg.qr(normal((columns, count), 2 * seed + 1)).Q
    return (left * values) @ right.T


def _diagonal(values, rows, columns):
    x = torch.zeros(rows, columns, dtype=torch.float64)
    x.diagonal().copy_(values)
    return x


def _checked(rows, columns):
    blocks = normal(((rows + 3) // 4, (columns + 3) // 4), 8)
    return blocks.repeat_interleave(4, 0).repeat_interleave(4, 1)[:rows, :columns]


def matrices(rows, columns):
    """The matrices of one shape, by name."""
    count = min(rows, columns)
    found = {f"turned: {name}": turned(s, rows, columns) for name, s in _values(count).items()}
    found |= {
        f"diagonal: {name}": _diagonal(s, rows, columns) for name, s in _values(count).items()
    }
    uniform = torch.rand(count, generator=generator(3), dtype=torch.float64)
    small = (rows, min(2, count)), (min(2, count), columns)
    return found | {
        "normal": normal((rows, columns), 4),
        "positive": normal((rows, columns), 5).abs(),
        "signs": normal((rows, columns), 6).sign(),
        "whole numbers": normal((rows, columns), 7).mul(2).round() + 0.0,
        "constant": torch.full((rows, columns), 0.7, dtype=torch.float64),
        "equal rows": normal((1, columns), 1).repeat(rows, 1),
        "blocks": _checked(rows, columns),
        "low rank": normal(small[0], 2) @ normal(small[1], 3),
        "low rank and noise": normal(small[0], 2) @ normal(small[1], 3)
        + 0.01 * normal((rows, columns), 9),
        "diagonal: uniform": _diagonal(uniform, rows, columns),
        "diagonal: signed": _diagonal(uniform * 2 - 1, rows, columns),
        "single entry": _diagonal(torch.zeros(count, dtype=torch.float64), rows, columns)
        + torch.eye(rows, columns, dtype=torch.float64) * (torch.arange(columns) == 0),
    }


SHAPES = ((1, 1), (1, 9), (9, 1), (2, 2), (3, 4), (17, 17), (40, 60), (96, 31))
