"""The report: well-formed, whole in one file, and true to the records."""

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from condgrad_lab import render, words
from lab.render.made import LONG, found

VOID = {"meta", "img", "br", "hr", "link"}


class Page(HTMLParser):
    """The elements of a page and its texts; refuses one that is not well-formed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        if data.strip():
            self.texts.append(" ".join(data.split()))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    render.report(found(), path)
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture(scope="module")
def images(page):
    """The pictures by their texts."""
    kind = "data:image/svg+xml;base64,"
    sources = {image["alt"]: image["src"] for image in page.all("img")}
    assert all(source.startswith(kind) for source in sources.values())
    return {alt: ET.fromstring(base64.b64decode(s[len(kind) :])) for alt, s in sources.items()}


def test_the_page_is_whole(text, page):
    assert text.startswith("<!doctype html>\n")
    assert page.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.all("meta")
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all(
        "meta"
    )
    assert len(page.all("h1")) == len(page.all("title")) == 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_nothing_comes_from_elsewhere_and_nothing_runs(text, page):
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "srcset", "action", "data", "poster"):
                assert value.startswith(("data:", "#")), (tag, value)
    assert not re.search(r"@import|url\(", text)


def test_pictures_are_drawings_that_follow_light_and_dark(images):
    assert len(images) == 6  # of three artifacts, and the curves of each
    for root in images.values():
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        drawing = ET.tostring(root, "unicode")
        assert "prefers-color-scheme:dark" in drawing
        assert "currentColor" in drawing
        assert "#1b1d23" not in drawing.partition("</")[2]  # the ink has left no fixed colour
        assert "#ffffff" not in drawing.lower()  # nor has the paper


def test_every_picture_has_a_text(images):
    assert "Pictures. Weights as pictures, red negative and green positive. Rows: 0. " in "".join(
        images
    )
    assert (
        'A "<title>" & more. Curves of test loss over epoch, gradient evaluations: SFW, MSFW.'
        in images
    )


def test_contents_lead_to_the_sections_and_count_verdicts(page):
    links = [a["href"] for a in page.all("a")]
    assert links == ["#figure-5", "#figure-8", "#table-1"]
    ids = {attributes.get("id") for attributes in page.all("section")}
    assert {link[1:] for link in links} <= ids
    for said in ("1 met", "1 missed", "1 open", "3 not judged", "none"):
        assert said in page.texts
    sums = "3 figures and tables; claims of the paper: 1 met, 1 missed, 1 open, 3 not judged."
    # Two artifacts share their records: 3 of 100 seconds, and not 9.
    assert f"{sums} 3 records, trained in 5 min altogether." in page.texts


def test_the_paper_stands_beside_ours(page):
    texts = page.texts
    start = texts.index("a <number>")
    assert texts[start + 1 : start + 5] == ["92.15", "92.20 ± 0.28", "+0.05 (± 0.6)", "met"]
    start = texts.index("far")
    assert texts[start + 1 : start + 3] == ["too few", "epochs"]  # the latter marked
    assert texts[start + 3 : start + 7] == ["50.00", "40.00", "-10.00 (± 1)", "missed"]
    start = texts.index("an | order")
    assert texts[start + 1 : start + 4] == ["A < B", LONG, "open"]
    assert texts.count("not judged") == 3


def test_a_cell_says_which_it_is_where_there_is_no_head(page):
    names = [cell["data-name"] for cell in page.all("td") if "data-name" in cell]
    assert names == list(words.COLUMNS[1:]) * 6


def test_each_artifact_says_how_it_was_made(page):
    for said in (
        "3 records, trained in 5 min altogether. Again:",
        "3 of 5 records, trained in 5 min altogether. Again:",
        "condgrad run figure-5",
        "3 records: condgrad 0.1, torch 2.13, python 3.11, Linux, A fast one; commit abc1234",
    ):
        assert said in page.texts


def test_the_text_of_the_artifacts_file_says_what_it_shows(page):
    start = page.texts.index("A paragraph with")
    said = ["A paragraph with", "code", ",", "stress", "and <angles>."]
    assert page.texts[start : start + 7] == [*said, "one item, on two lines;", "another."]
    assert {"code", "em", "li"} <= {tag for tag, _ in page.elements}
