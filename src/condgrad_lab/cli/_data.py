"""`condgrad data`: which data sets are at hand, get them, pack them for another machine."""

from __future__ import annotations

import argparse
from typing import Any

from condgrad_lab.cli import _common
from condgrad_lab.cli._plain import Grid


def add(commands: Any) -> None:
    """Add the commands."""
    parent = commands.add_parser("data", help="the data sets: list, get, pack")
    actions = parent.add_subparsers(required=True, metavar="ACTION", dest="action")
    _common.command(actions, "list", "the data sets, and what the cache has", list_)
    getting = _common.command(actions, "get", "bring data sets into the cache", get)
    getting.add_argument("names", metavar="NAME", nargs="+")
    getting.add_argument("--from", dest="folder", metavar="DIR", help="from files that lie there")
    packing = _common.command(actions, "pack", "write a data set as small checked pieces", pack)
    packing.add_argument("name", metavar="NAME")
    packing.add_argument("--max-size", default="60MiB", metavar="SIZE", help="of a piece (60MiB)")
    packing.add_argument("--to", default=".", metavar="DIR", help="where to write them (here)")
    packing.add_argument("--from", dest="folder", metavar="DIR", help="of files that lie there")


def list_(arguments: argparse.Namespace) -> int:
    """The data sets and their state in the cache."""
    from condgrad_lab import data

    table = Grid(("name", "data set", "state", "MB", "source"))
    for entry in data.listing():
        size = f"{entry.bytes / 1e6:.0f}" if entry.bytes else ""
        table.add_row(entry.name, entry.title, entry.state, size, entry.source)
    _common.console().print(table)
    return 0


def get(arguments: argparse.Namespace) -> int:
    """Bring data sets into the cache, from a folder or from wherever they can be had."""
    from condgrad_lab import data

    for name in _known(arguments.names):
        entry = data.get(name, folder=arguments.folder)
        text = f"{name}: {entry.folder} (from {entry.source})"
        _common.console().print(text, soft_wrap=True, markup=False)
    return 0


def pack(arguments: argparse.Namespace) -> int:
    """Write a data set in pieces."""
    from condgrad_lab import data

    (name,) = _known([arguments.name])
    try:
        paths = data.pack(name, arguments.to, arguments.max_size, folder=arguments.folder)
    except ValueError as error:  # a size that is none, or too small
        raise _common.UsageError(str(error)) from None
    for path in paths:
        _common.console().print(str(path), soft_wrap=True, markup=False)
    return 0


def _known(names: list[str]) -> list[str]:
    from condgrad_lab import data

    if strangers := [name for name in names if name not in data.NAMES]:
        known = ", ".join(data.NAMES)
        raise _common.UsageError(f"there is no data set {strangers[0]!r}; there are {known}")
    return names
