"""The pages of the project, and what can be found in them."""

import dataclasses
import functools
import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("**/*.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page that it begins on."""

    language: str
    text: str
    line: int


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)))
        for found in _FENCE.finditer(text)
    ]


def prose(page):
    """The page without its blocks."""
    return _FENCE.sub("", page.read_text())


def words(page):
    """The page with its emphasis and escapes taken off."""
    return page.read_text().replace("\\", "")


def commands(page):
    """The lines of the page's shell blocks."""
    lines = [block.text.splitlines() for block in blocks(page) if block.language == "sh"]
    return [line.split("#")[0].strip() for each in lines for line in each if line.strip()]


@functools.cache
def updater():
    """The script that makes the made parts of the pages."""
    spec = importlib.util.spec_from_file_location("update", ROOT / "docs" / "update.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
