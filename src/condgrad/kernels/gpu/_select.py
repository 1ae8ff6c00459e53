"""The K-th largest absolute value of a point, exactly, without a sort.

Small points are searched within one program, bit by bit. Large ones digit by digit, many chunks at
once: each pass counts how often every digit occurs among the values whose higher digits are those
of the K-th, and the last program to finish reads off the next digit. Counting whole numbers is
exact in any order. Ties at the K-th value are broken in the same way by the digits of their
priorities; where nothing is tied these passes end at once.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._noise import entry_of, priority_of
from ._pieces import (
    arrives_last,
    average_at,
    bits_of,
    chunk_at,
    gradient_at,
    read,
    theta_at,
)


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
def tally_exponents(bins, bits, counted):
    """Count the highest 8 bits, which most values share with many others."""
    counts = tl.histogram(bits >> 23, 256, mask=counted)
    tl.atomic_add(bins + tl.arange(0, 256), counts, mask=counts > 0, sem="relaxed")


@triton.jit
def narrowed(bins, room, N: tl.constexpr):
    """The digit that holds the value number `room` from the top; its room, its crowd.

    The counters are left at zero.
    """
    place = tl.arange(0, N)
    digit = N - 1 - place
    counts = tl.load(bins + digit, cache_modifier=".cg")
    tl.store(bins + digit, tl.zeros([N], tl.int32))
    counts = counts.to(tl.uint32, bitcast=True).to(tl.int64)
    found = tl.sum((tl.cumsum(counts, 0) < room).to(tl.int32), 0)
    before = tl.sum(tl.where(place < found, counts, 0), 0)
    crowd = tl.sum(tl.where(place == found, counts, 0), 0)
    return N - 1 - found, room - before, crowd


@triton.jit
def conclude_digit(
    choice, bins, pending, P, prefix, room, SHIFT: tl.constexpr, WIDTH: tl.constexpr
):
    """Take note of the next digit of a point's K-th largest value; after the last one, of ties."""
    digit, room, crowd = narrowed(bins, room, 1 << WIDTH)
    tl.store(choice + at.PREFIX * P, (prefix << WIDTH) | digit)
    tl.store(choice + at.ROOM * P, room)
    tl.store(choice + at.CROWD * P, crowd)
    if SHIFT == 0:
        tied = room < crowd
        tl.store(choice + at.LAST * P, tl.where(tied, 0, at.EVERYONE).to(tl.int64))
        if tied:
            tl.atomic_add(pending, 1, sem="relaxed")


@triton.jit(do_not_specialize=["T", "P", "first"])
def count_digits(
    ints,
    moving,
    owners,
    due,
    choices,
    all_bins,
    counters,
    pending,
    T,
    P,
    first,
    SOURCE: tl.constexpr,
    SHIFT: tl.constexpr,
    WIDTH: tl.constexpr,
    TYPE: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
    """One digit of the K-th largest |x| of every point, where x is gradient, average or theta."""
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    wanted = True
    if SOURCE == "theta":
        wanted = tl.load(due + tensor) != 0
        x_at = theta_at(ints, T, tensor, start, TYPE, ALIGNED)
    elif SOURCE == "average":
        x_at = average_at(ints, T, tensor, start, TYPE, ALIGNED)
    else:
        x_at = gradient_at(moving, T, tensor, start, TYPE, ALIGNED)
    if wanted:
        point = tl.load(ints + at.POINT * T + tensor) + row
        choice = choices + point
        bins = all_bins + (tl.load(ints + at.BINS * T + tensor) + row) * at.DIGITS
        prefix = tl.load(ints + at.COUNT * T + tensor) * 0
        room = tl.load(ints + at.COUNT * T + tensor)
        if SHIFT != 23:
            prefix = tl.load(choice + at.PREFIX * P)
            room = tl.load(choice + at.ROOM * P)
        for block in range(tl.cdiv(left, BLOCK)):
            offset = block * BLOCK + tl.arange(0, BLOCK)
            bits = bits_of(read(x_at, offset, left, False))
            if SHIFT == 23:
                tally_exponents(bins, bits, offset < left)
            else:
                counted = (offset < left) & ((bits >> (SHIFT + WIDTH)) == prefix)
                tally(bins, (bits >> SHIFT) & ((1 << WIDTH) - 1), counted)
        if arrives_last(counters + point, tl.load(ints + at.PARTS * T + tensor)):
            conclude_digit(choice, bins, pending, P, prefix, room, SHIFT, WIDTH)


@triton.jit(do_not_specialize=["T", "P", "first"])
def count_ties(
    ints,
    moving,
    owners,
    keys,
    choices,
    all_bins,
    counters,
    pending,
    T,
    P,
    first,
    AVERAGED: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    SHIFT: tl.constexpr,
    WIDTH: tl.constexpr,
    TYPE: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
    LOOP: tl.constexpr,
):
    """One digit of the least priority that is taken among the values equal to the K-th largest."""
    if tl.load(pending) == 0:
        return
    chunk = first + tl.program_id(0)
    tensor, row, start, left = chunk_at(ints, owners, chunk, T, BLOCK * LOOP)
    point = tl.load(ints + at.POINT * T + tensor) + row
    choice = choices + point
    room = tl.load(choice + at.ROOM * P)
    if room < tl.load(choice + at.CROWD * P):
        x_at = gradient_at(moving, T, tensor, start, TYPE, ALIGNED)
        if AVERAGED:
            x_at = average_at(ints, T, tensor, start, TYPE, ALIGNED)
        bins = all_bins + (tl.load(ints + at.BINS * T + tensor) + row) * at.DIGITS
        value = tl.load(choice + at.PREFIX * P)
        known = tl.load(choice + at.LAST * P).to(tl.uint64, bitcast=True)
        key = tl.load(keys + tensor)
        mid, inner = tl.load(ints + at.MID * T + tensor), tl.load(ints + at.INNER * T + tensor)
        for block in range(tl.cdiv(left, BLOCK)):
            offset = block * BLOCK + tl.arange(0, BLOCK)
            tied = (offset < left) & (bits_of(read(x_at, offset, left, False)) == value)
            if tl.max(tied.to(tl.int32), 0) > 0:
                entry = entry_of(start + offset, mid, inner, FLAT)
                rank = rank_of(priority_of(entry, key, RANDOM))
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
    ints,
    moving,
    owners,
    keys,
    due,
    choices,
    T,
    P,
    first,
    SOURCE: tl.constexpr,
    RANDOM: tl.constexpr,
    FLAT: tl.constexpr,
    TYPE: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The K-th largest |x| of every point that one program can hold, and its ties."""
    tensor, row, start, left = chunk_at(ints, owners, first + tl.program_id(0), T, BLOCK)
    wanted = True
    if SOURCE == "theta":
        wanted = tl.load(due + tensor) != 0
        x_at = theta_at(ints, T, tensor, start, TYPE, ALIGNED)
    elif SOURCE == "average":
        x_at = average_at(ints, T, tensor, start, TYPE, ALIGNED)
    else:
        x_at = gradient_at(moving, T, tensor, start, TYPE, ALIGNED)
    if wanted:
        choice = choices + tl.load(ints + at.POINT * T + tensor) + row
        k = tl.load(ints + at.COUNT * T + tensor).to(tl.int32)
        offset = tl.arange(0, BLOCK)
        bits = tl.where(offset < left, bits_of(read(x_at, offset, left, False)), -1)
        value = kth_bits(bits, k)
        tied = bits == value
        room = k - tl.sum((bits > value).to(tl.int32), 0)
        crowd = tl.sum(tied.to(tl.int32), 0)
        last = tl.load(keys + tensor) * 0 + at.EVERYONE
        if SOURCE != "theta":
            if room < crowd:
                mid, inner = (
                    tl.load(ints + at.MID * T + tensor),
                    tl.load(ints + at.INNER * T + tensor),
                )
                entry = entry_of(start + offset, mid, inner, FLAT)
                last = kth_priority(priority_of(entry, tl.load(keys + tensor), RANDOM), tied, room)
        tl.store(choice + at.PREFIX * P, value.to(tl.int64))
        tl.store(choice + at.ROOM * P, room.to(tl.int64))
        tl.store(choice + at.CROWD * P, crowd.to(tl.int64))
        tl.store(choice + at.LAST * P, last)
