"""Figure 4: how many parameters stay active in training, and what the others are worth.

The paper's statement made precise: "regions spanned by sparse vectors, such as K-sparse polytopes,
result in noticeably fewer active parameters" is that K-sparse, and L1, end with at most 0.9 times
as many as each of SGD without decay, L2 and L∞; "regions whose LMO forces larger updates in each
parameter, such as the Hypercube, result in more" is that L∞ ends with more than each of SGD
without decay, L2, L1 and K-sparse. Both by the test of `_significance` over the seeds. Weight decay
shrinks every weight that the loss does not hold, so SGD with it is shown and not compared.

SGD's momentum is the paper's average, m = 0.9 m + 0.1 g: torch's `dampening` of 0.9. With torch's
default, a sum, steps are ten times as long and neither network trains at the printed rate of 0.3.
That reading has lines of its own, "SGD, summing", and a claim, but no place in the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from condgrad_lab.artifact import Artifact, Claim, Results
from condgrad_lab.papers.dnn_fw_2020 import _scales
from condgrad_lab.papers.dnn_fw_2020._significance import LEVEL, p_value
from condgrad_lab.spec import Optimizer, Rule, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NETWORKS = {"fully connected": ("mlp-32", 0.1), "convolutional": ("convnet", 0.03)}
_WIDTH = 100
_DENSE = ("SGD", "L2", "L∞")
_NOTICEABLE = 0.9
_SUMMING = "SGD, summing"
_TRAINED = 10.0
"""Percent of test error below which a network counts as trained at all."""


def _ways(share: float) -> dict[str, tuple[Optimizer, tuple[Rule, ...]]]:
    """The ways to train by name; `share` is that of the weights a vertex of K-sparse has."""
    sgd = Optimizer("SGD", lr=0.3, momentum=0.9, dampening=0.9)
    sfw = Optimizer("SFW", lr=0.3, momentum=0.9, rescale="gradient")
    return {
        "SGD": (sgd, ()),
        "SGD with decay": (replace(sgd, weight_decay=0.0001), ()),
        "L1": (sfw, (Rule("L1Ball", width=_WIDTH),)),
        "K-sparse": (sfw, (Rule("KSparsePolytope", radius=300, k=(100, share)),)),
        "L2": (sfw, (Rule("L2Ball", width=_WIDTH),)),
        "L∞": (sfw, (Rule("LinfBall", width=_WIDTH),)),
        _SUMMING: (replace(sgd, dampening=0.0), ()),
    }


class Figure4(Artifact):
    """Two networks; five runs a way to train."""

    name, title = "figure-4", "Active parameters against test error on MNIST"
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 2, "small": 3, "paper": 5}

    def lines(self, scale: str) -> Mapping[str, Run]:
        return {
            f"{network}, {way}": Run(
                _scales.data("mnist", scale),
                model,
                optimizer,
                rules,
                epochs=_scales.epochs(scale),
                batch=64,
                measure=("active",),
            )
            for network, (model, share) in _NETWORKS.items()
            for way, (optimizer, rules) in _ways(share).items()
        }

    def claims(self, results: Results) -> Sequence[Claim]:
        found = []
        for network in _NETWORKS:
            for sparse in ("K-sparse", "L1"):
                name = f"{network}: {sparse} ends with noticeably fewer active than SGD, L2, L∞"
                found.append(_fewer(results, network, name, [sparse], _DENSE, _NOTICEABLE))
            name = f"{network}: L∞ ends with more active than SGD, L1, K-sparse, L2"
            few = ("SGD", "L1", "K-sparse", "L2")
            found += [_fewer(results, network, name, few, ["L∞"], 1.0), _summing(results, network)]
        return found

    def draw(self, results: Results) -> Figure:
        from condgrad_lab.render import curves

        panels = {
            network: [
                curves.Line(label.removeprefix(f"{network}, "), line)
                for label, line in results.lines.items()
                if label.startswith(network) and not label.endswith(_SUMMING)
            ]
            for network in _NETWORKS
        }
        return curves.paths(panels, x="active", y="sparse_test_error")


def _fewer(
    results: Results,
    network: str,
    name: str,
    few: Sequence[str],
    many: Sequence[str],
    share: float,
) -> Claim:
    """That each of `few` ends with fewer active parameters than each of `many` times `share`."""
    counts = {way: _active(results, f"{network}, {way}") for way in (*few, *many)}
    means = "; ".join(f"{way} {np.mean(c):.0f}" for way, c in counts.items() if len(c))
    if min(map(len, counts.values())) < 2 or len({len(c) for c in counts.values()}) > 1:
        return Claim(name, "so it is", means)
    pairs = [(counts[a], share * counts[b]) for a in few for b in many]
    worst = max(p_value(b - a) for a, b in pairs)
    return Claim(name, "so it is", f"{means}; p = {worst:.3f}", holds=worst <= LEVEL)


def _summing(results: Results, network: str) -> Claim:
    """That SGD trains with the momentum that torch's SGD has unless told otherwise."""
    name = f"{network}: SGD at rate 0.3 trains with a momentum that sums"
    label = f"{network}, {_SUMMING}"
    errors = 100 * (1 - results.last(label, "test_accuracy")) if results[label] else np.array([])
    if not len(errors):
        return Claim(name, "so it is", "")
    worst = 100.0 if np.isnan(errors).any() else errors.max()
    note = "with the paper's average instead of the sum it does, see the line SGD"
    text = f"test error up to {worst:.1f} %"
    return Claim(name, "so it is", text, holds=worst < _TRAINED, note=note)


def _active(results: Results, label: str) -> np.ndarray:
    """The active parameters after the last epoch, one number a seed that did not diverge."""
    counts = results.last(label, "active") if results[label] else np.array([])
    return counts[np.isfinite(counts)]
