"""Train deep networks inside convex sets, without projections.

Regions answer, optimizers move, `constrain` assigns, metrics measure:

    groups = cg.constrain(model, cg.LinfBall, width=30)
    optimizer = cg.SFW(groups, lr=0.1, momentum=0.9)
"""

from . import metrics, optim, regions, schedules
from .constrain import ParameterGroups, constrain, make_feasible, summary
from .metrics import active_parameters, fw_gap, violation, zero_inactive
from .optim import ORGFW, SFW, SPIDERFW, SVRF, AdamSFW, AdaSFW, ProjectedSGD
from .regions import (
    Box,
    Free,
    KNormBall,
    KSparsePolytope,
    L1Ball,
    L2Ball,
    LinfBall,
    LpBall,
    NuclearBall,
    PerFilter,
    Permutahedron,
    PerRow,
    ProbabilitySimplex,
    Region,
    SpectralBall,
    UnitSimplex,
)
from .sizing import Sized, expected_norm, sized

__version__ = "0.1.0"

__all__ = [
    "ORGFW",
    "SFW",
    "SPIDERFW",
    "SVRF",
    "AdaSFW",
    "AdamSFW",
    "Box",
    "Free",
    "KNormBall",
    "KSparsePolytope",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "LpBall",
    "NuclearBall",
    "ParameterGroups",
    "PerFilter",
    "PerRow",
    "Permutahedron",
    "ProbabilitySimplex",
    "ProjectedSGD",
    "Region",
    "Sized",
    "SpectralBall",
    "UnitSimplex",
    "active_parameters",
    "constrain",
    "expected_norm",
    "fw_gap",
    "make_feasible",
    "metrics",
    "optim",
    "regions",
    "schedules",
    "sized",
    "summary",
    "violation",
    "zero_inactive",
]
