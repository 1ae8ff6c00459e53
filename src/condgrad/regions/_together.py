"""Several tensors on the host answered as one, to save the interpreter's time.

`Tensors` and `Numbers` behave as one tensor and one number in the arithmetic that regions use, and
each operation is one call for all. So the mathematics of a region stands in one place and still
costs no more for six small tensors than for one.

It goes as long as nothing special happens. Where something does (a tie, a zero, a number that is
not finite), `Unsettled` is raised, and the tensors are to be answered one by one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from ._counting import LONG, k_largest, norm_of, separator
from ._measure import (
    EXACT_NORMS,
    Dense,
    Kth,
    Max,
    Norm,
    Piece,
    Question,
    Sum,
    safe_range,
)
from ._ties import Draw


class Unsettled(Exception):  # noqa: N818 - no error, a way out
    """Something special is among the tensors: answer them one by one."""


class Numbers(list[Any]):
    """One number a tensor."""

    def _with(self, other: Any, combine: Callable[[Any, Any], Any]) -> Numbers:
        if isinstance(other, Numbers):
            return Numbers(map(combine, self, other))
        return Numbers([combine(mine, other) for mine in self])

    def __mul__(self, other: Any) -> Numbers:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._with(other, operator.mul)

    __rmul__ = __mul__  # pyright: ignore[reportAssignmentType]

    def __neg__(self) -> Numbers:
        return Numbers([-mine for mine in self])

    def __truediv__(self, other: Any) -> Numbers:
        return self._with(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Numbers:
        return Numbers([other / mine for mine in self])

    def __pow__(self, exponent: float) -> Numbers:
        return Numbers([mine**exponent for mine in self])

    def __gt__(self, other: Any) -> Any:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._with(other, operator.ge)

    def __eq__(self, other: Any) -> Any:
        return self._with(other, operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._with(other, operator.ne)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __bool__(self) -> bool:
        """Whether a condition holds for all; one that does not leaves the common road."""
        if not all(self):
            raise Unsettled
        return True

    def isfinite(self) -> Numbers:
        """The condition that each number is finite."""
        return Numbers(map(math.isfinite, self))


class Tensors:
    """Several tensors of one dtype on the host, treated as one."""

    __slots__ = ("each",)

    def __init__(self, each: Iterable[Tensor]) -> None:
        self.each = list(each)

    @property
    def dtype(self) -> torch.dtype:
        return self.each[0].dtype

    def numel(self) -> int:
        return max(tensor.numel() for tensor in self.each)

    def abs(self) -> Tensors:
        return Tensors(torch._foreach_abs(self.each))

    def sign(self) -> Tensors:
        return Tensors(torch._foreach_sign(self.each))

    def __neg__(self) -> Tensors:
        return Tensors(torch._foreach_neg(self.each))

    def __mul__(self, other: Any) -> Tensors:
        if isinstance(other, Numbers):
            return Tensors(_stretched(self.each, other))
        return Tensors(torch._foreach_mul(self.each, _operand(other)))

    def __truediv__(self, other: Any) -> Tensors:
        return Tensors(torch._foreach_div(self.each, _operand(other)))

    def __sub__(self, other: Tensors) -> Tensors:
        return Tensors(torch._foreach_sub(self.each, other.each))

    def mul_(self, other: Any) -> Tensors:
        if isinstance(other, Numbers):
            self.each = _stretched(self.each, other)
        else:
            torch._foreach_mul_(self.each, _operand(other))
        return self

    def pow(self, exponent: float) -> Tensors:
        return Tensors(torch._foreach_pow(self.each, exponent))

    def add_(self, other: Tensors, alpha: float) -> Tensors:
        torch._foreach_add_(self.each, other.each, alpha=alpha)
        return self

    def compared(self, compare: Any, numbers: Any) -> Tensors:
        """Ones where a comparison with the numbers holds, zeros elsewhere."""
        pairs = zip(self.each, numbers, strict=True)
        return Tensors(compare(x, number, out=torch.empty_like(x)) for x, number in pairs)


_ORIGIN = {dtype: torch.zeros((), dtype=dtype) for dtype in (torch.float32, torch.float64)}


def _stretched(each: list[Tensor], factors: Numbers) -> list[Tensor]:
    """Each tensor times its factor.

    As a point of the line from zero where that is as exact: a product makes each factor a tensor
    first, which costs twice as much as the rest.
    """
    if max(factors) < 0.5:  # beyond, lerp reckons from the other end
        origin = _ORIGIN[each[0].dtype]
        return list(torch._foreach_lerp([origin] * len(each), each, factors))
    return list(torch._foreach_mul(each, factors))


def norms_of(each: list[Tensor], order: float = 2.0) -> list[float]:
    """The norm of each tensor."""
    if order == 2 and all(x.numel() < LONG for x in each):
        return [norm.item() for norm in torch._foreach_norm(each)]
    return [norm_of(x, order).item() for x in each]


def _operand(other: Any) -> Any:
    return other.each if isinstance(other, Tensors) else other


class Listed(Piece):
    """Tensors on the host, each one point."""

    def __init__(self, x: Tensors, draws: Callable[[int], Draw | None]) -> None:
        self._draws = draws
        self.random = draws(0) is not None
        self._sizes = [tensor.numel() for tensor in x.each]
        self._measured: tuple[list[Tensor], Numbers] | None = None  # a step may ask twice

    def counts(self, count: Callable[[int], int]) -> Any:
        return Numbers(map(count, self._sizes))

    def k_largest(self, values: Any, k: Any) -> Any:
        """For each tensor a value that exactly k of its values reach, and ones at those."""
        counts = k if isinstance(k, Numbers) else [k] * len(values.each)
        found = [k_largest(x, count) for x, count in zip(values.each, counts, strict=True)]
        pairs = [each for each in found if each is not None]
        if len(pairs) < len(found):
            raise Unsettled
        return Numbers([value for value, _ in pairs]), Tensors(reached for _, reached in pairs)

    def filled(self, sign: Any) -> Any:
        """The signs, those that are zero drawn for each tensor on its own."""
        if max(self._sizes) >= EXACT_NORMS:
            raise Unsettled
        norms = torch._foreach_norm(sign.each)
        for place, (norm, size) in enumerate(zip(norms, self._sizes, strict=True)):
            if norm.item() ** 2 < size - 0.5:
                alone = Dense(sign.each[place], 0, self._draws(place))
                sign.each[place] = alone.filled(sign.each[place])
        return sign

    def marked(self, sign: Any, x: Any) -> Any:
        """The signs, NaN where x is not finite; nowhere, if its norms are known to be finite."""
        known = self._measured is not None and self._measured[0] is x.each
        return sign if known else sign.add_(x, alpha=0)

    def answer(self, question: Question) -> Any:
        """One call, one number for each tensor."""
        each: list[Tensor] = question.values.each  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(question, Norm):
            return self._norms(each, question.order)
        if isinstance(question, Kth):
            assert isinstance(question.k, Numbers)
            return Numbers(
                [separator(x.flatten(), k) for x, k in zip(each, question.k, strict=True)]
            )
        if isinstance(question, Max):
            return Numbers([found.item() for found in torch._foreach_max(each)])
        assert isinstance(question, Sum)
        return Numbers([x.sum().item() for x in each])

    def _norms(self, each: list[Tensor], order: float) -> Numbers:
        if self._measured is not None and self._measured[0] is each and order == 2:
            return self._measured[1]
        low, high = safe_range(each[0].dtype)
        norms = Numbers(norms_of(each, order))
        if not all(low < norm < high for norm in norms):
            raise Unsettled
        if order == 2:
            self._measured = each, norms
        return norms
