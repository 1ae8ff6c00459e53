"""What can go wrong with data: they are not there, or they are not what they should be."""

from __future__ import annotations

from pathlib import Path


class DataError(Exception):
    """Data could not be had; the message says why and what to do."""


class DataMissingError(DataError):
    """No source has the data, or a file of them is missing."""


class DataDamagedError(DataError):
    """A file is there, but truncated, corrupt, or another file than its name says."""


REPLACE = "replace it by a good copy, or take the data from another source"


def damaged(file: str | Path, found: str, remedy: str = REPLACE) -> DataDamagedError:
    """The error for a bad file: its name, what was found, what to do."""
    return DataDamagedError(f"`{file}` is damaged: {found}; {remedy}")
