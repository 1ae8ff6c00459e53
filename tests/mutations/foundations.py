"""Mutants of what all regions stand on: measurements, draws, checks, projections."""

from mutants import of

CONTRACT = "tests/regions/test_contract.py"
DIAMETER = f"{CONTRACT} -k diameter"
INSIDE = f"{CONTRACT} -k 'violation or inside or outside or beyond'"
TIES = "tests/regions/test_ties.py"
NUMBERS = "tests/regions/test_numbers.py"
ERRORS = "tests/regions/test_errors.py"
PROJECTIONS = "tests/regions/test_projections.py"

MUTANTS = [
    *of(
        "regions/_measure.py",
        TIES,
        (
            "ties to the first entry",
            "return self.noise(like) if self.random else -self._entries(like)",
            "return -self._entries(like)",
        ),
        (
            "as many at the threshold as there are above it",
            "room = 1 if single else k - (yield Sum(values > threshold))",
            "room = 1 if single else k",
        ),
        (
            "the last of the tied forgotten",
            "(piece.priority(values) >= choice.last)",
            "(piece.priority(values) > choice.last)",
        ),
        (
            "the K-th largest one off in batches",
            "kth = flat.kthvalue(flat.shape[-1] - k + 1, -1).values",
            "kth = flat.kthvalue(flat.shape[-1] - k, -1).values",
            f"{CONTRACT} -k 'PerRow or PerFilter'",
        ),
        (
            "norms of tiny and huge numbers as they come",
            "return number if low < number < high else self._scaled_norm(x, order).item()",
            "return number",
            NUMBERS,
        ),
    ),
    *of(
        "regions/_ties.py",
        TIES,
        (
            "draws that depend on the seed alone",
            "            for word in self.words:",
            "            for word in self.words[:1]:",
            "tests/optim/test_sfw.py -k zero_directions",
        ),
        (
            "together, draws that depend on the seed alone",
            "    for word in words:\n        key =",
            "    for word in words[:1]:\n        key =",
            "tests/optim/test_many.py",
        ),
        (
            "the generator that was given is not asked",
            "torch.randint(1 << 62, (), generator=generator, device=device)",
            "torch.randint(1 << 62, (), device=device)",
        ),
    ),
    *of(
        "regions/_base.py",
        INSIDE,
        (
            "what is not finite pulled inside",
            "self._recalls(torch.where(finite, points, 0), torch.finfo(x.dtype).eps)",
            "self._recalls(points, torch.finfo(x.dtype).eps)",
            "tests/optim/test_contract.py tests/optim/test_feasibility.py -k 'outlasts or nowhere'",
        ),
        (
            "negative and infinite radii allowed",
            "if not (value > 0 and math.isfinite(value)):",
            "if value == 0:",
            ERRORS,
        ),
        (
            "reductions in half precision",
            "return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x",
            "return x",
            NUMBERS,
        ),
        (
            "from_diameter the wrong way round",
            "return cls(radius=wanted / size, **kw)",
            "return cls(radius=wanted * size, **kw)",
            DIAMETER,
        ),
        (
            "an empty tensor taken for a point",
            "if math.prod(shape) == 0:",
            "if len(shape) > 9:",
            ERRORS,
        ),
        (
            "whole numbers taken for entries",
            "if not x.is_floating_point() or x.layout is not torch.strided:",
            "if x.layout is not torch.strided:",
            ERRORS,
        ),
        (
            "a matrix with NaN lies inside",
            "return torch.where(finite.view(-1), excesses, torch.inf).amax().clamp(min=0)",
            "return excesses.amax().clamp(min=0)",
            "tests/optim/test_errors.py -k NuclearBall",
        ),
        (
            "directions with NaN get a vertex",
            "return torch.where(finite, vertices, torch.nan)",
            "return vertices",
            f"{NUMBERS} -k finite",
        ),
    ),
    *of(
        "regions/_projections.py",
        PROJECTIONS,
        (
            "L1 projection that loses signs",
            "return _closed(points, x.sign() * _tips(sizes, radius), finite, inside)",
            "return _closed(points, _tips(sizes, radius), finite, inside)",
        ),
        (
            "unit simplex always onto its face",
            "torch.where(fits, positive, _tips(x, total))",
            "_tips(x, total)",
        ),
        (
            "multiplier of an Lp ball stopped early",
            "    excess = low\n    for _ in range(60):",
            "    excess = low\n    for _ in range(4):",
        ),
        (
            "entries of an Lp projection stopped early",
            "    sway = log_u\n    for _ in range(60):",
            "    sway = log_u\n    for _ in range(2):",
        ),
        (
            "K-sparse projection that forgets its bound",
            "cut = (_depth(depths, volume, radius) - depths).clamp(0, radius)",
            "cut = (_depth(depths, volume, radius) - depths).clamp(min=0)",
        ),
        (
            "K-norm projection at half its level",
            "    return torch.where(F_ends[:, :1] < 0, root, 0.0)",
            "    return torch.where(F_ends[:, :1] < 0, root / 2, 0.0)",
        ),
        (
            "permutahedron without regression",
            "fit = isotonic(levelled - rungs)",
            "fit = levelled - rungs",
        ),
        (
            "singular values not clipped",
            "nearest = (left * values.clamp(max=radius).unsqueeze(1)) @ right",
            "nearest = (left * values.unsqueeze(1)) @ right",
        ),
        (
            "points that are not finite projected to zero",
            "return nearest.masked_fill(~finite, torch.nan)",
            "return nearest",
        ),
        (
            "points inside moved by rounding",
            "        nearest = torch.where(inside, points, nearest)\n    return nearest.",
            "        pass\n    return nearest.",
        ),
    ),
    *of(
        "regions/_isotonic.py",
        PROJECTIONS,
        (
            "levels not averaged over the pool",
            "/ (tail + head).clamp(min=1)",
            "/ (tail + head + 1).clamp(min=1)",
        ),
        (
            "pools that never grow beyond the seam",
            "tail = (phi_left < 0).sum(-1, keepdim=True).clamp(min=1)",
            "tail = (phi_left < 0).sum(-1, keepdim=True).clamp(1, 1)",
        ),
    ),
]
