"""Counts what the ranks say to each other while an optimizer steps."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

import condgrad as cg
from condgrad.optim._move import RECALL_EVERY
from distributed.layouts import WRAPPED, placed
from inputs import normal

SHAPE = (7, 24)
NAMES = {
    "allreduce_": "all_reduce",
    "alltoall_base_": "all_to_all",
    "_allgather_base_": "all_gather",
    "allgather_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "broadcast_": "broadcast",
    "barrier": "barrier",
}


class Heard(TorchDispatchMode):
    """The messages that torch passes to process groups, by kind: how many bytes each has."""

    def __init__(self):
        super().__init__()
        self.messages = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented
        space, _, name = func._schema.name.partition("::")
        if space in ("c10d", "_c10d_functional"):
            tensors = [
                x for x in torch.utils._pytree.tree_leaves(args) if isinstance(x, torch.Tensor)
            ]
            size = sum(x.numel() * x.element_size() for x in tensors)
            self.messages.setdefault(NAMES.get(name, name), []).append(size)
        return func(*args, **(kwargs or {}))


class Stack(nn.Module):
    """One parameter of every region, so many times over."""

    def __init__(self, regions, depth, dtype):
        super().__init__()
        self.regions = [region for _ in range(depth) for region in regions]
        for place, region in enumerate(self.regions):
            shape = SHAPE[1:] if isinstance(region, cg.Permutahedron) and place % 2 else SHAPE
            p = nn.Parameter(normal(shape, place, dtype=dtype))
            self.register_parameter(f"p{place}", p)
            cg.make_feasible([{"params": [p], "region": region}])

    def forward(self, x):
        return sum((x * p).sum() for p in self.parameters())


def laid_out(regions, depth, layout, dtype):
    """The parameters and what to call for new gradients."""
    stack = Stack(regions, depth, dtype)
    if layout in WRAPPED:
        WRAPPED[layout](stack)
        return stack, list(stack.parameters())
    return stack, [nn.Parameter(placed(p.detach(), layout)) for p in stack.parameters()]


def of(regions, depth, layout, steps, dtype="float64", ties=False, rescale="gradient", idle=()):
    """The messages of each step but the first, in which the ranks agree on what they step over.

    After it the counters are turned on, so that the third step pulls back inside. Those of the
    regions that are `idle` have no gradient.
    """
    dtype = getattr(torch, dtype)
    stack, params = laid_out(regions, depth, layout, dtype)
    groups = [{"params": [p], "region": r} for p, r in zip(params, stack.regions, strict=True)]
    optimizer = cg.SFW(groups, lr=0.05, rescale=rescale)
    found = []
    for t in range(steps):
        for place, p in enumerate(params):
            gradient = normal(p.shape, 1000 * t + place, dtype=dtype)
            if ties and t % 3:
                gradient = gradient.round() if t % 3 == 1 else torch.zeros_like(gradient)
            if isinstance(p, DTensor):
                gradient = _like(gradient, p)
            p.grad = None if stack.regions[place] in idle else gradient
        with Heard() as heard:
            optimizer.step()
        found.append(heard.messages)
        if not t:
            for state in optimizer.state.values():
                state["step"].fill_(RECALL_EVERY - 2)
    return found[1:]


def _like(gradient, p):
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(gradient, p.device_mesh, p.placements, src_data_rank=None)


def decomposed(shapes):
    """How many matrices this rank decomposes in a step."""
    params = [nn.Parameter(placed(torch.zeros(shape), "four")) for shape in shapes]
    optimizer = cg.SFW(params, cg.SpectralBall(0.3))
    for place, p in enumerate(params):
        p.grad = _like(normal(p.shape, place, dtype=torch.float32), p)
    count, svd = 0, torch.linalg.svd

    def counted(matrices, **settings):
        nonlocal count
        count += len(matrices)
        return svd(matrices, **settings)

    torch.linalg.svd = counted
    try:
        optimizer.step()
    finally:
        torch.linalg.svd = svd
    return count


def groups(layout, count):
    """How many process groups a step over parameters on so many meshes adds; and which it holds."""
    params = []
    for place in range(count):  # of other shapes, or torch takes the mesh of the first
        x = placed(normal((SHAPE[0] + place, SHAPE[1]), place), layout)
        mesh = DeviceMesh("cpu", x.device_mesh.mesh, mesh_dim_names=x.device_mesh.mesh_dim_names)
        like = {"shape": x.shape, "stride": x.stride()}
        params.append(nn.Parameter(DTensor.from_local(x.to_local(), mesh, x.placements, **like)))
    assert len({id(p.device_mesh) for p in params}) == count
    known = dict(dist.distributed_c10d._world.pg_map)
    before = {id(group): sys.getrefcount(group) for group in known}
    optimizer = cg.SFW(params, cg.L2Ball(100.0))
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    cg.fw_gap(optimizer)
    held = [group for group in known if sys.getrefcount(group) != before[id(group)]]
    return len(dist.distributed_c10d._world.pg_map) - len(known), [str(each) for each in held]


def exchanged(shapes):
    """The bytes that this rank sends to others while matrices are whole, in a step."""
    params = [nn.Parameter(placed(torch.zeros(shape), "four")) for shape in shapes]
    optimizer = cg.SFW(params, cg.SpectralBall(0.3))
    for place, p in enumerate(params):
        p.grad = _like(normal(p.shape, place, dtype=torch.float32), p)
    total, me, swapped = 0, dist.get_rank(), dist.all_to_all_single

    def counted(arrived, carried, incoming, outgoing, **settings):
        nonlocal total
        total += carried.element_size() * (sum(outgoing) - outgoing[me])
        return swapped(arrived, carried, incoming, outgoing, **settings)

    dist.all_to_all_single = counted
    try:
        optimizer.step()
    finally:
        dist.all_to_all_single = swapped
    return total
