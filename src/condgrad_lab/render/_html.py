"""The report: one HTML page that holds all it shows."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from condgrad_lab import words
from condgrad_lab.artifact import Artifact, Results, Table
from condgrad_lab.render import _facts, curves
from condgrad_lab.render._save import svg
from condgrad_lab.render._style import INK, PAGE, THEMED

_NUMBERS = ("train_loss", "test_loss", "test_accuracy", "gap", "train_accuracy")
_CURVES = 4


def report(found: _facts.Found, page: Path, missing: Sequence[Artifact] = ()) -> None:
    """Write one page of these artifacts, and the names of those that are `missing`.

    It asks nothing of the network and runs no script.
    """
    said = [words.claims(artifact, results) for artifact, results in found]
    sections = [_section(*pair, claims) for pair, claims in zip(found, said, strict=True)]
    body = [_head(found, said), *sections, _missing(missing), _judging(found)]
    page.write_text(_DOCUMENT.format(title=_facts.TITLE, style=PAGE, body="\n".join(body)), "utf-8")


_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _head(found: _facts.Found, said: list[list[words.Said]]) -> str:
    """The title, the sums, and the table of contents."""
    records = _facts.distinct(found)
    verdicts = words.counted(claim for claims in said for claim in claims)
    rows = [
        f'<tr><th scope="row"><a href="#{_facts.anchor(artifact, results)}">'
        f"{escape(artifact.name)}</a></th>"
        f"<td>{escape(artifact.title + _facts.scale(results))}</td><td>{_counts(claims)}</td></tr>"
        for (artifact, results), claims in zip(found, said, strict=True)
    ]
    return f"""<header>
<h1>{_facts.TITLE}</h1>
<p>{len(found)} figures and tables; claims of the paper: {verdicts or "none"}.
{len(records)} records, trained in {_facts.time(records)} altogether.</p>
<p>{escape(_facts.READING, quote=False)}</p>
</header>
<nav aria-label="Contents">
{_table("Contents", ("artifact", "what it shows", "claims"), rows)}
</nav>"""


def _section(artifact: Artifact, results: Results, said: list[words.Said]) -> str:
    """One artifact: the picture, the paper beside ours, the curves, how it was made."""
    anchor, scale = _facts.anchor(artifact, results), _facts.scale(results)
    environments = "".join(f"<li>{escape(e)}</li>" for e in _facts.environments(results.records))
    return f"""<section id="{anchor}" aria-labelledby="{anchor}-title">
<h2 id="{anchor}-title">{escape(artifact.name)}: {escape(artifact.title + scale)}</h2>
{_prose(_facts.about(artifact))}
{_picture(artifact.title, artifact.draw(results))}
{_of_the_paper(artifact, artifact.table(results))}
<h3>The paper beside ours</h3>
{_table(f"Claims of {artifact.name}", words.COLUMNS, map(_row, said)) if said else "<p>None.</p>"}
{"" if artifact.table(results) else _curves(artifact, results)}
<h3>How it was made</h3>
<p>{words.records(results)}, trained in {_facts.time(results.records)} altogether.
Again: <code>{escape(_facts.command(artifact, results))}</code></p>
<ul>{environments}</ul>
</section>"""


def _of_the_paper(artifact: Artifact, table: Table | None) -> str:
    """The paper's table with ours in it."""
    if table is None:
        return ""
    rows = []
    for label, cells in table.rows:
        named = zip(table.columns, cells, strict=True)
        shown = (f'<td role="cell" data-name="{escape(n)}">{escape(c)}</td>' for n, c in named)
        head = f'<th scope="row" role="rowheader">{escape(label)}</th>'
        rows.append(f'<tr role="row">{head}{"".join(shown)}</tr>')
    said = f"<p>Ours: {escape(table.said)}.</p>\n" if table.said else ""
    return said + _table(f"The table of {artifact.name}", ("", *table.columns), rows)


def _missing(artifacts: Sequence[Artifact]) -> str:
    """Those without records."""
    lines = [
        f"<li>{escape(a.name)}: {escape(a.title)}; <code>condgrad run {escape(a.name)}</code></li>"
        for a in artifacts
    ]
    head = "<section>\n<h2>Not run yet</h2>\n<p>There are no records of:</p>\n<ul>"
    return f"{head}{''.join(lines)}</ul>\n</section>" if lines else ""


def _row(claim: words.Said) -> str:
    """A claim; where the page is narrow its cells stand below each other, each with its name."""
    note = f"<small>{_marked(claim.note)}</small>" if claim.note else ""
    cells = [escape(text) for text in (claim.paper, claim.ours, claim.difference)]
    named = zip(words.COLUMNS[1:], [*cells, _verdict(claim.verdict)], strict=True)
    rest = "".join(f'<td role="cell" data-name="{name}">{cell}</td>' for name, cell in named)
    head = f'<th scope="row" role="rowheader">{escape(claim.name)}{note}</th>'
    return f'<tr role="row">{head}{rest}</tr>'


def _counts(said: list[words.Said]) -> str:
    """The verdicts of an artifact, each in its colour."""
    found = [verdict for verdict in words.VERDICTS if any(c.verdict == verdict for c in said)]
    counts = [(verdict, sum(c.verdict == verdict for c in said)) for verdict in found]
    return " ".join(_verdict(verdict, f"{n} {verdict}") for verdict, n in counts) or "none"


def _verdict(verdict: str, text: str = "") -> str:
    return f'<span class="{verdict.replace(" ", "-")}">{escape(text or verdict)}</span>'


def _table(name: str, columns: Iterable[str], rows: Iterable[str]) -> str:
    """A table that scrolls by itself where the page is narrow."""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join(rows)
    return f"""<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}">
<table role="table"><thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody></table></div>"""


def _curves(artifact: Artifact, results: Results) -> str:
    lines = [curves.Line(label, records) for label, records in results.lines.items()]
    known = [name for name in _NUMBERS if any(line.has(name) for line in lines)][:_CURVES]
    if not known:
        return ""
    return (
        f"<h3>Curves</h3>\n{_picture(f'Training for {artifact.name}', curves.grid(lines, known))}"
    )


def _picture(title: str, figure: Figure) -> str:
    """The figure as an image that holds itself; its text has the colour of the page's text."""
    text = f"{title}. {figure.get_label()}".strip()
    drawn = svg(figure, transparent=True).decode()
    drawn = drawn[drawn.index("<svg") :].replace(INK, "currentColor")
    drawn = re.sub(r"(<svg[^>]*>)", rf"\1<style>{THEMED}</style>", drawn, count=1)
    data = base64.b64encode(drawn.encode()).decode()
    inches = figure.get_size_inches()
    size = " ".join(f'{k}="{96 * v:.0f}"' for k, v in zip(("width", "height"), inches, strict=True))
    source = f"data:image/svg+xml;base64,{data}"
    return f"""<figure class="wide" role="region" tabindex="0" aria-label="{escape(title)}">
<img {size} alt="{escape(text)}" src="{source}"></figure>"""


def _judging(found: _facts.Found) -> str:
    """The texts that several artifacts share."""
    parts = [
        f"<h3>{escape(', '.join(names))}</h3>\n{_prose(text)}"
        for text, names in _facts.shared(found).items()
    ]
    return "<section>\n<h2>Notes</h2>\n" + "\n".join(parts) + "\n</section>" if parts else ""


def _prose(text: str) -> str:
    """A docstring as paragraphs and lists."""
    blocks = []
    for block in re.split(r"\n\s*\n", _marked(text)):
        if block.startswith("- "):
            items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
            blocks.append("<ul>" + "".join(f"<li>{item.strip()}</li>" for item in items) + "</ul>")
        elif block.strip():
            blocks.append(f"<p>{block.strip()}</p>")
    return "\n".join(blocks)


def _marked(text: str) -> str:
    """A text with its `names` and its *stress* marked."""
    named = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*(\w[^*\n]*)\*", r"<em>\1</em>", named)
