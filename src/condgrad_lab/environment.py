"""The machine and the versions behind a record: what a reader needs to doubt or repeat a number.

Neither host names nor paths: records are published.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

_PACKAGES = ("condgrad", "torch", "numpy")


@functools.cache
def environment(device: str = "cpu") -> dict[str, str]:
    """Versions, platform and processor, and the accelerator where the run used one."""
    import torch

    found = {name: _version(name) for name in _PACKAGES}
    found["torch"] = torch.__version__
    found["python"] = platform.python_version()
    found["platform"] = f"{platform.system()} {platform.machine()}"
    found["processor"] = _processor()
    if device == "cuda":
        found["cuda"] = torch.version.cuda or "none"
        found["accelerator"] = torch.cuda.get_device_name()
    if commit := _commit():
        found["commit"] = commit
    return found


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # a source tree that was never installed
        return importlib.import_module(name).__version__


def _processor() -> str:
    # platform.processor() is empty or just "x86_64" on most Linux machines.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def _commit() -> str | None:
    """The commit of the source tree, `+` if it has changes; None for an installed package.

    A copy of a tree without its repository is told by $CONDGRAD_COMMIT which commit it is of.
    """
    if told := os.environ.get("CONDGRAD_COMMIT"):
        return told
    here = Path(__file__).resolve().parent
    git = ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        # Only a tree that holds this very file: a package installed inside someone else's
        # repository must not carry that repository's commit.
        subprocess.run([*git[:3], "ls-files", "--error-unmatch", Path(__file__).name],
                       check=True, capture_output=True, timeout=10)  # fmt: skip
        return subprocess.run(
            git, check=True, capture_output=True, text=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
