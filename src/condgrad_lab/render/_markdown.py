"""The report as a page of the documentation: Markdown, with its pictures in files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from condgrad_lab import words
from condgrad_lab.artifact import Artifact, Results, Table
from condgrad_lab.render import _facts
from condgrad_lab.render._save import png

_FIGURES = "figures"
_WARNING = "<!-- Written by `condgrad report --markdown FILE`: change records or code instead. -->"


def markdown(found: _facts.Found, page: Path, missing: Sequence[Artifact] = ()) -> None:
    """Write a page of these artifacts, and their pictures into `figures` beside it.

    It also names those that are `missing`: of which there are no records yet.
    """
    folder = page.parent / _FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_head(found)]
    for artifact, results in found:
        figure = artifact.draw(results)
        (folder / f"{_facts.anchor(artifact, results)}.png").write_bytes(png(figure))
        parts.append(_section(artifact, results, str(figure.get_label())))
    parts += [_missing(missing), _notes(found), _environments(found)]
    page.write_text("\n\n".join(part for part in parts if part) + "\n", "utf-8")


def _head(found: _facts.Found) -> str:
    records = _facts.distinct(found)
    said = [words.claims(artifact, results) for artifact, results in found]
    verdicts = words.counted(claim for claims in said for claim in claims)
    rows = [
        (
            f"[{artifact.name}](#{_facts.anchor(artifact, results)})",
            _plain(artifact.title + _facts.scale(results)),
            words.counted(claims) or "none",
        )
        for (artifact, results), claims in zip(found, said, strict=True)
    ]
    return f"""{_WARNING}

# {_facts.TITLE}

{len(found)} figures and tables; claims of the paper: {verdicts or "none"}. {len(records)} records,
trained in {_facts.time(records)} altogether, one after the other.

{_facts.READING}

{_table(("artifact", "what it shows", "claims"), rows)}"""


def _section(artifact: Artifact, results: Results, alt: str) -> str:
    said = words.claims(artifact, results)
    anchor = _facts.anchor(artifact, results)
    parts = [
        f'<a id="{anchor}"></a>',
        f"## {artifact.name}: {_plain(artifact.title)}{_facts.scale(results)}",
        _facts.about(artifact),
        f"![{artifact.title}. {alt}]({_FIGURES}/{anchor}.png)",
        _of_the_paper(artifact.table(results)),
        _table(words.COLUMNS, map(_row, said)) if said else "",
        _judged(said),
        f"`{_facts.command(artifact, results)}` makes it again: {words.records(results)}, "
        f"trained in {_facts.time(results.records)} altogether.",
    ]
    return "\n\n".join(part for part in parts if part)


def _of_the_paper(table: Table | None) -> str:
    """The paper's table with ours in it."""
    if table is None:
        return ""
    rows = [(_plain(label), *map(_plain, cells)) for label, cells in table.rows]
    text = _table(("", *map(_plain, table.columns)), rows)
    return f"Ours: {_plain(table.said)}.\n\n{text}" if table.said else text


def _missing(artifacts: Sequence[Artifact]) -> str:
    """Those without records."""
    lines = [f"- {a.name}: {_plain(a.title)}; `condgrad run {a.name}`" for a in artifacts]
    return "\n".join(["## Not run yet\n", "There are no records of:\n", *lines]) if lines else ""


def _row(claim: words.Said) -> tuple[str, ...]:
    name, paper, ours, note = map(_plain, (claim.name, claim.paper, claim.ours, claim.note))
    verdict = f"**{claim.verdict}**" if claim.verdict == "missed" else claim.verdict
    name += f"<br><sub>{note}</sub>" if note else ""
    return name, paper, ours, claim.difference, verdict


def _judged(said: list[words.Said]) -> str:
    """What is to be said of the verdicts: above all, each claim that is missed."""
    missed = [claim for claim in said if claim.verdict == "missed"]
    if missed:
        return "Missed:\n\n" + "\n".join(map(_missed, missed))
    met = said and all(claim.verdict == "met" for claim in said)
    return "Every claim is met." if met else ""


def _missed(claim: words.Said) -> str:
    note = f" {claim.note[0].upper()}{claim.note[1:].rstrip('.')}." if claim.note else ""
    return f"- **{claim.name}.** The paper: {claim.paper}. Ours: {claim.ours}.{note}"


def _notes(found: _facts.Found) -> str:
    parts = [f"For {', '.join(names)}:\n\n{text}" for text, names in _facts.shared(found).items()]
    return "\n\n".join(["## Notes", *parts]) if parts else ""


def _environments(found: _facts.Found) -> str:
    lines = [f"- {text}" for text in _facts.environments(_facts.distinct(found))]
    return "\n".join(["## Environment\n", *lines]) if lines else ""


def _table(columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [tuple(columns)]
    lines += [("---",) * len(lines[0]), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """The text with no part that Markdown would take for HTML."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)
