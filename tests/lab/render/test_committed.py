"""The committed page of the documentation says what the committed records say."""

from pathlib import Path

import pytest

from condgrad_lab import render
from condgrad_lab.cli._look import gathered
from condgrad_lab.cli._main import _parser
from condgrad_lab.render import _markdown

ROOT = Path(__file__).parents[3]


def test_the_page_is_that_of_the_records(tmp_path, monkeypatch):
    page = ROOT / "docs/reproduce.md"
    arguments = _parser().parse_args(["report", "--out", str(ROOT / "results")])
    pairs, missing = gathered(arguments)
    if not pairs:
        pytest.skip("results/ has no records")
    monkeypatch.setattr(_markdown, "png", lambda figure: b"")  # pixels differ by font library
    render.markdown(pairs, tmp_path / "reproduce.md", missing)
    again = "condgrad report --out results --markdown docs/reproduce.md"
    assert page.exists(), again
    assert (tmp_path / "reproduce.md").read_text("utf-8") == page.read_text("utf-8"), again
    for path in (tmp_path / "figures").iterdir():
        assert (page.parent / "figures" / path.name).exists(), again
