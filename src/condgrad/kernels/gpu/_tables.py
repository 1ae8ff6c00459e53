"""The tables that kernels and host share: which column holds what, and the kinds of regions.

Tables lie column by column, so that a kernel that serves many tensors reads neighbours.
"""

# pyright: reportMissingImports=false
import triton.language as tl


def _numbered(names: str) -> list[tl.constexpr]:
    return [tl.constexpr(number) for number, _ in enumerate(names.split())]


# How a region measures and answers.
KINDS = "FREE LINF BOX L2 L1 USIMPLEX PSIMPLEX KNORM LP KSPARSE"
FREE, LINF, BOX, L2, L1, USIMPLEX, PSIMPLEX, KNORM, LP, KSPARSE = _numbered(KINDS)

# One row a tensor, integers. A tensor is `ROWS` points of `SIZE` entries, each cut into `PARTS`
# chunks; the first of its chunks is number `FIRST`, of its points `POINT`, of its points that are
# counted `BINS`. `COUNT` is K. `MID` and `INNER` tell where entries lie (see `entry_of`); `HALVED`
# is 1 for a 16-bit tensor.
INTS = "THETA AVERAGE STEP SEED NUMBER ROWS SIZE FIRST PARTS POINT BINS COUNT MID INNER HALVED"
(
    THETA,
    AVERAGE,
    STEP,
    SEED,
    NUMBER,
    ROWS,
    SIZE,
    FIRST,
    PARTS,
    POINT,
    BINS,
    COUNT,
    MID,
    INNER,
    HALVED,
) = _numbered(INTS)

# One row a tensor, real numbers. `LOW` and `HIGH` are a box's bounds, `POWER` is p; `DIAMETER` is 1
# where the rule does not ask for it; `FRESH` is the gradient's share in the average; `SIGN` is -1
# to ascend.
REALS = "RADIUS LOW HIGH POWER DIAMETER FRESH SIGN"
RADIUS, LOW, HIGH, POWER, DIAMETER, FRESH, SIGN = _numbered(REALS)

# One row a tensor, rewritten when a gradient moves or a learning rate changes: the gradient's
# address, the bits of lr as a float64, and the address of lr where it is a tensor on the device.
MOVING = "GRADIENT RATE RATE_AT"
GRADIENT, RATE, RATE_AT = _numbered(MOVING)

# One row a chunk: sums over its entries. `SQUARES` is that of the squared direction; `GAUGE` and
# `REACH` tell how far outside the parameters lie; the others differ from kind to kind.
SUMS = "SQUARES ONE TWO THREE FOUR GAUGE REACH"
SQUARES, ONE, TWO, THREE, FOUR, GAUGE, REACH = _numbered(SUMS)

# One row a chunk: its largest value (as ordered bits), that entry's priority, and its place.
TOPS = "TOP PRIORITY PLACE"
TOP, PRIORITY, PLACE = _numbered(TOPS)

# One row a point, real numbers: the factor that pulls it back inside, what its vertex needs (`ONE`,
# `TWO`, `THREE`), and its shares of the squared norms of direction and gap.
RECORD = "PULL ONE TWO THREE SIZE_SQUARED GAP_SQUARED"
PULL, _, _, _, SIZE_SQUARED, GAP_SQUARED = _numbered(RECORD)

# One row a point, integers: the entry that was chosen; and the state of a selection: the bits of
# the K-th largest value that are known, how many are still to be found among the values that have
# them, how many those are, and the least priority that is taken among them (or, while that is
# sought, its known bits).
CHOICE = "CHOSEN PREFIX ROOM CROWD LAST"
CHOSEN, PREFIX, ROOM, CROWD, LAST = _numbered(CHOICE)

EVERYONE = tl.constexpr(-(1 << 63))  # a `LAST` that takes all
DIGITS = tl.constexpr(4096)  # the counters of a point whose K-th largest value is sought


def columns(names: str) -> int:
    """The number of columns."""
    return len(names.split())
