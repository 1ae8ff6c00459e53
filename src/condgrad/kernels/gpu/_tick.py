"""The beginning of a step: counters, keys, learning rates, and the step lengths that are known."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportArgumentType=false
import triton
import triton.language as tl

from . import _tables as at
from ._noise import scramble


@triton.jit(do_not_specialize=["T", "every"])
def tick(
    ints,
    reals,
    moving,
    keys,
    rates,
    lengths,
    due,
    T,
    every,
    BLOCK: tl.constexpr,
):
    """Count the step of every tensor, and prepare what the other kernels ask for.

    Points are pulled back inside every so many steps, those of 16-bit tensors in each of them.
    """
    tensor = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = tensor < T
    step_at = tl.load(ints + at.STEP * T + tensor, inside, 0).to(tl.pointer_type(tl.float32))
    step = tl.load(step_at, inside, 0.0) + 1.0
    tl.store(step_at, step, inside)
    key = scramble(tl.load(ints + at.SEED * T + tensor, inside, 0), tl.zeros([BLOCK], tl.int64))
    key = scramble(tl.load(ints + at.NUMBER * T + tensor, inside, 0), key)
    tl.store(keys + tensor, scramble(step.to(tl.int64), key), inside)
    halved = tl.load(ints + at.HALVED * T + tensor, inside, 0) != 0
    tl.store(due + tensor, (halved | (step.to(tl.int64) % every == 0)).to(tl.int32), inside)
    rate = tl.load(moving + at.RATE * T + tensor, inside, 0).to(tl.float64, bitcast=True)
    rate_at = tl.load(moving + at.RATE_AT * T + tensor, inside, 0)
    on_device = inside & (rate_at != 0)
    held = tl.load(rate_at.to(tl.pointer_type(tl.float32)), on_device, 0.0).to(tl.float64)
    rate = tl.where(on_device, held, rate)
    tl.store(rates + tensor, rate, inside)
    length = rate / tl.load(reals + at.DIAMETER * T + tensor, inside, 1.0)
    tl.store(lengths + tensor, tl.where(length > 1, 1.0, length), inside)
