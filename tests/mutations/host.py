"""Mutants of the host's own kernels."""

from mutants import of

ASKED = "tests/kernels/asked/test_steps.py tests/kernels/asked/test_draws.py"
NUMBERS = "tests/kernels/asked/test_numbers.py"
ALONE = "tests/kernels/test_cpp.py"

MUTANTS = [
    *of(
        "kernels/host/step.cpp",
        ASKED,
        ("a draw's other bit", "scramble(first + j, p.key) & 1", "scramble(first + j, p.key) & 2"),
        ("the key without the step", "uint64_t(*row.step), scramble", "uint64_t(0), scramble"),
        ("the key without the seed", "scramble(row.seed, 0)", "scramble(0, 0)"),
        ("ties of rows counted from each row", "const int64_t place = number * row.size + i",
         "const int64_t place = i", NUMBERS),
        ("entries as they lie in memory", "within % row.mid * row.inner + within / row.mid",
         "within", NUMBERS),
        ("the last of ties wins", "row.random ? int64_t(noise(i)) : -entry(i)",
         "row.random ? int64_t(noise(i)) : entry(i)"),
        ("the origin never ties", "best.priority <= p.rank_of_none()", "false"),
        ("the cube wins ties", "m.drawn = (p.rank_of_none() & 2) != 0", "m.drawn = true"),
        ("a spike towards the gradient", "d > 0 ? T(-1) : d < 0 ? T(1) : -draw",
         "d > 0 ? T(1) : d < 0 ? T(-1) : -draw"),
        ("the box turned around", "(v[j] < 0 ? T(row.high) : T(row.low))",
         "(v[j] < 0 ? T(row.low) : T(row.high))"),
        ("corners as long as the radius", "T(row.radius / std::sqrt(double(row.size)))",
         "T(row.radius)"),
        ("the average takes all", "m[i] += fresh * (sign * g[i] - m[i])",
         "m[i] += sign * g[i] - m[i]"),
        ("ascent forgotten", "turned[i] = -g[i]", "turned[i] = g[i]", ALONE),
        ("lr not over the diameter", "std::min(row.rate / row.diameter, 1.0)",
         "std::min(row.rate, 1.0)"),
        ("the gap of the last row alone", "gap += squared_gap", "gap = squared_gap"),
        ("the length of the last row alone", "squares += found[r].norm", "squares = found[r].norm"),
        ("from the wrong end", "x[j] = v[j] - (v[j] - x[j]) * (1 - length)",
         "x[j] = v[j] - (v[j] - x[j]) * length"),
        ("free parameters ascend", "theta[i] -= rate * d[i]", "theta[i] += rate * d[i]"),
        ("one too few taken of equals", "(k - few - 1)", "(k - few)"),
        ("the sample is believed", "if (many < k) many = reaching(p.d, n, least = 0);", "", ALONE),
        ("the sample's other side is believed",
         "if (few >= k) few = reaching(p.d, n, beyond = ~Bits(0));", "", ALONE),
        ("a poisoned selection passes for sound", "m.rest = row.ruled && std::isfinite(m.norm) ? "
         "T(0) : poison(p.d, row.size)", "m.rest = 0", NUMBERS),
        ("squares that overflow", "(sum > 1e-260 && sum < 1e300)", "true", ALONE),
        ("a reciprocal that overflows", "exponent = std::clamp(-exponent,",
         "exponent = std::clamp(0,", ALONE),
    ),
    *of(
        "kernels/_step.py",
        NUMBERS,
        ("nobody is left to others", "self.rest = present.others", "self.rest = frozenset()"),
        ("a sparse gradient's address", "check_dense(gradient, optimizer)", "pass"),
    ),
    *of(
        "kernels/host/_plan.py",
        ALONE,
        ("never pulled inside", "                point.copy_(member.region._recalled(point))",
         "                pass", ASKED),
        ("rates of other groups", "row.rate = numbers[owner]", "row.rate = numbers[0]", ASKED),
        ("stale radii", "setattr(row, name, value)", "pass", ASKED),
        ("gradients of other parameters", "row.gradient = addresses[place]",
         "row.gradient = addresses[0]", ASKED),
    ),
]  # fmt: skip
