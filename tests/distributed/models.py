"""A small network, shared out by every engine, and what can be asked of it besides steps."""

import functools
import warnings

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import condgrad as cg
from distributed.layouts import mesh, pairs
from inputs import normal

RULES = {
    r"first\.weight": cg.sized(cg.L2Ball, width=2.0),
    r"first\.bias": cg.sized(cg.LinfBall, width=3),
    r"norm\.weight": cg.sized(cg.KNormBall, diameter=3.0, k=0.5),
    r"norm\.bias": cg.UnitSimplex(0.5),
    r"second\.weight": cg.sized(cg.KSparsePolytope, width=4, k=0.3),
    r"second\.bias": cg.sized(cg.ProbabilitySimplex, diameter=2.0),
    r"third\.weight": cg.sized(cg.SpectralBall, width=1.5),
    r"third\.bias": cg.sized(cg.LpBall, width=2, p=3),
}
"""Regions whose sizes depend on the starts, and some that lie elsewhere than the starts."""


class Net(nn.Module):
    """Odd sizes, and three rows for four ranks."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.norm = nn.LayerNorm(8)
        self.second = nn.Linear(8, 8)
        self.third = nn.Linear(8, 3)

    def forward(self, x):
        hidden = torch.tanh(self.second(torch.tanh(self.norm(self.first(x)))))
        return 1.0 * self.third(hidden)  # a tensor of its own, which FSDP asks for


def net(dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return Net().to(dtype)


def tensor_parallel(model, along):
    plan = {"second": ColwiseParallel(), "third": RowwiseParallel()}
    return parallelize_module(model, along, plan)


def both(model):
    """Tensor parallelism within pairs, FSDP across them."""
    whole = mesh(2, 2)
    tensor_parallel(model, whole["inner"])
    return fully_shard(model, mesh=whole["outer"])


def nested(model):
    """FSDP as it is used: layer by layer, then the rest."""
    for layer in (model.first, model.second):
        fully_shard(layer, mesh=mesh(4))
    return fully_shard(model, mesh=mesh(4))


ENGINES = {
    "none": lambda model: model,
    "ddp": DistributedDataParallel,
    "fsdp": nested,
    "hsdp": lambda model: fully_shard(model, mesh=mesh(2, 2)),
    "fsdp on two": lambda model: fully_shard(model, mesh=pairs()),
    "tensor": lambda model: tensor_parallel(model, mesh(4)),
    "both": both,
}


def shared(model, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, on how it lays out meshes
        return ENGINES[engine](model)


def batch(t):
    return normal((7, 5), 100 + t), torch.arange(7) % 3


def loss_of(model, t, dtype=torch.float64):
    inputs, labels = batch(t)
    return nn.functional.cross_entropy(model(inputs.to(dtype)), labels)


def backward(model, t, dtype=torch.float64):
    model.zero_grad()
    loss_of(model, t, dtype).backward()


def full(x):
    x = x.detach()
    return (x.full_tensor() if isinstance(x, DTensor) else x).clone()


def values(model):
    """Whole parameters by name."""
    model = getattr(model, "module", model)
    return {name: full(p).numpy() for name, p in model.named_parameters()}


def facts(engine, first):
    """What is true of the model under this engine, constrained `first` or after it is shared."""
    model = net()
    if first:
        groups = cg.constrain(model, RULES)
        owner = shared(model, engine)
    else:
        owner = shared(model, engine)
        groups = cg.constrain(model, RULES)
    told = {"started": values(model), "text": str(groups).split()[:4]}
    told["radii"] = [[g["region"].radius] for g in groups]
    initial = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = cg.SFW(groups, lr=0.2, momentum=0.5)
    held = _held(optimizer)
    assert all(held[name] is p for name, p in model.named_parameters()), "left behind"
    for t in range(4):
        backward(owner, t)
        optimizer.step()
    told["stepped"] = values(model)
    backward(owner, 9)
    told |= measured(optimizer, groups, functools.partial(loss_of, owner))
    glance(owner)
    told["seen"] = numbers(cg.violation(groups, per_parameter=True))
    glance(owner)
    told["active"] = cg.active_parameters(model, initial)
    told["kept"] = cg.zero_inactive(model, initial)
    told["zeroed"] = values(model)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(40.0)
    told["outside"] = numbers(cg.violation(optimizer, per_parameter=True))
    glance(owner)
    cg.make_feasible(model)
    told["inside"] = float(cg.violation(groups))
    told["nearest"] = values(model)
    glance(owner)
    again = cg.SFW(cg.constrain(model, cg.Free()))
    assert [id(p) for p in again.param_groups[0]["params"]] == [id(p) for p in model.parameters()]
    return told


@torch.no_grad()
def glance(model):
    """A forward pass alone, after which FSDP keeps whole copies in the model's parameters' places.

    They must not be taken for the parameters.
    """
    loss_of(model, 99)


def _held(optimizer):
    """The optimizer's parameters by name."""
    return {
        name: parameter
        for group in optimizer.param_groups
        for name, parameter in zip(group["param_names"], group["params"], strict=True)
    }


def numbers(found):
    """Plain numbers, which can be sent to other processes."""
    return {name: float(value) for name, value in found.items()}


def measured(optimizer, groups, loss):
    def pair(t):
        def closure():
            optimizer.zero_grad()
            loss(t).backward()

        return closure, 1.0 + t

    return {
        "gap": float(cg.fw_gap(optimizer)),
        "gaps": numbers(cg.fw_gap(optimizer, per_parameter=True)),
        "mean gap": float(cg.fw_gap(optimizer, [pair(0), pair(1)])),
        "violation": float(cg.violation(optimizer)),
    }
