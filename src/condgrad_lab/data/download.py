"""Fetching a file by its address: no retries, short waits, because another source comes next."""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from condgrad_lab.data.errors import DataMissingError
from condgrad_lab.data.progress import Progress

TIMEOUT = 6.0  # seconds without an answer, or without another byte
CHUNK = 1 << 18


def download(url: str, folder: Path, progress: Progress, timeout: float = TIMEOUT) -> Path:
    """The file at `url`, put into `folder` under its own name."""
    path = folder / Path(urlsplit(url).path).name
    request = Request(url, headers={"User-Agent": "condgrad"})
    try:
        with urlopen(request, timeout=timeout) as reply, path.open("wb") as file:
            expected = int(reply.headers.get("Content-Length") or 0)
            with progress.task(url, expected or None) as advance:
                while chunk := reply.read(CHUNK):
                    file.write(chunk)
                    advance(len(chunk))
    except HTTPError as error:
        error.close()
        raise DataMissingError(f"{url}: {error.code} {error.reason}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise DataMissingError(f"{url}: {_why(error)}") from error
    if expected and path.stat().st_size != expected:
        got = path.stat().st_size
        raise DataMissingError(f"{url}: ended after {got:,} of {expected:,} bytes")
    return path


def _why(error: Exception) -> str:
    cause = getattr(error, "reason", error)
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
