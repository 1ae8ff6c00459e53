"""The passes that need the vertex: the squared gap where no sum tells it, and the move itself."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._conclude import LANES, settle
from ._noise import scramble
from ._pieces import (
    FOLD,
    average_at,
    averaged,
    chunk_at,
    completes,
    directed,
    folded,
    gradient_at,
    mixed,
    read,
    theta_at,
    total,
    within,
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


@triton.jit
def needs(record, P, KIND: tl.constexpr):
    """What the vertex needs of its point's record; Lp balls in float64."""
    one = tl.load(record + at.ONE * P)
    if KIND != at.LP:
        one = one.to(tl.float32)
    two = tl.load(record + at.TWO * P).to(tl.float32)
    return one, two, tl.load(record + at.THREE * P).to(tl.float32)


@triton.jit
def choices_of(choice, P, start):
    """What the vertex needs of its point's choices; the entry chosen counts from the chunk's."""
    chosen = tl.load(choice + at.CHOSEN * P) - start
    here = (chosen >= 0) & (chosen < (1 << 30))
    value = tl.load(choice + at.PREFIX * P).to(tl.int32)
    return tl.where(here, chosen, -1).to(tl.int32), value, tl.load(choice + at.LAST * P)


@triton.jit
def drawn(ints, keys, T, tensor, start):
    """What draws depend on: the chunk's start, the tensor's key, and how entries lie."""
    mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
    return start, tl.load(keys + tensor), mid, inner


@triton.jit(do_not_specialize=["T", "C", "P", "first"])
def gap(
    ints, reals, moving, owners, keys, rates, lengths, all_sums, records, choices, counters, T, C,
    P, first,
    KIND: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr,
    ALIGNED: tl.constexpr, G_TYPE: tl.constexpr, M_TYPE: tl.constexpr, X_TYPE: tl.constexpr,
    BLOCK: tl.constexpr, LOOP: tl.constexpr,
):  # fmt: skip
    """The squared gap ‖v − θ‖² of every point, and with it every tensor's step length."""
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    g_at = gradient_at(moving, T, tensor, start, G_TYPE, ALIGNED)
    m_at = average_at(ints, T, tensor, start, M_TYPE, ALIGNED)
    x_at = theta_at(ints, T, tensor, start, X_TYPE, ALIGNED)
    point = tl.load(ints + at.POINT * T + tensor) + row
    record = records + point
    sign = tl.load(reals + at.SIGN * T + tensor).to(tl.float32)
    radius = tl.load(reals + at.RADIUS * T + tensor).to(tl.float32)
    p = tl.load(reals + at.POWER * T + tensor)
    draw = drawn(ints, keys, T, tensor, start)
    need = needs(record, P, KIND)
    chosen, value, last = choices_of(choices + point, P, start)
    pull = tl.load(record + at.PULL * P)
    sums = tl.zeros([BLOCK // FOLD], tl.float64)
    lane, whole = tl.arange(0, BLOCK), left // BLOCK
    for block in range(whole):
        sums += far(
            g_at, m_at, x_at, block * BLOCK + lane, left, sign, pull, need, chosen, value, last,
            (radius, 0.0, 0.0), p, draw, KIND, AVERAGED, RANDOM, FLAT, True,
        )  # fmt: skip
    if whole * BLOCK < left:
        sums += far(
            g_at, m_at, x_at, whole * BLOCK + lane, left, sign, pull, need, chosen, value, last,
            (radius, 0.0, 0.0), p, draw, KIND, AVERAGED, RANDOM, FLAT, False,
        )  # fmt: skip
    tl.store(all_sums + at.ONE * C + chunk, tl.sum(sums, 0))
    parts = tl.load(ints + at.PARTS * T + tensor)
    if completes(counters + point, parts):
        begin = tl.load(ints + at.FIRST * T + tensor) + row * parts
        squared = total(all_sums + at.ONE * C + begin, parts, LANES)
        squares = tl.load(record + at.SIZE_SQUARED * P)
        settle(ints, rates, lengths, records, counters, T, P, tensor, point, squares, squared)


@triton.jit
def far(
    g_at, m_at, x_at, offset, left, sign, pull, need, chosen, value, last, bounds, p, draw,
    KIND: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    """Squared distances from the vertex in one block, summed up by fours."""
    inside = within(offset, left, FULL)
    d = directed(g_at, m_at, offset, left, sign, AVERAGED, FULL)
    v = vertex(
        d, offset, inside, need, chosen, value, last, bounds, p, draw, KIND, RANDOM, FLAT
    )  # fmt: skip
    apart = v.to(tl.float64) - read(x_at, offset, left, FULL).to(tl.float64) * pull
    return folded(tl.where(inside, apart * apart, 0.0))


@triton.jit(do_not_specialize=["T", "P", "first", "chunks"])
def update(
    ints, reals, moving, owners, keys, rates, lengths, records, choices, T, P, first, chunks,
    KIND: tl.constexpr, MEASURED: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr,
    FLAT: tl.constexpr, ALIGNED: tl.constexpr, DITHERED: tl.constexpr, G_TYPE: tl.constexpr,
    M_TYPE: tl.constexpr, X_TYPE: tl.constexpr, BLOCK: tl.constexpr, LOOP: tl.constexpr,
):  # fmt: skip
    """θ ← θ + a (v − θ), or θ ← θ − lr d where the region is free.

    Where nothing had to be measured this is the only pass, and averages the gradients too. Else it
    takes the chunks in reverse: those measured last are still in the cache.
    """
    chunk = first + tl.program_id(0)
    if MEASURED:
        chunk = first + chunks - 1 - tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    g_at = gradient_at(moving, T, tensor, start, G_TYPE, ALIGNED)
    m_at = average_at(ints, T, tensor, start, M_TYPE, ALIGNED)
    x_at = theta_at(ints, T, tensor, start, X_TYPE, ALIGNED)
    sign = tl.load(reals + at.SIGN * T + tensor).to(tl.float32)
    fresh = tl.load(reals + at.FRESH * T + tensor).to(tl.float32)
    radius = tl.load(reals + at.RADIUS * T + tensor).to(tl.float32)
    low = tl.load(reals + at.LOW * T + tensor).to(tl.float32)
    high = tl.load(reals + at.HIGH * T + tensor).to(tl.float32)
    p = tl.load(reals + at.POWER * T + tensor)
    draw = drawn(ints, keys, T, tensor, start)
    length = tl.load(lengths + tensor).to(tl.float32)
    if KIND == at.FREE:
        length = tl.load(rates + tensor).to(tl.float32)
    need, chosen, value, last = (1.0, 1.0, 1.0), 0, 0, 0
    pull = p * 0 + 1
    if KIND != at.FREE and KIND != at.LINF and KIND != at.BOX:
        point = tl.load(ints + at.POINT * T + tensor) + row
        need = needs(records + point, P, KIND)
        chosen, value, last = choices_of(choices + point, P, start)
        pull = tl.where(length == 0, 1.0, tl.load(records + point + at.PULL * P))
    lane, whole = tl.arange(0, BLOCK), left // BLOCK
    for block in range(whole):
        advance(
            g_at, m_at, x_at, block * BLOCK + lane, left, fresh, sign, length, pull, need, chosen,
            value, last, (radius, low, high), p, draw, KIND, MEASURED, AVERAGED, RANDOM, FLAT,
            DITHERED, True,
        )  # fmt: skip
    if whole * BLOCK < left:
        advance(
            g_at, m_at, x_at, whole * BLOCK + lane, left, fresh, sign, length, pull, need, chosen,
            value, last, (radius, low, high), p, draw, KIND, MEASURED, AVERAGED, RANDOM, FLAT,
            DITHERED, False,
        )  # fmt: skip


@triton.jit
def advance(
    g_at, m_at, x_at, offset, left, fresh, sign, length, pull, need, chosen, value, last, bounds,
    p, draw,
    KIND: tl.constexpr, MEASURED: tl.constexpr, AVERAGED: tl.constexpr, RANDOM: tl.constexpr,
    FLAT: tl.constexpr, DITHERED: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """The move of one block."""
    x = read(x_at, offset, left, FULL)
    # A vertex with one entry asks for the direction only where that is not finite or it has more.
    asks = True
    if KIND == at.L1:
        asks = False
    if KIND == at.USIMPLEX or KIND == at.PSIMPLEX or KIND == at.KNORM:
        asks = need[2] > 0
    if MEASURED:
        d = tl.zeros_like(x)
        if asks:
            d = directed(g_at, m_at, offset, left, sign, AVERAGED, FULL)
    else:
        d = averaged(g_at, m_at, offset, left, fresh, sign, AVERAGED, FULL)
    if KIND == at.FREE:
        x = x - length * d
    else:
        v = vertex(
            d, offset, within(offset, left, FULL), need, chosen, value, last, bounds, p, draw,
            KIND, RANDOM, FLAT,
        )  # fmt: skip
        if KIND != at.LINF and KIND != at.BOX:
            if pull != 1:
                x = (x.to(tl.float64) * pull).to(tl.float32)
        x = mixed(x, v, length)
    if DITHERED:
        x = dithered(x, draw[0] + offset, draw[1])
    write(x_at, offset, x, left, FULL)
