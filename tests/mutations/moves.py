"""Mutants of what all optimizers share: groups, checkpoints, draws, step lengths, paths."""

from mutants import of

SFW = "tests/optim/test_sfw.py"
CONTRACT = "tests/optim/test_contract.py"
CHECKPOINTS = "tests/optim/test_checkpoints.py"
FEASIBILITY = "tests/optim/test_feasibility.py"
ERRORS = "tests/optim/test_errors.py"
MANY = "tests/optim/test_many.py"

MUTANTS = [
    *of(
        "optim/_base.py",
        CONTRACT,
        (
            "ascent is descent",
            'return -gradient if group["maximize"] else gradient',
            "return gradient",
        ),
        (
            "closures without gradients",
            "        with torch.enable_grad():\n            return closure()",
            "        return closure()",
        ),
        (
            "a checkpoint over another region passes",
            "if found != region and not is_printed(region, found):",
            "if False:",
            CHECKPOINTS,
        ),
        (
            "regions saved as objects",
            'group["region"] = repr(group["region"])',
            "pass",
            CHECKPOINTS,
        ),
        (
            "the loaded checkpoint is written to",
            'groups = [dict(group) for group in state_dict["param_groups"]]',
            'groups = state_dict["param_groups"]',
            CHECKPOINTS,
        ),
        (
            "wide state narrowed by a checkpoint",
            "wide = torch.promote_types(parameter.dtype, torch.float32)\n        for name in",
            "wide = parameter.dtype\n        for name in",
            "tests/optim/test_adaptive.py",
        ),
        (
            "a start outside is let in",
            "            if excess:",
            "            if False:",
            ERRORS,
        ),
        (
            "a group that was refused has joined",
            "            self.param_groups.pop()\n            raise",
            "            raise",
            ERRORS,
        ),
        (
            "the caller's groups are taken over",
            "dict(each) if isinstance(each, dict) else each for each in params",
            "each for each in params",
        ),
        (
            "whole numbers taken for parameters",
            "if not parameter.is_floating_point():",
            "if False:",
            ERRORS,
        ),
        (
            "sparse gradients pass",
            "        check_dense(gradient, self)\n",
            "",
            ERRORS,
        ),
        (
            "a rate of infinity",
            "if not low <= value < high:",
            "if not low <= value <= high:",
            ERRORS,
        ),
        (
            "steps in compiled graphs",
            "return torch.compiler.disable(function)",
            "return function",
            "tests/integration/test_compile.py -k SFW",
        ),
    ),
    *of(
        "optim/_roster.py",
        CONTRACT,
        (
            "places counted among those with gradients alone",
            "self.numbers = [place for place, there in enumerate(self._present) if there]",
            "self.numbers = list(range(sum(self._present)))",
            SFW,
        ),
        (
            "who had a gradient in the last step has one",
            "            and list(map(self._moves, everyone)) == self._present\n",
            "",
        ),
        (
            "settings of a group never looked at again",
            "            and list(map(self._settings, groups)) == self._known\n",
            "",
            "tests/optim/test_settings.py",
        ),
        (
            "the step is not counted",
            "torch._foreach_add_(steps, _ONE, alpha=1.0)",
            "pass",
            SFW,
        ),
        (
            "rates of the first step for ever",
            'work.direction, work.lr, work.step = direction, group["lr"], state["step"]',
            'work.direction, work.step = direction, state["step"]\n'
            '            work.lr = getattr(work, "lr", group["lr"])',
        ),
    ),
    *of(
        "optim/_move.py",
        SFW,
        (
            "a draw that does not depend on the step",
            "Draw(*self.source, self.step)",
            "Draw(*self.source, 0)",
        ),
        (
            "free parameters climb",
            "work.parameter.add_(work.direction, alpha=-work.lr)",
            "work.parameter.add_(work.direction, alpha=work.lr)",
        ),
        (
            "free parameters climb at a rate in a tensor",
            "work.parameter.sub_(work.lr.to(work.parameter.device) * work.direction)",
            "work.parameter.add_(work.lr.to(work.parameter.device) * work.direction)",
            CONTRACT,
        ),
        (
            "a step beyond the vertex",
            "else min(lr, 1.0)",
            "else lr",
            f"{FEASIBILITY} -k one_by_one",
        ),
        (
            "a step beyond the vertex by the gradient rule",
            "return reach / gap if gap > reach else 1.0",
            "return reach / max(gap, 1e-300)",
            f"{SFW} {FEASIBILITY} -k 'full_step or one_by_one'",
        ),
        (
            "a way whose square may overflow",
            "piece.answer(Norm(vertex - start))",
            "float((vertex - start).norm())",
            f"{CONTRACT} -k unit_of_length",
        ),
        (
            "nothing pulled back in short formats",
            "parameter.element_size() < 4 or",
            "parameter.element_size() >= 4 and",
            FEASIBILITY,
        ),
        (
            "nothing ever pulled back in float32",
            "int(step) % RECALL_EVERY == 0",
            "False",
            f"{FEASIBILITY} -k add_up",
        ),
        (
            "rescaled by the region of radius one",
            "span = work.region._diameter(",
            "span = work.region._kind._diameter(",
        ),
        (
            "a single point divides by its diameter",
            "return work.lr / span if span else 0.0 * work.lr",
            "return work.lr / span",
            f"{ERRORS} -k single",
        ),
        (
            "a step at rate zero is pulled back",
            "    elif length == 0:\n        return\n",
            "",
            f"{CONTRACT} -k 'no_rate'",
        ),
    ),
    *of(
        "optim/_move_host.py",
        MANY,
        (
            "together, a step beyond the vertex",
            "return [min(rate, 1.0) for rate in rates]",
            "return list(rates)",
        ),
        (
            "together, a step beyond the vertex by the gradient rule",
            "return [min(rate * size / gap, 1.0) for rate, size, gap in triples]",
            "return [rate * size / gap for rate, size, gap in triples]",
            MANY,
        ),
        (
            "together, ways whose squares overflow",
            "if not (low < min(gaps) and max(gaps) < high):",
            "if 0.0 in gaps:",
            f"{CONTRACT} -k unit_of_length",
        ),
        (
            "together, one by one all the same",
            "if not self._shares or not self._moved():",
            "if True:",
            "tests/optim/test_speed.py",
        ),
        (
            "together, all with the radius of the first",
            "radius=Numbers([region.radius for region in regions])",
            "radius=Numbers([first.radius for region in regions])",
        ),
        (
            "together, whatever their step rules",
            "work.region._kind, work.parameter.dtype, work.rescale, work.source is None",
            "work.region._kind, work.parameter.dtype, work.source is None",
        ),
    ),
    *of(
        "optim/_move_many.py",
        MANY,
        (
            "stacked, all with radius one",
            "vertices = vertices * batch.spread([work.region.radius for work in works])",
            "vertices = vertices * batch.spread([1.0 for work in works])",
        ),
        (
            "stacked, a step beyond the vertex",
            "return batch.spread(rates).clamp(max=1)",
            "return batch.spread(rates)",
        ),
        (
            "stacked, a division by no distance",
            "return torch.where(gap > 0, reach / gap, 1).clamp(max=1)",
            "return (reach / gap).clamp(max=1)",
        ),
        (
            "stacked, free parameters climb",
            "[-w.lr for w in works]",
            "[w.lr for w in works]",
        ),
    ),
    *of(
        "regions/_batches.py",
        MANY,
        (
            "every tensor of a stack draws alike",
            "return on(like.device, keys(self._draws)).view((-1,) + (1,) * (like.ndim - 1))",
            "return on(like.device, keys(self._draws))[0]",
        ),
        (
            "entries of many sizes counted through",
            "return numbers - self.spread(on(like.device, torch.tensor(starts)))",
            "return numbers",
        ),
    ),
    *of(
        "regions/_together.py",
        MANY,
        (
            "a special case passes unnoticed",
            "        if not all(self):\n            raise Unsettled\n",
            "",
        ),
        (
            "norms of tiny numbers as they come",
            "if not all(low < norm < high for norm in norms):",
            "if False:",
        ),
    ),
]
