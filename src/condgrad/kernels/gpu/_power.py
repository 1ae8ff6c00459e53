"""Powers of many numbers, in float64 without its slow logarithm."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

WHOLE = tl.constexpr(6755399441055744.0)  # 1.5 * 2^52: added, it leaves no place for fractions


@triton.jit
def power(x, exponent):
    """x^e to a share of 5e-11 (1 + e), for float64 x >= 0 and a positive e; 0 and NaN stay.

    With x = 2^n m, a polynomial in float32 gives m's logarithm t to five digits. What it is wrong
    by, r = m / 2^t - 1, is so small that of x^e = 2^(e (n + t)) (1 + r)^e two terms are enough.
    """
    usual = (x > 0) & (x < float("inf"))
    bits = tl.where(usual, x, 1.0).to(tl.int64, bitcast=True)
    n = ((bits >> 52) | 0x4330000000000000).to(tl.float64, bitcast=True) - 4503599627371519.0
    m = ((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).to(tl.float64, bitcast=True)
    narrow = ((bits >> 29).to(tl.int32) & 0x7FFFFF) | 0x3F800000
    t = log2(narrow.to(tl.float32, bitcast=True)).to(tl.float64)
    r = m * exp2(-t) - 1.0
    rest = 1.0 + exponent * r * (1.0 + 0.5 * (exponent - 1.0) * r)
    return tl.where(usual, exp2(tl.maximum(exponent * (n + t), -1020.0)) * rest, x)


@triton.jit
def log2(x):
    """The logarithm of 1 <= x < 2 to 2e-6, by the best polynomial of degree six."""
    u = x - 1.5
    y = 0.04392897099310857 - 0.025691088522414585 * u
    y = y * u - 0.07037672939760413
    y = y * u + 0.14171805199447698
    y = y * u - 0.3206522947605621
    y = y * u + 0.9618212349411794
    return y * u + 0.5849630425356535


@triton.jit
def exp2(x):
    """2^x to 4e-11, for -1021 < x < 1023, by the best polynomial of degree seven."""
    moved = x + WHOLE  # its last digits are those of the nearest whole number
    f = x - (moved - WHOLE)
    y = 0.00015469291143596552 + 1.5201921703035945e-05 * f
    y = y * f + 0.0013333922563239407
    y = y * f + 0.009618027253665765
    y = y * f + 0.055504103534480036
    y = y * f + 0.24022651198157546
    y = y * f + 0.6931471807284472
    y = y * f + 0.9999999999616818
    scaled = y.to(tl.int64, bitcast=True) + (moved.to(tl.int64, bitcast=True) << 52)
    return scaled.to(tl.float64, bitcast=True)
