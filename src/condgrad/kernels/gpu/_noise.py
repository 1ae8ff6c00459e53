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
def entry_of(offset, mid, inner, FLAT: tl.constexpr):
    """The logical number of the entry that lies `offset` entries into the tensor's memory.

    Every `mid` times `inner` neighbours are a transposed matrix: those of a channels_last image.
    """
    if FLAT:
        return offset
    block = mid * inner
    within = offset % block
    return offset - within + (within % mid) * inner + within // mid


@triton.jit
def priority_of(entry, key, RANDOM: tl.constexpr):
    """The rank of an entry in a tie: the highest wins."""
    if RANDOM:
        return scramble(entry, key)
    return -entry.to(tl.int64)


@triton.jit
def random_sign(entry, key):
    """A random sign, -1.0 or 1.0: the noise's last bit, since its first ones decide ties."""
    return sign_of(scramble(entry, key))


@triton.jit
def sign_of(noise):
    """The sign that noise stands for."""
    return tl.where((noise & 1) == 0, -1.0, 1.0)


@triton.jit
def signs(x, inside, place, key, mid, inner, RANDOM: tl.constexpr, FLAT: tl.constexpr):
    """The sign of each entry, a random one where it is zero; NaN where x is not finite."""
    sign = tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0)) + x * 0.0
    if RANDOM:
        zero = (x == 0) & inside
        if tl.max(zero.to(tl.int32), 0) > 0:
            sign = tl.where(zero, random_sign(entry_of(place, mid, inner, FLAT), key), sign)
    return sign
