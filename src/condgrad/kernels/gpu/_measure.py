"""The measuring pass: reads gradients, averages them, sums up what vertices and steps need.

Each program takes one chunk of one point. The last program of a point to finish puts the chunks'
sums together; under gradient rescaling the last of a tensor's points settles the step length.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._conclude import LANES, pull_of, settle
from ._noise import priorities, random_signs, signs
from ._pieces import (
    FOLD,
    average_at,
    averaged,
    bits_of,
    chunk_at,
    completes,
    folded,
    gradient_at,
    ordered_bits,
    read,
    theta_at,
    total,
    value_of,
    within,
)
from ._power import power
from ._select import NEAR, conclude_exponent, exponents, lowest_exponent
from ._vertices import conclude_l2, conclude_lp, conclude_spike

LOWEST = tl.constexpr(-0x7FFFFFFF)


@triton.jit
def scan(
    g_at, m_at, x_at, left, fresh, sign, draw, bounds, base,
    KIND: tl.constexpr, RULE: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr,
    FLAT: tl.constexpr, COUNTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One way through a chunk: its averages written; sums, largest values and counts returned."""
    lane = tl.arange(0, BLOCK)
    zero = tl.zeros([BLOCK // FOLD], tl.float64)
    sums = (zero, zero, zero, zero, zero)
    none = tl.zeros([BLOCK], tl.int32)
    tops = (none + LOWEST, none, none)
    counts = tl.zeros([NEAR], tl.int32)
    whole = left // BLOCK
    for block in range(whole):
        sums, tops, counts = visit(
            g_at, m_at, x_at, block * BLOCK + lane, left, fresh, sign, draw, bounds, base, sums,
            tops, counts, KIND, RULE, AVERAGED, RANDOM, FLAT, COUNTED, True,
        )  # fmt: skip
    if whole * BLOCK < left:
        sums, tops, counts = visit(
            g_at, m_at, x_at, whole * BLOCK + lane, left, fresh, sign, draw, bounds, base, sums,
            tops, counts, KIND, RULE, AVERAGED, RANDOM, FLAT, COUNTED, False,
        )  # fmt: skip
    return sums, tops, counts


@triton.jit
def visit(
    g_at, m_at, x_at, offset, left, fresh, sign, draw, bounds, base, sums, tops, counts,
    KIND: tl.constexpr, RULE: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr,
    FLAT: tl.constexpr, COUNTED: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """One block of a scan."""
    inside = within(offset, left, FULL)
    squares, one, two, three, four = sums
    d = averaged(g_at, m_at, offset, left, fresh, sign, AVERAGED, FULL)
    wide = d.to(tl.float64)
    squares += folded(wide * wide)
    if KIND == at.L1 or KIND == at.KNORM or KIND == at.LP:
        tops = outdone(bits_of(d), tops, offset, inside, KIND, FULL)
    if KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
        tops = outdone(ordered_bits(0.0 - d), tops, offset, inside, KIND, FULL)
    if COUNTED:
        counts += exponents(bits_of(d), base, inside)
    if KIND == at.KNORM:
        three += folded(tl.abs(wide))
    if RULE:
        far = read(x_at, offset, left, FULL).to(tl.float64)
        if KIND == at.L2:
            one += folded(wide * far)
        if KIND == at.LINF or KIND == at.BOX:
            radius, low, high = bounds
            s = signs(d, inside, offset, draw, RANDOM, FLAT).to(tl.float64)
            v = -s * radius
            if KIND == at.BOX:
                v = tl.where(s < 0, high, low) + s * 0.0
            one += folded(tl.where(inside, (v - far) * (v - far), 0.0))
        if KIND == at.KNORM:
            s = signs(d, inside, offset, draw, RANDOM, FLAT).to(tl.float64)
            one += folded(s * far)
            four += folded(tl.where(inside, s * s, 0.0))
        if KIND == at.L2 or KIND == at.L1 or KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
            two += folded(far * far)
        if KIND == at.KNORM:
            two += folded(far * far)
    return (squares, one, two, three, four), tops, counts


@triton.jit
def outdone(value, tops, offset, inside, KIND: tl.constexpr, FULL: tl.constexpr):
    """Each lane's largest value so far, the first place that has it, and how many have it."""
    top, place, crowd = tops
    if not FULL:
        value = tl.where(inside, value, LOWEST)
    if KIND != at.LP:
        crowd = tl.where(value > top, 1, crowd + (value == top).to(tl.int32))
        place = tl.where(value > top, offset, place)
    return tl.maximum(top, value), place, crowd


@triton.jit
def powers(x_at, left, top, p, BLOCK: tl.constexpr):
    """The sum of (|x| / top)^p over a chunk."""
    sums = tl.zeros([BLOCK // FOLD], tl.float64)
    lane, whole = tl.arange(0, BLOCK), left // BLOCK
    scale = 1 / tl.where(top > 0, top, 1.0)
    for block in range(whole):
        x = read(x_at, block * BLOCK + lane, left, True)
        sums += folded(power(tl.abs(x).to(tl.float64) * scale, p))
    if whole * BLOCK < left:
        x = read(x_at, whole * BLOCK + lane, left, False)
        sums += folded(power(tl.abs(x).to(tl.float64) * scale, p))
    return tl.sum(sums, 0)


@triton.jit
def gauge_sums(x_at, left, p, threshold, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """What tells how far outside its region a point lies: a sum, and the largest absolute value."""
    sums = tl.zeros([BLOCK // FOLD], tl.float64)
    tops = tl.zeros([BLOCK], tl.int32)
    lane, whole = tl.arange(0, BLOCK), left // BLOCK
    for block in range(whole):
        x = read(x_at, block * BLOCK + lane, left, True)
        sums, tops = gauged(x, sums, tops, threshold, KIND)
    if whole * BLOCK < left:
        x = read(x_at, whole * BLOCK + lane, left, False)
        sums, tops = gauged(x, sums, tops, threshold, KIND)
    top = value_of(tl.max(tops, 0)).to(tl.float64)
    gauge = tl.sum(sums, 0)
    if KIND == at.LP:
        gauge = powers(x_at, left, top, p, BLOCK)
    return gauge, top


@triton.jit
def gauged(x, sums, tops, threshold, KIND: tl.constexpr):
    """One block of a gauge."""
    if KIND == at.L2:
        wide = x.to(tl.float64)
        sums += folded(wide * wide)
    elif KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
        sums += folded(x)
    elif KIND == at.KNORM:
        sums += folded(tl.where(bits_of(x) > threshold, tl.abs(x), 0.0))
    elif KIND != at.LP:
        sums += folded(tl.abs(x))
    if KIND == at.LP or KIND == at.KSPARSE:
        tops = tl.maximum(tops, bits_of(x))
    return sums, tops


@triton.jit
def best_of(
    tops, d_at, left, sign, draw,
    KIND: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest value of a chunk; the priority and the place in it of the entry that wins it."""
    top, places, crowds = tops
    best = tl.max(top, 0)
    place = tl.max(tl.where(top == best, places, -1), 0)
    priority = priorities(place, draw, RANDOM, FLAT)
    if tl.sum(tl.where(top == best, crowds, 0), 0) > 1:
        tl.debug_barrier()  # averages that other threads wrote are read
        first = tl.full([BLOCK], at.EVERYONE, tl.int64)
        found = tl.zeros([BLOCK], tl.int32)
        for block in range(tl.cdiv(left, BLOCK)):
            offset = block * BLOCK + tl.arange(0, BLOCK)
            d = read(d_at, offset, left, False) * sign
            value = bits_of(d)
            if KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
                value = ordered_bits(0.0 - d)
            rank = priorities(offset, draw, RANDOM, FLAT)
            wins = (offset < left) & (value == best) & (rank >= first)
            first = tl.where(wins, rank, first)
            found = tl.where(wins, offset, found)
        priority = tl.max(first, 0)
        place = tl.max(tl.where(first == priority, found, -1), 0)
    return best, priority, place


@triton.jit
def signed_sum(x_at, left, draw, FLAT: tl.constexpr, BLOCK: tl.constexpr):
    """⟨s, θ⟩ over a chunk, with the random signs s of a zero direction."""
    sums = tl.zeros([BLOCK], tl.float64)
    for block in range(tl.cdiv(left, BLOCK)):
        offset = block * BLOCK + tl.arange(0, BLOCK)
        sums += read(x_at, offset, left, False) * random_signs(offset, draw, FLAT)
    return tl.sum(sums, 0)


@triton.jit
def note(
    sums, C, found, x_at, d_at, left, top, p, draw,
    KIND: tl.constexpr, RULE: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the sums of a chunk that its region and rule ask for."""
    squares, one, two, three, four = found
    size = tl.sum(squares, 0)
    tl.store(sums + at.SQUARES * C, size)
    if KIND == at.LP:
        tl.debug_barrier()  # averages that other threads wrote are read
        tl.store(sums + at.ONE * C, powers(d_at, left, top, p / (p - 1), BLOCK))
        tl.store(sums + at.TWO * C, top)
    elif RULE and KIND != at.KSPARSE:
        if KIND == at.L2 or KIND == at.LINF or KIND == at.BOX or KIND == at.KNORM:
            tl.store(sums + at.ONE * C, tl.sum(one, 0))
        if KIND != at.LINF and KIND != at.BOX:
            tl.store(sums + at.TWO * C, tl.sum(two, 0))
        if KIND == at.KNORM:
            tl.store(sums + at.FOUR * C, tl.sum(four, 0))
        if KIND == at.L2 and RANDOM:
            signed = size * 0
            if size == 0:
                signed = signed_sum(x_at, left, draw, FLAT, BLOCK)
            tl.store(sums + at.THREE * C, signed)
    if KIND == at.KNORM:
        tl.store(sums + at.THREE * C, tl.sum(three, 0))


@triton.jit(do_not_specialize=["T", "C", "P", "first"])
def measure(
    ints, reals, moving, owners, keys, rates, lengths, due, all_sums, all_tops, records, choices,
    all_bins, counters, pending, T, C, P, first,
    KIND: tl.constexpr, RULE: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr,
    FLAT: tl.constexpr, COUNTED: tl.constexpr, ALIGNED: tl.constexpr, G_TYPE: tl.constexpr,
    M_TYPE: tl.constexpr, X_TYPE: tl.constexpr, BLOCK: tl.constexpr, LOOP: tl.constexpr,
):  # fmt: skip
    """Measure every chunk; conclude every point and, where the rule needs them, every tensor."""
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    g_at = gradient_at(moving, T, tensor, start, G_TYPE, ALIGNED)
    m_at = average_at(ints, T, tensor, start, M_TYPE, ALIGNED)
    x_at = theta_at(ints, T, tensor, start, X_TYPE, ALIGNED)
    sign = tl.load(reals + at.SIGN * T + tensor).to(tl.float32)
    fresh = tl.load(reals + at.FRESH * T + tensor).to(tl.float32)
    radius = tl.load(reals + at.RADIUS * T + tensor)
    low, high = tl.load(reals + at.LOW * T + tensor), tl.load(reals + at.HIGH * T + tensor)
    p = tl.load(reals + at.POWER * T + tensor)
    mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
    draw = (start, tl.load(keys + tensor), mid, inner)
    point = tl.load(ints + at.POINT * T + tensor) + row
    bins = all_bins + (tl.load(ints + at.BINS * T + tensor) + row) * at.DIGITS
    base = lowest_exponent(choices + point, P)

    found, tops, counts = scan(
        g_at, m_at, x_at, left, fresh, sign, draw, (radius, low, high), base,
        KIND, RULE, AVERAGED, RANDOM, FLAT, COUNTED, BLOCK,
    )  # fmt: skip
    d_at = g_at
    if AVERAGED:
        d_at, sign = m_at, sign * 0 + 1
    top = radius * 0
    if KIND == at.LP:
        top = value_of(tl.max(tops[0], 0)).to(tl.float64)
    if KIND == at.L1 or KIND == at.USIMPLEX or KIND == at.PSIMPLEX or KIND == at.KNORM:
        best, priority, place = best_of(tops, d_at, left, sign, draw, KIND, RANDOM, FLAT, BLOCK)
        tl.store(all_tops + at.TOP * C + chunk, best.to(tl.int64))
        tl.store(all_tops + at.PRIORITY * C + chunk, priority)
        tl.store(all_tops + at.PLACE * C + chunk, start + place)
    if COUNTED:
        tl.atomic_add(bins + tl.arange(0, NEAR), counts, mask=counts > 0, sem="relaxed")
    sums = all_sums + chunk
    note(sums, C, found, x_at, d_at, left, top, p, draw, KIND, RULE, RANDOM, FLAT, BLOCK)
    pulled = tl.load(due + tensor) != 0
    if KIND != at.LINF and KIND != at.BOX:
        if pulled:
            threshold = tl.load(choices + at.PREFIX * P + point).to(tl.int32)
            gauge, reach = gauge_sums(x_at, left, p, threshold, KIND, BLOCK)
            tl.store(sums + at.GAUGE * C, gauge)
            tl.store(sums + at.REACH * C, reach)
    if completes(counters + point, tl.load(ints + at.PARTS * T + tensor)):
        conclude(
            ints, rates, lengths, all_sums, all_tops, records, choices, bins, counters, pending, T,
            C, P, tensor, row, point, radius, p, pulled, d_at - start, x_at - start, sign, draw,
            base, KIND, RULE, RANDOM, COUNTED,
        )  # fmt: skip


@triton.jit
def conclude(
    ints, rates, lengths, all_sums, all_tops, records, choices, bins, counters, pending, T, C, P,
    tensor, row, point, radius, p, pulled, d_at, x_at, sign, draw, base,
    KIND: tl.constexpr, RULE: tl.constexpr, RANDOM: tl.constexpr, COUNTED: tl.constexpr,
):  # fmt: skip
    """Put the sums of a point's chunks together: its record, and perhaps its tensor's length."""
    record, choice = records + point, choices + point
    parts = tl.load(ints + at.PARTS * T + tensor)
    k, size = tl.load(ints + at.COUNT * T + tensor), tl.load(ints + at.SIZE * T + tensor)
    begin = tl.load(ints + at.FIRST * T + tensor) + row * parts
    sums, tops = all_sums + begin, all_tops + begin
    squares = total(sums + at.SQUARES * C, parts, LANES)
    pull = squares * 0 + 1
    if KIND != at.LINF and KIND != at.BOX:
        if pulled:
            pull = pull_of(sums, C, parts, radius, p, k, choice, P, KIND)
    tl.store(record + at.PULL * P, pull)
    gap = squares * 0
    if KIND == at.L2:
        gap = conclude_l2(sums, C, parts, record, P, radius, pull, size, squares, RULE, RANDOM)
    elif KIND == at.LINF or KIND == at.BOX:
        gap = total(sums + at.ONE * C, parts, LANES)
    elif KIND == at.LP:
        conclude_lp(sums, C, parts, record, P, radius, p, size, squares, RANDOM)
    elif KIND == at.KSPARSE:
        if COUNTED:
            conclude_exponent(choice, bins, pending, P, base, k)
    else:
        gap = conclude_spike(
            sums, tops, C, parts, record, choice, P, radius, pull, k, size, squares, row, draw,
            d_at, x_at, sign, KIND, RULE, RANDOM,
        )  # fmt: skip
    if RULE:
        if KIND == at.LP or KIND == at.KSPARSE:
            tl.store(record + at.SIZE_SQUARED * P, squares)
        else:
            settle(ints, rates, lengths, records, counters, T, P, tensor, point, squares, gap)
