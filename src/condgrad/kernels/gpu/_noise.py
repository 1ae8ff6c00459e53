"""Counter-based noise on the device, number for number that of `regions/_ties.py`."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl


@triton.jit
def scramble(counter, key):
    """64 bits of noise, one-to-one in the counter for each key (splitmix64's finaliser)."""
    word = counter.to(tl.uint64) * 0x9E3779B97F4A7C15 + key.to(tl.uint64)
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB
    return (word ^ (word >> 31)).to(tl.int64, bitcast=True)


LONG = tl.constexpr(1 << 30)  # longer than any chunk


@triton.jit
def entry_of(start, offset, mid, inner, FLAT: tl.constexpr):
    """The logical number of the entry that lies `start + offset` entries into a tensor's memory.

    Every `mid` times `inner` neighbours are a transposed matrix: those of a channels_last image.
    Its columns lie one after another, and what was `start` is divided once; from there on numbers
    are as small as the chunk, or made so, since divisions of 64 bits take several times as long.
    """
    if FLAT:
        return start + offset
    block = mid * inner
    begun = start % block
    column = begun // mid
    row = begun - column * mid
    passed = wraps(row, offset, mid)  # the columns that lie between
    turned = wraps(column, passed, inner)  # and matrices
    rows = row + offset - passed * mid
    columns = column + passed - turned * inner
    return start - begun + turned * block + rows * inner + columns


@triton.jit
def wraps(begin, steps, size):
    """How often so few steps from `begin` on, which is less than the size, lead past its end."""
    short = tl.minimum(size, LONG)
    left = tl.minimum(size - begin, short)
    return (((short - left).to(tl.uint32) + steps.to(tl.uint32)) // short.to(tl.uint32)).to(
        tl.int32
    )


@triton.jit
def random_signs(offset, draw, FLAT: tl.constexpr):
    """Random signs, -1.0 or 1.0: the noise's last bit, since its first ones decide ties."""
    start, key, mid, inner = draw
    return sign_of(scramble(entry_of(start, offset, mid, inner, FLAT), key))


@triton.jit
def priorities(offset, draw, RANDOM: tl.constexpr, FLAT: tl.constexpr):
    """The ranks of entries in a tie: the highest wins."""
    start, key, mid, inner = draw
    entry = entry_of(start, offset, mid, inner, FLAT)
    if RANDOM:
        return scramble(entry, key)
    return -entry.to(tl.int64)


@triton.jit
def sign_of(noise):
    """The sign that noise stands for."""
    return tl.where((noise & 1) == 0, -1.0, 1.0)


@triton.jit
def signs(x, inside, offset, draw, RANDOM: tl.constexpr, FLAT: tl.constexpr):
    """The sign of each entry, a random one where it is zero; NaN where x is not finite."""
    sign = tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0)) + x * 0.0
    if RANDOM:
        zero = (x == 0) & inside
        if tl.max(zero.to(tl.int32), 0) > 0:
            sign = tl.where(zero, random_signs(offset, draw, FLAT), sign)
    return sign
