"""Ranks that do not do as the others do."""

import datetime
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import condgrad as cg
from inputs import normal

REGIONS = {
    "split": (cg.L2Ball(3.0), cg.L1Ball(3.0), cg.LinfBall(3.0)),
    "whole": (cg.SpectralBall(3.0), cg.NuclearBall(3.0)),
    "sparse": (cg.KSparsePolytope(0.5, 3.0),),
}


def made(regions, kind=cg.SFW, **settings):
    """Parameters with gradients, and an optimizer that has stepped once."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    params = []
    for place, _ in enumerate(regions):
        x = distribute_tensor(0.1 * normal((5, 3), place), mesh, [Shard(0)], src_data_rank=None)
        params.append(nn.Parameter(x))
        params[-1].grad = torch.ones_like(params[-1])
    groups = [{"params": [p], "region": r} for p, r in zip(params, regions, strict=True)]
    return params, kind(groups, **{"lr": 0.1, **settings})


def tried(optimizer, params):
    """What an error says, and whether anything moved."""
    before = [p.detach().to_local().clone() for p in params]
    try:
        optimizer.step()
    except Exception as error:
        stayed = all(
            torch.equal(p.detach().to_local(), old) for p, old in zip(params, before, strict=True)
        )
        return type(error).__name__, str(error), stayed
    return None


def patient_for(seconds):
    """From now on this rank waits so long for the others; until now it was as long as it took."""
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=seconds))


def killed(kind, patience):
    """Rank 1 dies before its step."""
    params, optimizer = made(REGIONS[kind])
    optimizer.step()
    if dist.get_rank() == 1:
        os._exit(1)
    patient_for(patience)
    return tried(optimizer, params)


def left_out(patience, gone):
    """Rank 1 does not step, and lives until rank 0 has given up."""
    params, optimizer = made(REGIONS["split"])
    optimizer.step()
    if dist.get_rank() == 1:
        while not Path(gone).exists():
            time.sleep(0.01)
        os._exit(1)
    patient_for(patience)
    answer = tried(optimizer, params)
    Path(gone).touch()
    return answer


def missing_gradient(kind, optimizer=cg.SFW):
    """Rank 1 has no gradient for one parameter; then all have one again."""
    params, optimizer = made(REGIONS[kind], optimizer)
    optimizer.step()
    if dist.get_rank() == 1:
        params[-1].grad = None
    failed = tried(optimizer, params)
    params[-1].grad = torch.ones_like(params[-1])
    after = tried(optimizer, params)
    steps = [float(state["step"]) for state in optimizer.state.values() if "step" in state]
    return failed, after, steps


def other_rate():
    """Each rank drives its own schedule."""
    params, optimizer = made(REGIONS["split"])
    optimizer.step()
    optimizer.param_groups[1]["lr"] = 0.1 + 0.1 * dist.get_rank()
    return tried(optimizer, params)


def other_works(how):
    """Rank 1 has other rules, or takes a region for its first parameter later on."""
    odd = dist.get_rank() == 1
    rescale = "diameter" if how == "rule" and odd else "gradient"
    params, optimizer = made(REGIONS["split"], rescale=rescale)
    if how == "region" and odd:
        optimizer.param_groups[0]["region"] = cg.L2Ball(4.0)
    return tried(optimizer, params)


def told(function):
    """What an error says, or what the function returns."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


def other_questions(about):
    """Rank 1 asks about something else than rank 0, when the model is set up or measured."""
    odd = dist.get_rank() == 1
    params, optimizer = made(REGIONS["split"])
    fewer = [{"params": params[: 2 if odd else 3], "region": cg.L2Ball(3.0)}]
    region = cg.L1Ball(4.0) if odd else cg.L2Ball(3.0)
    wide = cg.sized(cg.L2Ball, width=2.0)
    model = nn.Module()
    model.first, model.second = params[:2]
    ask = {
        "start": lambda: cg.SFW(params[:1], region),
        "rules": lambda: cg.constrain(model, {"first": wide, "second": region} if odd else wide),
        "number": lambda: float(cg.violation(fewer)),
        "vertex": lambda: region.lmo(params[0]),
        "point": lambda: region.project(params[0]),
        "active": lambda: (
            cg.active_parameters(model, dict(model.named_parameters()))
            if odd
            else float(cg.violation(fewer))
        ),
        "gap": lambda: float(cg.fw_gap(optimizer)),
        "gap of batches": lambda: float(cg.fw_gap(optimizer, [(closure, 1.0)])),
    }

    def closure():
        for place, p in enumerate(params):
            p.grad = None if place == dist.get_rank() else torch.ones_like(p)

    if about == "gap":
        closure()
    found = told(ask[about])
    for p in params:
        p.grad = torch.ones_like(p)
    return found, told(lambda: float(cg.fw_gap(optimizer)))
