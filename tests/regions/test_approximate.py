"""Oracles that approximate: never outside, never worse than they state, and never waiting."""

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import condgrad as cg
import spectra
from condgrad.regions import _leading, _polar
from condgrad.regions._ties import Draw
from inputs import array, dot, generator, normal
from members import ONE_EACH, exactly, twin

APPROXIMATE = [case.region for case in ONE_EACH if exactly(case.region) != case.region]
every_region = pytest.mark.parametrize("region", APPROXIMATE, ids=str)
WHOLE = [region for region in APPROXIMATE if not hasattr(region, "region")]
every_whole_region = pytest.mark.parametrize("region", WHOLE, ids=str)
every_shape = pytest.mark.parametrize("shape", spectra.SHAPES, ids=str)


def outgrown(x, order):
    """The largest singular value, or the sum of all, in double precision."""
    values = np.linalg.svd(array(x), compute_uv=False)
    return values.max() if order == "spectral" else values.sum()


def order(region):
    return "spectral" if isinstance(region, cg.SpectralBall) else "nuclear"


def test_there_are_some_of_each_kind():
    kinds = {(type(r), type(getattr(r, "region", None))) for r in APPROXIMATE}
    assert {cg.SpectralBall, cg.NuclearBall, cg.PerFilter} == {kind for kind, _ in kinds}


# ---- vertices


@every_whole_region
@every_shape
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_vertices_are_inside_and_as_good_as_is_stated(region, shape, dtype):
    slow, slack = twin(region, shape), 16 * torch.finfo(dtype).eps * min(shape) ** 0.5
    for name, x in spectra.matrices(*shape).items():
        x = x.to(dtype)
        v = region.lmo(x, generator=generator(0))
        assert v.isfinite().all(), name
        assert outgrown(v, order(region)) <= region.radius * (1 + slack), name
        least = slow.minimum(array(x))
        assert dot(x, v) - least <= slow.loss(array(x)) + slack * abs(least), name


@every_whole_region
@every_shape
def test_vertices_follow_the_twin(region, shape):
    """Where no tie is to be broken, and all is well conditioned."""
    for x in (normal(shape, 0), normal(shape, 1).abs()):
        v, expected = region.lmo(x), twin(region, shape).lmo(array(x))
        assert np.max(np.abs(array(v) - expected)) <= 1e-11 * np.max(np.abs(expected))


@every_whole_region
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_the_size_of_a_direction_does_not_matter(region, scale):
    for shape in ((40, 60), (9, 1)):
        x = normal(shape, 2)
        expected = region.lmo(x)
        found = region.lmo(x * scale)
        assert torch.allclose(found, expected, rtol=1e-9, atol=1e-12 * region.radius)
        if 1e-31 < scale < 1e31:
            found = region.lmo((x * scale).float()).double()
            assert torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * region.radius)


@every_shape
def test_bfloat16_stays_inside_and_loses_as_little(shape):
    """The arithmetic of accelerators, on the host."""
    slow = twin(cg.SpectralBall(1.0, method="polynomial"), shape)
    for name, x in spectra.matrices(*shape).items():
        x = (x / x.abs().max().clamp(min=1)).bfloat16()
        v = _polar.polar(x[None])[0]
        assert v.dtype is torch.float32
        assert outgrown(v, "spectral") <= 1, name
        best = -slow.minimum(array(x))
        beside = (_polar.FLOOR - _polar.COARSE) * best
        assert best - dot(x, v) <= slow.loss(array(x)) + beside, name
        if name == "normal":  # only the way there is coarse
            assert best - dot(x, v) <= 0.01 * best
            assert not torch.equal(v, v.bfloat16().float())


def test_every_rounding_of_a_row_stays_inside_in_bfloat16():
    """One singular value, exactly at the end of the first interval, and all errors add up in it."""
    x = normal((4000, 1, 3), 0).bfloat16()
    sizes = torch.linalg.vector_norm(_polar.polar(x), dim=(1, 2))
    assert float(sizes.max()) < 1
    assert float(sizes.min()) > _polar.FLOOR


def test_a_batch_is_answered_matrix_by_matrix():
    """Alike in their values: which of nearly tied vectors it is, rounding decides."""
    x = torch.stack(list(spectra.matrices(17, 17).values()))
    x[3] = torch.nan
    x[5, 2, 2] = torch.inf
    for region in WHOLE:
        found = cg.PerFilter(region).lmo(x, generator=generator(0))
        for place, (one, many) in enumerate(zip(x, found, strict=True)):
            alone = region.lmo(one, generator=generator(0))
            if place in (3, 5):
                assert not many.isfinite().any()
                assert not alone.isfinite().any()
            else:
                assert dot(one, many) == pytest.approx(dot(one, alone), rel=1e-9)


def test_a_zero_matrix_draws_a_reflection():
    """All singular values alike, whichever way is longer, and some signs alone decide."""
    for shape in ((4, 7), (7, 4), (5, 5), (1, 3), (2, 2), (1, 1)):
        drawn = set()
        for seed in range(30):
            zero = torch.zeros(shape, dtype=torch.float64)
            v = cg.SpectralBall(1.0, method="polynomial").lmo(zero, generator=generator(seed))
            values = torch.linalg.svdvals(v)
            assert float(values.max() - values.min()) <= 1e-12
            assert float(values.min()) >= _polar.FLOOR
            drawn.add(tuple(v.flatten().tolist()))
        assert len(drawn) >= 2


@every_whole_region
def test_the_first_solution_for_a_zero_matrix_is_zero(region):
    p = torch.zeros(4, 3, requires_grad=True)
    p.grad = torch.zeros(4, 3)
    cg.SFW([p], region, lr=1.0, rescale=None, ties="first").step()
    assert not p.any()


def test_the_shorter_side_is_worked_on():
    """And no product is larger than it must be."""
    for shape in ((5, 70), (70, 5)):
        with Names() as names:
            cg.SpectralBall(1.0, method="polynomial").lmo(normal(shape, 0))
        assert (1, 70, 70) not in names.shapes
        assert (1, 5, 5) in names.shapes


# ---- the polynomials


def script():
    """The script that computes the coefficients."""
    path = Path(__file__).parents[2] / "docs" / "polar.py"
    spec = importlib.util.spec_from_file_location("docs_polar", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_coefficients_are_those_of_the_script():
    polar = script()
    steps = polar.steps()
    assert tuple((step.a, step.s, step.c) for step in steps) == _polar.QUINTICS
    assert polar.LEAST == _polar.LEAST
    assert polar.floor(steps) / _polar.EXCESS >= _polar.FLOOR > polar.floor(steps) - 0.01


def test_each_polynomial_is_the_nearest_to_one():
    """Its error is attained four times with alternating signs, so none of its kind has less."""
    polar = script()
    for step in polar.steps():
        a, b, c, error = polar.nearest(step.low, step.high)
        x = torch.linspace(step.low, step.high, 200_001, dtype=torch.float64)
        errors = x * (a + b * x**2 + c * x**4) - 1
        assert float(errors.abs().max()) == pytest.approx(error, rel=1e-9)
        turns = errors[(errors.abs() > error * (1 - 1e-6)).nonzero().flatten()].sign()
        assert torch.unique_consecutive(turns).tolist() == [-1, 1, -1, 1]


def test_the_response_is_between_its_bounds():
    slow = twin(cg.SpectralBall(1.0, method="polynomial"), (1, 1))
    slow.bound = lambda s: 1.0
    y = slow.response(np.linspace(0, 1, 1_000_001))
    assert y[0] == 0
    assert y[1:].min() > 0
    assert y.max() < 1
    assert slow.response(np.linspace(_polar.LEAST, 1, 1_000_001)).min() >= _polar.FLOOR
    # Rounding may lead beyond 1 on the way, by as much as the intervals were widened.
    assert slow.response(np.linspace(1, 1.04, 1001)).max() < 1


# ---- leading singular vectors


@every_shape
def test_the_basis_is_orthonormal_and_the_vectors_are_units(shape):
    for name, x in spectra.matrices(*sorted(shape)).items():
        basis, images = _leading.krylov(x[None])
        lengths = torch.linalg.vector_norm(basis, dim=1)
        gram = (basis.mT @ basis)[0]
        assert torch.allclose(gram, torch.diag(lengths[0].round()), atol=1e-13), name
        assert torch.allclose(images, x.T @ basis, atol=1e-13), name
        found = _leading.leading(x[None])
        for unit in (found.left, found.right) if x.any() else ():
            assert float(unit.norm()) == pytest.approx(1, abs=1e-14), name
        image = found.left[0].T @ x @ found.right[0]
        assert float(found.size) == pytest.approx(float(image), rel=1e-13), name


def test_few_rows_and_clear_gaps_leave_nothing_to_be_desired():
    for shape in ((24, 80), (17, 17), (3, 4)):
        for name, x in spectra.matrices(*shape).items():
            largest = outgrown(x, "spectral")
            assert float(_leading.leading(x[None]).size) == pytest.approx(largest, rel=1e-12), name
    values = 0.8 ** torch.arange(200.0, dtype=torch.float64)
    x = spectra.turned(values, 200, 300)
    assert float(_leading.leading(x[None]).size) == pytest.approx(1, rel=1e-12)


# ---- pulling back inside


@every_whole_region
@every_shape
def test_bounds_are_at_least_what_they_bound(region, shape):
    for name, x in spectra.matrices(*shape).items():
        bound = float(region._bounds(x[None] * 1e-3)) * region.radius / 1e-3
        size = outgrown(x, order(region))
        assert bound >= size * (1 - 1e-9), name
        if min(shape) <= _leading.STEPS:
            assert bound <= (17 / 16 + 1e-9 if order(region) == "spectral" else 1.5) * size, name


@every_whole_region
def test_a_pull_takes_no_more_than_rounding_has_added(region):
    for dtype in (torch.float64, torch.float32):
        eps = torch.finfo(dtype).eps
        for shape in ((3, 4), (60, 40)):
            inside = 0.5 * exactly(region).lmo(normal(shape, 0)).to(dtype)
            drift = 32 * eps * float(region._drifts_by(inside[None].double()))
            assert torch.equal(region._recalled(inside * 0.5), inside * 0.5)
            border = inside * 2 * (1 + 0.9 * drift)
            found = region._recalled(border)
            assert outgrown(found, order(region)) <= region.radius * (1 + 32 * eps)
            assert float((border - found).norm() / border.norm()) <= 2.5 * drift + eps


@every_whole_region
def test_thousands_of_tiny_steps_do_not_lead_out(region):
    """On a matrix of more rows than Lanczos takes steps, from the border."""
    for dtype, lr in ((torch.float32, 3e-8), (torch.float32, 1e-5), (torch.bfloat16, 1e-3)):
        point = exactly(region).lmo(normal((30, 40), 0)).to(dtype)
        p = exactly(region).project(point).requires_grad_()
        optimizer = cg.SFW([p], region, lr=lr, momentum=0.0, rescale=None)
        p.grad = normal((30, 40), 1).to(dtype)
        for _ in range(1000):
            optimizer.step()
        excess = outgrown(p, order(region)) / region.radius - 1
        assert excess <= 32 * torch.finfo(dtype).eps


# ---- nothing waits


class Names(TorchDispatchMode):
    """The names of all operations, and the shapes of what they return."""

    def __init__(self):
        super().__init__()
        self.seen, self.shapes = set(), set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.add(function.overloadpacket.__name__)
        found = function(*args, **(kwargs or {}))
        self.shapes.add(tuple(getattr(found, "shape", ())))
        return found


WAITING = {"item", "_local_scalar_dense", "nonzero", "masked_select", "is_nonzero"}


def decomposing(names):
    """Those among the names that stand for a decomposition."""
    return {n for n in names if "linalg" in n and n != "linalg_vector_norm"} | {"svd"} & names


@every_region
def test_no_step_decomposes_or_looks_at_a_number(region):
    """On a device that has no numbers: whoever asked for one would fail."""
    shape = (3, 30, 40) if hasattr(region, "region") else (30, 40)
    x = torch.empty(shape, device="meta")
    with Names() as names:
        v = region._oracle(x, Draw(1, 2, 3))
        again = region._recalled(x)
    assert v.shape == again.shape == x.shape
    assert "bmm" in names.seen
    assert not names.seen & WAITING
    assert not decomposing(names.seen)


@every_region
def test_a_step_on_the_host_decomposes_nothing(region):
    shape = (3, 30, 40) if hasattr(region, "region") else (30, 40)
    p = (0.5 * exactly(region).lmo(normal(shape, 0))).requires_grad_()
    optimizer = cg.SFW([p], region)
    with Names() as names:
        for t in range(17):
            p.grad = normal(shape, t)
            optimizer.step()
    assert not decomposing(names.seen)
    with Names() as names:
        exactly(region)._oracle(p.grad, None)
    assert decomposing(names.seen), "this would have noticed"


# ---- names and wrong use


def test_a_method_is_part_of_a_region():
    plain, other = cg.SpectralBall(0.1), cg.SpectralBall(0.1, method="polynomial")
    assert plain == cg.SpectralBall(0.1, "svd") != other
    assert repr(plain) == "SpectralBall(radius=0.1)"
    assert repr(other) == "SpectralBall(radius=0.1, method='polynomial')"
    assert repr(cg.NuclearBall(2)) == "NuclearBall(radius=2.0)"
    assert repr(cg.NuclearBall(2, "lanczos")) == "NuclearBall(radius=2.0, method='lanczos')"
    for region in (other, cg.NuclearBall(0.1, method="lanczos")):
        assert type(region).from_diameter(3.0, (4, 5), method=region.method).method == region.method
        rule = cg.sized(type(region), width=3.0, method=region.method)
        assert rule.region_for(torch.ones(4, 5)).method == region.method


@pytest.mark.parametrize("kind", [cg.SpectralBall, cg.NuclearBall])
def test_what_was_saved_before_there_were_methods_is_read(kind):
    old = object.__new__(kind)
    old.__dict__["radius"] = 0.1
    assert pickle.loads(pickle.dumps(old)) == kind(0.1)
    optimizer = cg.SFW([torch.zeros(3, 4, requires_grad=True)], kind(0.1))
    state = optimizer.state_dict()
    assert state["param_groups"][0]["region"] == f"{kind.__name__}(radius=0.1)"
    optimizer.load_state_dict(state)


@pytest.mark.parametrize("kind", [cg.SpectralBall, cg.NuclearBall])
def test_a_wrong_method_is_named(kind):
    right = {cg.SpectralBall: '"svd" or "polynomial"', cg.NuclearBall: '"svd" or "lanczos"'}
    other = {cg.SpectralBall: "lanczos", cg.NuclearBall: "polynomial"}
    for method in ("SVD", "", None, 5, other[kind]):
        with pytest.raises(ValueError, match=f"`method` of {kind.__name__} must be {right[kind]}"):
            kind(0.1, method)


def test_a_checkpoint_over_another_method_is_refused():
    p = torch.zeros(3, 4, requires_grad=True)
    state = cg.SFW([p], cg.SpectralBall(0.1)).state_dict()
    with pytest.raises(ValueError, match="polynomial"):
        cg.SFW([p], cg.SpectralBall(0.1, method="polynomial")).load_state_dict(state)
