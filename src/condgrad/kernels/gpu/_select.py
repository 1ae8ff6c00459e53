"""The K-th largest absolute value of a point, exactly, without a sort.

Small points are searched within one program, bit by bit. Large ones digit by digit, many chunks at
once: each pass counts how often every digit occurs among the values whose higher digits are those
of the K-th, and the last program to finish reads off the next digit. Counting whole numbers is
exact in any order. Ties at the K-th value are broken in the same way by the digits of their
priorities; where nothing is tied these passes end at once.

The first digit is the exponent. It is counted while the direction is measured, and there, counting
costs as much as memory does: so only 32 exponents are told apart, those about the exponent of the
last step's K-th value. Should it have left them, a pass of its own counts all 256.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._noise import priorities
from ._pieces import (
    arrives_last,
    average_at,
    bits_of,
    chunk_at,
    gradient_at,
    read,
    theta_at,
    within,
)

TILE = tl.constexpr(512)
NEAR = tl.constexpr(32)  # the exponents that are told apart at first
ASTRAY = tl.constexpr(-(1 << 63) + 1)  # a `LAST` of points whose exponent is none of them


@triton.jit
def tally(bins, digit, counted):
    """Count the digits: one atomic for all where all are the same, which many zeros are."""
    crowd = tl.sum(counted.to(tl.int32), 0)
    if crowd > 0:
        low = tl.min(tl.where(counted, digit, 0x7FFFFFFF), 0)
        high = tl.max(tl.where(counted, digit, -1), 0)
        if low == high:
            tl.atomic_add(bins + low, crowd, sem="relaxed")
        else:
            tl.atomic_add(bins + digit, 1, mask=counted, sem="relaxed")


@triton.jit
def lowest_exponent(choice, P):
    """The first of the exponents that are told apart: 16 below that of the last step's value."""
    exponent = (tl.load(choice + at.PREFIX * P) >> 23).to(tl.int32) & 0xFF
    return tl.minimum(tl.maximum(exponent - 16, 0), 256 - NEAR)


@triton.jit
def exponents(bits, base, counted):
    """How often each of the exponents near the last one occurs; the outer ones count the rest."""
    near = tl.minimum(tl.maximum((bits >> 23) - base, 0), NEAR - 1)
    return tl.histogram(near, NEAR, mask=counted)


@triton.jit
def narrowed(bins, room, N: tl.constexpr):
    """The digit that holds the value number `room` from the top; its room, its crowd.

    The counters, N of them, are read tile by tile from the top, and left at zero.
    """
    SIZE: tl.constexpr = TILE if N > TILE else N
    place = tl.arange(0, SIZE)
    above = room * 0
    before, found, crowd = above, above, above
    for tile in range(N // SIZE):
        here = bins + (N - 1 - tile * SIZE) - place
        counts = tl.load(here, cache_modifier=".cg").to(tl.uint32, bitcast=True).to(tl.int64)
        tl.debug_barrier()  # where counters are fewer than threads, several read the same one
        tl.store(here, tl.zeros([SIZE], tl.int32))
        upto = above + tl.cumsum(counts, 0)
        passed = upto < room
        holds = (upto >= room) & (upto - counts < room)
        found += tl.sum(passed.to(tl.int64), 0)
        before += tl.sum(tl.where(passed, counts, 0), 0)
        crowd += tl.sum(tl.where(holds, counts, 0), 0)
        above += tl.sum(counts, 0)
    return N - 1 - found, room - before, crowd


@triton.jit
def conclude_digit(
    choice, bins, pending, P, prefix, room,
    SHIFT: tl.constexpr, WIDTH: tl.constexpr, TIES: tl.constexpr,
):  # fmt: skip
    """Take note of the next digit of a point's K-th largest value; after the last one, of ties."""
    digit, room, crowd = narrowed(bins, room, 1 << WIDTH)
    tl.store(choice + at.PREFIX * P, (prefix << WIDTH) | digit)
    tl.store(choice + at.ROOM * P, room)
    tl.store(choice + at.CROWD * P, crowd)
    if TIES:
        tied = room < crowd
        tl.store(choice + at.LAST * P, tl.where(tied, 0, at.EVERYONE).to(tl.int64))
        if tied:
            tl.atomic_add(pending, 1, sem="relaxed")


@triton.jit
def conclude_exponent(choice, bins, pending, P, base, k):
    """Take note of the K-th largest value's exponent, or of its having gone astray."""
    digit, room, crowd = narrowed(bins, k, NEAR)
    astray = ((digit == 0) & (base > 0)) | ((digit == NEAR - 1) & (base < 256 - NEAR))
    tl.store(choice + at.PREFIX * P, base + digit)
    tl.store(choice + at.ROOM * P, room)
    tl.store(choice + at.CROWD * P, crowd)
    tl.store(choice + at.LAST * P, tl.where(astray, ASTRAY, 0).to(tl.int64))
    if astray:
        tl.atomic_add(pending + 1, 1, sem="relaxed")


@triton.jit
def source_at(
    ints, moving, T, tensor, start,
    SOURCE: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Where the chunk's gradients, averages or parameters lie."""
    if SOURCE == "theta":
        x_at = theta_at(ints, T, tensor, start, TYPE, ALIGNED)
    elif SOURCE == "average":
        x_at = average_at(ints, T, tensor, start, TYPE, ALIGNED)
    else:
        x_at = gradient_at(moving, T, tensor, start, TYPE, ALIGNED)
    return x_at


@triton.jit(do_not_specialize=["T", "P", "first"])
def count_digits(
    ints, moving, owners, due, choices, all_bins, counters, pending, T, P, first,
    SOURCE: tl.constexpr, SHIFT: tl.constexpr, WIDTH: tl.constexpr, TYPE: tl.constexpr,
    ALIGNED: tl.constexpr, BLOCK: tl.constexpr, LOOP: tl.constexpr,
):  # fmt: skip
    """One digit of the K-th largest |x| of every point, where x is gradient, average or theta."""
    STRAYS: tl.constexpr = SHIFT == 23 and SOURCE != "theta"
    if STRAYS:
        if tl.load(pending + 1) == 0:
            return
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    x_at = source_at(ints, moving, T, tensor, start, SOURCE, TYPE, ALIGNED)
    point = tl.load(ints + at.POINT * T + tensor) + row
    choice = choices + point
    wanted = True
    if SOURCE == "theta":
        wanted = tl.load(due + tensor) != 0
    elif STRAYS:
        wanted = tl.load(choice + at.LAST * P) == ASTRAY
    if wanted:
        bins = all_bins + (tl.load(ints + at.BINS * T + tensor) + row) * at.DIGITS
        room = tl.load(ints + at.COUNT * T + tensor)
        prefix = room * 0
        if SHIFT != 23:
            prefix = tl.load(choice + at.PREFIX * P)
            room = tl.load(choice + at.ROOM * P)
        lane, whole = tl.arange(0, BLOCK), left // BLOCK
        for block in range(whole):
            digits(x_at, bins, block * BLOCK + lane, left, prefix, SHIFT, WIDTH, True)
        if whole * BLOCK < left:
            digits(x_at, bins, whole * BLOCK + lane, left, prefix, SHIFT, WIDTH, False)
        if arrives_last(counters + point, tl.load(ints + at.PARTS * T + tensor)):
            TIES: tl.constexpr = SHIFT == 0 and SOURCE != "theta"
            conclude_digit(choice, bins, pending, P, prefix, room, SHIFT, WIDTH, TIES)
            if STRAYS:
                tl.store(choice + at.LAST * P, room * 0)
                tl.atomic_add(pending + 1, -1, sem="relaxed")


@triton.jit
def digits(
    x_at, bins, offset, left, prefix,
    SHIFT: tl.constexpr, WIDTH: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """Count the digits of a block: exponents within the program first, as they are all alike."""
    bits = bits_of(read(x_at, offset, left, FULL))
    counted = within(offset, left, FULL)
    if SHIFT == 23:
        counts = tl.histogram(bits >> 23, 256, mask=counted)
        tl.atomic_add(bins + tl.arange(0, 256), counts, mask=counts > 0, sem="relaxed")
    else:
        counted = counted & ((bits >> (SHIFT + WIDTH)) == prefix.to(tl.int32))
        tally(bins, (bits >> SHIFT) & ((1 << WIDTH) - 1), counted)


@triton.jit(do_not_specialize=["T", "P", "first"])
def count_ties(
    ints, moving, owners, keys, choices, all_bins, counters, pending, T, P, first,
    SOURCE: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr, SHIFT: tl.constexpr,
    WIDTH: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):  # fmt: skip
    """One digit of the least priority that is taken among the values equal to the K-th largest."""
    if tl.load(pending) == 0:
        return
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    point = tl.load(ints + at.POINT * T + tensor) + row
    choice = choices + point
    room = tl.load(choice + at.ROOM * P)
    if room < tl.load(choice + at.CROWD * P):
        x_at = source_at(ints, moving, T, tensor, start, SOURCE, TYPE, ALIGNED)
        bins = all_bins + (tl.load(ints + at.BINS * T + tensor) + row) * at.DIGITS
        value = tl.load(choice + at.PREFIX * P).to(tl.int32)
        known = tl.load(choice + at.LAST * P).to(tl.uint64, bitcast=True)
        mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
        draw = (start, tl.load(keys + tensor), mid, inner)
        for block in range(tl.cdiv(left, BLOCK)):
            offset = block * BLOCK + tl.arange(0, BLOCK)
            tied = (offset < left) & (bits_of(read(x_at, offset, left, False)) == value)
            if tl.max(tied.to(tl.int32), 0) > 0:
                rank = rank_of(priorities(offset, draw, RANDOM, FLAT))
                if SHIFT + WIDTH < 64:
                    tied = tied & ((rank >> (SHIFT + WIDTH)) == known)
                tally(bins, ((rank >> SHIFT) & ((1 << WIDTH) - 1)).to(tl.int32), tied)
        if arrives_last(counters + point, tl.load(ints + at.PARTS * T + tensor)):
            digit, room, crowd = narrowed(bins, room, 1 << WIDTH)
            known = (known << WIDTH) | digit.to(tl.uint64)
            tl.store(choice + at.ROOM * P, room)
            tl.store(choice + at.CROWD * P, crowd)
            if room == crowd:
                known = rank_of((known << SHIFT).to(tl.int64, bitcast=True))
                tl.atomic_add(pending, -1, sem="relaxed")
            tl.store(choice + at.LAST * P, known.to(tl.int64, bitcast=True))


@triton.jit
def rank_of(priority):
    """Signed priorities as unsigned numbers in the same order, and back."""
    return priority.to(tl.uint64, bitcast=True) ^ 0x8000000000000000


@triton.jit
def kth_bits(bits, k):
    """The k-th largest of nonnegative whole numbers within one program."""
    found = (k * 0).to(tl.int32)
    for place in range(31):
        trial = found | (1 << (30 - place))
        enough = tl.sum((bits >= trial).to(tl.int32), 0) >= k
        found = tl.where(enough, trial, found)
    return found


@triton.jit
def kth_priority(priority, among, k):
    """The k-th largest of some int64 numbers within one program."""
    rank = rank_of(priority)
    found = (k * 0).to(tl.uint64)
    bit = (found + 1) << 63
    for _ in range(64):
        trial = found | bit
        enough = tl.sum((among & (rank >= trial)).to(tl.int32), 0) >= k
        found = tl.where(enough, trial, found)
        bit = bit >> 1
    return rank_of(found.to(tl.int64, bitcast=True)).to(tl.int64, bitcast=True)


@triton.jit(do_not_specialize=["T", "P", "first"])
def select_small(
    ints, moving, owners, keys, due, choices, T, P, first,
    SOURCE: tl.constexpr, RANDOM: tl.constexpr, FLAT: tl.constexpr, TYPE: tl.constexpr,
    ALIGNED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The K-th largest |x| of every point that one program can hold, and its ties."""
    tensor, row, start, left = chunk_at(ints, owners, first + tl.program_id(0), T, BLOCK)
    x_at = source_at(ints, moving, T, tensor, start, SOURCE, TYPE, ALIGNED)
    wanted = True
    if SOURCE == "theta":
        wanted = tl.load(due + tensor) != 0
    if wanted:
        choice = choices + tl.load(ints + at.POINT * T + tensor) + row
        k = tl.load(ints + at.COUNT * T + tensor).to(tl.int32)
        offset = tl.arange(0, BLOCK)
        bits = tl.where(offset < left, bits_of(read(x_at, offset, left, False)), -1)
        value = kth_bits(bits, k)
        tied = bits == value
        room = k - tl.sum((bits > value).to(tl.int32), 0)
        crowd = tl.sum(tied.to(tl.int32), 0)
        last = start * 0 + at.EVERYONE
        if SOURCE != "theta":
            if room < crowd:
                mid = tl.load(ints + at.MID * T + tensor)
                inner = tl.load(ints + at.INNER * T + tensor)
                draw = (start, tl.load(keys + tensor), mid, inner)
                last = kth_priority(priorities(offset, draw, RANDOM, FLAT), tied, room)
        tl.store(choice + at.PREFIX * P, value.to(tl.int64))
        tl.store(choice + at.ROOM * P, room.to(tl.int64))
        tl.store(choice + at.CROWD * P, crowd.to(tl.int64))
        tl.store(choice + at.LAST * P, last)
