"""Checksums: a file is what its SHA-256 says, whatever its name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from condgrad_lab.data.errors import REPLACE, damaged

Buffer = bytes | bytearray
Files = Mapping[str, Buffer]


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(content: Buffer) -> str:
    return hashlib.sha256(content).hexdigest()


def expect(label: str | Path, found: str, accepted: Iterable[str], remedy: str = REPLACE) -> None:
    """Raise unless the sum `found` is one of those `accepted`."""
    accepted = tuple(accepted)
    if found not in accepted:
        known = " or ".join(sum_[:16] + "…" for sum_ in accepted)
        raise damaged(label, f"its SHA-256 is {found[:16]}…, expected {known}", remedy)
