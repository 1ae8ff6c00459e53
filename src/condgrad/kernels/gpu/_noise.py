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


@triton.jit
def entry_of(start, offset, mid, inner, FLAT: tl.constexpr):
    """The logical number of the entry that lies `start + offset` entries into a tensor's memory.

    Every `mid` times `inner` neighbours are a transposed matrix: those of a channels_last image.
    Divisions of 64 bits take several times as long as those of 32, and are left to giants.
    """
    place = start + offset
    if FLAT:
        return place
    block = mid * inner
    if block < (1 << 30):
        begun = (start % block).to(tl.int32)
        within = ((begun + offset).to(tl.uint32) % block.to(tl.uint32)).to(tl.int32)
        column = (within.to(tl.uint32) // mid.to(tl.uint32)).to(tl.int32)
        moved = (within - column * mid.to(tl.int32)) * inner.to(tl.int32) + column - within
        entry = place + moved
    else:
        far = place % block
        entry = place - far + (far % mid) * inner + far // mid
    return entry


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
