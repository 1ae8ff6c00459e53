"""Runs that are saved on some ranks and resumed on others."""

import functools
import os
import warnings

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

import condgrad as cg
from distributed.layouts import pairs
from distributed.models import RULES, backward, net, shared, values
from optim.cases import MEMBERS, build

BEFORE, AFTER = 5, 4
"""Steps before and after: in the middle of a period, where there is one."""


def quiet(function):
    """The function, without torch's warning that it talks to nobody."""

    @functools.wraps(function)
    def quietly(*args):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            return function(*args)

    return quietly


class Run:
    """A model under an engine, and an optimizer of it."""

    def __init__(self, engine, kind):
        self.engine, self.kind = engine, kind
        self.model = net()
        self.owner = shared(self.model, engine)
        self.optimizer = build(kind, cg.constrain(self.model, RULES), lr=0.1)

    def steps(self, first, count):
        member = MEMBERS[self.kind]
        for t in range(first, first + count):
            closure = functools.partial(backward, self.owner, t)
            if member.period and t % member.period == 0:
                self.optimizer.refresh([(closure, 1.0)])
            if member.needs_closure:
                self.optimizer.step(closure)
            else:
                closure()
                self.optimizer.step()
        return values(self.model)

    @quiet
    def save(self, path):
        if self.engine == "fsdp on two" and int(os.environ["RANK"]) > 1:
            return  # the other pair has the same
        dcp.save(self._state(), checkpoint_id=path, **self._ranks())

    @quiet
    def load(self, path):
        state = self._state()
        dcp.load(state, checkpoint_id=path, **self._ranks())
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def _state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def _ranks(self):
        if self.engine == "none":
            return {"no_dist": True}
        return {"process_group": pairs().get_group()} if self.engine == "fsdp on two" else {}


def written(engine, kinds, path):
    """Run every optimizer for a while and save it."""
    for kind in kinds:
        run = Run(engine, kind)
        run.steps(0, BEFORE)
        if engine != "none" or int(os.environ["RANK"]) == 0:
            run.save(f"{path}/{kind.__name__}")


def resumed(engine, kinds, path):
    """Where every optimizer goes on to."""
    found = {}
    for kind in kinds:
        run = Run(engine, kind)
        run.load(f"{path}/{kind.__name__}")
        found[kind.__name__] = run.steps(BEFORE, AFTER)
    return found


def uninterrupted(kind):
    return Run("none", kind).steps(0, BEFORE + AFTER)


def through_whole_states(engines, kind):
    """Where a run goes that was saved whole under one engine and is loaded under another."""
    options = StateDictOptions(full_state_dict=True)
    first, second = (Run(engine, kind) for engine in engines)
    first.steps(0, BEFORE)
    model, optimizer = get_state_dict(first.model, first.optimizer, options=options)
    plain = all(
        type(x).__name__ != "DTensor" for s in optimizer["state"].values() for x in s.values()
    )
    set_state_dict(
        second.model,
        second.optimizer,
        model_state_dict=model,
        optim_state_dict=optimizer,
        options=options,
    )
    return plain, second.steps(BEFORE, AFTER)
