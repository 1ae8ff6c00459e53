"""Mutants of the matrix balls' faster methods: polynomials, Lanczos steps, their pull inside."""

from mutants import of

APPROXIMATE = "tests/regions/test_approximate.py"
VERTICES = f"{APPROXIMATE} -k 'vertices or bfloat16 or size_of or batch'"
LEADING = f"{APPROXIMATE} -k 'vertices or basis or few_rows or batch'"
PULL = f"{APPROXIMATE} -k 'bounds or pull or tiny'"
ZERO = f"{APPROXIMATE} -k zero"
TOGETHER = "tests/optim/test_many.py -k pulled"

MUTANTS = [
    *of(
        "regions/_polar.py",
        VERTICES,
        ("a wrong coefficient", "(0.1298, 2.78, 0.4572)", "(0.1298, 2.78, 0.4672)"),
        (
            "a coefficient that is not the script's",
            "(0.6979, 1.9383, 0.3681)",
            "(0.6979, 1.9383, 0.36811)",
            f"{APPROXIMATE} -k coefficients",
        ),
        (
            "a floor that is not reached",
            "FLOOR = 0.981",
            "FLOOR = 0.99",
            f"{APPROXIMATE} -k 'coefficients or response'",
        ),
        ("the excess of rounding not divided out", "EXCESS = 1 + 2.0**-8", "EXCESS = 1.0"),
        (
            "tall matrices turned and not turned back",
            "return polar(x.mT, size).mT",
            "return polar(x.mT, size).reshape(x.shape)",
        ),
        (
            "the Gram matrix of the longer side",
            "    if x.shape[1] > x.shape[2]:\n        return polar",
            "    if x.shape[1] < x.shape[2]:\n        return polar",
            f"{APPROXIMATE} -k shorter",
        ),
        ("a square that is not completed", "        _diagonal(square).add_(a)\n", ""),
        ("no shift in the square", "        _diagonal(gram).sub_(s)\n", ""),
        (
            "the first Gram matrix for all steps",
            "        if number:\n            gram = x @ x.mT\n",
            "",
        ),
        (
            "the last step left out",
            "half = torch.baddbmm(x, rest, x, beta=0, alpha=size / EXCESS / 2)",
            "half = torch.zeros_like(x)",
        ),
        (
            "the last step on the wrong side",
            "beta=0, alpha=size / EXCESS / 2)",
            "beta=0, alpha=-size / EXCESS / 2)",
        ),
        (
            "the last step rounded to the format of the products",
            "return torch.addcmul(half, x, scale)",
            "return torch.addcmul(half, x, scale.to(x.dtype)).to(scale.dtype)",
        ),
        (
            "a bound that is the mean of the entries",
            "square = torch.linalg.vector_norm(gram, dim=(1, 2), keepdim=True, dtype=_wide(x))",
            "square = _diagonal(gram).to(_wide(x)).mean(1).view(-1, 1, 1)",
        ),
        (
            "a bound for the whole batch",
            "vector_norm(gram, dim=(1, 2), keepdim",
            "vector_norm(gram, keepdim",
        ),
        ("a bound in the wrong power", "square.sqrt()", "square"),
        ("the Gram matrix left undivided", "    gram.div_(square)\n", ""),
        (
            "zero divided by zero",
            "    square = torch.where(square == 0, 1, square)\n",
            "",
            ZERO,
        ),
    ),
    *of(
        "regions/_leading.py",
        LEADING,
        (
            "left and right singular vectors exchanged",
            "return Leading(right, size, left)",
            "return Leading(left, size, right)",
        ),
        (
            "a start that is not a unit",
            "vector = _unit(_start(x).expand(count, rows, 1))",
            "vector = _start(x).expand(count, rows, 1)",
        ),
        (
            "a start that is drawn",
            "numbers = torch.arange(x.shape[1], device=x.device)",
            "numbers = torch.randint(1 << 40, (x.shape[1],), device=x.device)",
        ),
        (
            "a start that is constant",
            "return uniform.erfinv().view(1, -1, 1)",
            "return torch.ones_like(uniform).view(1, -1, 1)",
        ),
        (
            "no reorthogonalisation",
            "_orthogonal(x @ image, basis[:, :, : step + 1])",
            "_orthogonal(x @ image, basis[:, :, max(step - 1, 0) : step + 1])",
        ),
        (
            "orthogonal once, not twice",
            "twice = once - basis @ (basis.mT @ once)",
            "twice = once",
        ),
        (
            "rounding taken for a direction",
            "return torch.where(_length(twice) < _length(once) / 2, 0, _unit(twice))",
            "return _unit(twice)",
        ),
        ("half of the steps", "STEPS = 24", "STEPS = 12"),
        (
            "the images of the last step alone",
            "        images[:, :, step : step + 1] = image\n",
            "        images[:, :, :] = image\n",
        ),
        (
            "the best of the basis, not of the space",
            "        squares = squares @ squares\n",
            "",
        ),
        ("too few squarings", "range(2 - round(", "range(-40 - round("),
        (
            "an eigenvector of another place",
            ".argmax(1).view(-1, 1, 1)",
            ".argmin(1).view(-1, 1, 1)",
        ),
        ("vertices that are too long", "left = _unit(basis @ weights)", "left = basis @ weights"),
        (
            "vertices whose other side is too long",
            "return Leading(left, _length(image), _unit(image))",
            "return Leading(left, _length(image), image)",
        ),
    ),
    *of(
        "regions/_spectral.py",
        PULL,
        (
            "the doubt of the estimate forgotten",
            "* ((1 + DOUBT) / self.radius)",
            "* (0.9 / self.radius)",
        ),
        (
            "the rest beside the Krylov space forgotten",
            "(beside.clamp(min=0) * x.shape[1]).sqrt()",
            "0 * beside",
        ),
        (
            "what the polynomials miss forgotten",
            "math.sqrt(part.shape[2]) * torch",
            "0 * torch",
        ),
        (
            "a pull of any length",
            "factors = self._bounds(points).clamp(min=1).clamp(max=most)",
            "factors = self._bounds(points).clamp(min=1)",
        ),
        (
            "pushed out, too",
            "factors = self._bounds(points).clamp(min=1).clamp(max=most)",
            "factors = self._bounds(points).clamp(max=most)",
        ),
        (
            "no pull at all",
            "most = 1 + SLACK * eps * self._drifts_by(points)",
            "most = 1 + 0 * SLACK * eps * self._drifts_by(points)",
        ),
        (
            "the size of the entries forgotten in a bound",
            "return most * tops.flatten() / self.radius",
            "return most / self.radius",
        ),
        (
            "vertices of the other side by polynomials",
            "return polar(x, -self.radius)",
            "return polar(x, self.radius)",
            VERTICES,
        ),
        (
            "vertices of the other side by Lanczos",
            "return (found.left * -self.radius) @ found.right.mT",
            "return (found.left * self.radius) @ found.right.mT",
            VERTICES,
        ),
        (
            "a decomposition in spite of the method",
            '        if self.method == "svd":\n            return super()._answer(points, piece)\n',
            "        if self.method:\n            return super()._answer(points, piece)\n",
            f"{APPROXIMATE} -k decomposes",
        ),
        (
            "directions that are not scaled",
            "return torch.div(points, torch.where(tops == 0, 1, tops), out=x), tops",
            "return x.copy_(points), tops",
            f"{APPROXIMATE} -k size_of",
        ),
        (
            "zero matrices left to be zero",
            "            _fill(x, tops == 0, piece)\n",
            "            pass\n",
            ZERO,
        ),
        (
            "noise in every matrix of a batch with a zero",
            ") * empty.view(-1, 1)",
            ")",
            "tests/regions/test_ties.py -k 'blocks_draw'",
        ),
        (
            "a mirror that is none",
            "value=-2 / side)",
            "value=-1 / side)",
            ZERO,
        ),
        (
            "any method allowed",
            "if self.method not in self._methods:",
            "if False:",
            f"{APPROXIMATE} -k wrong_method",
        ),
        (
            "the default named in checkpoints",
            'method = "" if self.method == "svd" else f"',
            'method = "" if False else f"',
            f"{APPROXIMATE} -k 'part_of or saved_before'",
        ),
        (
            "the method left out of checkpoints",
            '{radius={self.radius!r}{method})"'[1:],
            'radius={self.radius!r})"',
            f"{APPROXIMATE} -k 'part_of or checkpoint'",
        ),
        (
            "gaps from an approximate oracle",
            'return self if self.method == "svd" else dataclasses.replace(self, method="svd")',
            "return self",
            "tests/test_metrics.py -k gap",
        ),
    ),
    *of(
        "regions/_blocks.py",
        "tests/test_metrics.py -k gap",
        (
            "gaps of blocks from an approximate oracle",
            "return self if inner is self.region else type(self)(inner)",
            "return self",
        ),
    ),
    *of(
        "optim/_move_many.py",
        TOGETHER,
        (
            "matrices all pulled as the first",
            "factors = unit._factors(batch.starts / radii, eps)",
            "factors = unit._factors(batch.starts / radii, eps)[:1]",
        ),
        (
            "matrices pulled as if all radii were one",
            "factors = unit._factors(batch.starts / radii, eps)",
            "factors = unit._factors(batch.starts, eps)",
        ),
        (
            "matrices pulled before their time",
            "due = [work for work in works if recall_due(work.parameter, work.step)]",
            "due = list(works)",
        ),
        (
            "matrices pulled that take no step",
            "moved = batch.spread([work.lr for work in due]) > 0",
            "moved = batch.spread([work.lr for work in due]) >= 0",
        ),
        (
            "matrices never pulled",
            "    if not due:\n        return\n    batch",
            "    return\n    batch",
        ),
    ),
]
