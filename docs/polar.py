"""The polynomials of `condgrad/regions/_polar.py`: `python docs/polar.py` computes and prints them.

Four odd quintics and a cubic, applied to the singular values one after another, carry the interval
[LEAST, 1] close to 1, and [0, 1] into [0, 1]. Each quintic is the odd polynomial of degree five
that is nearest to 1, in the largest error, on the interval that the one before leads to (Remez's
exchange); a composition of such is the best of its kind. After each, the interval is widened by
SLACK for the rounding of bfloat16. The cubic y(3 - y²)/2 never exceeds 1 on [0, 2], whatever the
rounding before it; the last quintic is scaled such that both ends of its range come out equal.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import torch

LEAST = 1 / 128
SLACK = 1 / 25
QUINTICS = 4
DIGITS = 4
"""Of the printed coefficients; the bounds below are those of the printed ones."""


class Step(NamedTuple):
    """A quintic x(a + c(x² - s)²), the interval it is for, and the range it has there."""

    a: float
    s: float
    c: float
    low: float
    high: float
    least: float
    most: float

    def at(self, x: torch.Tensor) -> torch.Tensor:
        """The values of the quintic."""
        return x * (self.a + self.c * (x * x - self.s) ** 2)


def steps() -> list[Step]:
    """The quintics, from the first to the last."""
    found: list[Step] = []
    low, high = LEAST, 1 + SLACK
    for number in range(QUINTICS):
        a, b, c, error = nearest(low, high)
        ends = (1 - error) * (1 - SLACK), (1 + error) * (1 + SLACK)
        scale = 1.0
        if number == QUINTICS - 1:  # y(3 - y²) is the same at both ends
            scale = math.sqrt(3 / (ends[0] ** 2 + ends[0] * ends[1] + ends[1] ** 2))
        found.append(_rounded(scale * a, scale * b, scale * c, low, high))
        low, high = found[-1].least * (1 - SLACK), found[-1].most * (1 + SLACK)
    return found


def nearest(low: float, high: float) -> tuple[float, float, float, float]:
    """The a, b, c for which ax + bx³ + cx⁵ is nearest to 1 on the interval, and its error.

    The error is attained with alternating signs at both ends and two places between, where the
    derivative is zero.
    """
    signs = torch.tensor([-1.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    places = low + (high - low) * torch.tensor([0.0, 0.3, 0.8, 1.0], dtype=torch.float64)
    for _ in range(100):
        columns = torch.stack([places, places**3, places**5, -signs], 1)
        a, b, c, error = torch.linalg.solve(columns, torch.ones_like(places)).tolist()
        root = math.sqrt(9 * b * b - 20 * a * c)
        places[1] = math.sqrt((-3 * b - root) / (10 * c))
        places[2] = math.sqrt((-3 * b + root) / (10 * c))
    return a, b, c, error


def _rounded(a: float, b: float, c: float, low: float, high: float) -> Step:
    """The polynomial in its other form, as printed, and its range on the interval."""
    shift = -b / (2 * c)
    numbers = [round(each, DIGITS) for each in (a - c * shift * shift, shift, c)]
    step = Step(*numbers, low, high, 0.0, 0.0)
    logs = torch.linspace(math.log(low), math.log(high), 1_000_001, dtype=torch.float64)
    values = step.at(logs.exp())
    return step._replace(least=float(values.min()), most=float(values.max()))


def floor(found: list[Step]) -> float:
    """The least value of the whole composition on [LEAST, 1], the rounding of bfloat16 included."""
    low, high = found[-1].least * (1 - SLACK), found[-1].most * (1 + SLACK)
    return min(y * (3 - y * y) / 2 for y in (low, high))


def main() -> None:
    """Print the coefficients as they stand in the library, and what they are good for."""
    found = steps()
    lines = [
        f"    ({step.a}, {step.s}, {step.c}),  # [{step.low:.4f}, {step.high:.4f}] leads to "
        f"[{step.least:.4f}, {step.most:.4f}]\n"
        for step in found
    ]
    end = f"on [1/{1 / LEAST:g}, 1] at least {floor(found):.5f}, on [0, 1] at most 1\n"
    sys.stdout.writelines([*lines, end])


if __name__ == "__main__":
    main()
