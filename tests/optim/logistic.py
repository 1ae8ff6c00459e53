"""A convex finite sum whose least value is known: logistic regression over an L1 ball.

Every row of the parameter is a run of its own, on batches of its own: what theory says of an
expectation is measured by one optimizer over all rows, as the mean over them.
"""

import functools

import torch

import condgrad as cg
from inputs import array, generator, normal
from optim.batches import SNAPSHOTTING
from reference import finite_sums
from reference import regions as twins

POINTS, FEATURES, RADIUS = 2000, 20, 4.0
BALL = cg.L1Ball(RADIUS)
BATCH = 20
PERIOD = POINTS // BATCH  # a snapshot an epoch, as in the paper


@functools.cache
def points():
    """The points times their labels, drawn by a sparse model that lies outside the ball."""
    x = normal((POINTS, FEATURES), 0)
    truth = torch.zeros(FEATURES, dtype=torch.float64)
    truth[:5] = 2.0 * normal((5,), 1).sign()
    chance = torch.rand(POINTS, generator=generator(2), dtype=torch.float64)
    return x * torch.where(chance < torch.sigmoid(x @ truth), 1.0, -1.0)[:, None]


@functools.cache
def least():
    """The solution, its loss, and the most that the loss can be too large."""
    theta, certificate = finite_sums.least_logistic(array(points()), twins.L1(RADIUS), 1e-12)
    return torch.as_tensor(theta), finite_sums.logistic_loss(theta, array(points())), certificate


class Logistic:
    """L(θ) = mean of log(1 + exp(−⟨z_i, θ⟩)) for the points z_i, at each row θ of the parameter."""

    def __init__(self, runs, seed=0):
        self.p = torch.zeros(runs, FEATURES, dtype=torch.float64, requires_grad=True)
        self.z, self.generator = points(), generator(seed)

    def groups(self):
        return [{"params": [self.p], "region": cg.PerRow(BALL)}]

    def slopes(self, theta):
        """The s_i, a row for each run, with ∇ℓ_i = s_i z_i."""
        return -torch.sigmoid(-theta @ self.z.T)

    def gradient(self, theta):
        return self.slopes(theta) @ self.z / POINTS

    def variance(self, slopes):
        """E ‖s_i z_i − E s_i z_i‖² for one point i drawn at random, of each run."""
        whole = slopes.square() @ self.z.square().sum(1) / POINTS
        return whole - (slopes @ self.z / POINTS).square().sum(1)

    def excess(self, theta):
        """L(θ) − L*, of each run."""
        return torch.nn.functional.softplus(-theta @ self.z.T).mean(1) - least()[1]

    def gap(self, theta):
        g = self.gradient(theta)
        return (g * theta).sum(1) + RADIUS * g.abs().amax(1)

    def batch(self, size=BATCH):
        """Numbers of points, drawn with replacement, a row for each run."""
        return torch.randint(POINTS, (len(self.p), size), generator=self.generator)

    def closure(self, batch):
        z = self.z[batch]

        def evaluate():
            slopes = -torch.sigmoid(-torch.einsum("rbd,rd->rb", z, self.p.detach()))
            self.p.grad = torch.einsum("rb,rbd->rd", slopes, z) / z.shape[1]

        return evaluate

    def pairs(self):
        """What ``refresh`` takes: all points, in batches."""
        return [(self._part(part), len(part)) for part in self.z.split(BATCH)]

    def _part(self, z):
        def evaluate():
            self.p.grad = -torch.sigmoid(-self.p.detach() @ z.T) @ z / len(z)

        return evaluate


def watched(optimizer):
    """The list that holds the directions of the latest step: what the oracle was asked."""
    move, latest = optimizer._move, []

    def watching(works, foreach):
        latest[:] = [work.direction.clone() for work in works]
        move(works, foreach)

    optimizer._move = watching
    return latest


def iterates(optimizer, problem, *, momentum=None, sizes=None, constant=False):
    """The iterates, each with the number of evaluations before it, without end.

    The steps are those of the open loop, unless ``constant`` leaves them as they are. ``momentum``
    and ``sizes`` tell the momentum, and the size of the batch, of each step.
    """
    schedule = None if constant else cg.schedules.OpenLoop(optimizer)
    t = 0
    while True:
        yield getattr(optimizer, "evaluations", t), problem.p.detach()
        if isinstance(optimizer, SNAPSHOTTING) and t % PERIOD == 0:
            optimizer.refresh(problem.pairs())
        if momentum:
            optimizer.param_groups[0]["momentum"] = momentum(t)
        optimizer.step(problem.closure(problem.batch(sizes(t) if sizes else BATCH)))
        if schedule:
            schedule.step()
        t += 1
