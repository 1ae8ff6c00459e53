"""The feasible regions C, all of them, one class each."""

from .balls import L1, L2, KNorm, KSparse, Linf, Lp
from .geometry import Ball, Free, Region
from .matrices import Blocks, Lanczos, Nuclear, Polynomial, Spectral
from .simplices import Box, Permutahedron, ProbabilitySimplex, UnitSimplex

__all__ = [
    "L1",
    "L2",
    "Ball",
    "Blocks",
    "Box",
    "Free",
    "KNorm",
    "KSparse",
    "Lanczos",
    "Linf",
    "Lp",
    "Nuclear",
    "Permutahedron",
    "Polynomial",
    "ProbabilitySimplex",
    "Region",
    "Spectral",
    "UnitSimplex",
]
