"""The passes that need the vertex: the squared gap where no sum tells it, and the move itself."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._conclude import LANES, settle
from ._noise import scramble
from ._pieces import (
    arrives_last,
    average_at,
    averaged,
    chunk_at,
    directed,
    gradient_at,
    mixed,
    read,
    theta_at,
    total,
    write,
)
from ._vertices import vertex

DITHER = tl.constexpr(0x2545F4914F6CDD1D)  # sets the noise of rounding apart from that of ties


@triton.jit
def dithered(x, place, key):
    """X with noise below bfloat16's last place, so that cutting it off rounds at random.

    The chance to round up is the part that is cut off: on average nothing is lost.
    """
    noise = (scramble(place, key ^ DITHER) >> 48).to(tl.int32) & 0xFFFF
    bits = x.to(tl.int32, bitcast=True)
    cut = (bits + noise) & -0x10000
    finite = (bits & 0x7F800000) != 0x7F800000
    return tl.where(finite, cut, bits).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["T", "C", "P", "first"])
def gap(
    ints,
    reals,
    moving,
    owners,
    keys,
    rates,
    lengths,
    all_sums,
    records,
    choices,
    counters,
    T,
    C,
    P,
    first,
    KIND: tl.constexpr,
    AVERAGED: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    ALIGNED: tl.constexpr,
    G_TYPE: tl.constexpr,
    M_TYPE: tl.constexpr,
    X_TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
    """The squared gap ‖v − θ‖² of every point, and with it every tensor's step length."""
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    g_at = gradient_at(moving, T, tensor, start, G_TYPE, ALIGNED)
    m_at = average_at(ints, T, tensor, start, M_TYPE, ALIGNED)
    x_at = theta_at(ints, T, tensor, start, X_TYPE, ALIGNED)
    points = tl.load(ints + at.POINT * T + tensor)
    point = points + row
    rows, parts = tl.load(ints + at.ROWS * T + tensor), tl.load(ints + at.PARTS * T + tensor)
    record, choice = records + point, choices + point
    sign = tl.load(reals + at.SIGN * T + tensor).to(tl.float32)
    radius = tl.load(reals + at.RADIUS * T + tensor).to(tl.float32)
    p = tl.load(reals + at.POWER * T + tensor)
    key = tl.load(keys + tensor)
    mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
    one, two, three = needs(record, P, KIND)
    chosen, value, last = choices_of(choice, P, KIND)
    pull = tl.load(record + at.PULL * P)
    sums = tl.zeros([BLOCK], tl.float64)
    for block in range(tl.cdiv(left, BLOCK)):
        offset = block * BLOCK + tl.arange(0, BLOCK)
        inside = offset < left
        d = directed(g_at, m_at, offset, left, sign, AVERAGED, False)
        v = vertex(
            d, offset, start, inside, one, two, three, chosen, value, last, radius, 0.0, 0.0, p,
            key, mid, inner, KIND, RANDOM, FLAT,
        )  # fmt: skip
        far = v.to(tl.float64) - read(x_at, offset, left, False).to(tl.float64) * pull
        sums += tl.where(inside, far * far, 0.0)
    tl.store(all_sums + at.ONE * C + chunk, tl.sum(sums, 0))
    complete = True
    if parts > 1:
        complete = arrives_last(counters + point, parts)
    else:
        tl.debug_barrier()
    if complete:
        begin = tl.load(ints + at.FIRST * T + tensor) + row * parts
        squared = total(all_sums + at.ONE * C + begin, parts, LANES)
        squares = tl.load(record + at.SIZE_SQUARED * P)
        settle(
            rates, lengths, records, counters, T, P, tensor, point, points, rows, squares, squared
        )


@triton.jit
def needs(record, P, KIND: tl.constexpr):
    """What the vertex needs of its point's record; Lp balls in float64."""
    one = tl.load(record + at.ONE * P)
    if KIND != at.LP:
        one = one.to(tl.float32)
    two = tl.load(record + at.TWO * P).to(tl.float32)
    return one, two, tl.load(record + at.THREE * P).to(tl.float32)


@triton.jit
def choices_of(choice, P, KIND: tl.constexpr):
    """What the vertex needs of its point's choices."""
    chosen = tl.load(choice + at.CHOSEN * P)
    value = tl.load(choice + at.PREFIX * P).to(tl.int32)
    return chosen, value, tl.load(choice + at.LAST * P)


@triton.jit(do_not_specialize=["T", "P", "first", "chunks"])
def update(
    ints,
    reals,
    moving,
    owners,
    keys,
    rates,
    lengths,
    records,
    choices,
    T,
    P,
    first,
    chunks,
    KIND: tl.constexpr,
    MEASURED: tl.constexpr,
    AVERAGED: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    ALIGNED: tl.constexpr,
    DITHERED: tl.constexpr,
    G_TYPE: tl.constexpr,
    M_TYPE: tl.constexpr,
    X_TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
    """θ ← θ + a (v − θ), or θ ← θ − lr d where the region is free.

    Where nothing had to be measured this is the only pass, and averages the gradients too. Else it
    takes the chunks in reverse: those measured last are still in the cache.
    """
    chunk = first + tl.program_id(0)
    if MEASURED:
        chunk = first + chunks - 1 - tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    if left == BLOCK * LOOP:
        advance(
            ints, reals, moving, keys, rates, lengths, records, choices, T, P, tensor, row, start,
            left, KIND, MEASURED, AVERAGED, RANDOM, FLAT, ALIGNED, DITHERED, G_TYPE, M_TYPE,
            X_TYPE, True, BLOCK, LOOP,
        )  # fmt: skip
    else:
        advance(
            ints, reals, moving, keys, rates, lengths, records, choices, T, P, tensor, row, start,
            left, KIND, MEASURED, AVERAGED, RANDOM, FLAT, ALIGNED, DITHERED, G_TYPE, M_TYPE,
            X_TYPE, False, BLOCK, LOOP,
        )  # fmt: skip


@triton.jit
def advance(
    ints,
    reals,
    moving,
    keys,
    rates,
    lengths,
    records,
    choices,
    T,
    P,
    tensor,
    row,
    start,
    left,
    KIND: tl.constexpr,
    MEASURED: tl.constexpr,
    AVERAGED: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    ALIGNED: tl.constexpr,
    DITHERED: tl.constexpr,
    G_TYPE: tl.constexpr,
    M_TYPE: tl.constexpr,
    X_TYPE: tl.constexpr,
    FULL: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
    """The move of one chunk."""
    g_at = gradient_at(moving, T, tensor, start, G_TYPE, ALIGNED)
    m_at = average_at(ints, T, tensor, start, M_TYPE, ALIGNED)
    x_at = theta_at(ints, T, tensor, start, X_TYPE, ALIGNED)
    sign = tl.load(reals + at.SIGN * T + tensor).to(tl.float32)
    fresh = tl.load(reals + at.FRESH * T + tensor).to(tl.float32)
    radius = tl.load(reals + at.RADIUS * T + tensor).to(tl.float32)
    low = tl.load(reals + at.LOW * T + tensor).to(tl.float32)
    high = tl.load(reals + at.HIGH * T + tensor).to(tl.float32)
    p = tl.load(reals + at.POWER * T + tensor)
    key = tl.load(keys + tensor)
    mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
    length = tl.load(lengths + tensor).to(tl.float32)
    rate = tl.load(rates + tensor).to(tl.float32)
    point = tl.load(ints + at.POINT * T + tensor) + row
    record, choice = records + point, choices + point
    one, two, three = needs(record, P, KIND)
    chosen, value, last = choices_of(choice, P, KIND)
    pull = 1.0
    if KIND != at.FREE and KIND != at.LINF and KIND != at.BOX:
        pull = tl.where(length == 0, 1.0, tl.load(record + at.PULL * P))
    # A vertex with one entry asks for the direction only where that is not finite or it has more.
    asks = True
    if KIND == at.L1:
        asks = False
    if KIND == at.USIMPLEX or KIND == at.PSIMPLEX or KIND == at.KNORM:
        asks = three > 0
    blocks = LOOP
    if not FULL:
        blocks = tl.cdiv(left, BLOCK)
    for block in range(blocks):
        offset = block * BLOCK + tl.arange(0, BLOCK)
        inside = offset < left
        x = read(x_at, offset, left, FULL)
        if MEASURED:
            d = tl.zeros([BLOCK], tl.float32)
            if asks:
                d = directed(g_at, m_at, offset, left, sign, AVERAGED, FULL)
        else:
            d = averaged(g_at, m_at, offset, left, fresh, sign, AVERAGED, FULL)
        if KIND == at.FREE:
            x = x - rate * d
        else:
            v = vertex(
                d, offset, start, inside, one, two, three, chosen, value, last, radius, low, high,
                p, key, mid, inner, KIND, RANDOM, FLAT,
            )  # fmt: skip
            if KIND != at.LINF and KIND != at.BOX:
                if pull != 1:
                    x = (x.to(tl.float64) * pull).to(tl.float32)
            x = mixed(x, v, length)
        if DITHERED:
            x = dithered(x, start + offset, key)
        write(x_at, offset, x, left, FULL)
