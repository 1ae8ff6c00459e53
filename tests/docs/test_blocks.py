"""What the pages show runs as it stands, and prints what they say it prints."""

import contextlib
import io

import pytest
import torch

from docs.pages import PAGES, ROOT, Block, blocks, name

WITH_CODE = [page for page in PAGES if any(b.language == "python" for b in blocks(page))]


def run(page, code, namespace):
    """What a block prints; an error names the line of the page."""
    text = "\n" * code.line + code.text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, name(page), "exec", dont_inherit=True), namespace)
    return printed.getvalue()


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    """All in one namespace; a block of text right after one of code is what that prints."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    every = blocks(page)
    with torch.random.fork_rng():
        for code, following in zip(every, [*every[1:], Block("", "", 0)], strict=True):
            if code.language != "python":
                continue
            printed = run(page, code, namespace)
            end = code.line + code.text.count("\n") + 1
            shown = following.language == "text" and following.line <= end + 3
            assert printed == (following.text if shown else ""), f"{name(page)}:{code.line}"


def test_the_example_of_the_readme_is_twelve_lines_and_trains():
    first = next(block for block in blocks(ROOT / "README.md") if block.language == "python")
    assert len([line for line in first.text.splitlines() if line]) == 12
    namespace = {}
    with torch.random.fork_rng():
        run(ROOT / "README.md", first, namespace)
    model, x, y = (namespace[each] for each in ("model", "x", "y"))
    assert float((model(x).argmax(1) == y).double().mean()) > 0.97
