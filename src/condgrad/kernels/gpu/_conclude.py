"""From sums to steps: what a point's vertex needs, and how far the tensor moves.

Every function here works on single numbers in float64, in the last program that measures a point.
Squared gaps ‖v − θ‖² are put together from sums, such as τ² + 2τ⟨x, θ⟩/‖x‖ + ‖θ‖² for the L2 ball,
which cancel as θ nears v: products of float32 numbers are exact in float64, so that sixteen digits
stand against the cancellation.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._pieces import arrives_last, largest, total, value_of
from ._power import power

LANES = tl.constexpr(128)
INFINITE = tl.constexpr(float("inf"))


@triton.jit
def settle(ints, rates, lengths, records, counters, T, P, tensor, point, squares, gap):
    """Settle the step length min(lr ‖d‖ / ‖v − θ‖, 1), once all points of the tensor are known."""
    rows = tl.load(ints + at.ROWS * T + tensor)
    known = rows == 1
    if rows > 1:
        tl.store(records + at.SIZE_SQUARED * P + point, squares)
        tl.store(records + at.GAP_SQUARED * P + point, gap)
        known = arrives_last(counters + P + tensor, rows)
        if known:
            points = tl.load(ints + at.POINT * T + tensor)
            squares = total(records + at.SIZE_SQUARED * P + points, rows, LANES)
            gap = total(records + at.GAP_SQUARED * P + points, rows, LANES)
    if known:
        reach = tl.load(rates + tensor) * tl.sqrt(squares)
        length = tl.where(gap > 0, reach / tl.sqrt(tl.where(gap > 0, gap, 1.0)), 1.0)
        tl.store(lengths + tensor, tl.where(length > 1, 1.0, length))


@triton.jit
def pull_of(sums, C, parts, radius, p, k, choice, P, KIND: tl.constexpr):
    """The factor that brings a point back inside; 1 for one that is inside, or is not finite."""
    gauge = total(sums + at.GAUGE * C, parts, LANES) / radius
    if KIND == at.L2:
        gauge = tl.sqrt(gauge / radius)
    if KIND == at.LP:
        gauge = lp_norm(sums + at.GAUGE * C, sums + at.REACH * C, parts, p) / radius
    if KIND == at.KNORM:
        threshold = tl.load(choice + at.PREFIX * P).to(tl.int32)
        room = tl.load(choice + at.ROOM * P).to(tl.float64)
        gauge += room * value_of(threshold).to(tl.float64) / radius
    if KIND == at.KSPARSE:
        reach = largest(sums + at.REACH * C, parts, LANES) / radius
        gauge = tl.maximum(gauge / k, reach)
    return pull_from(gauge, KIND)


@triton.jit
def pull_from(gauge, KIND: tl.constexpr):
    """The factor for a point that outgrows its region by this one."""
    finite = (gauge > 0) & (gauge < INFINITE)
    if KIND != at.PSIMPLEX:
        finite = finite & (gauge > 1)
    return tl.where(finite, 1 / tl.where(finite, gauge, 1.0), 1.0)


@triton.jit
def lp_norm(shares, tops, parts, p):
    """The p-norm, from each chunk's largest value and its sum of (value / largest)^p."""
    top = largest(tops, parts, LANES)
    lane = tl.arange(0, LANES)
    sums = tl.zeros([LANES], tl.float64)
    for start in range(0, parts, LANES):
        inside = start + lane < parts
        share = tl.load(shares + start + lane, inside, 0.0, cache_modifier=".cg")
        scale = tl.load(tops + start + lane, inside, 0.0, cache_modifier=".cg")
        sums += share * power(scale / tl.where(top > 0, top, 1.0), p)
    return top * power(tl.sum(sums, 0), 1 / p)


@triton.jit
def winner(tops, C, parts):
    """The largest value's bits, and the priority and place of the entry that wins them."""
    lane = tl.arange(0, LANES)
    best = tl.full([LANES], at.EVERYONE, tl.int64)
    for start in range(0, parts, LANES):
        here = tops + start + lane
        inside = start + lane < parts
        best = tl.maximum(best, tl.load(here, inside, at.EVERYONE, cache_modifier=".cg"))
    top = tl.max(best, 0)
    first = tl.full([LANES], at.EVERYONE, tl.int64)
    place = tl.zeros([LANES], tl.int64)
    for start in range(0, parts, LANES):
        here = tops + start + lane
        inside = start + lane < parts
        value = tl.load(here, inside, at.EVERYONE, cache_modifier=".cg")
        priority = tl.load(here + at.PRIORITY * C, inside, at.EVERYONE, cache_modifier=".cg")
        wins = inside & (value == top) & (priority >= first)
        first = tl.where(wins, priority, first)
        place = tl.where(wins, tl.load(here + at.PLACE * C, inside, 0, cache_modifier=".cg"), place)
    priority = tl.max(first, 0)
    return top.to(tl.int32), priority, tl.max(tl.where(first == priority, place, -1), 0)


@triton.jit
def unit(norm):
    """Two float32 factors, the first a power of two, whose product is 1 / norm without overflow."""
    safe = (norm > 0) & (norm < INFINITE)
    exponent = tl.floor(tl.log2(tl.where(safe, norm, 1.0)))
    scale = tl.exp2(-tl.minimum(tl.maximum(exponent, -126.0), 126.0)).to(tl.float32)
    return scale.to(tl.float64), 1 / (norm * scale.to(tl.float64))
