"""The convergence theorem, measured: E G(θ_a) against its bound, for T steps on batches of T.

    python examples/theorem.py --out docs/figures/theorem.png

Reddi, Sra, Póczos, Smola (2016), as the paper states it: with steps of length a on batches of b = T
samples, and θ_a drawn from the T iterates, E G(θ_a) ≤ D/√T (G + sqrt(2M(L₀ − L*)/β) (1 + β)). The
problem is not convex, and small enough for all its constants to be known.
"""

import argparse
import math
from typing import NamedTuple

import torch

import condgrad as cg

POINTS, FEATURES = 500, 3
REGION = cg.L2Ball(2.0)
SMOOTHNESS = 1 / (6 * math.sqrt(3))  # the largest |σ''|: M, as every ‖z_i‖ is 1
STEEPNESS = 1 / 4  # the largest |σ'|: a bound on ‖∇ℓ_i‖


class Problem(NamedTuple):
    """L(θ) = mean of σ(−⟨z_i, θ⟩) over a region: the share of mistakes, made smooth.

    z_i is a point of the unit sphere times its label, 1 or −1; a fifth of the labels are wrong.
    """

    z: torch.Tensor
    region: cg.Region

    @classmethod
    def drawn(cls, region, seed=0):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64)
        truth = torch.randn(FEATURES, generator=generator, dtype=torch.float64)
        wrong = torch.rand(POINTS, generator=generator) < 0.2
        labels = torch.where(wrong, -1.0, 1.0) * (x @ truth).sign()
        return cls(torch.nn.functional.normalize(x, dim=1) * labels[:, None], region)

    @property
    def start(self):
        """The vertex that points away from the mean of the z_i: about the worst start there is."""
        return self.region.lmo(self.z.mean(0))

    @property
    def diameter(self):
        return self.region.diameter((FEATURES,))

    @property
    def excess(self):
        """What L₀ − L* is at most, since no loss ℓ_i is below σ(−max ⟨z_i, v⟩) in the region."""
        best = torch.stack([-(z * self.region.lmo(-z)).sum() for z in self.z])
        return float(self.loss(self.start) - best.sigmoid().mean())

    def loss(self, theta):
        return (-theta @ self.z.T).sigmoid().mean(-1)

    def gradient(self, theta, weights):
        """Σ w_i ∇ℓ_i / Σ w_i at each row of theta, with a row of weights for each."""
        s = (-theta @ self.z.T).sigmoid()
        return -(weights * s * (1 - s)) @ self.z / weights.sum(1, keepdim=True)

    def gap(self, theta):
        """The Frank-Wolfe gap of each row."""
        gradient = self.gradient(theta, torch.ones(len(theta), POINTS).double())
        vertex = cg.PerRow(self.region).lmo(gradient)
        return ((theta - vertex) * gradient).sum(1)

    def bound(self, steps, beta=None):
        """The right-hand side of the theorem; with no beta, at its least value."""
        D, M, excess = self.diameter, SMOOTHNESS, self.excess
        beta = 2 * excess / (M * D**2) if beta is None else beta
        return D / math.sqrt(steps) * (STEEPNESS + math.sqrt(2 * M * excess / beta) * (1 + beta))

    def step(self, steps, beta=None):
        """The step length of the theorem."""
        if beta is None:
            return cg.schedules.theorem_step(steps)
        constants = {"excess": self.excess, "smoothness": SMOOTHNESS, "diameter": self.diameter}
        return cg.schedules.theorem_step(steps, **constants, beta=beta)


def mean_gaps(problem, steps, *, size=None, length=None, runs=200, seed=0):
    """For each run the mean gap of its iterates θ_0 … θ_{T−1}: the expectation of G(θ_a) over a.

    The runs are the rows of one parameter, each in a region of its own.
    """
    generator = torch.Generator().manual_seed(seed)
    theta = problem.start.expand(runs, -1).clone().requires_grad_()
    a = problem.step(steps) if length is None else length
    sfw = cg.SFW([theta], cg.PerRow(problem.region), lr=a, momentum=0.0, rescale=None)
    total = torch.zeros(runs, dtype=torch.float64)
    for _ in range(steps):
        here = theta.detach()
        total += problem.gap(here)
        batch = torch.randint(POINTS, (runs, size or steps), generator=generator)
        weights = torch.zeros(runs, POINTS, dtype=torch.float64)
        weights.scatter_add_(1, batch, torch.ones(batch.shape, dtype=torch.float64))
        theta.grad = problem.gradient(here, weights)
        sfw.step()
    return total / steps


def slope(horizons, gaps):
    """The exponent c of the power T^c that fits best."""
    x, y = (torch.tensor(each, dtype=torch.float64).log() for each in (horizons, gaps))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


def measured(problem, horizons, runs):
    """For each T: E G(θ_a), its standard deviation over runs, and the bound."""
    rows = []
    for steps in horizons:
        gaps = mean_gaps(problem, steps, runs=runs)
        rows.append((steps, float(gaps.mean()), float(gaps.std()), problem.bound(steps)))
    return rows


def draw(rows, exponent, out):
    """Save the picture: bounds and measured gaps against T, and the fitted power."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    horizons, gaps, deviations, bounds = zip(*rows, strict=True)
    pairs = zip(horizons, gaps, strict=True)
    factor = math.exp(sum(math.log(gap / T**exponent) for T, gap in pairs) / len(rows))
    fit = [factor * T**exponent for T in horizons]
    figure, axes = pyplot.subplots(figsize=(5.4, 3.6), layout="constrained")
    axes.plot(horizons, bounds, "--", color="0.4", label="the theorem's bound")
    axes.plot(horizons, fit, color="C0", lw=1, label=f"fitted: T to the power {exponent:.2f}")
    axes.errorbar(
        horizons, gaps, deviations, fmt="o", color="C0", capsize=3, label="measured (± deviation)"
    )
    axes.set(xscale="log", yscale="log", xlabel="T: number of steps, and size of the batches")
    axes.set_ylabel("expected Frank–Wolfe gap")
    axes.set_xticks(horizons, [str(T) for T in horizons])
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.savefig(out, dpi=150)
    pyplot.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="where to put the picture; none if not given")
    parser.add_argument("--runs", type=int, default=400, help="independent runs for each T")
    parser.add_argument("--further", type=int, default=3, help="T = 16, 64, …, 16 · 4^this")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    problem = Problem.drawn(REGION)
    rows = measured(problem, [16 * 4**i for i in range(options.further + 1)], options.runs)
    exponent = slope([T for T, *_ in rows], [gap for _, gap, *_ in rows])
    print(f"D = {problem.diameter:g}, G = {STEEPNESS:g}, M = {SMOOTHNESS:.4f}, ", end="")
    print(f"L0 - L* <= {problem.excess:.4f}")
    print("| T | measured | bound | measured / bound |\n|---|---|---|---|")
    for T, gap, deviation, bound in rows:
        print(f"| {T} | {gap:.5f} ± {deviation:.5f} | {bound:.4f} | {gap / bound:.3f} |")
    print(f"fitted: E G ∝ T^{exponent:.3f}")
    if options.out:
        draw(rows, exponent, options.out)


if __name__ == "__main__":
    main()
