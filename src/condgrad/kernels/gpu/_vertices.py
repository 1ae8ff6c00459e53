"""What a vertex needs of its point's sums, and its entries: the two halves of every region.

The formulas are those of `regions/`: `conclude_...` stands for `_measure` there, `vertex` for
`_vertex`. Concluding returns the squared gap ‖v − θ‖² where the sums tell it.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._conclude import INFINITE, LANES, lp_norm, unit, winner
from ._noise import priorities, random_signs, scramble, sign_of, signs
from ._pieces import bits_of, total, value_of
from ._power import power


@triton.jit
def conclude_l2(
    sums, C, parts, record, P, radius, pull, size, squares,
    RULE: tl.constexpr, RANDOM: tl.constexpr,
):  # fmt: skip
    """V = −τ d/‖d‖; where d is zero, τ s/√n with random signs s."""
    norm = tl.sqrt(squares)
    scale, factor = unit(norm)
    corner = radius * 0
    if RANDOM:
        corner = radius / tl.sqrt(size.to(tl.float64))
    tl.store(record + at.ONE * P, tl.where(norm == 0, corner, scale))
    tl.store(record + at.TWO * P, -radius * factor)
    tl.store(record + at.THREE * P, norm)
    gap = norm
    if RULE:
        both = total(sums + at.ONE * C, parts, LANES)  # ⟨d, θ⟩
        length = pull * pull * total(sums + at.TWO * C, parts, LANES)  # ‖θ‖²
        safe = tl.where(norm == 0, 1.0, norm)
        drawn = corner * corner * size
        if RANDOM:  # ⟨s, θ⟩ where d is zero
            drawn -= 2 * corner * pull * total(sums + at.THREE * C, parts, LANES)
        moved = radius * radius + 2 * radius * pull * both / safe
        gap = length + tl.where(norm == 0, drawn, moved)
    return gap


@triton.jit
def conclude_spike(
    sums, tops, C, parts, record, choice, P, radius, pull, k, size, squares, row, draw, d_at, x_at,
    sign, KIND: tl.constexpr, RULE: tl.constexpr, RANDOM: tl.constexpr,
):  # fmt: skip
    """A vertex with one entry that is not zero; of the K-norm ball perhaps one with all of them."""
    bits, priority, place = winner(tops, C, parts)
    key = draw[1]
    value = value_of(bits).to(tl.float64)
    rest = value * 0.0  # not a number where the largest is not finite
    spike = radius + rest
    chosen = tl.where(value == value, place, -1)
    flag = tl.where(squares < INFINITE, 0.0, 1.0)
    if KIND == at.L1 or KIND == at.KNORM:
        d = tl.load(d_at + place, cache_modifier=".cg").to(tl.float64) * sign
        s = tl.where(d > 0, 1.0, tl.where(d < 0, -1.0, 0.0))
        if RANDOM:
            s = tl.where(d == 0, sign_of(priority), s)
        spike = rest - radius * s
    if KIND == at.USIMPLEX:
        none = tl.where(priority > scramble(-1 - row, key), chosen, -1)
        if not RANDOM:
            none = chosen * 0 - 1
        chosen = tl.where(value > 0, chosen, tl.where(value == 0, none, -1))
    if KIND == at.PSIMPLEX:
        rest = pull * 0
    gap = pull * 0
    cube = value != value
    edge = radius / k
    if KIND == at.KNORM:
        weight = total(sums + at.THREE * C, parts, LANES)
        rest = weight * 0.0
        cube = tl.where(k > 1, weight > k * value, weight >= value)
        if RANDOM:  # a coin decides between equals
            coin = (scramble(-1 - row, key) & 2) != 0
            cube = cube | ((weight == k * value) & (k > 1) & (k < size) & coin)
        flag = tl.where(cube, edge, 0.0)
    tl.store(record + at.ONE * P, spike)
    tl.store(record + at.TWO * P, rest)
    tl.store(record + at.THREE * P, flag)
    tl.store(choice + at.CHOSEN * P, chosen)
    if RULE:
        length = pull * pull * total(sums + at.TWO * C, parts, LANES)  # ‖θ‖²
        x = tl.load(x_at + tl.maximum(chosen, 0)).to(tl.float64) * pull
        gap = tl.where(chosen < 0, length, length - x * x + (spike - x) * (spike - x))
        if KIND == at.KNORM:
            both = total(sums + at.ONE * C, parts, LANES)  # ⟨s, θ⟩
            count = total(sums + at.FOUR * C, parts, LANES)  # ‖s‖²
            gap = tl.where(cube, edge * edge * count + 2 * edge * pull * both + length, gap)
        gap += squares * 0.0
    return gap


@triton.jit
def conclude_lp(sums, C, parts, record, P, radius, p, size, squares, RANDOM: tl.constexpr):
    """V = −τ sgn(d) (|d| / ‖d‖_q)^(1/(p−1)); where d is zero, τ s n^(−1/p) with random signs s."""
    norm = lp_norm(sums + at.ONE * C, sums + at.TWO * C, parts, p / (p - 1))
    corner = 0.0
    if RANDOM:
        corner = radius * tl.exp2(-tl.log2(size.to(tl.float64)) / p)
    tl.store(record + at.ONE * P, tl.where(norm == 0, corner, norm))
    tl.store(record + at.TWO * P, squares * 0.0)
    tl.store(record + at.THREE * P, norm)


@triton.jit
def vertex(
    d, offset, inside, need, chosen, value, last, bounds, p, draw,
    KIND: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """The entries of the vertex for this part of the direction.

    The region's numbers are `bounds` (radius, low, high) and p; what its point has been found to
    need is `need`, and `chosen`, the place of its only entry in this chunk, or `value` and `last`.
    """
    one, two, three = need
    radius, low, high = bounds
    if KIND == at.LINF:
        v = signs(d, inside, offset, draw, RANDOM, FLAT) * -radius
    elif KIND == at.BOX:
        v = tl.where(signs(d, inside, offset, draw, RANDOM, FLAT) < 0, high, low) + d * 0.0
    elif KIND == at.L2:
        v = d * one * two
        if three == 0:
            v = one + d * 0.0
            if RANDOM:
                v = one * random_signs(offset, draw, FLAT)
    elif KIND == at.LP:
        share = tl.abs(d.to(tl.float64)) * (1 / tl.where(three == 0, 1.0, one))
        size = power(share, 1 / (p - 1)).to(tl.float32)
        v = tl.where(d > 0, -radius, radius) * size + two
        if three == 0:
            v = one.to(tl.float32) + d * 0.0
            if RANDOM:
                v = one.to(tl.float32) * random_signs(offset, draw, FLAT)
    elif KIND == at.KSPARSE:
        bits = bits_of(d)
        taken = bits > value
        tied = (bits == value) & inside
        if last == at.EVERYONE:
            taken = taken | tied
        elif tl.max(tied.to(tl.int32), 0) > 0:
            taken = taken | (tied & (priorities(offset, draw, RANDOM, FLAT) >= last))
        s = signs(d, inside, offset, draw, RANDOM, FLAT)
        v = tl.where(taken, s * -radius, d * 0.0)
    else:
        v = tl.where(offset == chosen, one, two)
        if KIND == at.KNORM:
            if three > 0:
                v = signs(d, inside, offset, draw, RANDOM, FLAT) * -three
        if KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
            v += d * 0.0
    return v
