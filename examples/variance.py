"""Variance reduction on a convex sum: how wrong each estimate is, and how low each method comes.

    python examples/variance.py --out docs/figures/variance.png

Logistic regression over an L1 ball, where the gradients of 2,000 points can all be computed. Every
row of the parameter is a run of its own, on batches of its own, in a ball of its own: what is
plotted are means over the runs.
"""

import argparse
from typing import NamedTuple

import torch
from torch.nn.functional import softplus

import condgrad as cg

POINTS, FEATURES, BATCH, RADIUS = 2000, 20, 20, 4.0
PERIOD = POINTS // BATCH  # steps from one full gradient to the next: an epoch


class Method(NamedTuple):
    """An optimizer, its momentum at each step if that is scheduled, and its colour."""

    kind: type
    momentum: object
    colour: str


METHODS = {
    "SFW": Method(cg.SFW, lambda t: 0.0, "0.3"),
    "SFW, momentum 0.9": Method(cg.SFW, lambda t: 0.9, "C0"),
    "SFW, ρ ~ t^(−2/3)": Method(cg.SFW, lambda t: 1 - min(1, 4 / (t + 8) ** (2 / 3)), "C9"),
    "ORGFW, momentum 0.9": Method(cg.ORGFW, lambda t: 0.9, "C1"),
    "ORGFW, ρ ~ t^(−2/3)": Method(cg.ORGFW, lambda t: 1 - (t + 1) ** (-2 / 3), "C5"),
    "ORGFW, ρ ~ 1/t": Method(cg.ORGFW, lambda t: 1 - 1 / (t + 1), "C3"),
    "SVRF": Method(cg.SVRF, None, "C2"),
    "SPIDER-FW": Method(cg.SPIDERFW, None, "C4"),
}


def drawn(seed=0):
    """The points times their labels, 1 or −1, from a sparse model outside the ball."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64)
    truth = torch.zeros(FEATURES, dtype=torch.float64)
    truth[:5] = 2 * torch.randn(5, generator=generator, dtype=torch.float64).sign()
    chance = torch.rand(POINTS, generator=generator, dtype=torch.float64)
    return x * torch.where(chance < (x @ truth).sigmoid(), 1.0, -1.0)[:, None]


def gradient(z, theta):
    """∇L at each row of theta, for L(θ) = mean of log(1 + exp(−⟨z_i, θ⟩))."""
    return -(-theta @ z.T).sigmoid() @ z / len(z)


def gap(z, theta):
    """The Frank-Wolfe gap at each row."""
    g = gradient(z, theta)
    return ((theta - cg.PerRow(cg.L1Ball(RADIUS)).lmo(g)) * g).sum(1)


def least(z):
    """The least loss in the ball, by accelerated projected gradients; the gap proves it."""
    ball = cg.PerRow(cg.L1Ball(RADIUS))
    rate = 4 * len(z) / float(torch.linalg.matrix_norm(z, 2)) ** 2
    theta = y = torch.zeros(1, FEATURES, dtype=torch.float64)
    k = 0
    while float(gap(z, theta)) > 1e-12:
        new = ball.project(y - rate * gradient(z, y))
        k = 0 if ((y - new) * (new - theta)).sum() > 0 else k + 1
        theta, y = new, new + k / (k + 3) * (new - theta)
    return float(softplus(-theta @ z.T).mean())


class Runs:
    """Independent runs of one method."""

    def __init__(self, z, method, runs, seed, doubling):
        self.z, self.method, self.doubling = z, method, doubling
        self.generator = torch.Generator().manual_seed(seed)
        self.theta = torch.zeros(runs, FEATURES, dtype=torch.float64, requires_grad=True)
        ball = cg.PerRow(cg.L1Ball(RADIUS))
        self.optimizer = method.kind([self.theta], ball, lr=1.0, rescale=None)
        self.schedule = cg.schedules.OpenLoop(self.optimizer)
        self.steps = self.due = 0

    @property
    def evaluations(self):
        return getattr(self.optimizer, "evaluations", self.steps)

    def closure(self, z):
        """What evaluates a batch of points for each run, or one batch for all."""

        def evaluate():
            self.optimizer.zero_grad()
            loss = softplus(-(z * self.theta.unsqueeze(1)).sum(-1)).mean(1).sum()
            loss.backward()
            return loss

        return evaluate

    def step(self):
        """Take a step; returns E ‖d − ∇L‖² for the direction d it was taken along."""
        optimizer, here = self.optimizer, self.theta.detach().clone()
        if self.method.momentum:
            optimizer.param_groups[0]["momentum"] = self.method.momentum(self.steps)
        elif self.steps == self.due:
            self.due += min(self.due + 1, PERIOD) if self.doubling else PERIOD
            optimizer.refresh([(self.closure(part), len(part)) for part in self.z.split(BATCH)])
        batch = self.z[torch.randint(POINTS, (len(here), BATCH), generator=self.generator)]
        optimizer.step(self.closure(batch))
        self.schedule.step()
        self.steps += 1
        error = self.direction(batch) - gradient(self.z, here)
        return float(error.square().sum(1).mean())

    def direction(self, batch):
        """What the latest step took for the gradient."""
        fresh, state = self.theta.grad, self.optimizer.state[self.theta]
        if isinstance(self.optimizer, cg.SFW):
            return state.get("momentum_buffer", fresh)
        if not isinstance(self.optimizer, cg.SVRF):
            return state["estimate"]
        margins = (batch * state["reference"].unsqueeze(1)).sum(-1, keepdim=True)
        return state["estimate"] + fresh + ((-margins).sigmoid() * batch).mean(1)


def traced(z, method, budget, runs, seed=0, doubling=False):
    """Evaluations, mean excess, mean gap and error of the estimate: a row now and then."""
    trial, best, due = Runs(z, method, runs, seed, doubling), least(z), BATCH
    rows, errors = [], []
    while trial.evaluations < budget:
        errors.append(trial.step())
        if trial.evaluations >= due:
            theta = trial.theta.detach()
            excess = float(softplus(-theta @ z.T).mean()) - best
            error = sum(errors) / len(errors)
            rows.append((trial.evaluations, excess, float(gap(z, theta).mean()), error))
            errors.clear()
            due = trial.evaluations + max(2, trial.evaluations // 50)
    return list(zip(*rows, strict=True))


def draw(traces, out):
    """Save the picture: how low, and how wrong, against the gradients evaluated."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    titles = "L(θ) − L*", "Frank–Wolfe gap", "E ‖estimate − ∇L‖²"
    for place, (panel, title) in enumerate(zip(axes, titles, strict=True), 1):
        for name, trace in traces.items():
            panel.plot(trace[0], trace[place], color=METHODS[name].colour, lw=1.2, label=name)
        panel.set(xscale="log", yscale="log", title=title)
        panel.set_ylim(bottom=(1e-4, 1e-3, 1e-7)[place - 1])  # right after a refresh it is zero
        panel.set_xlabel(f"gradients evaluated, of batches of {BATCH}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(out, dpi=150)
    pyplot.close(figure)


def around(trace, place, count):
    """The mean over the tenth of the evaluations that ends with this many; NaN if none is known."""
    pairs = zip(trace[0], trace[place], strict=True)
    late = [value for here, value in pairs if 0.9 * count < here <= count]
    return sum(late) / len(late) if late else float("nan")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="where to put the picture; none if not given")
    parser.add_argument("--runs", type=int, default=50, help="independent runs of each method")
    parser.add_argument("--budget", type=int, default=6000, help="evaluations of a batch")
    doubling = "periods of 1, 2, 4, … steps first, then of an epoch each"
    parser.add_argument("--doubling", action="store_true", help=doubling)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    z = drawn()
    traces = {}
    counts = [options.budget // 10, options.budget // 3, options.budget]
    heads = [f"L − L* after {count}" for count in counts]
    print("|", " | ".join(["method", *heads, "gap", "error"]), "|")
    for name, method in METHODS.items():
        how = {"runs": options.runs, "doubling": options.doubling}
        traces[name] = trace = traced(z, method, options.budget, **how)
        numbers = [around(trace, 1, count) for count in counts]
        numbers += [around(trace, place, options.budget) for place in (2, 3)]
        print("|", " | ".join([name, *(f"{number:.2g}" for number in numbers)]), "|", flush=True)
    if options.out:
        draw(traces, options.out)


if __name__ == "__main__":
    main()
