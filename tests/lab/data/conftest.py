import gzip
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from condgrad_lab.data.progress import Progress
from lab.data import tiny
from lab.data.server import Web, serving


@pytest.fixture
def web() -> Iterator[Web]:
    """A server of the tiny data set, compressed as the official ones are."""
    with serving() as web:
        web.files = {
            f"/{name}.gz": gzip.compress(data, mtime=0) for name, data in tiny.CONTENTS.items()
        }
        yield web


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


class Diary(Progress):
    """A display that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here runs offline: whoever reaches beyond this machine fails."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a test reaches for {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
