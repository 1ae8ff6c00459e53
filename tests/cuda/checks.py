"""What must hold on a CUDA device. It needs torch and Triton alone, so that a bare machine can ask.

``test_cuda.py`` asks it under pytest, ``benchmarks/run.py`` before it times anything. What of it
does not need a device is asked in Triton's interpreter too, on smaller tensors, so that it stands
when there is a device (``tests/kernels/asked/test_triton_checks.py``).
"""

import io
from collections.abc import Callable

import torch

import condgrad as cg

HERE = "cuda"
"""Where the kernels run."""
LARGE, HUGE = 20_011, 1_000_003
"""The entries of selections that no program holds at once."""
REGIONS = (
    cg.L2Ball(0.7),
    cg.LinfBall(0.1),
    cg.L1Ball(3.0),
    cg.KSparsePolytope(0.1, 0.1),
    cg.KNormBall(0.1, 1.0),
    cg.LpBall(3.0, 0.4),
    cg.UnitSimplex(0.3),
    cg.ProbabilitySimplex(0.1),
    cg.Box(-0.1, 0.3),
    cg.Free(),
)
VERTICES = REGIONS[:-1]
SIZES = (1, 7, 1023, 4097, 70001)
BLOCKS = (
    (cg.PerRow(cg.L1Ball(0.1)), (33, 31)),
    (cg.PerRow(cg.KSparsePolytope(0.3, 0.1)), (5, 9001)),
    (cg.PerFilter(cg.LpBall(3.0, 0.1)), (8, 3, 3, 3)),
    (cg.PerFilter(cg.L2Ball(0.1)), (3, 2, 5)),
)
MATRICES = (
    (cg.SpectralBall(0.7, method="polynomial"), cg.SpectralBall(0.7)),
    (cg.NuclearBall(3.0, method="lanczos"), cg.NuclearBall(3.0)),
)
"""By a fast method, and exactly."""
CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Enter the function in the list."""
    CHECKS[function.__name__] = function
    return function


def normal(shape, seed, scale=1.0, dtype=torch.float32):
    made = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=made) * scale).to(dtype)


class Pair:
    """The same parameters twice: on the device, and one by one in float64 on the host."""

    def __init__(self, members, dtype=torch.float32, layout=torch.contiguous_format, **settings):
        self.regions = [region for region, _ in members]
        self.fast, self.slow = [], []
        for i, (region, shape) in enumerate(members):
            p = normal(shape, i, 0.02, dtype).contiguous(memory_format=layout)
            if not isinstance(region, cg.Free):
                cg.make_feasible([{"params": [p], "region": region}])
            q = p.double()
            if not isinstance(region, cg.Free):
                cg.make_feasible([{"params": [q], "region": region}])
            self.fast.append(p.to(HERE, copy=True))
            self.slow.append(q)
        zipped = list(zip(self.regions, self.fast, self.slow, strict=True))
        fast = [{"params": [p], "region": region} for region, p, _ in zipped]
        slow = [{"params": [q], "region": region} for region, _, q in zipped]
        self.kernels = cg.SFW(fast, fused=True, **settings)
        self.reference = cg.SFW(slow, fused=False, foreach=False, **settings)

    def give(self, gradients):
        for p, q, gradient in zip(self.fast, self.slow, gradients, strict=True):
            p.grad = torch.empty_like(p).copy_(gradient)
            q.grad = p.grad.cpu().double()

    def step(self, allowed=1.0):
        """Take a step on both; complain of what is further apart than rounding makes it."""
        before = [q.clone() for q in self.slow]
        self.kernels.step()
        self.reference.step()
        for region, p, q, b in zip(self.regions, self.fast, self.slow, before, strict=True):
            found = p.cpu().double()
            unit = torch.finfo(p.dtype).eps
            limit = 1e-5 * (q - b).norm() + unit * q.norm()
            off = float((found - q).norm() / limit.clamp(min=1e-30))
            assert off <= allowed, f"{region} {tuple(p.shape)}: {off:.3g} of what is allowed"
            q.copy_(found)


def whole_numbers(shape, seed, most=2):
    made = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, shape, generator=made).float()


@check
def steps_are_those_of_the_reference():
    members = [(r, (n,)) for r in REGIONS for n in SIZES] + list(BLOCKS)
    for rescale, lr in ((None, 0.05), ("diameter", 0.05), ("gradient", 0.01)):
        for momentum in (0.0, 0.9):
            pair = Pair(members, lr=lr, rescale=rescale, momentum=momentum)
            for t in range(3):
                pair.give([normal(s, 100 * t + i) for i, (_, s) in enumerate(members)])
                pair.step()


@check
def ties_fall_as_in_the_reference():
    members = [(r, (n,)) for r in VERTICES for n in (7, 40, LARGE)] + list(BLOCKS)
    for most in (0, 2):
        pair = Pair(members, lr=1.0, rescale=None, momentum=0.0, seed=5)
        pair.give([whole_numbers(s, i, most) for i, (_, s) in enumerate(members)])
        pair.kernels.step()
        pair.reference.step()
        for region, p, q in zip(pair.regions, pair.fast, pair.slow, strict=True):
            same = torch.equal(p.cpu().sign(), q.sign().float())
            assert same, f"{region} {tuple(p.shape)}: another vertex"


@check
def a_selection_among_a_million_is_exact():
    region, n = cg.KSparsePolytope(0.1, 1.0), HUGE
    for gradient in (normal((n,), 0), whole_numbers((n,), 0)):
        pair = Pair([(region, (n,))], lr=1.0, rescale=None, momentum=0.0)
        pair.give([gradient])
        pair.kernels.step()
        pair.reference.step()
        assert torch.equal(pair.fast[0].cpu().sign(), pair.slow[0].sign().float())
        assert int((pair.fast[0] != 0).sum()) == region.count(n)


@check
def low_precision_and_channels_last():
    shape = (16, 3, 5, 7)
    members = [(r, shape) for r in REGIONS if not isinstance(r, cg.ProbabilitySimplex)]
    for dtype in (torch.bfloat16, torch.float16):
        pair = Pair(members, dtype, torch.channels_last, lr=0.05, wide_average=True)
        for p, q in zip(pair.fast, pair.slow, strict=True):
            p.mul_(0.5)
            q.copy_(p.cpu().double())
        for t in range(3):
            pair.give([normal(shape, 50 * t + i) for i in range(len(members))])
            pair.step()


@check
def what_is_not_finite_stays_with_its_tensor():
    members = [(r, (33,)) for r in REGIONS for _ in range(2)]
    for poison in (torch.nan, torch.inf):
        pair = Pair(members, lr=0.05, momentum=0.0)
        given = [normal((33,), i) for i in range(len(members))]
        for gradient in given[::2]:
            gradient[5] = poison
        pair.give(given)
        pair.kernels.step()
        finite = [bool(p.isfinite().all()) for p in pair.fast]
        assert finite == [False, True] * len(REGIONS), f"{poison}: {finite}"


@check
def no_step_waits_for_the_device():
    members = [(r, (n,)) for r in REGIONS for n in (7, SIZES[-1])] + list(BLOCKS)
    pair = Pair(members, lr=0.05, momentum=0.9)
    for t in range(20):  # two of which pull back
        if t == 3:
            for group in pair.kernels.param_groups:
                group["lr"] = torch.tensor(0.02, device="cuda")
        for p in pair.fast:
            p.grad = torch.randn_like(p)
        torch.cuda.set_sync_debug_mode("error" if t > 0 else "default")
        try:
            pair.kernels.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")


@check
def a_captured_training_step_is_that_outside_of_a_graph():
    """Forward, backward and step in a graph; outside, steps alone, with the graph's gradients."""

    def made():
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
        ).cuda()
        rate = torch.tensor(0.05, device="cuda")
        groups = cg.constrain(model, {r"0\.weight": cg.L2Ball(5.0), r".*": cg.LinfBall(0.5)})
        return model, rate, cg.SFW(groups, lr=rate, fused=True)

    x, y = normal((16, 32), 0).cuda(), torch.arange(16, device="cuda") % 8
    plain, plain_rate, first = made()
    model, rate, second = made()

    def trained():
        second.zero_grad(set_to_none=False)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        second.step()

    def compare(where):
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            q.grad = p.grad.clone()
        first.step()
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            assert torch.equal(p, q), f"{where}: {float((p - q).detach().abs().max())}"

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    for t in range(3):
        with torch.cuda.stream(side):
            trained()
        torch.cuda.current_stream().wait_stream(side)
        compare(f"step {t}")
        side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        trained()
    for t in range(20):
        rate.fill_(0.05 / (1 + t))
        plain_rate.fill_(0.05 / (1 + t))
        graph.replay()
        compare(f"replay {t}")
    trained()  # a step outside goes on where the graph has stopped
    compare("after the graph")
    graph.replay()
    compare("the graph again")


@check
def a_step_goes_to_where_its_parameters_are():
    """On another stream than the last one, and on another device than the current one."""
    members = [(r, (5000,)) for r in REGIONS]
    pair = Pair(members, lr=0.05)
    stream = torch.cuda.Stream()
    for t in range(4):
        pair.give([normal(s, 10 * t + i) for i, (_, s) in enumerate(members)])
        torch.cuda.synchronize()
        with torch.cuda.stream(stream if t % 2 else torch.cuda.default_stream()):
            pair.step()
        torch.cuda.synchronize()
    if torch.cuda.device_count() > 1:
        p, q = (normal((5000,), 0, 0.01).to(f"cuda:{n}") for n in range(2))
        optimizer = cg.SFW([p, q], cg.L2Ball(1.0), fused=True)
        p.grad, q.grad = (normal((5000,), 1).to(f"cuda:{n}") for n in range(2))
        optimizer.step()
        assert torch.equal(p.cpu(), q.cpu())


def hard_matrices(rows, columns):
    """Random, of low rank, badly conditioned, and such that all entries round alike."""
    x, y = normal((rows, columns), 0), torch.zeros(rows, columns)
    y.diagonal().copy_(torch.linspace(0, 1, min(rows, columns)))
    left, values, right = torch.linalg.svd(x, full_matrices=False)
    decay = (left * torch.arange(1.0, len(values) + 1) ** -1.5) @ right
    flat = torch.full((rows, columns), 0.7)
    low = normal((rows, 2), 1) @ normal((2, columns), 2)
    return torch.stack([x, y, decay, flat, low, x.abs(), left @ right, x.sign(), 0 * x])


@check
def matrix_vertices_are_inside_and_nearly_the_best():
    for fast, exact in MATRICES:
        for shape in ((1, 7), (33, 20), (300, 500)):
            for dtype in (torch.float64, torch.float32, torch.bfloat16):
                x = hard_matrices(*shape).to(dtype)
                found = cg.PerFilter(fast).lmo(x.cuda()).cpu().double()
                grown = exact.violation(cg.PerFilter(fast).lmo(x.cuda().float())[0].cpu().double())
                assert grown <= 1e-6, f"{fast} {shape} {dtype}: outside by {grown}"
                for each, v in zip(x.double(), found, strict=True):
                    best = -float((each * exact.lmo(each)).sum())
                    values = torch.linalg.svdvals(each)
                    small = values[values < values.norm(4) / 128].sum() * fast.radius
                    share = 0.019 if dtype is torch.float64 else 0.04
                    stated = share * best + float(small) * isinstance(fast, cg.SpectralBall)
                    missed = best + float((each * v).sum())
                    coarse = 4 * torch.finfo(dtype).eps * best
                    assert missed <= stated + coarse, f"{fast} {shape} {dtype}: {missed / best:.3g}"


@check
def no_matrix_step_waits_for_the_device():
    shapes = ((64, 96), (64, 96), (96, 33), (8, 3, 3, 3))
    for rate in (0.05, torch.tensor(0.05, device="cuda")):
        for dtype in (torch.float32, torch.bfloat16):
            groups = []
            for fast, exact in MATRICES:
                for i, shape in enumerate(shapes):
                    p = exact.project(normal(shape, i)).to("cuda", dtype)
                    region = cg.PerFilter(fast) if i == 3 else fast
                    groups.append({"params": [p.mul_(0.5 if i == 3 else 1.0)], "region": region})
            optimizer = cg.SFW(groups, lr=rate, rescale=None)
            for t in range(40):
                for group in groups:
                    for p in group["params"]:
                        p.grad = torch.randn_like(p) if t % 9 else torch.zeros_like(p)
                torch.cuda.set_sync_debug_mode("error" if t > 0 else "default")
                try:
                    optimizer.step()
                finally:
                    torch.cuda.set_sync_debug_mode("default")
            slack = 32 * torch.finfo(dtype).eps
            for group in groups:
                excess = group["region"].violation(group["params"][0].cpu().double())
                assert excess <= slack, f"{group['region']}: {excess}"


@check
def a_captured_matrix_step_is_that_outside_of_a_graph():
    def made():
        rate = torch.tensor(0.05, device="cuda")
        params = [(0.1 * normal((40, 24), i)).cuda() for i in range(4)]
        pairs = zip(params, (MATRICES[i % 2][0] for i in range(4)), strict=True)
        groups = [{"params": [p], "region": region} for p, region in pairs]
        cg.make_feasible(groups)
        for i, p in enumerate(params):
            p.grad = normal(p.shape, 10 + i).cuda()
        return params, rate, cg.SFW(groups, lr=rate, rescale=None)

    plain, plain_rate, first = made()
    params, rate, second = made()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            second.step()
    torch.cuda.current_stream().wait_stream(side)
    for _ in range(3):
        first.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        second.step()
    for t in range(20):
        for i, (p, q) in enumerate(zip(params, plain, strict=True)):
            p.grad.copy_(normal(p.shape, 100 * t + i))
            q.grad.copy_(p.grad)
        rate.fill_(0.05 / (1 + t))
        plain_rate.fill_(0.05 / (1 + t))
        graph.replay()
        first.step()
    for p, q in zip(params, plain, strict=True):
        assert float((p - q).norm() / q.norm()) < 1e-2, "apart by more than roundings in bfloat16"


@check
def entries_beyond_two_to_the_thirty_first():
    n, tail = 2_200_000_000, 1000
    for region in (cg.LinfBall(0.1), cg.L2Ball(0.7), cg.KSparsePolytope(0.1, 0.1)):
        p = torch.zeros(n, dtype=torch.bfloat16, device="cuda")
        p.grad = torch.empty_like(p).normal_(generator=torch.Generator("cuda").manual_seed(0))
        cg.SFW([p], region, lr=1.0, rescale=None, momentum=0.0, fused=True).step()
        if isinstance(region, cg.KSparsePolytope):
            count = sum(int((part != 0).sum()) for part in p.split(1 << 28))
            assert count == region.count(n), f"{count} entries are not zero"
        else:
            assert torch.equal(p[-tail:].sign(), -p.grad[-tail:].sign()), region
        if isinstance(region, cg.L2Ball):
            squares = sum(float(part.double().square().sum()) for part in p.split(1 << 26))
            assert abs(squares**0.5 / region.radius - 1) < 0.01, squares
        del p


@check
def a_step_needs_little_memory():
    n = 50_000_000
    for region in REGIONS:
        p = torch.zeros(n, device="cuda")
        if isinstance(region, cg.ProbabilitySimplex):
            p.fill_(region.radius / n)
        optimizer = cg.SFW([p], region, fused=True)
        for _ in range(2):
            p.grad = torch.randn_like(p)
            optimizer.step()
        torch.cuda.synchronize()
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        optimizer.step()
        torch.cuda.synchronize()
        tables = sum(
            x.numel() * x.element_size()
            for plan in optimizer._hurry._plans
            for x in plan._tables.tensors()
        )
        share = (torch.cuda.max_memory_allocated() - base + tables) / (4 * n)
        limit = 0.1 if isinstance(region, cg.KSparsePolytope) else 0.02
        assert share <= limit, f"{region}: {share:.1%} of the parameter's bytes"
        del optimizer, p


@check
def a_step_takes_the_kernels_where_asked_and_leaves_the_rest():
    split, whole = normal((40,), 0, 0.01).to(HERE), normal((3, 4), 1, 0.01).to(HERE)
    groups = [
        {"params": [split], "region": cg.L2Ball(1.0), "fused": True},
        {"params": [whole], "region": cg.SpectralBall(1.0)},
    ]
    optimizer = cg.SFW(groups, lr=0.5, rescale=None)
    for t in range(2):
        split.grad, whole.grad = normal((40,), t).to(HERE), normal((3, 4), t).to(HERE)
        optimizer.step()
    assert optimizer._hurry is not None
    assert optimizer._hurry.rest == {id(whole)}
    assert min(float(split.norm()), float(whole.norm())) > 0.1


@check
def a_resumed_run_is_the_uninterrupted_one():
    def made():
        params = [normal((n,), n, 0.01).to(HERE) for n in (9, 5000)]
        return params, cg.SFW(params, cg.L2Ball(1.0), fused=True, lr=0.1)

    def walked(params, optimizer, steps):
        for t in steps:
            for p in params:
                p.grad = normal(p.shape, t).to(HERE)
            optimizer.step()

    params, optimizer = made()
    walked(params, optimizer, range(20))
    half, twin = made()
    walked(half, twin, range(10))
    buffer = io.BytesIO()
    torch.save(twin.state_dict(), buffer)
    buffer.seek(0)
    others, resumed = made()
    resumed.load_state_dict(torch.load(buffer, weights_only=True))
    for p, q in zip(others, half, strict=True):
        p.copy_(q)
    walked(others, resumed, range(10, 20))
    assert all(map(torch.equal, params, others))
