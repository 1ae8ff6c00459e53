"""The host's kernels: what ``asked/`` does not ask of them because Triton's answer otherwise."""

import ctypes
import itertools
import os
import re
import subprocess

import numpy as np
import pytest
import torch

import condgrad as cg
from condgrad.kernels import misfit
from condgrad.kernels.host import _build, _table
from condgrad.regions._base import SLACK
from inputs import normal
from kernels.cases import BLOCKS, MISSING, REGIONS, Pair, gradients, off, start

needs_them = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@needs_them
@pytest.mark.parametrize("rescale", [None, "diameter", "gradient"])
def test_float64_follows_the_reference_to_its_own_digits(rescale):
    members = [(region, (n,)) for region in REGIONS for n in (1, 7, 1023)] + list(BLOCKS)
    for momentum in (0.0, 0.9):
        pair = Pair(members, dtype=torch.float64, lr=0.05, rescale=rescale, momentum=momentum)
        for t in range(3):
            pair.give([g.double() for g in gradients([shape for _, shape in members], t)])
            assert off(pair.step()) == {}


@needs_them
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_directions_of_any_size_give_the_vertex_of_the_reference(dtype):
    """Where squares, or reciprocals of norms, leave the range of the format."""
    info = torch.finfo(dtype)
    for scale in (info.tiny / 64, info.tiny, 1e-30, 1e30, info.max / 8):
        members = [(r, (9,)) for r in REGIONS if not isinstance(r, cg.Free)]
        pair = Pair(members, dtype=dtype, lr=1.0, rescale=None, momentum=0.0)
        shapes = [shape for _, shape in members]
        pair.give([normal(s, i, dtype=dtype).clamp(-1, 1) * scale for i, s in enumerate(shapes)])
        assert off(pair.step()) == {}, scale


def awkward(n, seed):
    """Values among which the K-th largest is awkward to find: equal, clustered, far apart."""
    x = np.random.default_rng(seed).standard_normal(n)
    yield "normal", x
    yield "two values", np.where(x > 0.3, 1.0, -0.5)
    yield "all equal", np.ones(n)
    yield "mostly zero", np.where(x > 1, x, 0)
    yield "far apart", np.exp(20 * x)
    yield "close together", 1 + 1e-6 * x
    yield "one giant", np.where(np.arange(n) == n // 2, 1e30, x)
    yield "subnormal", x * 1e-40
    yield "sorted", np.sort(x)
    yield "few values", np.round(3 * x)
    sampled = np.arange(n) % (n // 512 | 1) == 0
    yield "the sample is too large", np.where(sampled, 100 + x, x)
    yield "the sample is too small", np.where(sampled, x / 100, x)


@needs_them
@pytest.mark.parametrize("n", [1, 2, 30, 511, 513, 2000, 20_001])
def test_a_selection_is_exact(n):
    counts = sorted({1, 2, n // 10, n // 2, n - 1, n} & set(range(1, n + 1)))
    for k, (name, values) in itertools.product(counts, awkward(n, n)):
        d = torch.from_numpy(values).float()
        p = torch.zeros(n)
        p.grad = d
        cg.SFW([p], cg.KSparsePolytope(k, 1.0), lr=1.0, rescale=None, momentum=0, fused=True).step()
        taken = p != 0
        where = f"{name}, {k} of {n}"
        assert int(taken.sum()) == k, where
        assert float(d.abs()[taken].min()) >= float(d.abs()[~taken].max() if k < n else 0), where
        assert torch.equal(p[d != 0], (-d.sign() * taken)[d != 0]), where


@needs_them
def test_iterates_never_leave():
    """200 steps of every rule and rate; at every step at most 32 machine epsilons outside."""
    groups = [
        {"params": [start(region, (37,), 3)], "region": region, "rescale": rule, "lr": lr}
        for region in REGIONS
        if not isinstance(region, cg.Free)
        for rule in (None, "diameter", "gradient")
        for lr in (0.0, 1e-4, 0.1, 1.0, 50.0)
    ]
    optimizer = cg.SFW(groups, momentum=0.5, fused=True)
    for t in range(200):
        gradient = normal((37,), min(t, 80)).float() if t < 150 else torch.zeros(37)
        for group in groups:
            group["params"][0].grad = gradient.clone()
        optimizer.step()
        if t % 8 == 7 or t < 3:
            assert float(cg.violation(optimizer)) <= SLACK * 2.0**-23


@needs_them
def test_ascent_is_descent_of_the_negative():
    """With an average and without one, which take the sign at different places."""
    for momentum in (0.0, 0.9):
        pair = Pair(
            [(r, (9,)) for r in REGIONS], lr=0.1, rescale=None, momentum=momentum, maximize=True
        )
        pair.give(gradients([(9,)] * len(REGIONS), 4))
        assert off(pair.step()) == {}


@needs_them
def test_what_the_host_has_no_kernel_for_is_named():
    bad = [
        (torch.zeros(3), cg.LpBall(3.0, 1.0), "LpBall.* has no kernel on the host"),
        (torch.zeros(3, dtype=torch.bfloat16), cg.L2Ball(1.0), "bfloat16, not float32 or float64"),
        (torch.zeros(3, 3), cg.SpectralBall(1.0), "does not split"),
        (torch.zeros(8)[::2], cg.L2Ball(1.0), "leave gaps"),
    ]
    for p, region, words in bad:
        with pytest.raises(ValueError, match=rf"`fused=True` cannot move .*{words}"):
            cg.SFW([p], region, fused=True)


def test_the_table_is_that_of_the_source():
    """Field by field: the one is C++, the other ctypes, and nothing else holds them together."""
    text = re.search(r"struct Row \{(.*?)\};", _build.SOURCE.read_text(), re.DOTALL)
    lines = re.sub(r"//[^\n]*", "", text[1]).replace("*", " ").split(";")
    names = [name.strip().split()[-1] for line in lines for name in line.split(",") if name.strip()]
    assert names == [name for name, _ in _table.Row._fields_]
    kinds = re.search(r"enum Kind : int64_t \{(.*?)\}", _build.SOURCE.read_text())[1]
    from condgrad.kernels._fit import KINDS

    assert kinds.replace(",", "").split() == list(KINDS.values())


def test_without_a_compiler_the_reason_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_build, "_built", _build._built.__wrapped__)
    for compiler, words in [("no-such-compiler", "no-such-compiler"), ("false", "false failed")]:
        monkeypatch.setenv("CXX", compiler)
        assert words in misfit(torch.zeros(3), cg.L2Ball(1.0))
        with pytest.raises(ValueError, match=f"`fused=True` cannot move.*{words}"):
            cg.SFW([torch.zeros(3)], cg.L2Ball(1.0), fused=True)
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(_build.shutil, "which", lambda name: None)
    assert "no C++ compiler was found" in misfit(torch.zeros(3), cg.L2Ball(1.0))
    cg.SFW([torch.zeros(3)], cg.L2Ball(1.0))  # nobody asked for kernels


STUB = """
extern "C" long long condgrad_row_bytes() { return %d; }
extern "C" long long condgrad_step(void *, long long, long long) { return 0; }
"""


@needs_them
def test_what_was_built_is_kept_and_found_again(monkeypatch, tmp_path):
    right = ctypes.sizeof(_table.Row)

    def built(home, size=right):
        monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(home))
        monkeypatch.setattr(_build, "SOURCE", tmp_path / "stub.cpp")
        _build.SOURCE.write_text(STUB % size)
        return _build._built.__wrapped__()

    assert not isinstance(built(tmp_path), str)
    (kept,) = (tmp_path / "condgrad").iterdir()
    assert kept.suffix == ".so"

    def never(*words, **settings):
        raise AssertionError("built again")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", never)
        assert not isinstance(built(tmp_path), str)
    assert "was built for another table" in built(tmp_path, 8)
    # A home that cannot be written to: built elsewhere, for this process.
    assert not isinstance(built(tmp_path / "stub.cpp"), str)
