"""Many tensors moved together arrive where they arrive one by one."""

import pytest
import torch

import condgrad as cg
from condgrad.optim import _base, _move_many
from inputs import normal
from members import EXAMPLES, SIMPLE
from optim.cases import MIXTURE, Quadratic, mixture, parameters, run, same, start, values

SIZES = ((7,), (3, 4), (7,), (), (2, 3, 2, 2), (1,), (40,))
WITH_RADIUS = [
    cg.L1Ball,
    cg.L2Ball,
    cg.LinfBall,
    cg.UnitSimplex,
    cg.ProbabilitySimplex,
    cg.Permutahedron,
    cg.SpectralBall,
    cg.NuclearBall,
]


BY_METHOD = {
    cg.SpectralBall: [{"method": "polynomial"}],
    cg.NuclearBall: [{"method": "lanczos"}],
}


@pytest.fixture(params=["chosen", "stacked"])
def together(request, monkeypatch):
    """Move the tensors together: as the host does by itself, and as accelerators do."""
    if request.param == "stacked":
        monkeypatch.setattr(_base, "move_on_host", _move_many.move_many)


def sized():
    """A region of its own size for each of several tensors of each kind."""
    members = []
    for kind in WITH_RADIUS:
        matrices = kind in (cg.SpectralBall, cg.NuclearBall)
        shapes = ((3, 4), (3, 4), (4, 2), (1, 6), (2, 3, 2, 2)) if matrices else SIZES
        methods = [{}, *BY_METHOD.get(kind, [])]
        members += [
            (kind(0.1 + 0.37 * i, **method), shape)
            for method in methods
            for i, shape in enumerate(shapes)
        ]
    for i, shape in enumerate(SIZES):
        members += [
            (cg.LpBall(3.0, 0.1 + i), shape),
            (cg.LpBall(1.5, 0.1 + i), shape),
            (cg.KSparsePolytope(0.5, 0.1 + i), shape),
            (cg.KSparsePolytope((2, 0.1), 0.3), shape),
            (cg.KNormBall(0.5, 0.1 + i), shape),
            (cg.Box(-0.1, 0.3), shape),
            (cg.Free(), shape),
        ]
    return members


def pair(members, dtype=torch.float64, **settings):
    """The same problem twice, moved one by one and together, and the two optimizers."""
    made = []
    for foreach in (False, True):
        groups = mixture(dtype, members=members)
        optimizer = cg.SFW(groups, foreach=foreach, **settings)
        made.append((groups, optimizer, Quadratic(parameters(groups), ties=TIES)))
    return made


TIES = {1: torch.inf, 2: 0.3, 3: 0.0}
"""One batch without any gradient, two with zeros among the entries."""


def agree(first, second, dtype):
    """Equal to rounding: some epsilons of the largest entry."""
    for a, b in zip(first, second, strict=True):
        close = 100 * torch.finfo(dtype).eps * float(b.double().abs().max().clamp(min=1e-30))
        if not float((a.double() - b.double()).abs().max()) <= close:
            return False
    return True


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("rescale", [None, "diameter", "gradient"], ids=str)
@pytest.mark.parametrize("ties", ["random", "first"])
def test_together_is_one_by_one(rescale, ties, dtype):
    rate = {None: 0.1, "diameter": 0.05, "gradient": 0.01}[rescale]
    alone, both = pair(sized(), dtype, lr=rate, rescale=rescale, ties=ties)
    for t in range(8):
        for _, optimizer, problem in (alone, both):
            for place, group in enumerate(optimizer.param_groups):
                group["lr"] = rate * (place % 4) * (50 if t == 6 else 1)  # uneven; some rest
            run(optimizer, problem, 1, begin=t)
        assert agree(values(both[0]), values(alone[0]), dtype), f"step {t}"


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("ties", ["random", "first"])
def test_supports_and_signs_are_the_same(ties):
    """Full steps land on the vertices themselves."""
    members = [each for each in sized() if not isinstance(each[0], cg.Free)]
    for dtype in (torch.float64, torch.float32):
        alone, both = pair(members, dtype, lr=1.0, rescale=None, ties=ties, momentum=0.0)
        for t in range(6):
            first, second = (run(o, problem, 1, begin=t) for _, o, problem in (alone, both))
            for (region, _), a, b in zip(members, first, second, strict=True):
                if not isinstance(region, (cg.SpectralBall, cg.NuclearBall)):
                    assert torch.equal(a.sign(), b.sign()), f"{region} in step {t}"


@pytest.mark.usefixtures("together")
def test_every_region_of_the_mixture_moves_alike():
    alone, both = pair(MIXTURE + MIXTURE[::-1], lr=0.02)
    first, second = (run(optimizer, problem, 12) for _, optimizer, problem in (alone, both))
    assert agree(second, first, torch.float64)


@pytest.mark.usefixtures("together")
def test_rates_in_tensors_move_alike():
    alone, both = pair(sized(), lr=0.02, rescale="gradient")
    for _, optimizer, _ in (alone, both):
        for place, group in enumerate(optimizer.param_groups):
            group["lr"] = torch.tensor(0.02 * (place % 4), dtype=torch.float64)
    for _, optimizer, problem in (alone, both):
        run(optimizer, problem, 6)
    assert agree(values(both[0]), values(alone[0]), torch.float64)


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_matrices_are_pulled_inside_together_as_one_by_one(dtype):
    """Each by its own factor, at its own time, and not at all where nothing moves."""
    kinds = [(kind, method) for kind in BY_METHOD for method in ({}, *BY_METHOD[kind])]
    members = [(kind(0.3 + i, **method), (5, 4)) for kind, method in kinds for i in range(4)]
    ends = []
    for foreach in (False, True):
        groups = mixture(dtype, members=members)
        optimizer = cg.SFW(groups, foreach=foreach, momentum=0.0, rescale=None)
        for place, group in enumerate(optimizer.param_groups):
            region, (p,) = group["region"], group["params"]
            p.data.copy_(normal(p.shape, place).to(dtype))
            p.data.div_((1 + region.violation(p)) / (1.01 + 0.01 * place))
            # So short that nothing moves but by the pull; the first of each four takes no step.
            group["lr"] = (0.0, 1e-30, torch.tensor(1e-30, dtype=torch.float64), 1e-30)[place % 4]
        starts, problem = values(groups), Quadratic(parameters(groups))
        for t in range(16):
            run(optimizer, problem, 1, begin=t)
            for p in parameters(groups)[3::4] if t == 7 else ():  # the last is only half as old
                optimizer.state[p]["step"].zero_()
        ends.append(values(groups))
        stayed = [torch.equal(a, b) for a, b in zip(starts, ends[-1], strict=True)]
        assert stayed == [True, False, False, True] * len(kinds)
    assert agree(*ends, dtype)


@pytest.mark.usefixtures("together")
def test_settings_of_groups_are_not_mixed():
    def made(foreach):
        members = [each for each in sized() for _ in range(2)]
        groups = mixture(members=members)
        for place, group in enumerate(groups):
            group["rescale"] = (None, "diameter", "gradient")[place % 3]
            group["momentum"] = (0.0, 0.9)[place % 2]
            group["maximize"] = place % 5 == 0
            group["ties"] = ("random", "first")[place % 4 == 1]
            group["seed"] = place % 7
            group["lr"] = (0.02, torch.tensor(0.01, dtype=torch.float64))[place % 11 == 0]
        optimizer = cg.SFW(groups, foreach=foreach)
        return run(optimizer, Quadratic(parameters(groups), ties=TIES), 6)

    assert agree(made(True), made(False), torch.float64)


@pytest.mark.usefixtures("together")
def test_what_is_not_finite_stays_with_its_tensor():
    for kind in SIMPLE:
        if kind is cg.Free:
            continue
        region = EXAMPLES[kind].regions[0]
        shapes = [(3, 4)] * 3 + [(4, 3), (2, 6)]
        for poison in (torch.nan, torch.inf):
            params = [start(region, shape, i) for i, shape in enumerate(shapes)]
            for i, p in enumerate(params):
                p.grad = normal(p.shape, i)
            params[1].grad.view(-1)[2] = poison
            cg.SFW(params, region, lr=0.05, momentum=0.0, foreach=True).step()
            assert [bool(p.isfinite().all()) for p in params] == [True, False, True, True, True]


@pytest.mark.usefixtures("together")
def test_one_tensor_among_many_may_have_arrived():
    """θ = v for one tensor alone: its step is zero, its neighbours' are not."""
    region = cg.L2Ball(0.7)
    params = [start(region, (5,), i) for i in range(3)]
    for i, p in enumerate(params):
        p.grad = normal((5,), i)
    params[1].data.copy_(region.lmo(params[1].grad))
    before = [p.detach().clone() for p in params]
    cg.SFW(params, region, lr=0.01, momentum=0.0, foreach=True).step()
    assert torch.allclose(params[1], before[1], rtol=1e-14)
    assert not any(torch.equal(params[i], before[i]) for i in (0, 2))


@pytest.mark.usefixtures("together")
def test_rate_zero_and_zero_gradients_move_nothing():
    for dtype in (torch.float64, torch.bfloat16):
        groups = mixture(dtype, members=sized())
        optimizer = cg.SFW(groups, lr=0.0, foreach=True)
        problem = Quadratic(parameters(groups), ties=TIES)
        assert same(run(optimizer, problem, 20), values(mixture(dtype, members=sized())))
