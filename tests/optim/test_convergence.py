"""What the methods are for: training from zero, and closing the gap at the rate theory gives."""

import numpy as np
import pytest
import torch
from torch import nn

import condgrad as cg
from inputs import array, generator, inside, normal
from members import BOUNDED_ONE_EACH, asked_of

# ---- a network that starts at zero


def two_arcs(count=200):
    """Points on two interlocking arcs, one for each label: no line separates them."""
    angle = torch.rand(count, generator=generator(0)) * torch.pi
    label = torch.arange(count) % 2
    height = torch.where(label == 0, angle.sin(), 0.5 - angle.sin())
    arc = torch.stack([angle.cos() + label, height], dim=1)
    return arc + 0.05 * torch.randn(count, 2, generator=generator(1)), label


def trained_from_zero(rescale, ties):
    """A two-layer network in hypercubes, trained from all zeros, and its training accuracy."""
    points, labels = two_arcs()
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    for p in model.parameters():
        nn.init.zeros_(p)
    groups = cg.constrain(model, cg.LinfBall(3.0))
    lr = 0.02 if rescale is None else 0.4
    optimizer = cg.SFW(groups, lr=lr, momentum=0.9, rescale=rescale, ties=ties)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points), labels).backward()
        optimizer.step()
        schedule.step()
    return model, float((model(points).argmax(1) == labels).float().mean())


@pytest.mark.parametrize("rescale", [None, "diameter"], ids=str)
def test_a_network_that_starts_at_zero_trains_in_hypercubes(rescale):
    model, accuracy = trained_from_zero(rescale, "random")
    assert accuracy > 0.95
    assert all(float(p.detach().abs().max()) <= 3.0 for p in model.parameters())


@pytest.mark.parametrize(
    ("rescale", "ties"),
    [(None, "first"), ("diameter", "first"), ("gradient", "random")],
    ids=str,
)
def test_without_draws_or_with_steps_as_long_as_the_gradient_it_stays_at_zero(rescale, ties):
    """At zero only the last bias has a gradient, and with balanced labels none at all.

    The first solution for a zero direction is zero itself; and a step as long as a gradient of
    zero has no length, wherever the vertex was drawn.
    """
    model, accuracy = trained_from_zero(rescale, ties)
    assert not any(p.detach().any() for p in model.parameters())
    assert accuracy == 0.5


# ---- a convex problem whose solution is known


def distance_problem(case):
    """A point b that lies outside, its nearest point in the region, a start inside."""
    middle = inside(case.region, case.shape, 3, share=1.0)
    reach = case.region.diameter(case.shape) or 1.0
    b = 1.5 * middle + 0.2 * reach * normal(case.shape, 4) / middle.numel() ** 0.5
    nearest = torch.as_tensor(case.twin.project(array(b))).reshape(case.shape)
    return b, nearest, inside(case.region, case.shape, 8, share=1.0)


@asked_of(BOUNDED_ONE_EACH)
def test_the_gap_closes_at_the_rate_of_the_open_loop(case):
    """½‖θ − b‖² has smoothness 1, so L(θ_t) − L* ≤ 2D²/(t + 2) (Jaggi 2013, theorem 1), and the
    least gap so far is at most 27/4 · D²/(t + 2) (theorem 2)."""
    b, nearest, theta = distance_problem(case)
    p = theta.requires_grad_()
    optimizer = cg.SFW([p], case.region, lr=1.0, momentum=0.0, rescale=None)
    schedule = cg.schedules.OpenLoop(optimizer)
    D2, optimum = case.region.diameter(case.shape) ** 2, float((nearest - b).square().sum()) / 2
    rounding = 1e-13 * (1 + D2 + optimum)
    least = np.inf
    for t in range(300):
        p.grad = p.detach() - b
        excess = float(p.grad.square().sum()) / 2 - optimum
        gap = float(cg.fw_gap(optimizer))
        least = min(least, gap)
        assert gap >= 0
        assert -rounding <= excess <= gap + rounding
        if t:
            assert excess <= 2 * D2 / (t + 2) + rounding
            assert least <= 27 / 4 * D2 / (t + 2) + rounding
        optimizer.step()
        schedule.step()


@asked_of([case for case in BOUNDED_ONE_EACH if case.region.diameter(case.shape) > 0])
def test_the_gap_is_zero_at_the_solution_and_nowhere_else(case):
    b, nearest, theta = distance_problem(case)
    gaps = []
    for point in (nearest, theta):
        p = point.clone().requires_grad_()
        p.grad = point - b
        gap = cg.fw_gap(cg.SFW([p], case.region))
        gaps.append(float(gap / p.grad.norm() / case.region.diameter(case.shape)))
    solved, unsolved = gaps
    assert 0 <= solved <= 1e-6  # the nearest point of an Lp ball is numeric
    assert unsolved > 1e-2
