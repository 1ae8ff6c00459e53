"""The page of the documentation: its tables, its pictures, and what it says of missed claims."""

import re

import pytest
from PIL import Image

from condgrad_lab import render
from lab.render.made import LONG, found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs") / "reproduce.md"
    render.markdown(found(), path)
    return path


@pytest.fixture(scope="module")
def text(path):
    return path.read_text("utf-8")


def section(text, name):
    return text.partition(f'<a id="{name}"></a>')[2].partition("<a id=")[0]


def test_pictures_lie_beside_the_page_and_are_all_there(path, text):
    links = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", text)
    assert [link for _, link in links] == [
        f"figures/{name}.png" for name in ("figure-5", "figure-8", "table-1")
    ]
    for alt, link in links:
        assert len(alt) > 20
        with Image.open(path.parent / link) as image:
            assert image.format == "PNG"
    assert len(list((path.parent / "figures").iterdir())) == 3


def test_every_table_is_as_wide_as_its_head(text):
    tables = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    assert len(tables) == 3  # the contents, and two artifacts with claims
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def test_the_paper_stands_beside_ours(text):
    found = section(text, "figure-5")
    assert found.startswith('\n\n## figure-5: A "&lt;title>" & more\n\nRecords and artifacts made')
    for row in (
        "| a &lt;number> | 92.15 | 92.20 ± 0.28 | +0.05 (± 0.6) | met |",
        "| far<br><sub>too few `epochs`</sub> | 50.00 | 40.00 | -10.00 (± 1) | **missed** |",
        f"| an \\| order | A < B | {LONG} |  | open |",
    ):
        assert row in found.splitlines()


def test_missed_claims_are_told_apart(text):
    assert "Missed:\n\n- **far.** The paper: 50.00. Ours: 40.00. Too few `epochs`.\n" in section(
        text, "figure-5"
    )
    assert "Missed" not in section(text, "figure-8")  # not judged
    assert "Every claim" not in text


@pytest.mark.parametrize(("chosen", "said"), [([0], True), ([0, 2], False)], ids=["met", "open"])
def test_claims_that_are_all_met_are_said_to_be(tmp_path, monkeypatch, chosen, said):
    pairs = found()[:1]
    artifact, results = pairs[0]
    claims = [artifact.claims(results)[index] for index in chosen]
    monkeypatch.setattr(type(artifact), "claims", lambda self, results: claims)
    render.markdown(pairs, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text("utf-8")
    assert ("\nEvery claim is met.\n" in text) is said


def test_sums_times_commands_and_machines_are_told(text):
    flat = " ".join(text.split())
    for words in (
        "3 figures and tables; claims of the paper: 1 met, 1 missed, 1 open, 3 not judged. "
        "3 records, trained in 5 min altogether, one after the other.",
        '| [figure-5](#figure-5) | A "&lt;title>" & more | 1 met, 1 missed, 1 open |',
        "| [table-1](#table-1) | Nothing claimed | none |",
        "`condgrad run table-1` makes it again: 3 of 5 records, trained in 5 min altogether.",
        "## Environment - 3 records: condgrad 0.1, torch 2.13, python 3.11, Linux, A fast one; "
        "commit abc1234",
    ):
        assert words in flat


def test_one_set_of_records_is_one_page(path, text, tmp_path):
    render.markdown(found(), tmp_path / "again.md")
    assert (tmp_path / "again.md").read_text("utf-8") == text
    for picture in (path.parent / "figures").iterdir():
        assert (tmp_path / "figures" / picture.name).read_bytes() == picture.read_bytes()
