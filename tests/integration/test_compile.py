"""A compiled training step gives the eager numbers, and a schedule compiles nothing anew."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

import condgrad as cg
from inputs import normal
from integration.scripts import Script, close
from optim.cases import MEMBERS, asked_of_optimizers, build, parameters, start

TRIED = asked_of_optimizers()
EVALUATED_ONCE = [kind for kind in MEMBERS if not MEMBERS[kind].needs_closure]
BACKEND = "aot_eager"  # traces forward and backward; needs no compiler of the machine


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def graphs():
    """How many graphs were compiled so far."""
    return counters["stats"]["unique_graphs"]


def trained(kind, compiled, rate):
    """The iterates under a schedule, and the number of graphs after each step."""
    script = Script(kind, lr=rate(0.1))
    schedule = torch.optim.lr_scheduler.ExponentialLR(script.optimizer, 0.8)
    if compiled == "model":
        script.model = torch.compile(script.model, backend=BACKEND)
    inputs, found, counts = script.closure(0), [], []

    def whole():
        if MEMBERS[kind].needs_closure:
            return script.optimizer.step(inputs)
        loss = inputs()
        script.optimizer.step()
        return loss

    move = torch.compile(whole, backend=BACKEND) if compiled == "step" else whole
    if MEMBERS[kind].period:
        script.optimizer.refresh([(script.closure(None), 1.0)])
    for _ in range(5):
        loss = move()
        schedule.step()
        found.append([loss, *script.values()])
        counts.append(graphs())
    return found, counts


@TRIED
@pytest.mark.parametrize(
    ("compiled", "rate"),
    [("step", float), ("step", torch.tensor), ("model", float)],
    ids=["step", "step at a rate in a tensor", "model"],
)
def test_compiled_it_moves_alike_and_a_schedule_compiles_nothing_anew(kind, compiled, rate):
    expected, none = trained(kind, None, rate)
    assert none[-1] == 0
    found, counts = trained(kind, compiled, rate)
    for ours, eager in zip(found, expected, strict=True):
        assert close(ours, eager)
    # Methods that evaluate a batch twice run their closure as it is: compile the model there.
    if compiled == "model" or kind in EVALUATED_ONCE:
        assert counts[0] >= 1
    assert counts[1:] == counts[:-1], "a step was compiled anew"


@asked_of_optimizers(EVALUATED_ONCE)
def test_oracles_and_projections_that_loop_do_not_end_up_in_graphs(kind):
    """An iterated projection, a sort, a decomposition decide by what they find on the way."""
    inner = cg.PerRow(cg.L1Ball(0.1))
    regions = (cg.LpBall(3.0, 0.1), cg.Permutahedron(0.1), cg.NuclearBall(0.1), inner)
    groups = [{"params": [start(region, (3, 4))], "region": region} for region in regions]
    optimizer = build(kind, groups)
    targets = [normal((3, 4), i) for i in range(len(regions))]

    @torch.compile(backend=BACKEND)
    def whole():
        optimizer.zero_grad()
        pairs = zip(parameters(groups), targets, strict=True)
        sum(nn.functional.mse_loss(p, b) for p, b in pairs).backward()
        optimizer.step()

    counts = []
    for t in range(4):
        whole()
        counts.append(graphs())
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (1 + t)
    assert counts == [1] * 4
