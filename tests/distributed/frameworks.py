"""The same training under Accelerate and Lightning Fabric as by hand."""

import functools
import os
import warnings

import torch
from torch.distributed.fsdp import fully_shard

import condgrad as cg
from distributed import documented
from distributed.models import RULES, loss_of, net, values

STEPS = 5


def by_hand(ranks, dtype=torch.float64):
    """Every rank has batches of its own; the gradient is their mean."""
    model = net(dtype)
    optimizer = cg.SFW(cg.constrain(model, RULES), lr=0.1)
    for t in range(STEPS):
        optimizer.zero_grad()
        losses = [loss_of(model, ranks * t + rank, dtype) for rank in range(ranks)]
        (sum(losses) / ranks).backward()
        optimizer.step()
    return values(model)


def accelerated(ranks):
    """DDP is what Accelerate has for CPUs."""
    rank = int(os.environ["RANK"])
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = net()
    optimizer = cg.SFW(cg.constrain(model, RULES), lr=0.1)
    wrapped, prepared = accelerator.prepare(model, optimizer)
    for t in range(STEPS):
        prepared.zero_grad()
        accelerator.backward(loss_of(wrapped, ranks * t + rank))
        prepared.step()
    return [accelerator.distributed_type.name], values(model)


def sharded_by_accelerate(ranks):
    """What Accelerate does for FSDP2: it puts shards into an optimizer that knew whole tensors.

    On hosts it takes DDP, so it is told that it has chosen FSDP2; the rest is its own.
    """
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    from accelerate.utils import DistributedType

    accelerator = Accelerator(cpu=True)
    accelerator.state.distributed_type = DistributedType.FSDP
    accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="no_wrap", cpu_ram_efficient_loading=False
    )
    model = net()
    optimizer = cg.SFW(cg.constrain(model, RULES), lr=0.1)
    wrapped, prepared = accelerator.prepare(model, optimizer)
    clipped = functools.partial(accelerator.clip_grad_norm_, wrapped.parameters(), 1e6)
    return _trained(wrapped, prepared, ranks, accelerator.backward, clipped=clipped)


def _trained(
    model, optimizer, ranks, backward=torch.Tensor.backward, dtype=torch.float64, clipped=None
):
    rank = int(os.environ["RANK"])
    for t in range(STEPS):
        optimizer.zero_grad()
        backward(loss_of(model, ranks * t + rank, dtype))
        if clipped is not None:
            clipped()
        optimizer.step()
    kinds = {type(p).__name__ for p in model.parameters()}
    return sorted(kinds), values(getattr(model, "_original_module", model))


def fabric(ranks, strategy):
    """Fabric with DDP, or with FSDP2 by its strategy for parallel models."""
    from lightning.fabric import Fabric
    from lightning.fabric.strategies import ModelParallelStrategy

    if strategy == "fsdp2":
        strategy = ModelParallelStrategy(
            lambda model, mesh: fully_shard(model, mesh=mesh["data_parallel"]),
            data_parallel_size=ranks,
            tensor_parallel_size=1,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner = Fabric(accelerator="cpu", devices=ranks, strategy=strategy)
        runner.launch()
        page = documented.page()
        page["RULES"] = RULES
        model, optimizer = page["fabric"](runner, net(torch.float32))
        return _trained(model, optimizer, ranks, runner.backward, torch.float32)
