"""What Triton makes of the kernels for an H200: their resources, and the least time they take.

    PYTHONPATH=src python benchmarks/compiled.py                 the tables of docs/performance.md
    PYTHONPATH=src python benchmarks/compiled.py --which few     what the tests compile
    PYTHONPATH=src python benchmarks/compiled.py --which triples any three settings together
    PYTHONPATH=src python benchmarks/compiled.py --which all     every variant: about an hour

It needs Triton, whose wheel carries the compiler and the disassembler, and no device. Every time is
a prediction from counted bytes and instructions; nothing is measured.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import offline  # noqa: E402
import torch  # noqa: E402
from shapes import MODELS  # noqa: E402
from variants import WHICH, Choice, launches  # noqa: E402

BANDWIDTH = 4.2e12
"""Bytes a second that a copy on an H200 has been seen to read and write."""
CLOCK = 1.7e9
RATES = {"instructions": 128, "f64": 64, "conversions": 16}
"""What a multiprocessor does at most in a cycle, by NVIDIA's tables."""
NETWORKS = ("densenet121", "wideresnet28x10", "resnext50", "transformer")


def traffic(launch: Any) -> tuple[int, int]:
    """The bytes per entry that the launch must read and write; ties, where it ends early, none."""
    c = offline.constants(launch)
    name, kind = launch.kernel.__name__, _kind(c)
    g, m, x = (
        c[f"{each}_TYPE"].primitive_bitwidth // 8 if f"{each}_TYPE" in c else 0 for each in "GMX"
    )
    d = m if c.get("AVERAGED") else g
    if name == "measure":
        far = x if c["RULE"] and kind not in ("LP", "KSPARSE") else 0
        return g + far + (m if c["AVERAGED"] else 0), m if c["AVERAGED"] else 0
    if name == "gap":
        return d + x, 0
    if name == "update" and not c["MEASURED"]:
        return g + x + (m if c["AVERAGED"] else 0), x + (m if c["AVERAGED"] else 0)
    if name == "update":
        return x + (0 if kind in ("L1", "USIMPLEX", "PSIMPLEX") else d), x
    if name in ("count_digits", "select_small") and c["SOURCE"] != "theta":
        first = name == "count_digits" and c["SHIFT"] == 23
        return 0 if first else c["TYPE"].primitive_bitwidth // 8, 0
    return 0, 0


def _kind(constants: dict[str, Any]) -> str:
    from condgrad.kernels.gpu._tables import KINDS

    return KINDS.split()[constants["KIND"]] if "KIND" in constants else ""


def row(launch: Any, deep: bool) -> dict[str, Any]:
    """What is to be said of a launch; of its machine code only if asked."""
    kernel = offline.compiled(launch)
    registers, spilled = offline.usage(kernel)
    threads = 32 * kernel.metadata.num_warps
    fit = offline.REGISTERS // (-(-registers // 8) * 8 * threads)
    reads, writes = traffic(launch)
    found: dict[str, Any] = {
        "kernel": launch.kernel.__name__,
        "constants": _constants(launch),
        "registers": registers,
        "spilled": spilled,
        "shared": kernel.metadata.shared,
        "programs": min(fit, offline.THREADS // threads, 32),
        "reads": reads,
        "writes": writes,
        "narrow": _narrow(launch, kernel) if reads else False,
    }
    return found | (_bounds(launch, kernel, reads, writes) if deep and reads else {})


def _narrow(launch: Any, kernel: Any) -> bool:
    """Whether it reads tensors that lie well, and yet never 16 bytes at a time.

    Small points are left out: a program reads one of them once, in any order.
    """
    wide = re.search(r"ld\.global\S*\.(v4\.b32|v2\.b64)", kernel.asm["ptx"])
    aligned = offline.constants(launch)["ALIGNED"] and launch.kernel.__name__ != "select_small"
    return bool(aligned and not wide)


def _bounds(launch: Any, kernel: Any, reads: int, writes: int) -> dict[str, Any]:
    """Per entry: instructions, and the picoseconds that they and the bytes take on a device."""
    counts = launch.kernel.__name__ == "count_digits"  # where what a branch may skip is the work
    loops = offline.loops(kernel, *([1 << 30] if counts else []))
    if not loops:
        return {}
    entries = [16 * loops[0].counts["LDG.128"] / reads]
    if launch.kernel.__name__ == "measure" and _kind(offline.constants(launch)) == "LP":
        powers = max(loops, key=lambda loop: loop.of("DFMA"))  # takes the direction a second time
        d = offline.constants(launch)["M_TYPE"].primitive_bitwidth // 8
        loops, entries = [loops[0], powers], [*entries, 16 * powers.counts["LDG.128"] / d]

    def each(*names: str) -> float:
        return sum(loop.of(*names) / n for loop, n in zip(loops, entries, strict=False))

    found = {
        "instructions": each(""),
        "f64": each("DFMA", "DADD", "DMUL", "DSETP", "DMNMX"),
        "conversions": each("F2F", "I2F", "F2I", "FRND", "POPC"),
    }
    rate = offline.MULTIPROCESSORS * CLOCK
    times = {name: 1e12 * found[name] / each / rate for name, each in RATES.items()}
    times["memory"] = 1e12 * (reads + writes) / BANDWIDTH
    return {**found, "ps": times, "bound": max(times, key=lambda name: times[name])}


def unlike(choices: Iterable[Choice]) -> Iterator[tuple[Choice, list[int]]]:
    """The choices, each with the places of the launches that no earlier one brings about."""
    known: set[str] = set()
    for choice in choices:
        fresh = []
        for place, launch in enumerate(launches(choice)):
            key = str([launch.kernel.__name__, sorted(_constants(launch).items())])
            if key not in known:
                known.add(key)
                fresh.append(place)
        if fresh:
            yield choice, fresh


def rows(asked: tuple[Choice, list[int]], deep: bool = False) -> list[dict[str, Any]]:
    """A row for each of these launches of the choice."""
    choice, places = asked
    every = launches(choice)
    return [{"choice": _told(choice), **row(every[place], deep)} for place in places]


def _constants(launch: Any) -> dict[str, str]:
    return {name: str(value) for name, value in offline.constants(launch).items()}


def _told(choice: Choice) -> str:
    return ", ".join(str(value).removeprefix("torch.") for value in choice)


def ahead(which: str, jobs: int) -> list[str]:
    """Compile these variants into Triton's cache, in other processes; what was refused, and why."""
    choices = [choice for choice in WHICH[which]() if choice.sensible()]
    # Started anew, not forked: whoever calls this may already talk to a device.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        return [told for told in pool.map(_refused, choices, chunksize=2) if told]


def _refused(choice: Choice) -> str | None:
    try:
        for launch in launches(choice):
            offline.compiled(launch)
    except Exception as error:  # of any kind: the others go on
        return f"{_told(choice)}: {type(error).__name__}: {error}"[:300]
    return None


def table(found: list[dict[str, Any]]) -> str:
    """The rows as text."""
    lines = [
        f"{'kind':9}{'rule':6}{'kernel':14}{'regs':>5}{'spill':>6}{'a SM':>5}{'bytes':>6}"
        f"{'instr':>7}{'f64':>6}{'conv':>6}  {'ps: memory, instructions, f64, conversions':44}"
    ]
    for each in found:
        c = each["constants"]
        kind = _kind({"KIND": int(c["KIND"])}) if "KIND" in c else each["choice"].split(",")[0]
        line = (
            f"{kind:9}{'grad' if c.get('RULE') == 'True' else '':6}{each['kernel']:14}"
            f"{each['registers']:5}{each['spilled']:6}{each['programs']:5}"
        )
        if "ps" in each:
            times = [each["ps"][name] for name in ("memory", *RATES)]
            line += (
                f"{each['reads'] + each['writes']:6}{each['instructions']:7.1f}{each['f64']:6.1f}"
                f"{each['conversions']:6.1f}  " + " ".join(f"{ps:6.2f}" for ps in times)
            )
            line += f"  {each['bound']}"
        lines.append(line)
    return "\n".join(lines)


def floors() -> str:
    """The least time of a step by its bytes, for every kind and network, as text."""
    sizes = {name: sum(torch.Size(s).numel() for s in MODELS[name]()) for name in NETWORKS}
    lines = [f"{'predicted floor, µs':28}{'passes':>7}" + "".join(f"{n:>17}" for n in NETWORKS)]
    for choice in WHICH["usual"]():
        if choice.entries < max(sizes.values()) and choice != Choice(choice.kind, choice.rule):
            continue
        moved = sum(sum(traffic(launch)) for launch in launches(choice))
        times = [1e6 * moved * n / BANDWIDTH for n in sizes.values()]
        lines.append(
            f"{choice.kind:12}{choice.rule!s:16}{moved / 4:7.0f}"
            + "".join(f"{t:17.0f}" for t in times)
        )
    return "\n".join(lines)


def main() -> int:
    """Compile and report; 1 if a kernel spills registers, or reads in small pieces."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--which", choices=tuple(WHICH), default="usual")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="a JSON file")
    given = parser.parse_args()
    reason = offline.missing()
    if reason:
        print(f"nothing can be compiled here: {reason}")
        return 2
    asked = unlike(choice for choice in WHICH[given.which]() if choice.sensible())
    read = functools.partial(rows, deep=given.which == "usual")
    if given.jobs > 1:
        with ProcessPoolExecutor(given.jobs) as pool:
            found = list(itertools.chain.from_iterable(pool.map(read, asked)))
    else:
        found = list(itertools.chain.from_iterable(map(read, asked)))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    if given.which == "usual":
        print(floors())
    spilled = [each for each in found if each["spilled"]]
    narrow = [each for each in found if each.get("narrow")]
    print(
        f"{len(found)} kernels compiled, {len(spilled)} with spilled registers, "
        f"{len(narrow)} that read no 16 bytes at a time"
    )
    for each in spilled + narrow:
        print(f"  {each['kernel']}: {each['choice']}")
    return int(bool(spilled or narrow))


if __name__ == "__main__":
    sys.exit(main())
