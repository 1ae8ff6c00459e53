"""The ways in which the tests lay parameters out on four ranks, and one run for all of them.

What is imported here is imported before the ranks are forked, and what is computed, computed once.
"""

import functools
import math

import numpy as np
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard
from torch.nn.parallel import DistributedDataParallel

import condgrad as cg
from optim.cases import MEMBERS, Quadratic, build, start

VECTORS = ((7,), (3, 5), (1,), (2, 3, 2, 2), (16,), (3,), (9, 2), (5, 4))
MATRICES = ((3, 5), (5, 3), (1, 6), (2, 3, 2, 2), (6, 1), (4, 4), (9, 2), (3, 3))
FILTERS = ((3, 2, 2), (2, 3, 1), (5, 1, 2, 3), (8, 2, 2))
REGIONS = {
    cg.L1Ball(0.3): VECTORS,
    cg.L2Ball(0.7): VECTORS,
    cg.LinfBall(0.1): VECTORS,
    cg.LpBall(3.0, 0.1): VECTORS,
    cg.LpBall(1.5, 0.3): VECTORS,
    cg.KSparsePolytope(0.5, 0.1): VECTORS,
    cg.KSparsePolytope((2, 0.1), 0.3): VECTORS,
    cg.KNormBall(0.5, 0.1): VECTORS,
    cg.KNormBall((2, 0.1), 0.3): VECTORS,
    cg.UnitSimplex(0.3): VECTORS,
    cg.ProbabilitySimplex(0.1): VECTORS,
    cg.Permutahedron(0.1): VECTORS,
    cg.Box(-0.1, 0.3): VECTORS,
    cg.SpectralBall(0.1): MATRICES,
    cg.SpectralBall(0.1, method="polynomial"): MATRICES,
    cg.SpectralBall(0.7): MATRICES,
    cg.NuclearBall(0.1): MATRICES,
    cg.NuclearBall(0.1, method="lanczos"): MATRICES,
    cg.PerRow(cg.L1Ball(0.1)): MATRICES,
    cg.PerRow(cg.KSparsePolytope(0.5, 0.1)): MATRICES,
    cg.PerRow(cg.Permutahedron(0.1)): MATRICES,
    cg.PerFilter(cg.LinfBall(0.1)): FILTERS,
    cg.PerFilter(cg.SpectralBall(0.1)): FILTERS,
    cg.Free(): VECTORS,
}
"""Regions of every kind, on shapes that four ranks cannot share evenly; three rows among them."""

RULES = tuple(
    (rescale, rate, momentum)
    for momentum in (0.0, 0.9)
    for rescale, rate in (
        (None, 0.05 if momentum else 1.0),
        ("diameter", 0.03),
        ("gradient", 0.05),
    )
)
"""Every step rule with and without momentum; a rate of 1 lands on the vertices themselves."""

TIES = {3: torch.inf, 8: 0.3, 9: 0.0, 14: torch.inf}
"""Batches whose gradients are zero, or have zeros among their entries."""

STEPS = 20


@functools.cache
def members():
    """A parameter of every region under every rule: region, shape, settings, start."""
    found = []
    for first, (region, shapes) in enumerate(REGIONS.items()):
        for number, (rescale, rate, momentum) in enumerate(RULES):
            shape = shapes[(first + number) % len(shapes)]
            if isinstance(region, cg.Free) and rate == 1.0:
                rate = 0.05  # or it would overshoot, and magnify rounding a million times
            settings = {"rescale": rescale, "lr": rate, "momentum": momentum}
            found.append((region, shape, settings, start(region, shape, len(found)).detach()))
    return found


@functools.cache
def whole():
    """The problem for whole parameters, and the linear terms of all its batches."""
    problem = Quadratic([p.clone() for *_, p in members()], ties=TIES)
    places = range(len(members()))
    return problem, [[problem.tilt(place, t) for place in places] for t in range(STEPS)]


whole()


def groups_of(parameters, places, kind):
    """A group for each of the parameters, as `members` has them at these places."""
    return [
        {"params": [p], "region": region} | (settings if kind is cg.SFW else {})
        for p, (region, _, settings, _) in zip(parameters, chosen(places), strict=True)
    ]


def chosen(places):
    return [members()[place] for place in places]


EVERY = range(len(members()))
SOME = range(len(RULES) - 1, len(members()), len(RULES))
"""The places of all members, and of one for each region."""


# ---- layouts


@functools.cache
def mesh(*sizes):
    names = ("outer", "inner", "innermost")
    return init_device_mesh("cpu", sizes, mesh_dim_names=names[: len(sizes)])


def pairs():
    """The ranks in two teams of two, of which each does the same."""
    return mesh(2, 2)["inner"]


def alone():
    """Every rank by itself."""
    return mesh(4, 1)["inner"]


PLACED = {
    "one": (alone, (Shard(0),)),
    "two": (pairs, (Shard(0),)),
    "four": (lambda: mesh(4), (Shard(0),)),
    "columns": (lambda: mesh(4), (Shard(-1),)),
    "hybrid": (lambda: mesh(2, 2), (Replicate(), Shard(0))),
    "grid": (lambda: mesh(2, 2), (Shard(0), Shard(-1))),
    "turned": (lambda: mesh(2, 2), (Shard(-1), Shard(0))),
    "twice": (lambda: mesh(2, 2), (Shard(0), Shard(0))),
    "strided": (lambda: mesh(2, 2), (_StridedShard(0, split_factor=2), Shard(0))),
    "three": (lambda: mesh(3), (Shard(0),)),
    "cube": (lambda: mesh(2, 2, 2), (Replicate(), Shard(0), Shard(-1))),
}
"""Meshes and placements of single tensors."""

SIZES = {"three": 3, "cube": 8}
"""How many ranks a layout takes, if not four."""

WRAPPED = {
    "ddp": lambda model: DistributedDataParallel(model),
    "fsdp": lambda model: fully_shard(model, mesh=mesh(4)),
    "fsdp on two": lambda model: fully_shard(model, mesh=pairs()),
    "hsdp": lambda model: fully_shard(model, mesh=mesh(2, 2)),
}
"""The engines that own a whole model."""


def placed(tensor, layout):
    """The tensor laid out, without a word between the ranks: all have it."""
    build, placements = PLACED[layout]
    if not tensor.ndim:
        placements = (Replicate(),) * len(placements)
    placements = [p if p.is_replicate() else _within(p, tensor.ndim) for p in placements]
    return distribute_tensor(tensor.clone(), build(), placements, src_data_rank=None)


def _within(placement, ndim):
    if type(placement) is not Shard:
        return placement
    return Shard(placement.dim % ndim)


# ---- runs


class Placed:
    """The problem of `Quadratic` for parameters in pieces, each rank minding its own."""

    def __init__(self, layout, places):
        self.places = places
        self.params = [nn.Parameter(placed(p, layout)) for *_, p in chosen(places)]
        self.entries = [numbers(p) for p in self.params]

    def evaluate(self, t):
        problem, tilts = whole()
        for place, p, entries in zip(self.places, self.params, self.entries, strict=True):
            tilt = problem.tilt(place, t) if t is None else tilts[t][place]
            gradient = problem.q[place].view(-1)[entries] * part(p) - tilt.view(-1)[entries]
            if t in TIES:
                gradient = torch.where(gradient < TIES[t], 0.0, gradient)
            p.grad = DTensor.from_local(
                gradient, p.device_mesh, p.placements, shape=p.shape, stride=p.stride()
            )


class Field(nn.Module):
    """A model whose loss has the gradients of `Quadratic`, whichever engine collects them."""

    def __init__(self, places):
        super().__init__()
        self.places = places
        for place in places:
            self.register_parameter(f"p{place}", nn.Parameter(members()[place][-1].clone()))

    def forward(self, t):
        loss = 0.0
        for place, p in zip(self.places, self.parameters(), strict=True):
            loss = loss + (p * whole()[0].gradient(place, p.detach(), t)).sum()
        return loss


class Wrapped:
    """The same problem under an engine, or under none."""

    def __init__(self, layout, places):
        field = Field(places)
        self.model = field if layout is None else WRAPPED[layout](field)
        self.params = list(field.parameters())

    def evaluate(self, t):
        self.model.zero_grad()
        self.model(t).backward()


def problem(layout, places):
    return (Placed if layout in PLACED else Wrapped)(layout, places)


def part(p):
    """What lies here of a parameter, or of all that is laid out like it."""
    p = p.detach()
    return p.to_local() if isinstance(p, DTensor) else p


def numbers(p):
    """The number in the whole parameter of each entry that lies here, as DTensor lays it out."""
    every = torch.arange(p.numel()).view(p.shape)
    if not isinstance(p, DTensor):
        return every
    return part(distribute_tensor(every, p.device_mesh, p.placements, src_data_rank=None))


def steps(layout, kind=cg.SFW, places=EVERY):
    """The parameters, and for each the values that lie here after every step."""
    task = problem(layout, places)
    optimizer = build(kind, groups_of(task.params, places, kind))
    member, found = MEMBERS[kind], []
    for t in range(STEPS):
        if member.period and t % member.period == 0:
            batches = [(functools.partial(task.evaluate, at), 1 + at) for at in (t, t // 2)]
            optimizer.refresh(batches)
        if member.needs_closure:
            optimizer.step(functools.partial(task.evaluate, t))
        else:
            task.evaluate(t)
            optimizer.step()
        found.append([part(p).clone() for p in task.params])
    return task.params, [torch.stack(each).numpy() for each in zip(*found, strict=True)]


def run(*args):
    """For each parameter, the numbers of the entries that lie here, and their values by step."""
    params, values = steps(*args)
    return [(numbers(p).numpy(), x) for p, x in zip(params, values, strict=True)]


def joined(answers, places=EVERY):
    """The values of whole parameters by step, from the parts of all ranks, which must agree."""
    found = []
    for (_, shape, _, _), parts in zip(chosen(places), zip(*answers, strict=True), strict=True):
        whole = np.full((STEPS, math.prod(shape)), np.nan)
        for entries, values in parts:
            flat = values.reshape(STEPS, -1)
            known = whole[:, entries.ravel()]
            assert np.all(np.isnan(known) | (known == flat)), "ranks disagree"
            whole[:, entries.ravel()] = flat
        assert not np.isnan(whole).any(), "entries that no rank has"
        found.append(whole.reshape(STEPS, *shape))
    return found


# ---- next to nothing

CRUMBS = ((), (1,), (2,), (1, 1), (2, 1), (1, 2), (1, 1, 2, 1))


def crumbs(layout):
    """How far tensors of an entry or two go astray, of which most ranks have nothing."""
    cases = [
        (region, shape, {"rescale": rescale, "lr": 0.3})
        for first, region in enumerate(REGIONS)
        for number, rescale in enumerate((None, "diameter", "gradient"))
        if _holds(region, shape := CRUMBS[(3 * first + number) % len(CRUMBS)])
    ]
    wholes = [start(region, shape, place) for place, (region, shape, _) in enumerate(cases)]
    parts = [nn.Parameter(placed(p.detach(), layout)) for p in wholes]
    optimizers = [
        cg.SFW([{"params": [p], "region": r} | s for p, (r, _, s) in zip(ps, cases, strict=True)])
        for ps in (wholes, parts)
    ]
    task, astray = Quadratic(wholes, ties={2: torch.inf, 4: 0.0}), {}
    for t in range(6):
        task.closure(t)()
        for whole_one, p in zip(wholes, parts, strict=True):
            p.grad = placed(whole_one.grad, layout)
        for optimizer in optimizers:
            optimizer.step()
        for (region, shape, _), whole_one, p in zip(cases, wholes, parts, strict=True):
            off = (part(placed(whole_one.detach(), layout)) - part(p)).abs()
            astray[f"{region} {shape}"] = float(off.max()) if off.numel() else 0.0
    return sum(not part(p).numel() for p in parts), len(parts), astray


def _holds(region, shape):
    try:
        region.diameter(shape or (1,))
    except ValueError:
        return False
    return True
