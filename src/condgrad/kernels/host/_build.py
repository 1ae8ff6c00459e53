"""Builds `step.cpp` with the machine's own compiler, once, and keeps what comes out."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

SOURCE = Path(__file__).with_name("step.cpp")
FLAGS = ("-std=c++17", "-O3", "-fopenmp-simd", "-fPIC", "-shared")
LEVELS = {"AVX2": "-march=x86-64-v3", "AVX512": "-march=x86-64-v4"}
"""What the compiler may assume of the processor, which is what PyTorch's own kernels assume."""


class CannotBuildError(Exception):
    """There is no compiler, or it refuses."""


def missing() -> str | None:
    """Why there are no kernels for the host; None if there are. Builds them if need be."""
    found = _built()
    return found if isinstance(found, str) else None


def library() -> ctypes.CDLL:
    """The kernels, once `missing` has said that they are there."""
    found = _built()
    assert not isinstance(found, str), found
    return found


@functools.cache
def _built() -> ctypes.CDLL | str:
    try:
        return _loaded(_file(_command()))
    except (CannotBuildError, OSError) as error:
        return str(error)


def _command() -> list[str]:
    compiler = os.environ.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++"))), None)
    if compiler is None:
        raise CannotBuildError("no C++ compiler was found: install one, or name it in CXX")
    level = LEVELS.get(torch.backends.cpu.get_cpu_capability())
    return [compiler, *FLAGS, *([level] if level else [])]


def _file(command: list[str]) -> Path:
    """The built library, from the user's cache if this source was built there before."""
    words = "\0".join([*command, platform.machine(), SOURCE.read_text(encoding="utf-8")])
    name = f"step-{hashlib.sha256(words.encode()).hexdigest()[:16]}.so"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "condgrad"
    if not (folder / name).exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _build(command, folder, name)
        except (FileExistsError, NotADirectoryError, PermissionError):  # no home to write to
            # For this process alone.
            folder = Path(tempfile.mkdtemp(prefix="condgrad-"))
            _build(command, folder, name)
    return folder / name


def _build(command: list[str], folder: Path, name: str) -> None:
    """Build beside its place and move it there: others may be building the same."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as room:
        out = Path(room) / name
        done = subprocess.run(
            [*command, "-o", str(out), str(SOURCE)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CannotBuildError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
        out.replace(folder / name)


def _loaded(path: Path) -> ctypes.CDLL:
    from ._table import Row

    found = ctypes.CDLL(str(path))
    found.condgrad_row_bytes.restype = ctypes.c_int64
    found.condgrad_step.restype = ctypes.c_int64
    found.condgrad_step.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    if found.condgrad_row_bytes() != ctypes.sizeof(Row):
        raise CannotBuildError(f"{path} was built for another table")
    return found
