"""The pages hold together: links lead somewhere, commands exist, made parts are up to date."""

import re

import pytest

import condgrad as cg
from docs.pages import PAGES, ROOT, blocks, commands, name, prose, updater, words

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ABSOLUTE = re.compile(r"(?<![\w./:])(?:/(?:home|work|root|tmp|usr|opt|var|mnt|Users)/|[A-Z]:\\)")
every_page = pytest.mark.parametrize("page", PAGES, ids=name)


def anchors(page):
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    named = re.findall(r'<a id="([^"]+)">', prose(page))
    return {heading.replace(" ", "-") for heading in plain} | set(named)


@every_page
def test_links_lead_somewhere(page):
    for target in LINK.findall(prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.is_relative_to(ROOT), target
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


@every_page
def test_no_path_is_that_of_one_machine(page):
    assert not ABSOLUTE.search(page.read_text())


@every_page
def test_blocks_are_closed_and_say_what_they_are(page):
    fences = [line for line in page.read_text().splitlines() if line.startswith("```")]
    assert len(fences) == 2 * len(blocks(page))
    assert {block.language for block in blocks(page)} <= {"python", "text", "sh"}


@every_page
def test_commands_exist(page):
    from condgrad_lab.cli._main import _parser

    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    quoted = re.findall(r"`((?:make|condgrad) [^`]+)`", prose(page))
    for line in [*commands(page), *quoted]:
        first, *rest = line.split()
        if first == "make":
            assert set(rest) <= set(targets), line
        elif first == "condgrad" and not any(word.isupper() for word in rest):
            _parser().parse_args(rest)


def test_made_parts_are_up_to_date():
    update = updater()
    assert update.pages()
    for page in update.pages():
        assert page.read_text() == update.updated(page.read_text()), "run python docs/update.py"


def test_every_region_is_in_the_gallery_with_all_that_is_to_be_said():
    update = updater()
    text = (ROOT / "docs" / "regions.md").read_text()
    for kind in update.regions():
        assert f"\n### {update.signature(kind)}\n" in text
        said = update.entry(kind)
        fields = {"set"} if kind is cg.Free else {"set", "vertex", "diameter", "projection"}
        assert all(f"- **{field}" in said or f" and {field}**" in said for field in fields), said


def test_every_optimizer_shows_its_loop():
    text = (ROOT / "docs" / "algorithms.md").read_text()
    for each in cg.optim.__all__:
        listing = updater().listing(getattr(cg, each))
        assert "θ_{t+1} ←" in listing
        assert listing in text


def test_the_readme_has_every_region_as_its_docstring_has_it():
    rows = re.findall(r"^\| `(\w+)\(.*\)` \|(.*)\|$", words(ROOT / "README.md"), re.MULTILINE)
    cells = {kind: [cell.strip() for cell in rest.split("|")] for kind, rest in rows}
    kinds = [kind.__name__ for kind in updater().regions()]
    assert sorted(cells) == sorted(kinds)
    for kind, (_, _, diameter, _) in cells.items():
        said = " ".join(getattr(cg, kind).__doc__.split()).lower()
        if kind != "Free":
            assert f"diameter: {diameter.lower()}" in said, kind


def test_the_version_is_one():
    version = cg.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()
