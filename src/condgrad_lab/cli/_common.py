"""What the commands share: the artifacts that are named, where records lie, how seeds are said."""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condgrad_lab.artifact import Artifact, Results
    from condgrad_lab.store import Store

EXIT_CODES = (
    "exit codes: 0 well done, 1 a claim is missed or a run failed, 2 wrong usage or no data, "
    "3 something is missing yet, 130 interrupted"
)


class UsageError(Exception):
    """Something was asked for that there is not."""


def command(
    commands: Any, name: str, text: str, answer: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """A new command and the function that answers it."""
    parser = commands.add_parser(name, help=text, description=text, epilog=EXIT_CODES)
    parser.set_defaults(answer=answer)
    return parser


def out_option(parser: argparse.ArgumentParser) -> None:
    """Where the records lie."""
    parser.add_argument("--out", default="runs", metavar="DIR", help="the records' folder (runs)")


def artifact_options(parser: argparse.ArgumentParser, *, all_by_default: bool = True) -> None:
    """Which artifacts, at which scale, of which seeds."""
    parser.add_argument(
        "artifacts",
        metavar="ARTIFACT",
        nargs="*" if all_by_default else "+",
        help="such as figure-8, or all" + (" (all)" if all_by_default else ""),
    )
    parser.add_argument(
        "--scale", default="paper", help="smoke, small (figures), short (tables) or paper (paper)"
    )
    parser.add_argument(
        "--seeds", type=seeds, metavar="N", help="5: the first five; 3-7 or 0,2,9: these"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="where to train (figures: cpu, tables: cuda)"
    )
    parser.add_argument(
        "--ranks", type=int, metavar="N", help="processes that share a run (those of torchrun, 1)"
    )
    out_option(parser)


def seeds(text: str) -> tuple[int, ...]:
    """The seeds that a text names."""
    if re.fullmatch(r"[1-9]\d*", text):
        return tuple(range(int(text)))
    found: list[int] = []
    for part in text.removesuffix(",").split(","):
        if not (match := re.fullmatch(r"(\d+)(?:-(\d+))?", part)):
            raise argparse.ArgumentTypeError(f"{text!r} is neither 5 nor 3-7 nor 0,2,9")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise argparse.ArgumentTypeError(f"{part!r} counts backwards; give {last}-{first}")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def chosen(arguments: argparse.Namespace) -> list[Artifact]:
    """The artifacts that were asked for: the named ones, or all that have the scale."""
    from condgrad_lab import papers

    known: dict[str, Artifact] = {artifact.name: artifact for artifact in papers.artifacts()}
    scale, names = arguments.scale, arguments.artifacts
    if names in ([], ["all"]):
        fitting = [a for a in known.values() if scale is None or scale in a.scales]
        if not fitting:
            raise UsageError(f"no artifact has the scale {scale!r}")
        return fitting
    if strangers := [name for name in names if name not in known]:
        raise UsageError(f"there is no artifact {strangers[0]!r}; there are {', '.join(known)}")
    for name in names:
        if scale is not None and scale not in known[name].scales:
            scales = ", ".join(known[name].scales)
            raise UsageError(f"{name} has no scale {scale!r}; it has {scales}")
    return [known[name] for name in names]


def results(artifact: Artifact, store: Store, arguments: argparse.Namespace, scale: str) -> Results:
    """What the store has of an artifact."""
    return artifact.results(store, scale, arguments.seeds, arguments.device, ranks(arguments))


def ranks(arguments: argparse.Namespace) -> int:
    """How many processes share a run: as many as are told, else as many as torchrun started."""
    return arguments.ranks or int(os.environ.get("WORLD_SIZE", "1"))


@functools.cache
def console(*, error: bool = False) -> Any:
    """The terminal, or a pipe that is wide enough for the tables; plain text without rich."""
    stream = sys.stderr if error else sys.stdout
    if find_spec("rich") is None:
        from condgrad_lab.cli._plain import Plain

        return Plain(stream)
    from rich.console import Console

    return Console(stderr=error, width=None if stream.isatty() else 120, highlight=False)
