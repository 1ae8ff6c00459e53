"""The command line as a person meets it: a process of its own, on a terminal, under Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from condgrad_lab.store import Store
from lab.tiny import children, environment, gone

PROGRAM = """
import sys
from condgrad_lab.cli import main
from lab import tiny
tiny.install()
sys.exit(main(sys.argv[1:]))
"""


def program(*words, **more):
    found = environment(TERM="xterm", WANDB_MODE="offline", COLUMNS="120")
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *words], env=found, **more)


@pytest.mark.slow
def test_weights_and_biases_hears_of_every_epoch_offline(tmp_path):
    pytest.importorskip("wandb")
    out = tmp_path / "runs"
    words = ["run", "figure-0", "--seeds", "1", "--jobs", "2", "--tracker", "wandb"]
    assert program(*words, "--out", str(out)).wait() == 0
    found = list((out / "wandb").glob("wandb/offline-run-*/run-*.wandb"))
    assert len(found) == 2
    written = b"".join(path.read_bytes() for path in found)
    assert b"test_accuracy" in written
    assert b"violation" in written


def epochs_of(folder):
    """How many records have an epoch behind them."""
    return sum(record.epoch > 0 for record in Store(folder).all())


@pytest.mark.slow
def test_ctrl_c_is_clean_and_a_terminal_sees_progress(tmp_path):
    terminal, inner = pty.openpty()
    words = ["run", "figure-long", "--jobs", "2", "--out", str(tmp_path)]
    process = program(*words, stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
    os.close(inner)
    shown = b""
    # Until both runs are under way and the screen has told of an epoch.
    while b"test accuracy" not in shown or epochs_of(tmp_path) < 2:
        assert process.poll() is None
        shown += os.read(terminal, 4096)
    workers = list(children(process.pid))
    assert len(workers) >= 2
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    with suppress(OSError):  # when the other side is closed
        while piece := os.read(terminal, 4096):
            shown += piece
    os.close(terminal)
    text = shown.decode(errors="replace")
    assert process.wait() == 130
    assert gone(workers)
    assert "all epochs" in text
    assert "/100000" in text
    assert "test accuracy" in text
    assert "Traceback" not in text
    assert text.rstrip().endswith("stopped; the same command goes on from here")


@pytest.mark.slow
def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "condgrad_lab", "--help"], capture_output=True, check=True, text=True
    )
    for command in ("list", "run", "render", "check", "report", "show", "data", "env"):
        assert f"\n    {command} " in done.stdout
    assert "exit codes: 0 well done" in done.stdout
