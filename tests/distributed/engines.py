"""What engines do to gradients and parameters, each next to a plain optimizer told the same."""

import functools
import warnings

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import condgrad as cg
from distributed.layouts import REGIONS, mesh, placed
from distributed.models import (
    ENGINES,
    RULES,
    Net,
    backward,
    full,
    glance,
    loss_of,
    net,
    shared,
    values,
)
from inputs import generator, normal
from optim.cases import MEMBERS, build

STEPS = 18


class Beside:
    """An optimizer over a shared model, and its like over whole copies of the parameters."""

    def __init__(self, model, rules=RULES, kind=cg.SFW, **settings):
        self.params = [p for p in model.parameters() if p.requires_grad]
        groups = cg.constrain(model, rules)
        self.copies = {id(p): full(p).requires_grad_() for p in self.params}
        copied = [
            {**group, "params": [self.copies[id(p)] for p in group["params"]]} for group in groups
        ]
        self.optimizer = kind(groups, **settings)
        self.plain = kind(copied, **settings)

    def step(self):
        """One step of both, with the gradients at hand."""
        for p in self.params:
            self.copies[id(p)].grad = None if p.grad is None else full(p.grad)
        self.optimizer.step()
        self.plain.step()

    def apart(self):
        """How far the two have come apart, in units of the precision and size of each."""
        found = []
        for p in self.params:
            here, there = full(p), self.copies[id(p)].detach()
            scale = torch.finfo(p.dtype).eps * float(there.abs().max().clamp(min=1e-3))
            found.append(float((here.double() - there.double()).abs().max()) / scale)
        return max(found)


def accumulation():
    """Two batches a step, the first of them kept on its rank."""
    model = shared(net(), "fsdp")
    both = Beside(model, lr=0.1)
    for t in range(STEPS):
        model.zero_grad()
        model.set_requires_gradient_sync(False)
        loss_of(model, 2 * t).backward()
        model.set_requires_gradient_sync(True)
        loss_of(model, 2 * t + 1).backward()
        both.step()
    return both.apart()


def policy(param_dtype, reduce_dtype, model_dtype, offload):
    """Mixed precision, low precision, and shards that wait on the host."""
    model = net(model_dtype)
    settings = {"mesh": mesh(4)}
    if param_dtype is not None:
        settings["mp_policy"] = MixedPrecisionPolicy(param_dtype, reduce_dtype)
    if offload:
        settings["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    fully_shard(model, **settings)
    both = Beside(model, lr=0.1)
    for t in range(STEPS):
        backward(model, t, model_dtype)
        both.step()
    return both.apart(), [str(p.dtype) for p in both.params]


def quiet_layers():
    """Layers that are frozen, that are frozen later, and that nothing depends on."""
    model = net()
    model.first.requires_grad_(False)
    model.unused = nn.Linear(3, 3).double()
    rules = {name: rule for name, rule in RULES.items() if not name.startswith("first")}
    rules |= {r"unused.*": cg.L1Ball(0.2), r".*": cg.Free()}
    fully_shard(model, mesh=mesh(4))
    both = Beside(model, rules, lr=0.1)
    for t in range(STEPS):
        if t == 6:
            model.norm.requires_grad_(False)
        backward(model, t)
        both.step()
    untouched = [not both.optimizer.state.get(p) for p in model.unused.parameters()]
    return both.apart(), all(untouched)


def mixed_model():
    """Some parameters whole on every rank, the others in pieces, in one optimizer."""
    model = net()
    fully_shard(model, mesh=mesh(4), ignored_params={model.first.weight, model.norm.bias})
    both = Beside(model, lr=0.1)
    for t in range(STEPS):
        backward(model, t)
        both.step()
    kinds = {isinstance(p, DTensor) for p in both.params}
    return both.apart(), sorted(kinds)


def from_meta():
    """A model that has no values until it is shared."""
    with torch.device("meta"):
        model = Net().double()
    fully_shard(model, mesh=mesh(4))
    early = cg.SFW([{"params": [p], "region": cg.L2Ball(1.0)} for p in model.parameters()])
    model.to_empty(device="cpu")
    for place, p in enumerate(model.parameters()):
        with torch.no_grad():
            p.copy_(distribute_tensor(normal(p.shape, place), p.device_mesh, p.placements))
    both = Beside(model, lr=0.1)
    for t in range(3):
        backward(model, t)
        both.step()
    return both.apart(), len(early.param_groups)


def settings():
    """Rates in tensors, ascent, momentum that begins later, first of several solutions."""
    found = []
    for each in (
        {"lr": torch.tensor(0.1, dtype=torch.float64)},
        {"lr": torch.tensor(0.1, dtype=torch.float64), "rescale": "diameter", "maximize": True},
        {"lr": 0.1, "momentum": 0.0, "ties": "first", "seed": 9},
    ):
        model = shared(net(), "fsdp")
        both = Beside(model, **each)
        for t in range(STEPS):
            for group in both.optimizer.param_groups + both.plain.param_groups:
                group["momentum"] = 0.5 if t > 5 else group["momentum"]
            backward(model, t)
            both.step()
        kept = [s["momentum_buffer"] for s in both.optimizer.state.values()]
        found.append((both.apart(), all(isinstance(each, DTensor) for each in kept)))
    return found


def other_gradients():
    """Gradients that are placed otherwise than their parameters: sums to be added up."""
    p = nn.Parameter(placed(normal((5, 4), 1), "four"))
    optimizer = cg.SFW([p], cg.L2Ball(30.0), lr=0.1, momentum=0.0, rescale=None)
    p.grad = DTensor.from_local(torch.ones(5, 4).double(), mesh(4), [Partial()])
    optimizer.step()
    q = normal((5, 4), 1).requires_grad_()
    q.grad = torch.full((5, 4), 4.0).double()
    cg.SFW([q], cg.L2Ball(30.0), lr=0.1, momentum=0.0, rescale=None).step()
    return float((full(p) - q.detach()).abs().max())


def fresh_state(engine):
    """What distributed checkpointing finds in every optimizer that has not stepped yet."""
    found = []
    for kind in MEMBERS:
        model = shared(net(), engine)
        groups = cg.constrain(model, RULES)
        before = [full(p) for p in model.parameters()]
        optimizer = build(kind, groups)
        state = get_optimizer_state_dict(model, optimizer)["state"]
        moved = [
            not torch.equal(full(p), old) for p, old in zip(model.parameters(), before, strict=True)
        ]
        keys = {name: sorted(each) for name, each in state.items()}
        shared_out = [
            isinstance(x, DTensor) or not x.ndim for each in state.values() for x in each.values()
        ]
        found.append((kind.__name__, any(moved), keys, all(shared_out)))
    return found


def public_answers(layout):
    """What regions say to users about tensors in pieces, less what they say about whole ones."""
    wrong = []
    for number, (region, shapes) in enumerate(REGIONS.items()):
        if isinstance(region, cg.Free):
            continue
        for x in (normal(shapes[0], number), torch.zeros(shapes[1]).double()):
            pieces = placed(x, layout)
            answers = (
                region.lmo(pieces, generator=generator(3)),
                region.project(pieces),
            )
            wanted = region.lmo(x, generator=generator(3)), region.project(x)
            for found, expected in zip(answers, wanted, strict=True):
                kept = isinstance(found, DTensor) and found.placements == pieces.placements
                if not kept or not torch.allclose(full(found), expected, rtol=1e-10, atol=1e-12):
                    wrong.append(f"{region} at {x}: {found}, not {expected}")
            if abs(region.violation(pieces) - region.violation(x)) > 1e-12:
                wrong.append(f"{region}: violation at {x}")
            if not region.contains(answers[0]):
                wrong.append(f"{region}: {answers[0]} is not inside")
    return wrong


def glances(kind):
    """Forward passes alone between the steps, after which FSDP keeps whole copies for a while."""
    runs = []
    for engine in ("none", "fsdp"):
        model = shared(net(), engine)
        optimizer = build(kind, cg.constrain(model, RULES), lr=0.3)

        def evaluate(t, model=model, optimizer=optimizer):
            optimizer.zero_grad()  # the model's would empty the gradients of the copies
            loss_of(model, t).backward()

        for t in range(STEPS // 2):
            closure = functools.partial(evaluate, t)
            glance(model)
            if MEMBERS[kind].period and t % MEMBERS[kind].period == 0:
                optimizer.refresh([(closure, 1.0)])
                glance(model)
            if MEMBERS[kind].needs_closure:
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        runs.append(values(model))
    return apart(*runs)


def apart(some, others):
    """The largest difference between values by name."""
    assert set(some) == set(others)
    return max(float(abs(some[name] - others[name]).max()) for name in some)


def tools(scaled):
    """Clipped gradients, or those that torch's scaler scales, one of them infinite on one rank."""
    runs = []
    for engine in ("none", "fsdp"):
        model = shared(net(), engine)
        optimizer = cg.SFW(cg.constrain(model, RULES), lr=0.3)
        scaler = torch.amp.GradScaler("cpu", enabled=scaled, init_scale=8.0, growth_interval=3)
        for t in range(STEPS):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, t)).backward()
            if scaled and t == 4:
                spoil(model.second.weight)
            elif not scaled:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
        counts = {float(state["step"]) for state in optimizer.state.values()}
        assert counts == {STEPS - scaled}, "a step over what is infinite"
        runs.append(values(model))
    return apart(*runs)


def spoil(p):
    """Make the first entry of the gradient infinite, where it lies."""
    part = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
    if not isinstance(p.grad, DTensor) or torch.distributed.get_rank() == 1:
        part.view(-1)[0] = torch.inf


class Tied(nn.Module):
    """One matrix at two places."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.letters.weight

    def forward(self, x):
        return self.head(self.letters(x))


def changed(what):
    """A model that is constrained first, then wrapped or tied, then shared."""
    runs = []
    for alone in (True, False):
        with torch.random.fork_rng():
            torch.manual_seed(5)
            model = Tied().double() if what == "tied" else Net().double()
        groups = cg.constrain(model, cg.L2Ball(3.0))
        if what == "checkpointed":
            model.second = checkpoint_wrapper(model.second)
        if not alone:
            fully_shard(model, mesh=mesh(4))
        optimizer = cg.SFW(groups, lr=0.3)
        for t in range(STEPS):
            optimizer.zero_grad()
            if what == "tied":
                letters = torch.arange(t, t + 5) % 7
                nn.functional.cross_entropy(model(letters), letters.roll(-1)).backward()
            else:
                loss_of(model, t).backward()
            optimizer.step()
        runs.append(values(model))
    return apart(*runs)


def random_streams():
    """Whether a step leaves the generators alone."""
    model = shared(net(), "fsdp")
    optimizer = cg.SFW(cg.constrain(model, RULES), lr=0.1)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    before = torch.get_rng_state()
    optimizer.step()
    return bool(torch.equal(before, torch.get_rng_state()))


def refused(what):
    """The text of the error for a parameter that cannot be moved."""
    if what == "partial":
        p = nn.Parameter(DTensor.from_local(torch.ones(3, 4), mesh(4), [Partial()]))
    elif what.startswith("flat"):
        model = net()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat = FullyShardedDataParallel(
                model, use_orig_params="views" in what, device_id=torch.device("cpu")
            )
        p = next(p for p in flat.parameters() if p.numel())
    elif what == "lost":
        model = net()
        p = cg.constrain(model, cg.L2Ball(100.0))
        model.third = nn.Identity()
    elif what == "other part":
        part = torch.ones(2, 4)
        p = DTensor.from_local(part, mesh(4), [Shard(0)], shape=(3, 4), stride=(4, 1))
        p = nn.Parameter(p)
    try:
        if what == "flat views":
            cg.constrain(model, cg.Free())
        else:
            cg.SFW(p if isinstance(p, list) else [p], cg.L2Ball(100.0))
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)
    return None


def replicated():
    """A tensor that a mesh has in full on every rank: nothing to combine."""
    p = nn.Parameter(distribute_tensor(normal((), 1), mesh(4), [Replicate()], src_data_rank=None))
    optimizer = cg.SFW([p], cg.L2Ball(30.0), lr=0.1)
    p.grad = distribute_tensor(normal((), 2), mesh(4), [Replicate()], src_data_rank=None)
    optimizer.step()
    q = normal((), 1).requires_grad_()
    q.grad = normal((), 2)
    cg.SFW([q], cg.L2Ball(30.0), lr=0.1).step()
    return float((full(p) - q.detach()).abs())


ALL = tuple(ENGINES)
