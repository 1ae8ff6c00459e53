"""The commands that look at records: list, check, render, report, show, env."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condgrad_lab import words
from condgrad_lab.cli import _common
from condgrad_lab.cli._plain import Grid

if TYPE_CHECKING:
    from condgrad_lab.artifact import Artifact, Results
    from condgrad_lab.store import Record

_COLOURS = {"met": "green", "missed": "red", "open": "yellow"}


def add(commands: Any) -> None:
    """Add the commands."""
    for name, text, answer in (
        ("list", "the artifacts, and what is there of them", list_),
        ("check", "the paper's numbers beside ours", check),
        ("render", "draw the pictures from the records", render),
    ):
        _common.artifact_options(_common.command(commands, name, text, answer))
    parser = _common.command(commands, "report", "one page of everything that is there", report)
    _common.artifact_options(parser)
    parser.set_defaults(scale=None)  # of the paper and short, whatever is there
    parser.add_argument("--page", metavar="FILE", help="the page (OUT/report.html)")
    parser.add_argument(
        "--markdown", metavar="FILE", help="instead a page for docs, its pictures beside it"
    )
    parser = _common.command(commands, "show", "one record: run, numbers, machine, time", show)
    parser.add_argument("key", metavar="KEY", help="the start of a record's name, or its digest")
    _common.out_option(parser)
    _common.command(commands, "env", "this machine and the versions, as records tell them", env)


def list_(arguments: argparse.Namespace) -> int:
    """The artifacts and the state of their records."""
    table = Grid(("artifact", "what it shows", f"records at {arguments.scale} scale"))
    for artifact, results in _found(arguments):
        table.add_row(artifact.name, artifact.title, f"{len(results.records)} of {results.wanted}")
    _common.console().print(table)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """The claims of the artifacts; 1 if one is missed, 3 if one cannot be judged yet."""
    verdicts: set[str] = set()
    for artifact, results in _found(arguments):
        said = words.claims(artifact, results)
        _show_claims(artifact, results, said)
        verdicts |= {claim.verdict for claim in said}
    return 1 if "missed" in verdicts else 3 if "open" in verdicts else 0


def render(arguments: argparse.Namespace) -> int:
    """Draw the artifacts that have records; 3 if one has none."""
    _needs_matplotlib("render")
    missing = []
    for artifact, results in _found(arguments):
        if results.records:
            _draw(artifact, results, Path(arguments.out))
        else:
            missing.append(artifact.name)
    return _missing(missing)


def report(arguments: argparse.Namespace) -> int:
    """Write one page with all artifacts that have records."""
    _needs_matplotlib("report")
    from condgrad_lab import render as rendering

    found, missing = gathered(arguments)
    if not found:
        return _missing(["every artifact"])
    write = rendering.markdown if arguments.markdown else rendering.report
    page = Path(arguments.markdown or arguments.page or Path(arguments.out) / "report.html")
    page.parent.mkdir(parents=True, exist_ok=True)
    write(found, page, missing)
    _common.console().print(f"report: {page}", soft_wrap=True)
    return 0


def gathered(
    arguments: argparse.Namespace,
) -> tuple[list[tuple[Artifact, Results]], list[Artifact]]:
    """What is there of the artifacts at each scale of a report, and those of which nothing is."""
    scales = (arguments.scale,) if arguments.scale else ("paper", "short")
    chosen = _common.chosen(arguments)
    found = [
        (artifact, results)
        for artifact in chosen
        for scale in scales
        if scale in artifact.scales and (results := _results(artifact, arguments, scale)).records
    ]
    there = {artifact.name for artifact, _ in found}
    able = [artifact for artifact in chosen if set(scales) & set(artifact.scales)]
    return found, [artifact for artifact in able if artifact.name not in there]


def show(arguments: argparse.Namespace) -> int:
    """One record, whole."""
    from condgrad_lab.store import Store

    try:
        record = Store(arguments.out).find(arguments.key)
    except KeyError as error:
        raise _common.UsageError(error.args[0]) from None
    _show(record)
    return 0


def env(arguments: argparse.Namespace) -> int:
    """The environment of a record made here and now."""
    import torch

    from condgrad_lab.environment import environment
    from condgrad_lab.queue import cores

    found = environment("cuda" if torch.cuda.is_available() else "cpu")
    _common.console().print(_pairs({**found, "cores": str(cores())}))
    return 0


def answer(artifact: Artifact, results: Results, folder: Path) -> None:
    """The result of an artifact after a run: the claims, and the picture."""
    _show_claims(artifact, results, words.claims(artifact, results))
    if results.records:
        _draw(artifact, results, folder)


def _found(arguments: argparse.Namespace) -> list[tuple[Artifact, Results]]:
    artifacts = _common.chosen(arguments)
    return [(artifact, _results(artifact, arguments, arguments.scale)) for artifact in artifacts]


def _results(artifact: Artifact, arguments: argparse.Namespace, scale: str) -> Results:
    from condgrad_lab.store import Store

    return _common.results(artifact, Store(arguments.out), arguments, scale)


def _draw(artifact: Artifact, results: Results, folder: Path) -> None:
    if find_spec("matplotlib") is None:
        _common.console(error=True).print(f"{artifact.name}: no picture without matplotlib")
        return
    from condgrad_lab import render as rendering

    for path in rendering.save(artifact, results, folder / "figures"):
        _common.console().print(f"{artifact.name}: {path}", soft_wrap=True)


def _needs_matplotlib(command: str) -> None:
    if find_spec("matplotlib") is None:
        raise _common.UsageError(f"{command} needs matplotlib; install 'condgrad[lab]'")


def _missing(names: list[str]) -> int:
    if names:
        verb = "has" if len(names) == 1 else "have"
        text = f"{words.listed(names)} {verb} no records here: condgrad run"
        _common.console(error=True).print(text)
    return 3 if names else 0


def _show_claims(artifact: Artifact, results: Results, said: list[words.Said]) -> None:
    """The claims, and the paper's table with ours in it where the artifact is one."""
    out = _common.console()
    out.print(_claims(artifact, results, said))
    if (table := artifact.table(results)) is not None:
        title = f"{artifact.name}: {table.said}" if table.said else artifact.name
        grid = Grid(("", *table.columns), title)
        for label, cells in table.rows:
            grid.add_row(label, *cells)
        out.print(grid)


def _claims(artifact: Artifact, results: Results, said: list[words.Said]) -> Grid:
    title = f"{artifact.name}: {artifact.title}, {results.scale} scale"
    if not results.complete:
        title += f", {words.records(results)}"
    table = Grid(words.COLUMNS, title)
    for claim in said:
        colour = _COLOURS.get(claim.verdict, "dim")
        note = f"\n[dim]{claim.note}[/dim]" if claim.note else ""
        verdict = f"[{colour}]{claim.verdict}[/{colour}]"
        table.add_row(claim.name + note, claim.paper, claim.ours, claim.difference, verdict)
    return table


def _show(record: Record) -> None:
    out = _common.console()
    progress = f"{record.status}, epoch {record.epoch} of {record.run.epochs}"
    out.print(f"[bold]{record.run.key}[/bold]: {progress}")
    out.print(_pairs({name: str(v) for name, v in record.run.to_dict(defaults=False).items()}))
    names = list(dict.fromkeys(name for row in record.epochs for name in row))
    table = Grid(names)
    for row in record.epochs:
        table.add_row(*(f"{row[name]:.6g}" if name in row else "" for name in names))
    out.print(table)
    for start in record.starts:
        out.print(_pairs({name: str(value) for name, value in start.items()}))
    out.print(f"trained for {words.duration(record.seconds)}")


def _pairs(rows: dict[str, str]) -> Grid:
    table = Grid()
    for name, value in rows.items():
        table.add_row(f"[dim]{name}[/dim]", value)
    return table
