"""One step over each region on the host: towards a vertex, beside the projection and torch's SGD.

python benchmarks/regions.py [side]: milliseconds of processor time for one float32 parameter of
side × side entries, on one thread; the median of a number of steps, all rivals taking turns.
"""

import statistics
import sys
import time

import torch

import condgrad as cg

REGIONS = (
    cg.LinfBall(1.0),
    cg.Box(-1.0, 1.0),
    cg.L2Ball(100.0),
    cg.L1Ball(1000.0),
    cg.UnitSimplex(1000.0),
    cg.ProbabilitySimplex(1000.0),
    cg.KSparsePolytope(0.1, 1.0),
    cg.KNormBall(0.1, 1000.0),
    cg.LpBall(5.0, 100.0),
    cg.LpBall(1.5, 1000.0),
    cg.Permutahedron(1e-3),
    cg.SpectralBall(10.0),
    cg.SpectralBall(10.0, method="polynomial"),
    cg.NuclearBall(1000.0),
    cg.NuclearBall(1000.0, method="lanczos"),
    cg.PerRow(cg.L2Ball(3.0)),
)
STEPS = 7


def parameter(region, side):
    """A parameter inside the region, with a gradient that has no ties."""
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(side, side, generator=generator).mul_(0.05).requires_grad_()
    p.grad = torch.randn(side, side, generator=generator)
    cg.make_feasible([{"params": [p], "region": region}])
    return p


def seconds(optimizer):
    began = time.thread_time()
    optimizer.step()
    return time.thread_time() - began


def medians(optimizers):
    """The median time of a step of each, in milliseconds."""
    times = [[seconds(optimizer) for optimizer in optimizers] for _ in range(STEPS)]
    return [1000 * statistics.median(column) for column in zip(*times, strict=True)]


def main():
    torch.set_num_threads(1)
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"float32, {side} × {side}, one thread, torch {torch.__version__}; ms a step")
    print(f"{'region':<46}{'SFW':>9}{'ProjectedSGD':>14}{'torch SGD':>11}")
    for region in REGIONS:
        sgd = torch.optim.SGD([parameter(cg.Free(), side)], lr=1e-3, momentum=0.9)
        sfw = cg.SFW([parameter(region, side)], region, lr=1e-3, momentum=0.9)
        projected = cg.ProjectedSGD([parameter(region, side)], region, lr=1e-3, momentum=0.9)
        for optimizer in (sgd, sfw, projected):
            optimizer.step()
        found = medians((sfw, projected, sgd))
        print(f"{region!s:<46}{found[0]:9.2f}{found[1]:14.2f}{found[2]:11.2f}")


if __name__ == "__main__":
    main()
