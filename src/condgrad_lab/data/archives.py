"""Reading files, compressed files and members of archives into memory."""

from __future__ import annotations

import gzip
import re
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from condgrad_lab.data.errors import DataError, damaged

_BROKEN = (EOFError, OSError, zlib.error, tarfile.TarError)


def content_of(path: Path) -> bytes:
    """A file's bytes, decompressed when its name ends in ``.gz``."""
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except _BROKEN as error:
        raise damaged(path, f"it cannot be decompressed ({error})") from error


def members_of(path: Path, wanted: str) -> dict[str, bytes]:
    """The members of a tar archive or Debian package whose path matches, by the match's group.

    Members that are themselves compressed are decompressed.
    """
    pattern = re.compile(wanted)
    contents = {}
    try:
        with _opened(path) as archive:
            for member in archive:
                match = pattern.fullmatch(member.name)
                file = archive.extractfile(member) if match else None
                if match and file:
                    content = file.read()
                    inflate = member.name.endswith(".gz")
                    contents[match[1]] = gzip.decompress(content) if inflate else content
    except _BROKEN as error:
        raise damaged(path, f"it cannot be unpacked ({error})") from error
    return contents


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    if path.suffix != ".deb":
        with tarfile.open(path, "r|*") as archive:
            yield archive
        return
    with _debian(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        yield archive


@contextmanager
def _debian(path: Path) -> Iterator[IO[bytes]]:
    # dpkg-deb knows the container and its compressions; it needs no root to write to a pipe.
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise DataError(f"`{path}` is a Debian package, and dpkg-deb is not installed") from error
    with process:
        assert process.stdout is not None
        yield process.stdout
        process.stdout.read()
    if process.returncode:
        raise EOFError(f"dpkg-deb ended with code {process.returncode}")
