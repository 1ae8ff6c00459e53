"""The kernels compiled for a Hopper GPU where there is none, and what their machine code says.

Triton's wheel carries the compiler, and asks the driver only which device there is: a stand-in
answers that. The launches are those that the library prepares, taken with the types, constants and
hints that Triton's own launcher would find.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from typing import Any, NamedTuple

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

MULTIPROCESSORS, REGISTERS, THREADS = 132, 65536, 2048
"""Of an H200: its multiprocessors, and the registers and threads that each holds."""


class Hopper:
    """As much of a driver as the compiler asks: the device it compiles for."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


RARE = 40
"""The instructions that a branch may skip and that are then taken for rare."""


def missing() -> str | None:
    """Why nothing can be compiled here; None if it can."""
    for tool in ("ptxas", "cuobjdump"):
        try:
            getattr(triton.knobs.nvidia, tool).path  # noqa: B018
        except Exception as error:  # Triton raises what its version chooses
            return f"Triton's {tool} is missing: {error}"
    return "Triton's interpreter is switched on" if triton.knobs.runtime.interpret else None


def compiled(launch: Any) -> Any:
    """The launch's kernel, compiled as its first launch would compile it."""
    if not isinstance(driver._active, Hopper):
        driver.set_active(Hopper())  # pyright: ignore[reportArgumentType]
    arguments = {**launch.arguments, "moving": torch.zeros(3, dtype=torch.int64)}
    return launch.kernel.warmup(grid=launch.grid, **arguments, **launch.options)


def constants(launch: Any) -> dict[str, Any]:
    """The values that are built into the launch's kernel."""
    names = [launch.kernel.arg_names[place] for place in launch.kernel.constexprs]
    return {name: launch.arguments[name] for name in names}


class Loop(NamedTuple):
    """A loop of the machine code: how often each instruction stands in its usual path.

    What is rare is left out: the draws of ties and the answers to a direction of zero.
    """

    length: int
    counts: Counter[str]

    def of(self, *names: str) -> int:
        """The number of instructions whose names begin so."""
        return sum(n for name, n in self.counts.items() if name.startswith(names))


def usage(kernel: Any) -> tuple[int, int]:
    """The registers of each thread, and the bytes for which they do not suffice."""
    found = dict(re.findall(r"(REG|STACK):(\d+)", _dumped("-res-usage", kernel)))
    return int(found["REG"]), int(found["STACK"])


def loops(kernel: Any, rare: int = RARE) -> list[Loop]:
    """The loops that handle whole blocks, 16 bytes at a time; those that store come first.

    Stretches of more than `rare` instructions that a branch may skip are not counted.
    """
    text = _dumped("-sass", kernel)
    lines = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", text, re.MULTILINE)
    found = _loops([(int(address, 16), text) for address, text in lines], rare)
    wide = [loop for loop in found if loop.counts["LDG.128"]]
    return sorted(wide, key=lambda loop: (not loop.counts["STG.128"], -loop.length))


def _dumped(option: str, kernel: Any) -> str:
    """What the disassembler says of a compiled kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, option, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _name(text: str) -> str:
    """The instruction's name; of accesses to memory with the width, of conversions with types."""
    name = re.sub(r"^@!?U?P\w+\s+", "", text).split()[0]
    first, *rest = name.split(".")
    if first in ("LDG", "STG"):
        return f"{first}.128" if "128" in rest else f"{first}.{'64' if '64' in rest else '32'}"
    return name if first == "F2F" else first


def _jump(text: str) -> int | None:
    """Where the instruction jumps to, if it does."""
    target = re.search(r"0x([0-9a-f]+)\s*$", text) if _name(text) == "BRA" else None
    return int(target[1], 16) if target else None


def _loops(code: list[tuple[int, str]], most: int) -> list[Loop]:
    """The stretches between a jump back and where it goes."""
    places = {address: place for place, (address, _) in enumerate(code)}
    found = []
    for place, (_, text) in enumerate(code):
        begin = places.get(_jump(text) or -1, place + 1)
        if begin <= place:
            rare = _rare(code, places, begin, place, most)
            body = [code[n] for n in range(begin, place + 1) if n not in rare]
            found.append(Loop(place + 1 - begin, Counter(_name(text) for _, text in body)))
    return found


def _rare(
    code: list[tuple[int, str]], places: dict[int, int], begin: int, end: int, most: int
) -> set[int]:
    """The places within a loop that a branch skips, where it skips many."""
    found: set[int] = set()
    for place in range(begin, end):
        target = places.get(_jump(code[place][1]) or -1, -1)
        if code[place][1].startswith("@") and place + most < target <= end:
            found |= set(range(place + 1, target))
    return found
