"""AdaSFW and AdamSFW follow their slow twins; their inner steps go down the model they state."""

import itertools
import math

import numpy as np
import pytest
import torch

import condgrad as cg
from inputs import array, normal
from members import BOUNDED_ONE_EACH, asked_of, twin
from optim.batches import ONE_OF_EACH_KIND, Batches, follow, scenario, twin_steps
from optim.cases import asked_of_optimizers, mixture, parameters, same, start, values
from reference import optimizers as twins

ADAPTIVE = (cg.AdaSFW, cg.AdamSFW)
TRIED = asked_of_optimizers(ADAPTIVE)
TWINS = {cg.AdaSFW: twins.ada_sfw, cg.AdamSFW: twins.adam_sfw}


@TRIED
@asked_of(ONE_OF_EACH_KIND)
def test_the_slow_twin_is_followed(case, kind):
    """Once with short steps, and once with steps that the line search ends at 0 or 1.

    A delta near 0 would make the model's curvatures, and with them rounding, differ by 1 / delta.
    """
    for scale, inner, delta in ((0.02, 3, 0.2), (0.6, 2, 0.5)):
        p, problem = scenario(case)
        size = 1.0 if isinstance(case.region, cg.Free) else case.region.diameter(case.shape)
        lr = [scale * size * (1 + t % 3) for t in range(100)]
        settings = {"K": inner, "delta": delta, "lr": lr}
        expected = twin_steps(TWINS[kind], problem, case.twin, **settings)
        follow(kind([p], case.region, inner=inner, delta=delta), problem, expected, lr)


def test_betas_are_followed():
    for betas in ((0.5, 0.9), (0.0, 0.0), (0.99, 0.5)):
        case = ONE_OF_EACH_KIND[0]
        p, problem = scenario(case)
        settings = {"K": 3, "delta": 1e-3, "lr": 0.1, "betas": betas}
        expected = twin_steps(twins.adam_sfw, problem, case.twin, **settings)
        optimizer = cg.AdamSFW([p], case.region, inner=3, delta=1e-3, lr=0.1, betas=betas)
        follow(optimizer, problem, expected)


def test_free_parameters_take_the_steps_of_adagrad():
    """Up to where the small number is added, which is after the root in both."""
    p, q = start(cg.Free(), (5,)), start(cg.Free(), (5,))
    ours = cg.AdaSFW([p], cg.Free(), lr=0.1, delta=1e-10)
    theirs = torch.optim.Adagrad([q], lr=0.1, eps=1e-10)
    for t in range(20):
        p.grad = q.grad = normal((5,), t)
        ours.step()
        theirs.step()
        assert torch.allclose(p, q, rtol=1e-13)


def model_of(g, H, theta, lr):
    """The quadratic model of the listing."""
    return lambda y: float(np.sum(g * y) + np.sum(H * (y - theta) ** 2) / (2 * lr))


@asked_of(BOUNDED_ONE_EACH)
def test_many_inner_steps_come_to_the_least_point_of_the_model(case):
    """H = δ + |g| after one step. The Frank-Wolfe gap at the end bounds what is left."""
    p = start(case.region, case.shape, seed=3)
    g, theta = normal(case.shape, 5), array(p).copy()
    size = case.region.diameter(case.shape)
    lr, K = 0.3 * max(size, 1e-3), 300
    optimizer = cg.AdaSFW([p], case.region, lr=lr, inner=K, delta=1.0)
    p.grad = g.clone()
    optimizer.step()
    y, H = array(p), 1.0 + np.abs(array(g))
    slope = array(g) + H * (y - theta) / lr
    gap = float(np.sum(slope * (y - twin(case.region, case.shape).lmo(slope))))
    # L = max H / lr; after K steps the least gap is at most 27/4 · L D²/(K + 2), mostly far less.
    assert -1e-9 <= gap <= 7 * H.max() / lr * size**2 / (K + 2) + 1e-12
    Q = model_of(array(g), H, theta, lr)
    assert Q(y) <= Q(theta) + 1e-12


@TRIED
def test_every_inner_step_goes_down(kind):
    """More of them are never worse for the model: the line search is exact."""
    g = normal((3, 4), 5)
    for region in (cg.L1Ball(0.4), cg.L2Ball(0.4), cg.LinfBall(0.4), cg.SpectralBall(0.4)):
        before = array(start(region, (3, 4)))
        found = []
        for inner in range(1, 9):
            p = start(region, (3, 4))
            p.grad = g.clone()
            settings = {"betas": (0.0, 0.0)} if kind is cg.AdamSFW else {}
            kind([p], region, lr=0.5, inner=inner, delta=0.1, **settings).step()
            found.append(model_of(array(g), 0.1 + np.abs(array(g)), before, 0.5)(array(p)))
        assert all(b <= a + 1e-14 for a, b in itertools.pairwise(found))
        assert found[-1] < found[0] - 1e-6


def test_one_inner_step_is_the_step_that_the_line_search_says():
    region = cg.L2Ball(0.7)
    for lr in (1e-3, 0.1, 10.0):
        p = start(region, (4,))
        theta, g = p.detach().clone(), normal((4,), 1)
        p.grad = g.clone()
        cg.AdaSFW([p], region, lr=lr, inner=1, delta=0.5).step()
        way = region.lmo(g) - theta
        H = 0.5 + g.abs()
        a = min(1.0, float(-lr * (g * way).sum() / (H * way * way).sum()))
        assert (a == 1.0) == (lr == 10.0)
        assert torch.allclose(p, theta + a * way, rtol=1e-13, atol=1e-15)


def test_the_second_moment_never_falls():
    p = start(cg.Free(), (3,))
    optimizer = cg.AdamSFW([p], cg.Free(), betas=(0.9, 0.5))
    top = torch.zeros(3, dtype=torch.float64)
    for t in range(10):
        p.grad = normal((3,), t) * (10.0 if t == 2 else 1.0)
        optimizer.step()
        state = optimizer.state[p]
        top = torch.maximum(top, state["exp_avg_sq"])
        assert torch.equal(state["max_exp_avg_sq"], top)
    assert (state["exp_avg_sq"] < top).all()


@TRIED
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sums_of_squares_are_kept_long_and_saved_long(kind, dtype):
    """In bfloat16 a sum of ones would stop at 256; in float16 a square of 300 would be infinite."""
    p = torch.zeros(3, dtype=dtype, requires_grad=True)
    optimizer = kind([p], cg.L2Ball(1.0), lr=0.01)
    for _ in range(300):
        p.grad = torch.full((3,), 300.0, dtype=dtype)
        optimizer.step()
    fresh = kind([p], cg.L2Ball(1.0))
    fresh.load_state_dict(optimizer.state_dict())
    name = "sum" if kind is cg.AdaSFW else "max_exp_avg_sq"
    expected = 300 * 9e4 if kind is cg.AdaSFW else 9e4 * (1 - 0.99**300)
    for each in (optimizer, fresh):
        kept = each.state[p][name]
        assert kept.dtype is torch.float32
        assert torch.allclose(kept, torch.full((3,), expected), rtol=1e-4)
    assert p.isfinite().all()


@TRIED
def test_inner_ties_are_drawn_each_on_its_own(kind):
    """A zero gradient asks the oracle about nothing, K times; the model's least point is θ."""
    groups = mixture()
    optimizer = kind(groups, lr=0.1)
    for p in parameters(groups):
        p.grad = torch.zeros_like(p)
    optimizer.step()
    assert same(values(groups), values(mixture()))
    # Equal slopes on a simplex: one of the corners is drawn at each inner step.
    region, seen = cg.ProbabilitySimplex(1.0), set()
    for seed in range(20):
        p = torch.full((6,), 1 / 6, dtype=torch.float64).requires_grad_()
        optimizer = kind([p], region, lr=0.3, inner=1, delta=1.0, seed=seed)
        p.grad = torch.tensor([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], dtype=torch.float64)
        optimizer.step()
        seen.add(int(p.argmax()))
    assert seen == {0, 1, 2}


@TRIED
def test_on_a_zigzag_free_problem_it_converges(kind):
    """A quadratic whose least point lies inside: the gap goes to zero."""
    groups = mixture(members=[(cg.L2Ball(5.0), (6,)), (cg.LinfBall(5.0), (6,))])
    problem = Batches(parameters(groups))
    optimizer = kind(groups, lr=0.3)
    gaps = []
    for _ in range(600):
        problem.closure(None)()
        gaps.append(float(cg.fw_gap(optimizer)))
        optimizer.step()
    assert gaps[0] > 1
    assert 0 <= min(gaps[-50:]) < 2e-2 * gaps[0]


@TRIED
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"inner": 0}, "`inner` must be an int of at least 1, got 0"),
        ({"inner": 2.5}, "`inner` must be an int of at least 1, got 2.5"),
        ({"delta": 0.0}, "`delta` must be positive and finite, got 0.0"),
        ({"delta": math.inf}, "`delta` must be positive and finite, got inf"),
        ({"lr": -1.0}, r"`lr` must lie in \[0, inf\), got -1.0"),
        ({"ties": "last"}, "`ties` must be one of 'random', 'first', got 'last'"),
    ],
)
def test_wrong_settings_are_refused(kind, settings, text):
    with pytest.raises(ValueError, match=text):
        kind([torch.zeros(2, requires_grad=True)], cg.L2Ball(1.0), **settings)


@pytest.mark.parametrize("betas", [(1.0, 0.9), (0.9, -0.1), (math.nan, 0.9)])
def test_wrong_betas_are_refused(betas):
    with pytest.raises(ValueError, match=r"`betas\[\d\]` must lie in \[0, 1\), got"):
        cg.AdamSFW([torch.zeros(2, requires_grad=True)], cg.Free(), betas=betas)
