"""What every kernel does: find its chunk, read and write entries, tell who arrives last."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at

FOLD = tl.constexpr(4)  # neighbours that one thread holds, as it reads 16 bytes at a time


@triton.jit
def chunk_at(ints, owners, chunk, T, CHUNK: tl.constexpr):
    """The chunk's tensor, its point in the tensor, where it starts, and how many entries it has.

    The start counts entries from the tensor's first.
    """
    tensor = tl.load(owners + chunk)
    local = chunk - tl.load(ints + at.FIRST * T + tensor)
    parts = tl.load(ints + at.PARTS * T + tensor)
    size = tl.load(ints + at.SIZE * T + tensor)
    row = local // parts
    begin = (local - row * parts) * CHUNK
    return tensor, row, row * size + begin, tl.minimum(size - begin, CHUNK).to(tl.int32)


@triton.jit
def entries_at(address, start, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """A pointer to the entry number `start` of the tensor at this address."""
    pointer = address.to(tl.pointer_type(TYPE)) + start
    if ALIGNED:  # said of the sum: what is known of a number is lost where it becomes a pointer
        pointer = tl.multiple_of(pointer, 16)
    return pointer


@triton.jit
def theta_at(ints, T, tensor, start, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """Where the chunk's parameters lie."""
    return entries_at(tl.load(ints + at.THETA * T + tensor), start, TYPE, ALIGNED)


@triton.jit
def average_at(ints, T, tensor, start, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """Where the chunk's averages lie."""
    return entries_at(tl.load(ints + at.AVERAGE * T + tensor), start, TYPE, ALIGNED)


@triton.jit
def gradient_at(moving, T, tensor, start, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """Where the chunk's gradients lie."""
    return entries_at(tl.load(moving + at.GRADIENT * T + tensor), start, TYPE, ALIGNED)


@triton.jit
def within(offset, left, FULL: tl.constexpr):
    """Which entries lie within the chunk; where that is full nothing is left to compare."""
    if FULL:
        return offset == offset
    return offset < left


@triton.jit
def read(pointer, offset, left, FULL: tl.constexpr):
    """The entries in float32; 0 beyond the end."""
    if FULL:
        return tl.load(pointer + offset).to(tl.float32)
    return tl.load(pointer + offset, mask=offset < left, other=0.0).to(tl.float32)


@triton.jit
def write(pointer, offset, value, left, FULL: tl.constexpr):
    """Write the entries, none beyond the end."""
    rounded = value.to(pointer.dtype.element_ty)
    if FULL:
        tl.store(pointer + offset, rounded)
    else:
        tl.store(pointer + offset, rounded, mask=offset < left)


@triton.jit
def folded(x):
    """The sums of every four neighbours, in float64: sums then take a quarter of the registers."""
    return tl.sum(tl.reshape(x.to(tl.float64), [x.shape[0] // FOLD, FOLD]), 1)


@triton.jit
def mixed(start, end, share):
    """Start + share (end - start), exact at both ends."""
    return tl.where(share < 0.5, start + share * (end - start), end - (end - start) * (1 - share))


@triton.jit
def averaged(g_at, m_at, offset, left, fresh, sign, AVERAGED: tl.constexpr, FULL: tl.constexpr):
    """The direction: the gradient, or the average brought up to date, as its format rounds it."""
    direction = read(g_at, offset, left, FULL) * sign
    if AVERAGED:
        average = mixed(read(m_at, offset, left, FULL), direction, fresh)
        write(m_at, offset, average, left, FULL)
        direction = average.to(m_at.dtype.element_ty).to(tl.float32)
    return direction


@triton.jit
def directed(g_at, m_at, offset, left, sign, AVERAGED: tl.constexpr, FULL: tl.constexpr):
    """The direction, once the average is up to date."""
    if AVERAGED:
        return read(m_at, offset, left, FULL)
    return read(g_at, offset, left, FULL) * sign


@triton.jit
def bits_of(x):
    """The bits of |x|: whole numbers in the order of the absolute values, NaN above all."""
    return x.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def ordered_bits(x):
    """Whole numbers in the order of the values, NaN above all, -0 and 0 the same."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return tl.where(x != x, 0x7FFFFFFF, ordered)


@triton.jit
def value_of(ordered):
    """The value whose ordered bits these are (those of |x| are the ordered bits of |x|)."""
    return tl.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered).to(tl.float32, bitcast=True)


@triton.jit
def arrives_last(counter, expected):
    """Whether this program is the last of the expected ones, and sees what the others wrote."""
    tl.debug_barrier()
    before = tl.atomic_add(counter, 1, sem="acq_rel")
    last = before == expected - 1
    if last:
        tl.store(counter, 0)
    tl.debug_barrier()
    return last


@triton.jit
def completes(counter, parts):
    """Whether this program is the last of a point's, or its only one, and sees what they wrote."""
    last = parts == 1
    if parts > 1:
        last = arrives_last(counter, parts)
    else:
        tl.debug_barrier()
    return last


@triton.jit
def total(numbers, count, B: tl.constexpr):
    """The sum of float64 numbers that other programs wrote, in an order that never changes."""
    lane = tl.arange(0, B)
    sums = tl.zeros([B], tl.float64)
    for start in range(0, count, B):
        inside = start + lane < count
        sums += tl.load(numbers + start + lane, inside, 0.0, cache_modifier=".cg")
    return tl.sum(sums, 0)


@triton.jit
def largest(numbers, count, B: tl.constexpr):
    """The largest of float64 numbers that other programs wrote, none of them negative."""
    lane = tl.arange(0, B)
    tops = tl.zeros([B], tl.float64)
    for start in range(0, count, B):
        inside = start + lane < count
        x = tl.load(numbers + start + lane, inside, 0.0, cache_modifier=".cg")
        tops = tl.maximum(tops, x)
    return tl.max(tops, 0)
