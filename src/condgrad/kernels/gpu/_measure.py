"""The measuring pass: reads gradients, averages them, sums up what vertices and steps need.

Each program takes one chunk of one point. The last program of a point to finish puts the chunks'
sums together; under gradient rescaling the last of a tensor's points settles the step length.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._conclude import LANES, power, pull_of, settle
from ._noise import entry_of, priority_of, random_sign, signs
from ._pieces import (
    arrives_last,
    average_at,
    averaged,
    bits_of,
    chunk_at,
    gradient_at,
    ordered_bits,
    read,
    theta_at,
    total,
)
from ._select import conclude_digit, tally_exponents
from ._vertices import conclude_l2, conclude_lp, conclude_spike


@triton.jit
def scan(
    g_at,
    m_at,
    x_at,
    start,
    left,
    fresh,
    sign,
    key,
    mid,
    inner,
    radius,
    low,
    high,
    bins,
    KIND: tl.constexpr,
    RULE: tl.constexpr,
    AVERAGED: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    COUNTED: tl.constexpr,
    FULL: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
    """One way through a chunk: its averages written, its sums and its largest value returned."""
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float64)
    one = tl.zeros([BLOCK], tl.float64)
    two = tl.zeros([BLOCK], tl.float64)
    three = tl.zeros([BLOCK], tl.float64)
    four = tl.zeros([BLOCK], tl.float64)
    top = tl.full([BLOCK], -0x7FFFFFFF, tl.int32)
    place = tl.zeros([BLOCK], tl.int32)
    crowd = tl.zeros([BLOCK], tl.int32)
    blocks = LOOP
    if not FULL:
        blocks = tl.cdiv(left, BLOCK)
    for block in range(blocks):
        offset = block * BLOCK + lane
        inside = offset < left
        d = averaged(g_at, m_at, offset, left, fresh, sign, AVERAGED, FULL)
        wide = d.to(tl.float64)
        squares += wide * wide
        if KIND == at.L1 or KIND == at.USIMPLEX or KIND == at.PSIMPLEX or KIND == at.KNORM:
            if KIND == at.L1 or KIND == at.KNORM:
                value = bits_of(d)
            else:
                value = ordered_bits(0.0 - d)
            if not FULL:
                value = tl.where(inside, value, -0x7FFFFFFF)
            crowd = tl.where(value > top, 1, crowd + (value == top).to(tl.int32))
            place = tl.where(value > top, offset, place)
            top = tl.maximum(top, value)
        if COUNTED:
            tally_exponents(bins, bits_of(d), inside)
        if KIND == at.KNORM:
            three += tl.abs(wide)
        if RULE:
            x = read(x_at, offset, left, FULL)
            far = x.to(tl.float64)
            if KIND == at.L2:
                one += wide * far
                two += far * far
            if KIND == at.L1 or KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
                two += far * far
            if KIND == at.LINF or KIND == at.KNORM:
                s = signs(d, inside, start + offset, key, mid, inner, RANDOM, FLAT)
                s = s.to(tl.float64)
                if KIND == at.LINF:
                    gap = tl.where(inside, s * radius + far, 0.0)
                    one += gap * gap
                else:
                    one += tl.where(inside, s * far, 0.0)
                    two += far * far
                    four += tl.where(inside, s * s, 0.0)
            if KIND == at.BOX:
                s = signs(d, inside, start + offset, key, mid, inner, RANDOM, FLAT)
                v = tl.where(s < 0, high, low) + d.to(tl.float64) * 0.0
                gap = tl.where(inside, v - far, 0.0)
                one += gap * gap
    return (
        tl.sum(squares, 0),
        tl.sum(one, 0),
        tl.sum(two, 0),
        tl.sum(three, 0),
        tl.sum(four, 0),
        top,
        place,
        crowd,
    )


@triton.jit
def lp_sums(pointer, left, p, BLOCK: tl.constexpr):
    """The largest |x| of a chunk, and the sum of (|x| / largest)^p."""
    lane = tl.arange(0, BLOCK)
    tops = tl.zeros([BLOCK], tl.float32)
    for block in range(tl.cdiv(left, BLOCK)):
        tops = tl.maximum(tops, tl.abs(read(pointer, block * BLOCK + lane, left, False)))
    top = tl.max(tops, 0).to(tl.float64)
    safe = tl.where(top > 0, top, 1.0)
    sums = tl.zeros([BLOCK], tl.float64)
    for block in range(tl.cdiv(left, BLOCK)):
        share = tl.abs(read(pointer, block * BLOCK + lane, left, False)).to(tl.float64) / safe
        sums += power(share, p)
    return tl.sum(sums, 0), top


@triton.jit
def gauge_sums(x_at, left, p, threshold, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """What tells how far outside its region a point lies."""
    if KIND == at.LP:
        return lp_sums(x_at, left, p, BLOCK)
    sums = tl.zeros([BLOCK], tl.float64)
    tops = tl.zeros([BLOCK], tl.float64)
    for block in range(tl.cdiv(left, BLOCK)):
        narrow = read(x_at, block * BLOCK + tl.arange(0, BLOCK), left, False)
        x = narrow.to(tl.float64)
        if KIND == at.L2:
            sums += x * x
        elif KIND == at.USIMPLEX or KIND == at.PSIMPLEX:
            sums += x
        elif KIND == at.KNORM:
            sums += tl.where(bits_of(narrow) > threshold, tl.abs(x), 0.0)
        else:
            sums += tl.abs(x)
        tops = tl.maximum(tops, tl.abs(x))
    return tl.sum(sums, 0), tl.max(tops, 0)


@triton.jit
def first_of_ties(
    d_at, start, left, top, sign, key, mid, inner, KIND, RANDOM, FLAT, BLOCK: tl.constexpr
):
    """The priority and the place of the entry that wins among those of a chunk at the top."""
    first = tl.full([BLOCK], at.EVERYONE, tl.int64)
    place = tl.zeros([BLOCK], tl.int32)
    for block in range(tl.cdiv(left, BLOCK)):
        offset = block * BLOCK + tl.arange(0, BLOCK)
        d = read(d_at, offset, left, False) * sign
        if KIND == at.L1 or KIND == at.KNORM:
            value = bits_of(d)
        else:
            value = ordered_bits(0.0 - d)
        priority = priority_of(entry_of(start + offset, mid, inner, FLAT), key, RANDOM)
        wins = (offset < left) & (value == top) & (priority >= first)
        first = tl.where(wins, priority, first)
        place = tl.where(wins, offset, place)
    best = tl.max(first, 0)
    return best, tl.max(tl.where(first == best, place, -1), 0)


@triton.jit
def signed_sum(x_at, start, left, key, mid, inner, FLAT: tl.constexpr, BLOCK: tl.constexpr):
    """⟨s, θ⟩ over a chunk, with the random signs s of a zero direction."""
    sums = tl.zeros([BLOCK], tl.float64)
    for block in range(tl.cdiv(left, BLOCK)):
        offset = block * BLOCK + tl.arange(0, BLOCK)
        entry = entry_of(start + offset, mid, inner, FLAT)
        sums += read(x_at, offset, left, False) * random_sign(entry, key)
    return tl.sum(sums, 0)


@triton.jit(do_not_specialize=["T", "C", "P", "first"])
def measure(
    ints,
    reals,
    moving,
    owners,
    keys,
    rates,
    lengths,
    due,
    all_sums,
    all_tops,
    records,
    choices,
    all_bins,
    counters,
    pending,
    T,
    C,
    P,
    first,
    KIND: tl.constexpr,
    RULE: tl.constexpr,
    AVERAGED: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    COUNTED: tl.constexpr,
    ALIGNED: tl.constexpr,
    G_TYPE: tl.constexpr,
    M_TYPE: tl.constexpr,
    X_TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
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
    k = tl.load(ints + at.COUNT * T + tensor)
    key = tl.load(keys + tensor)
    mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
    rows, parts = tl.load(ints + at.ROWS * T + tensor), tl.load(ints + at.PARTS * T + tensor)
    size = tl.load(ints + at.SIZE * T + tensor)
    points = tl.load(ints + at.POINT * T + tensor)
    point = points + row
    record, choice = records + point, choices + point
    bins = all_bins + (tl.load(ints + at.BINS * T + tensor) + row) * at.DIGITS

    if left == BLOCK * LOOP:
        squares, one, two, three, four, tops, places, crowds = scan(
            g_at, m_at, x_at, start, left, fresh, sign, key, mid, inner, radius, low, high, bins,
            KIND, RULE, AVERAGED, RANDOM, FLAT, COUNTED, True, BLOCK, LOOP,
        )  # fmt: skip
    else:
        squares, one, two, three, four, tops, places, crowds = scan(
            g_at, m_at, x_at, start, left, fresh, sign, key, mid, inner, radius, low, high, bins,
            KIND, RULE, AVERAGED, RANDOM, FLAT, COUNTED, False, BLOCK, LOOP,
        )  # fmt: skip

    if AVERAGED:
        d_at, sign = m_at, sign * 0 + 1
    else:
        d_at = g_at
    if KIND == at.L1 or KIND == at.USIMPLEX or KIND == at.PSIMPLEX or KIND == at.KNORM:
        best = tl.max(tops, 0)
        place = tl.max(tl.where(tops == best, places, -1), 0)
        priority = priority_of(entry_of(start + place, mid, inner, FLAT), key, RANDOM)
        if tl.sum(tl.where(tops == best, crowds, 0), 0) > 1:
            tl.debug_barrier()
            priority, place = first_of_ties(
                d_at, start, left, best, sign, key, mid, inner, KIND, RANDOM, FLAT, BLOCK
            )
        tl.store(all_tops + at.TOP * C + chunk, best.to(tl.int64))
        tl.store(all_tops + at.PRIORITY * C + chunk, priority)
        tl.store(all_tops + at.PLACE * C + chunk, start + place)
    if KIND == at.L2 and RULE and RANDOM:
        if squares == 0:
            three = signed_sum(x_at, start, left, key, mid, inner, FLAT, BLOCK)
    if KIND == at.LP:
        tl.debug_barrier()
        one, two = lp_sums(d_at, left, p / (p - 1), BLOCK)

    sums = all_sums + chunk
    tl.store(sums + at.SQUARES * C, squares)
    tl.store(sums + at.ONE * C, one)
    tl.store(sums + at.TWO * C, two)
    tl.store(sums + at.THREE * C, three)
    tl.store(sums + at.FOUR * C, four)
    pulled = False
    if KIND != at.LINF and KIND != at.BOX:
        pulled = tl.load(due + tensor) != 0
        if pulled:
            threshold = tl.load(choice + at.PREFIX * P).to(tl.int32)
            gauge, reach = gauge_sums(x_at, left, p, threshold, KIND, BLOCK)
            tl.store(sums + at.GAUGE * C, gauge)
            tl.store(sums + at.REACH * C, reach)

    complete = True
    if parts > 1:
        complete = arrives_last(counters + point, parts)
    else:
        tl.debug_barrier()
    if complete:
        begin = tl.load(ints + at.FIRST * T + tensor) + row * parts
        sums, tops = all_sums + begin, all_tops + begin
        squares = total(sums + at.SQUARES * C, parts, LANES)
        pull = squares * 0 + 1
        if pulled:
            pull = pull_of(sums, C, parts, radius, p, k, choice, P, KIND)
        tl.store(record + at.PULL * P, pull)
        gap = squares * 0
        x_first = theta_at(ints, T, tensor, 0, X_TYPE, ALIGNED)
        if KIND == at.L2:
            gap = conclude_l2(sums, C, parts, record, P, radius, pull, size, squares, RANDOM)
        elif KIND == at.LINF or KIND == at.BOX:
            gap = total(sums + at.ONE * C, parts, LANES)
        elif KIND == at.LP:
            conclude_lp(sums, C, parts, record, P, radius, p, size, squares, RANDOM)
        elif KIND == at.KSPARSE:
            if COUNTED:
                conclude_digit(choice, bins, pending, P, k * 0, k, 23, 8)
        else:
            gap = conclude_spike(
                sums, tops, C, parts, record, choice, P, radius, pull, k, size, squares, row, key,
                d_at - start, x_first, sign, KIND, RANDOM,
            )  # fmt: skip
        if RULE:
            if KIND == at.LP or KIND == at.KSPARSE:
                tl.store(record + at.SIZE_SQUARED * P, squares)
            else:
                settle(rates, lengths, records, counters, T, P, tensor, point, points, rows,
                       squares, gap)  # fmt: skip
