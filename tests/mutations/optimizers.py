"""Mutants of the algorithms: averages, estimates, evaluations, models, projections."""

from mutants import of

SFW = "tests/optim/test_sfw.py"
SVRF = "tests/optim/test_svrf.py"
SPIDER = "tests/optim/test_spider.py"
ORGFW = "tests/optim/test_orgfw.py"
TWICE = "tests/optim/test_variance_reduced.py tests/optim/test_snapshots.py"
NOISE = "tests/optim/test_randomness.py"
ADAPTIVE = "tests/optim/test_adaptive.py"
PROJECTED = "tests/optim/test_projected.py"
ERRORS = "tests/optim/test_errors.py"

MUTANTS = [
    *of(
        "optim/_sfw.py",
        SFW,
        (
            "momentum takes the share of the gradient",
            'torch._foreach_lerp_(averages, grads, 1 - group["momentum"])',
            'torch._foreach_lerp_(averages, grads, group["momentum"])',
        ),
        (
            "momentum forgotten",
            "        return averages\n",
            "        return grads\n",
        ),
        (
            "momentum that starts at the first gradient",
            'state["momentum_buffer"] = self._no_average(gradient, group)',
            'state["momentum_buffer"] = gradient.clone()',
        ),
        (
            "groups of other momenta mixed",
            '_settings = ("momentum", "maximize")',
            '_settings = ("maximize",)',
            "tests/optim/test_settings.py",
        ),
    ),
    *of(
        "optim/_svrf.py",
        SVRF,
        (
            "the correction with the wrong sign",
            'torch._foreach_add_(changes, [state["estimate"] for state in states])',
            'torch._foreach_sub_(changes, [state["estimate"] for state in states])',
        ),
        (
            "no second evaluation right after the snapshot",
            "    def _apart(self) -> bool:\n        return True\n\n",
            "",
            TWICE,
        ),
    ),
    *of(
        "optim/_spider.py",
        SPIDER,
        (
            "the correction with the wrong sign",
            "torch._foreach_add_(estimates, self._changes(group, grads))",
            "torch._foreach_sub_(estimates, self._changes(group, grads))",
        ),
        (
            "the first step of a period corrected too",
            'if group["since"]:',
            "if True:",
        ),
        (
            "the reference stays at the snapshot",
            "_follows = True",
            "_follows = False",
        ),
    ),
    *of(
        "optim/_orgfw.py",
        ORGFW,
        (
            "the memory is not carried along",
            "torch._foreach_add_(memories, self._changes(group, grads))",
            "self._changes(group, grads)",
        ),
        (
            "the memory with the share of the gradient",
            'torch._foreach_lerp_(memories, fresh, 1 - group["momentum"])',
            'torch._foreach_lerp_(memories, fresh, group["momentum"])',
        ),
    ),
    *of(
        "optim/_reference.py",
        TWICE,
        (
            "the reference is never updated",
            "if self._follows and kept:",
            "if not self._follows and kept:",
        ),
        (
            "changes with the wrong sign",
            "return list(torch._foreach_sub([working(g) for g in grads], stale))",
            "return list(torch._foreach_sub(stale, [working(g) for g in grads]))",
            SPIDER,
        ),
        (
            "gradients at the reference forgotten",
            "self._stale = stale or {}",
            "self._stale = {}",
            SVRF,
        ),
        (
            "randomness not restored between the evaluations",
            "stale = self._copied_gradients(references)\n                before.restore()",
            "stale = self._copied_gradients(references)",
            NOISE,
        ),
        (
            "gradients at the reference zeroed in place",
            "return dict(zip(found, copies(list(found.values())), strict=True))",
            "return found",
            NOISE,
        ),
        (
            "a failing closure disturbs what is around it",
            "            before.restore()\n            self._drop_gradients()",
            "            self._drop_gradients()",
            NOISE,
        ),
        (
            "a failing closure leaves half a gradient",
            "            before.restore()\n            self._drop_gradients()",
            "            before.restore()",
            NOISE,
        ),
        (
            "two evaluations counted as one",
            "self._count(2 if stale is not None else 1)",
            "self._count(1)",
        ),
        (
            "evaluations counted from zero again",
            "total = self.evaluations + more",
            "total = more",
        ),
        (
            "the first step never ends",
            'group["since"] = (group["since"] or 0) + 1',
            'group["since"] = group["since"] or 0',
        ),
        (
            "the estimate in the parameter's own format",
            'state["estimate"] = torch.zeros_like(parameter, dtype=wide)',
            'state["estimate"] = torch.zeros_like(parameter)',
        ),
        (
            "the estimate narrowed by a checkpoint",
            '_wide = frozenset({"estimate"})',
            "_wide: frozenset[str] = frozenset()",
        ),
        (
            "a gradient scaler is let through",
            "if any(each is not None for each in shown):",
            "if False:",
        ),
        (
            "a step without a closure passes",
            'if any(group["lr"] != 0 for group in self.param_groups):',
            "if False:",
        ),
        (
            "a copy forgets the buffers",
            'return {**super().__getstate__(), "_buffers": self._buffers}',
            'return {**super().__getstate__(), "_buffers": ()}',
            NOISE,
        ),
    ),
    *of(
        "optim/_evaluate.py",
        NOISE,
        (
            "the host's generator is not put back",
            "        torch.set_rng_state(self._host)\n",
            "",
        ),
        (
            "buffers leak",
            "torch._foreach_copy_(self._buffers, self._kept)",
            "pass",
        ),
        (
            "parameters not put back after a failure",
            "    try:\n        yield\n    finally:\n        _exchange(here, there)",
            "    yield\n    _exchange(here, there)",
        ),
        (
            "the reference overwritten by the exchange",
            "    torch._foreach_copy_(there, kept)\n",
            "",
            TWICE,
        ),
    ),
    *of(
        "optim/_snapshot.py",
        TWICE,
        (
            "batches all weigh the same",
            "self._blend(means, size / total)",
            "self._blend(means, 1 / count)",
        ),
        (
            "the snapshot keeps its old place",
            'state["reference"].copy_(parameter)',
            "pass",
            SVRF + " " + SPIDER,
        ),
        (
            "no new period begins",
            'group["since"] = 0',
            'group["since"] = group["since"] or 0',
        ),
        (
            "a refresh disturbs buffers and randomness",
            "            raise\n        finally:\n            before.restore()",
            "            raise",
            NOISE,
        ),
        (
            "a refresh is not counted",
            "        self._count(count)\n",
            "",
        ),
        (
            "parameters that joined have no snapshot and step",
            'if group["since"] is None or not known:',
            'if group["since"] is None:',
        ),
        (
            "the full gradient of ascent with the wrong sign",
            'parameter.grad.copy_(-mean if group["maximize"] else mean)',
            "parameter.grad.copy_(mean)",
        ),
        (
            "no batches are a full gradient of zero",
            "            if not count:",
            "            if False:",
        ),
    ),
    *of(
        "optim/_adaptive.py",
        ADAPTIVE,
        (
            "H without its root",
            'group["delta"] + self._sizes(state).sqrt()',
            'group["delta"] + self._sizes(state)',
        ),
        (
            "H without delta",
            'group["delta"] + self._sizes(state).sqrt()',
            "self._sizes(state).sqrt()",
        ),
        (
            "the largest second moment forgotten",
            'return state["max_exp_avg_sq"]',
            'return state["exp_avg_sq"]',
        ),
        (
            "a second moment that is a plain sum",
            "        torch._foreach_mul_(moments, second)\n",
            "",
        ),
        (
            "the first moment with the share of the gradient",
            "torch._foreach_lerp_(averages, wide, 1 - first)",
            "torch._foreach_lerp_(averages, wide, first)",
        ),
        (
            "line search beyond the vertex",
            ", 0).clamp(0, 1)",
            ", 0).clamp(min=0)",
        ),
        (
            "line search to half its length",
            "point = point + length * way",
            "point = point + length / 2 * way",
        ),
        (
            "the model's slope without its curvature",
            "slope = pull + self.scale * (point - start)",
            "slope = pull",
        ),
        (
            "a way whose square may underflow",
            "self.region._diameter(self.parameter.shape) or 1.0",
            "1.0",
            "tests/optim/test_contract.py -k unit_of_length",
        ),
        (
            "one inner step too few",
            "for k in range(self.inner):",
            "for k in range(self.inner - 1):",
        ),
        (
            "sums kept in the parameter's own format",
            "zeros = {name: torch.zeros_like(parameter, dtype=wide) for",
            "zeros = {name: torch.zeros_like(parameter) for",
        ),
    ),
    *of(
        "optim/_projected.py",
        PROJECTED,
        (
            "no projection",
            'group["region"]._nearest(below)',
            "below",
        ),
        (
            "Nesterov's look ahead forgotten",
            'return gradient.add(buffer, alpha=momentum) if group["nesterov"] else buffer',
            "return buffer",
        ),
        (
            "momentum that starts at zero",
            'state["momentum_buffer"] = gradient.clone()',
            'state["momentum_buffer"] = torch.zeros_like(gradient)',
        ),
        (
            "weight growth",
            'gradient.add(parameter, alpha=group["weight_decay"])',
            'gradient.add(parameter, alpha=-group["weight_decay"])',
        ),
        (
            "dampening of the wrong term",
            'buffer.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])',
            'buffer.mul_(momentum - group["dampening"]).add_(gradient)',
        ),
        (
            "projections in compiled graphs",
            "    @untraced\n",
            "",
            "tests/integration/test_compile.py -k ProjectedSGD",
        ),
        (
            "gradients taken as they come",
            "(parameter, self._gradient(parameter, group), group)",
            "(parameter, parameter.grad, group)",
            f"{ERRORS} -k sparse",
        ),
    ),
]
