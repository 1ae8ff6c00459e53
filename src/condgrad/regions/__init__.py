"""Feasible regions: convex sets that answer where their best vertex lies.

Adding one means: a class in a file of this room, and a line here.
"""

from ._base import Region
from ._blocks import PerFilter, PerRow
from ._box import Box
from ._free import Free
from ._lp import L1Ball, L2Ball, LinfBall, LpBall
from ._permutahedron import Permutahedron
from ._simplex import ProbabilitySimplex, UnitSimplex
from ._sparse import KNormBall, KSparsePolytope
from ._spectral import NuclearBall, SpectralBall

__all__ = [
    "Box",
    "Free",
    "KNormBall",
    "KSparsePolytope",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "LpBall",
    "NuclearBall",
    "PerFilter",
    "PerRow",
    "Permutahedron",
    "ProbabilitySimplex",
    "Region",
    "SpectralBall",
    "UnitSimplex",
]
