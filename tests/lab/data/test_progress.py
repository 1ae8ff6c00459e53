"""What is shown: bars on a terminal, nothing in a pipe."""

import io
import logging

import pytest
from rich.console import Console

from condgrad_lab.data import progress


def test_in_a_pipe_nothing_is_shown(capsys):
    display = progress.automatic()
    assert type(display) is progress.Progress
    display.note("trying")
    with display.task("work", 10) as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")


def test_but_the_log_has_it(caplog):
    caplog.set_level(logging.INFO, logger="condgrad_lab.data")
    display = progress.Progress()
    display.note("trying")
    with display.task("work"):
        pass
    assert caplog.messages == ["trying", "work"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_worker_leaves_the_terminal_to_its_parent(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(progress, "parent_process", lambda: "some process")
    assert type(progress.automatic()) is progress.Progress


@pytest.mark.parametrize("total", [None, 10])
def test_on_a_terminal_notes_and_bars_are_shown(monkeypatch, total):
    monkeypatch.setattr("sys.stderr", Terminal())
    display = progress.automatic()
    assert isinstance(display, progress.Bars)
    shown = io.StringIO()
    display._console = Console(file=shown, force_terminal=True, width=100)
    display.note("trying [somewhere]")
    with display.task("work [here]", total) as advance:
        advance(10)
    assert "trying [somewhere]" in shown.getvalue()
    assert "work [here]" in shown.getvalue()
