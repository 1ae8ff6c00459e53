"""Every public name is documented, and the interface that others build on is as it was fixed."""

import inspect
import re

import pytest
import torch

import condgrad as cg
from docs.pages import PAGES, ROOT, updater, words

PUBLIC = updater().public()
INDEX = ROOT / "docs" / "index.md"

METHODS = {
    f"{owner.__name__}.{name}": value
    for owner in PUBLIC.values()
    if inspect.isclass(owner)
    for name, value in inspect.getmembers(owner)
    if not name.startswith("_")
    and getattr(value, "__module__", "").startswith("condgrad")
    and callable(value)
}


def test_the_door_has_nothing_but_its_list():
    public = {name for name in vars(cg) if not name.startswith("_")}
    assert public - set(cg.__all__) <= {"constrain", "sizing", "kernels"}
    assert cg.__all__ == sorted(cg.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_documented(name):
    """In its docstring, whose first sentence fills the first line; in the index, and elsewhere."""
    first = (inspect.getdoc(PUBLIC[name]) or "").split("\n")[0]
    assert first.endswith("."), first
    assert f"| `{name}` |" in INDEX.read_text()
    code = re.compile(rf"`[^`\n]*\b{name}\b[^`\n]*`|\bcg\.(\w+\.)*{name}\b")
    pages = [page for page in PAGES if page != INDEX or name == "Region"]
    assert any(code.search(words(page)) for page in pages)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_public_method_has_a_docstring(name):
    assert (inspect.getdoc(METHODS[name]) or "").split("\n")[0].endswith(".")


# ---- what is fixed


def call(*args, **kwargs):
    return args, kwargs


MODEL, X, OPTIMIZER = torch.nn.Linear(2, 2), torch.ones(2), None
FIXED = {
    cg.L1Ball: [call(1.0), call(radius=1.0)],
    cg.L2Ball: [call(1.0), call(radius=1.0)],
    cg.LinfBall: [call(1.0), call(radius=1.0)],
    cg.LpBall: [call(3.0, 1.0), call(p=3.0, radius=1.0)],
    cg.KSparsePolytope: [call(2, 1.0), call(k=0.5, radius=1.0)],
    cg.KNormBall: [call(2, 1.0), call(k=0.5, radius=1.0)],
    cg.UnitSimplex: [call(1.0), call(radius=1.0)],
    cg.ProbabilitySimplex: [call(1.0), call(radius=1.0)],
    cg.Permutahedron: [call(), call(1.0), call(radius=1.0)],
    cg.Box: [call(-1.0, 1.0), call(low=-1.0, high=1.0)],
    cg.SpectralBall: [call(1.0), call(radius=1.0), call(1.0, method="polynomial")],
    cg.NuclearBall: [call(1.0), call(radius=1.0), call(1.0, method="lanczos")],
    cg.Free: [call()],
    cg.PerRow: [call(cg.L2Ball(1.0)), call(region=cg.L2Ball(1.0))],
    cg.PerFilter: [call(cg.L2Ball(1.0)), call(region=cg.L2Ball(1.0))],
    cg.L2Ball(1.0).lmo: [call(X), call(X, generator=None)],
    cg.L2Ball(1.0).project: [call(X)],
    cg.L2Ball(1.0).diameter: [call((2,))],
    cg.L2Ball(1.0).violation: [call(X)],
    cg.L2Ball(1.0).contains: [call(X), call(X, tol=1e-6)],
    cg.LpBall.from_diameter: [call(1.0, (2,), p=3.0)],
    cg.constrain: [
        call(MODEL, cg.LinfBall, width=30),
        call(MODEL, {r".*": cg.Free()}, feasible="check"),
    ],
    cg.sized: [call(cg.L2Ball, width=300)],
    cg.make_feasible: [call(MODEL)],
    cg.expected_norm: [call(3, 1.0)],
    cg.fw_gap: [call(OPTIMIZER), call(OPTIMIZER, per_parameter=True)],
    cg.violation: [call(OPTIMIZER), call(OPTIMIZER, per_parameter=True)],
    cg.active_parameters: [call(MODEL, {})],
    cg.SFW: [call([], lr=0.1, momentum=0.9, rescale="gradient"), call([], cg.L2Ball(1.0))],
    **{getattr(cg, name): [call([], cg.L2Ball(1.0), lr=0.1)] for name in cg.optim.__all__[1:]},
    cg.schedules.OpenLoop: [call(OPTIMIZER)],
    cg.schedules.BandRule: [call(OPTIMIZER)],
    cg.schedules.theorem_step: [call(16, excess=1.0, smoothness=1.0, diameter=1.0, beta=2.0)],
}


@pytest.mark.parametrize("function", FIXED, ids=lambda f: getattr(f, "__qualname__", str(f)))
def test_what_others_build_on_is_called_as_it_was_fixed(function):
    for args, kwargs in FIXED[function]:
        inspect.signature(function).bind(*args, **kwargs)


@pytest.mark.parametrize("name", cg.optim.__all__)
def test_every_optimizer_steps_with_and_without_a_closure(name):
    kind = getattr(cg, name)
    inspect.signature(kind.step).bind(None, closure=None)
    if name in ("SVRF", "SPIDERFW"):
        inspect.signature(kind.refresh).bind(None, [(None, 1)], progress=None)
