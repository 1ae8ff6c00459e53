"""Real processes: killed at any moment, or two at once."""

import os
import selectors
import subprocess
import sys

import pytest

from condgrad_lab.data import Progress
from condgrad_lab.data.sources import obtain
from lab.data import tiny
from lab.data.server import LIMIT
from lab.tiny import environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills with a signal")


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "lab.data.child", *map(str, arguments)],
        env=environment(OMP_NUM_THREADS="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_download_leaves_no_file_and_the_next_one_works(web, cache):
    web.stalled.add("/t10k-images-idx3-ubyte.gz")
    with start("fetch", cache, web.address) as child:
        assert web.halfway.wait(LIMIT), child.communicate()
        child.kill()
    assert child.returncode < 0
    left = [path.name for path in cache.iterdir() if not path.name.startswith(".")]
    assert left == []

    web.stalled.clear()
    recipe = tiny.recipe([web.address])
    _, contents = obtain(recipe, folder=None, cache=cache, progress=Progress())
    assert contents == tiny.CONTENTS
    # What the killed one had left is gone too.
    assert sorted(path.name for path in cache.iterdir()) == [".tiny.lock", "tiny"]


def test_of_two_processes_one_fetches_and_both_have_it(web, cache):
    # Whichever is first is held up in the middle of its download until the other has come.
    web.stalled.add("/train-labels-idx1-ubyte.gz")
    with start("fetch", cache, web.address) as one, start("fetch", cache, web.address) as two:
        assert web.halfway.wait(LIMIT), (one.communicate(), two.communicate())
        said = said_by_either(one, two, until="waiting")
        assert said == "tiny: waiting for another process that fetches it"
        web.released.set()
        answers = [child.communicate(timeout=LIMIT) for child in (one, two)]
    assert [child.returncode for child in (one, two)] == [0, 0], answers
    last = [out.splitlines()[-1] for out, _ in answers]
    assert last[0] == last[1]
    assert last[0].startswith(f"got it from official download, {web.address}")
    assert sorted(web.requests) == sorted(web.files)


def said_by_either(*children, until):
    """The first line of this word that one of the processes says."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.stdout, selectors.EVENT_READ)
        while ready := selector.select(timeout=LIMIT):
            for key, _ in ready:
                line = key.fileobj.readline()
                if until in line or not line:
                    return line.strip()
    return "nothing"


def test_a_process_killed_at_any_step_of_placing_leaves_all_or_nothing(cache):
    """Once into an empty cache, once over an older copy."""
    cache.mkdir()
    with start("deaths", cache) as child:
        out, err = child.communicate(timeout=LIMIT)
    assert child.returncode == 0, err
    for first, told in zip((True, False), out.split("again\n"), strict=True):
        killed, states = zip(*(line.split(" ", 1) for line in told.splitlines()), strict=True)
        assert set(killed[:-1]) == {"True"}
        assert len(killed) > len(tiny.CONTENTS)
        assert killed[-1] == "False"
        assert states[-1] == "whole"
        assert set(states) == {"absent", "whole"}, states
        # An older copy stays until the new one is ready to take its place.
        assert states[0] == ("absent" if first else "whole")
