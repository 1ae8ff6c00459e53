"""Lines of text where rich is not installed, and tables that look well with it and without."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_MARKUP = re.compile(r"\[/?(?:bold|dim|red|green|yellow)\]")


def unmarked(text: str) -> str:
    """The text without its marks of colour and weight."""
    return _MARKUP.sub("", text)


class Plain:
    """What the commands ask of rich's console, done with a plain stream."""

    is_terminal = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def print(self, what: object = "", *, markup: bool = True, soft_wrap: bool = True) -> None:
        """Write a text or a table, and end the line; nothing is ever wrapped."""
        text = str(what)
        self._stream.write((unmarked(text) if markup else text) + "\n")

    @contextmanager
    def status(self, text: str) -> Iterator[None]:
        """Say nothing of what is going on: there is nobody to see it change."""
        yield


@dataclass
class Grid:
    """A table: rich draws it, `str` writes it with blanks. Without columns it is bare pairs."""

    columns: Sequence[str] = ()
    title: str | None = None
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        """Add a row; cells may hold marks, and more than one line."""
        self.rows.append(cells)

    def __rich__(self) -> RichTable:
        from rich.box import SIMPLE
        from rich.table import Table

        if self.columns:
            style = {"title": self.title, "title_justify": "left", "title_style": "bold"}
            table = Table(*self.columns, box=SIMPLE, **style)  # type: ignore[arg-type]
        else:
            table = Table.grid(padding=(0, 2))
        for row in self.rows:
            table.add_row(*row)
        return table

    def __str__(self) -> str:
        lines = [self.columns] if self.columns else []
        for row in self.rows:
            parts = [unmarked(cell).split("\n") for cell in row]
            height = max(map(len, parts), default=0)
            lines += [[p[i] if i < len(p) else "" for p in parts] for i in range(height)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)] if lines else []
        said = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([self.title, *said] if self.title else said)
