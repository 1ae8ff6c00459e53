"""What can be asked on the command line, and how an answer becomes an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from condgrad_lab.cli import _data, _look, _run
from condgrad_lab.cli._common import EXIT_CODES, UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Answer a command line; returns the exit code."""
    arguments = _parser().parse_args(argv)
    # Runs need no more than this: a machine that only trains may lack what draws and shows.
    if not find_spec("numpy"):
        return _refuse("numpy is missing; install 'condgrad[lab]'")
    # Only now: `--help` and mistakes are answered without waiting for torch.
    from condgrad_lab.data import DataError
    from condgrad_lab.store import RecordError

    try:
        return arguments.answer(arguments)
    except (UsageError, DataError, RecordError) as error:
        return _refuse(str(error))
    except OSError as error:  # a folder that cannot be written, a disk that is full
        named = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{named}{error.strerror or error}")
    except KeyboardInterrupt:
        sys.stderr.write("condgrad: stopped; the same command goes on from here\n")
        return 130


def _refuse(text: str) -> int:
    sys.stderr.write(f"condgrad: {text}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "condgrad",
        description="The figures and tables of the paper from real data, in one command.",
        epilog=EXIT_CODES,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for room in (_run, _look, _data):
        room.add(commands)
    return parser
