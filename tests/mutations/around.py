"""Mutants of what stands around: rules, sizes, schedules, metrics."""

from mutants import of

CONSTRAIN = "tests/test_constrain.py"
METRICS = "tests/test_metrics.py"
SCHEDULES = "tests/test_schedules.py"
SIZING = "tests/test_sizing.py"

MUTANTS = [
    *of(
        "constrain.py",
        CONSTRAIN,
        (
            "the last match wins",
            "chosen.setdefault(name, table[key])",
            "chosen[name] = table[key]",
        ),
        (
            "expressions match a part of a name",
            "return re.fullmatch(key, parameter.name) is not None",
            "return re.search(key, parameter.name) is not None",
        ),
        (
            "rules that match nothing pass",
            "idle = [_shown(key) for key, hits in matches.items() if not hits]",
            "idle: list[str] = []",
        ),
        (
            "parameters without a rule are left out",
            "missed = [p.name for p in found if p.name not in chosen and p.value.requires_grad]",
            "missed: list[str] = []",
        ),
        (
            "frozen parameters are taken along",
            "        if not parameter.value.requires_grad:\n            continue\n",
            "",
        ),
        (
            "tied parameters count twice",
            "            if value not in seen:",
            "            if True:",
        ),
        (
            "starts are left outside",
            '_settle(result, move=feasible == "move")',
            '_settle(result, move=False) if feasible != "move" else None',
        ),
        (
            "starts are moved though only asked about",
            "    if strays and not move:",
            "    if False:",
        ),
        (
            "a size beside a settled region is ignored",
            "    if size:\n        shown",
            "    if False:\n        shown",
        ),
        (
            "the buffers of the model are forgotten",
            "result.buffers = tuple(model.buffers())",
            "result.buffers = ()",
        ),
    ),
    *of(
        "sizing.py",
        SIZING,
        ("half the width", "diameter = 2 * self.width", "diameter = self.width"),
        (
            "a start at zero has no size",
            "return norm if norm > 0 else self.at_zero",
            "return norm if norm > 0 else 1.0",
        ),
        (
            "the deviation that was given is ignored",
            "if self.std is not None:",
            "if False:",
        ),
        (
            "a digit lost in the series",
            "series = 1 - r / 4 * (1 - r / 8 *",
            "series = 1 - r / 4 * (1 + r / 8 *",
        ),
        (
            "norms measured in half precision",
            "wide = torch.promote_types(parameter.dtype, torch.float32)",
            "wide = parameter.dtype",
            CONSTRAIN,
        ),
    ),
    *of(
        "schedules.py",
        SCHEDULES,
        (
            "band rule: equal means shrink the rate",
            "factor = self.down if recent > past else",
            "factor = self.down if recent >= past else",
        ),
        (
            "band rule: up and down exchanged",
            "if recent > past else self.up if recent < past else 1.0",
            "if recent < past else self.up if recent > past else 1.0",
        ),
        (
            "band rule: the first epochs instead of the last",
            "_mean(losses[-self.short :])",
            "_mean(losses[: self.short])",
        ),
        (
            "band rule: one epoch too few is kept",
            "self.losses: deque[float] = deque(maxlen=long)",
            "self.losses: deque[float] = deque(maxlen=long - 1)",
        ),
        (
            "band rule: a shared tensor scaled once a group",
            'for lr in {id(group["lr"]): group["lr"] for group in groups}.values():',
            'for lr in [group["lr"] for group in groups]:',
        ),
        (
            "band rule: means rounded",
            "return sum(map(Fraction, values)) / Fraction(len(values))",
            "return math.fsum(values) / len(values)",
        ),
        (
            "band rule: losses forgotten on loading",
            'self.losses = deque(state_dict["losses"], maxlen=self.long)',
            "self.losses = deque(maxlen=self.long)",
        ),
        (
            "open loop: one step ahead",
            "self.scale * 2 / (self.last_epoch + 2)",
            "self.scale * 2 / (self.last_epoch + 3)",
        ),
        (
            "theorem: the diameter not squared",
            "return math.sqrt(excess / (steps * smoothness * diameter**2 * beta))",
            "return math.sqrt(excess / (steps * smoothness * diameter * beta))",
        ),
        (
            "theorem: a beta too small",
            "if beta < least:",
            "if beta < least / 2:",
        ),
    ),
    *of(
        "metrics.py",
        METRICS,
        (
            "gap: ascent taken for descent",
            '-1 if group.get("maximize") else 1',
            "1",
        ),
        (
            "gap: unnamed groups share a name",
            "else _joined(each).sum()",
            "else _joined(list(dict(zip(names, each, strict=True)).values())).sum()",
        ),
        (
            "gap: batches all weigh the same",
            "share = working(parameter.grad.detach()) * size",
            "share = working(parameter.grad.detach())",
        ),
        (
            "gap: batches added up in half precision",
            "share = working(parameter.grad.detach()) * size",
            "share = parameter.grad.detach() * size",
        ),
        (
            "gap: the gradients at hand are lost",
            "            parameter.grad = gradient\n    if not total",
            "            pass\n    if not total",
        ),
        (
            "gap: the largest instead of the sum",
            "_joined(each).sum()",
            "_joined(each).amax()",
        ),
        (
            "violation: the sum instead of the largest",
            "_joined(each).amax()",
            "_joined(each).sum()",
        ),
        (
            "entries that kept their size are inactive",
            "detach().abs() >= part_of(initial[n], p).abs()",
            "detach().abs() > part_of(initial[n], p).abs()",
        ),
        (
            "inactive entries keep their values",
            "        local(parameter).mul_(active)\n",
            "        pass\n",
        ),
    ),
    *of(
        "regions/_answers.py",
        METRICS,
        (
            "gap: the wrong sign",
            "(working(local(starts[at])) - towards)",
            "(towards - working(local(starts[at])))",
        ),
        (
            "gap: rounding may make it negative",
            "return [gap.clamp(min=0) for gap in",
            "return [gap for gap in",
        ),
    ),
    *of(
        "_members.py",
        CONSTRAIN,
        (
            "no start is ever outside",
            "return found if not found <=",
            "return 0.0 if not found <=",
        ),
        (
            "parameters of a group all in its name's place",
            'names = group.get("param_names") or [f"{number}.{i}"',
            'names = [f"{number}.{i}"',
        ),
    ),
]
