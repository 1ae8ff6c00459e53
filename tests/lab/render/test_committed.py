"""The committed page of the documentation says what the committed records say."""

from pathlib import Path

import pytest

from condgrad_lab import papers, render
from condgrad_lab.render import _markdown
from condgrad_lab.store import Store

ROOT = Path(__file__).parents[3]


def test_the_page_is_that_of_the_records(tmp_path, monkeypatch):
    page, store = ROOT / "docs/reproduce.md", Store(ROOT / "results")
    scale = "paper"
    fitting = [artifact for artifact in papers.artifacts() if scale in artifact.scales]
    pairs = [(artifact, artifact.results(store, scale)) for artifact in fitting]
    pairs = [(artifact, results) for artifact, results in pairs if results.records]
    if not pairs:
        pytest.skip("results/ has no records")
    monkeypatch.setattr(_markdown, "png", lambda figure: b"")  # pixels differ by font library
    render.markdown(pairs, tmp_path / "reproduce.md")
    again = "condgrad report --out results --markdown docs/reproduce.md"
    assert page.exists(), again
    assert (tmp_path / "reproduce.md").read_text("utf-8") == page.read_text("utf-8"), again
    for path in (tmp_path / "figures").iterdir():
        assert (page.parent / "figures" / path.name).exists(), again
