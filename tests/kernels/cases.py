"""What kernels and reference are both set: regions that split, tensors of odd sizes, twins."""

import os

import torch

import condgrad as cg
from condgrad.kernels import misfit
from inputs import normal

INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton's kernels are asked, in their interpreter, rather than the host's own."""
MISSING = misfit(torch.zeros(1), cg.Free())
"""Why there are none of them here, or None."""
EVERY = (
    cg.L2Ball(0.7),
    cg.LinfBall(0.1),
    cg.L1Ball(3.0),
    cg.KSparsePolytope(0.5, 0.1),
    cg.KNormBall(0.3, 1.0),
    cg.LpBall(3.0, 0.4),
    cg.LpBall(1.5, 0.4),
    cg.UnitSimplex(0.3),
    cg.ProbabilitySimplex(0.1),
    cg.Box(-0.1, 0.3),
    cg.Free(),
)
REGIONS = tuple(r for r in EVERY if INTERPRETING or not isinstance(r, cg.LpBall))
BLOCKS = (
    (cg.PerRow(cg.L1Ball(0.1)), (3, 31)),
    (cg.PerRow(cg.KSparsePolytope(0.3, 0.1)), (2, 9)),
    (cg.PerRow(cg.UnitSimplex(0.3)), (2, 5)),
    (cg.PerFilter(cg.L2Ball(0.1)), (3, 2, 5)),
    (cg.PerFilter(cg.KNormBall(2, 0.1)), (3, 2, 5)),
    *([(cg.PerFilter(cg.LpBall(3.0, 0.1)), (2, 3, 3, 3))] if INTERPRETING else []),
)
UNITS = {
    torch.float64: 2.0**-52,
    torch.float32: 2.0**-23,
    torch.bfloat16: 2.0**-8,
    torch.float16: 2.0**-11,
}


def start(region, shape, seed, *, dtype=torch.float32, layout=torch.contiguous_format):
    """A parameter inside its region."""
    p = (normal(shape, seed) * 0.05).to(dtype)
    p = p.contiguous(memory_format=layout)
    if not isinstance(region, cg.Free):
        cg.make_feasible([{"params": [p], "region": region}])
    if dtype is not torch.float32 and not isinstance(region, cg.ProbabilitySimplex):
        p.mul_(0.5)  # with few digits a point is inside that the twin would find outside
    return p


class Pair:
    """The same parameters twice: moved by kernels, and one by one in float64."""

    def __init__(
        self, members, seed=0, dtype=torch.float32, device="cpu", layouts=None, **settings
    ):
        settings |= {"seed": seed}
        self.regions = [region for region, _ in members]
        layouts = layouts or [torch.contiguous_format] * len(members)
        self.fast = [
            start(region, shape, seed + i, dtype=dtype, layout=layout).to(device)
            for i, ((region, shape), layout) in enumerate(zip(members, layouts, strict=True))
        ]
        self.slow = [p.to(torch.float64, copy=True) for p in self.fast]
        for region, p in zip(self.regions, self.slow, strict=True):
            cg.make_feasible([{"params": [p], "region": region}])
        # The twins start where float32 has put the others, if that is inside for float64 too.
        pairs = list(zip(self.regions, self.fast, self.slow, strict=True))
        self.kernels = cg.SFW(
            [{"params": [p], "region": region} for region, p, _ in pairs],
            fused=True, **settings,
        )  # fmt: skip
        self.reference = cg.SFW(
            [{"params": [q], "region": region} for region, _, q in pairs],
            foreach=False, fused=False, **settings,
        )  # fmt: skip

    def give(self, gradients):
        """Hand both the same gradients."""
        for p, q, gradient in zip(self.fast, self.slow, gradients, strict=True):
            # In the parameter's own layout, as autograd lays gradients out.
            if gradient.dtype is not p.dtype and hasattr(p, "grad_dtype"):
                p.grad_dtype = None  # which allows any
            p.grad = torch.empty_like(p, dtype=gradient.dtype).copy_(gradient)
            q.grad = torch.empty_like(q).copy_(p.grad)

    def step(self):
        """Take a step; returns how far apart they are then, in units of what rounding may do."""
        before = [q.clone() for q in self.slow]
        self.kernels.step()
        self.reference.step()
        apart = [distance(p, q, b) for p, q, b in zip(self.fast, self.slow, before, strict=True)]
        for p, q in zip(self.fast, self.slow, strict=True):
            q.copy_(p)  # every step is judged on its own
        return dict(zip(((r, tuple(p.shape)) for r, p in zip(self.regions, self.fast, strict=True)),
                        apart, strict=True))  # fmt: skip


def distance(p, q, before):
    """‖p − q‖ over what is allowed: 1e-5 of the update (1e-12 in float64), and p's last place."""
    unit = UNITS[p.dtype]
    allowed = (1e-12 if p.dtype is torch.float64 else 1e-5) * (q - before).norm() + unit * q.norm()
    return float((p.double() - q).norm() / allowed.clamp(min=1e-30))


def off(found):
    """The cases that are further apart than rounding may bring them."""
    return {case: apart for case, apart in found.items() if not apart <= 1}


def gradients(shapes, seed):
    """A fresh gradient for each shape."""
    return [normal(shape, 1000 * seed + i, dtype=torch.float32) for i, shape in enumerate(shapes)]
