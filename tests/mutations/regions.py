"""Mutants of the regions: oracles, diameters, ties, memberships."""

from mutants import of

CONTRACT = "tests/regions/test_contract.py"
LMO = f"{CONTRACT} -k lmo"
DIAMETER = f"{CONTRACT} -k diameter"
INSIDE = f"{CONTRACT} -k 'violation or inside or outside or beyond'"
TIES = "tests/regions/test_ties.py"
NUMBERS = "tests/regions/test_numbers.py"
ERRORS = "tests/regions/test_errors.py"
DRIFT = "tests/optim/test_feasibility.py -k pulling"

MUTANTS = [
    *of(
        "regions/_lp.py",
        LMO,
        (
            "L1 vertex on the wrong side",
            "return signed(chosen, x, measured, piece).mul_(-self.radius)",
            "return signed(chosen, x, measured, piece).mul_(self.radius)",
        ),
        (
            "L2 vertex along the direction",
            "return x * (-self.radius / norm)",
            "return x * (self.radius / norm)",
        ),
        (
            "L2 norms that overflow",
            "decided(norm > low) and decided(norm < high)",
            "decided(norm > low)",
            NUMBERS,
        ),
        (
            "L2 vertex of a tiny direction without its sign",
            "vertex = shares * (-self.radius /",
            "vertex = shares * (self.radius /",
            NUMBERS,
        ),
        (
            "hypercube vertex on the wrong side",
            "return signs(x, piece).mul_(-self.radius)",
            "return signs(x, piece).mul_(self.radius)",
        ),
        (
            "Lp vertex with the exponent of its dual",
            "powers = shares.pow(1 / (self.p - 1))",
            "powers = shares.pow(self.p - 1)",
        ),
        (
            "Lp corner at zero off the boundary",
            "(self.radius * piece.size ** (-1 / self.p))",
            "(self.radius * piece.size ** (1 / self.p - 1))",
        ),
        (
            "Lp diameter as printed, false for p < 2",
            "return 2 * self.radius * max(1.0, n ** (0.5 - 1 / self.p))",
            "return 2 * self.radius * n ** (0.5 - 1 / self.p)",
            DIAMETER,
        ),
        (
            "hypercube diameter without the root",
            "return 2 * self.radius * math.sqrt(self._entries(shape))",
            "return 2 * self.radius * self._entries(shape)",
            DIAMETER,
        ),
        (
            "hypercube without random signs at zero",
            "return signs(x, piece).mul_(-self.radius)",
            "return x.sign().mul_(-self.radius)",
            TIES,
        ),
        (
            "Lp NaN turned into a vertex",
            "return vertex if decided(finite(top)) else vertex + top * 0",
            "return torch.nan_to_num(vertex)",
            f"{NUMBERS} -k finite",
        ),
        (
            "L1 membership by the Euclidean norm",
            "return (yield Norm(x, 1)) / self.radius",
            "return (yield Norm(x, 2)) / self.radius",
            INSIDE,
        ),
        (
            "orders below one allowed",
            "if self.p <= 1:",
            "if self.p < 0.5:",
            ERRORS,
        ),
    ),
    *of(
        "regions/_sparse.py",
        LMO,
        (
            "K rounded to nothing on small tensors",
            "return max(1, round(self.k * n))",
            "return round(self.k * n)",
            "tests/regions/test_values.py",
        ),
        (
            "K allowed one beyond the entries",
            "if self.k > n:",
            "if self.k > n + 1:",
            ERRORS,
        ),
        (
            "the smaller of count and fraction",
            "return min(n, max(self.k[0], round(self.k[1] * n)))",
            "return min(n, self.k[0], round(self.k[1] * n))",
            "tests/regions/test_values.py",
        ),
        (
            "K-sparse diameter without K",
            "return 2 * self.radius * math.sqrt(self.count(self._entries(shape)))",
            "return 2 * self.radius * math.sqrt(self._entries(shape))",
            DIAMETER,
        ),
        (
            "K-sparse with one entry too many",
            "return top, (yield from largest(sizes, self._k(piece), piece))",
            "return top, (yield from largest(sizes, min(piece.size, self._k(piece) + 1), piece))",
        ),
        (
            "K-sparse membership by its entries alone",
            "return larger(total, top / self.radius)",
            "return top / self.radius",
            INSIDE,
        ),
        (
            "K-norm: the worse of the two vertices",
            "return (torch.as_tensor(cube == spike) & coin) | (cube > spike)",
            "return (torch.as_tensor(cube == spike) & coin) | (cube < spike)",
        ),
        (
            "K-norm: the worse of the two vertices, if there is no tie",
            "            return cube > spike\n",
            "            return cube < spike\n",
        ),
        (
            "K-norm hypercube of radius τK, as printed",
            "return signs(x, piece).mul_(-self.radius / k)",
            "return signs(x, piece).mul_(-self.radius * k)",
        ),
        (
            "K-norm corner compared with its whole size",
            "self._prefers_cube(x, total, k * top, piece)",
            "self._prefers_cube(x, total, top, piece)",
        ),
        (
            "K-norm sizes that overflow",
            "if not decided(finite(total)):",
            "if False:",
            NUMBERS,
        ),
        (
            "K-norm ties always to the spike",
            "coin = (piece.rank_of_none(x) & 2) != 0",
            "coin = torch.zeros((), dtype=torch.bool)",
            TIES,
        ),
        (
            "K-norm diameter of its hypercube alone",
            "return 2 * self.radius * max(1.0, math.sqrt(n) / self.count(n))",
            "return 2 * self.radius * math.sqrt(n) / self.count(n)",
            DIAMETER,
        ),
        (
            "K-norm sum one off at the threshold",
            "return (total + (k - count) * threshold) / self.radius",
            "return (total + (k - 1 - count) * threshold) / self.radius",
            INSIDE,
        ),
    ),
    *of(
        "regions/_simplex.py",
        LMO,
        (
            "unit simplex at the smallest absolute value, as printed",
            "        choice = yield from largest(-x, 1, piece)",
            "        choice = yield from largest(-x.abs(), 1, piece)",
        ),
        (
            "unit simplex without its origin",
            "        if decided(top > 0):\n            return spike",
            "        return spike",
        ),
        (
            "the origin loses every tie",
            "(measured.last > piece.rank_of_none(x))",
            "(measured.last == measured.last)",
            TIES,
        ),
        (
            "unit simplex diameter of one entry",
            "return self.radius * (math.sqrt(2) if self._entries(shape) > 1 else 1.0)",
            "return self.radius * math.sqrt(2)",
            DIAMETER,
        ),
        (
            "probability simplex diameter of one entry",
            "return self.radius * (math.sqrt(2) if self._entries(shape) > 1 else 0.0)",
            "return self.radius * (math.sqrt(2) if self._entries(shape) > 1 else 1.0)",
            DIAMETER,
        ),
        (
            "negative entries inside the unit simplex",
            "        return larger(total, (yield Max(-x)) / self.radius)",
            "        return total",
            INSIDE,
        ),
        (
            "probability simplex that may sum to less",
            "off = abs((yield Sum(x)) / self.radius - 1)",
            "off = (yield Sum(x)) / self.radius - 1",
            INSIDE,
        ),
        (
            "probability simplex pulled in, never out",
            "    def _pull(self, gauge: Number) -> Number:\n        return gauge",
            "    def _pull(self, gauge: Number) -> Number:\n        return larger(gauge, 1.0)",
            DRIFT,
        ),
    ),
    *of(
        "regions/_permutahedron.py",
        LMO,
        (
            "largest value to the largest entry",
            "places = torch.arange(n, 0, -1, dtype=points.dtype, device=points.device)",
            "places = torch.arange(1, n + 1, dtype=points.dtype, device=points.device)",
        ),
        (
            "diameter as printed",
            "return self.radius * math.sqrt(n * (n * n - 1) / 3)",
            "return self.radius * math.sqrt(n * (n * n - 1) / 12)",
            DIAMETER,
        ),
        (
            "equal entries never shuffled",
            "if piece.random and not decided(order.values.diff(dim=-1) > 0):",
            "if False:",
            TIES,
        ),
        (
            "only the sum is bounded",
            "return torch.maximum(outgrowth - 1, (points.mean(-1) / centre - 1).abs())",
            "return (points.mean(-1) / centre - 1).abs()",
            INSIDE,
        ),
    ),
    *of(
        "regions/_box.py",
        LMO,
        (
            "the wrong bound",
            "return torch.where(down < 0, high, low) + x * 0",
            "return torch.where(down < 0, low, high) + x * 0",
        ),
        (
            "no draw at zero",
            "down = torch.where(x == 0, piece.signs(x), x)",
            "down = x",
            TIES,
        ),
        (
            "equal bounds allowed",
            "if self.low >= self.high:",
            "if self.low > self.high:",
            ERRORS,
        ),
        (
            "membership below the upper bound alone",
            "torch.maximum(x - self.high, self.low - x)",
            "x - self.high",
            INSIDE,
        ),
    ),
    *of(
        "regions/_spectral.py",
        LMO,
        (
            "spectral vertex on the wrong side",
            "return (left * (values > least)[:, None, :]) @ right * -self.radius",
            "return (left * (values > least)[:, None, :]) @ right * self.radius",
        ),
        (
            "spectral diameter by the longer side",
            "math.sqrt(min(self._sides(shape)))",
            "math.sqrt(max(self._sides(shape)))",
            DIAMETER,
        ),
        (
            "noise of the decomposition where there is no rank",
            "* (max(points.shape[-2:]) * torch.finfo(values.dtype).eps)",
            "* 0",
            TIES,
        ),
        (
            "nuclear vertex of the last singular pair",
            "vertices = left[:, :, :1] @ right[:, :1, :] * -self.radius",
            "vertices = left[:, :, -1:] @ right[:, -1:, :] * -self.radius",
        ),
        (
            "a kernel as another matrix",
            "return shape[0], math.prod(shape[1:])",
            "return shape[0] * shape[1], math.prod(shape[2:])",
            DIAMETER,
        ),
        (
            "nuclear norms measured in float32",
            'wide = points if points.device.type == "mps" else points.double()',
            "wide = points",
            f"{NUMBERS} -k many_singular",
        ),
        (
            "vectors taken for matrices",
            "if len(shape) < 2:",
            "if len(shape) < 1:",
            ERRORS,
        ),
    ),
    *of(
        "regions/_blocks.py",
        LMO,
        (
            "one vertex for all blocks",
            "return self.region._oracle(x, draw, 1)",
            "return self.region._oracle(x, draw, 0)",
        ),
        (
            "diameters of blocks added, not their squares",
            "return math.sqrt(shape[0]) * self.region.diameter(shape[1:])",
            "return shape[0] * self.region.diameter(shape[1:])",
            DIAMETER,
        ),
        (
            "blocks never pulled back inside",
            "return self.region._recalled(x, 1)",
            "return x",
            DRIFT,
        ),
    ),
]
