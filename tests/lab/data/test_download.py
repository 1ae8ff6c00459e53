"""Downloads from a server on this machine: good, missing, cut short, stuck, not there."""

import socket

import pytest

from condgrad_lab.data import DataMissingError, Progress
from condgrad_lab.data.download import download
from lab.data import tiny

NAME = "train-images-idx3-ubyte.gz"


class Counter(Progress):
    def __init__(self):
        self.total = self.done = 0

    def task(self, label, total=None):
        from contextlib import nullcontext

        def advance(count):
            self.done += count

        self.total = total
        return nullcontext(advance)


def test_a_file_comes_whole_and_reports_its_bytes(web, tmp_path):
    counter = Counter()
    path = download(web.address + NAME, tmp_path, counter)
    assert path == tmp_path / NAME
    assert path.read_bytes() == web.files["/" + NAME]
    assert counter.total == counter.done == len(web.files["/" + NAME])


def test_a_file_without_a_length_comes_too(web, tmp_path):
    web.unsized.add("/" + NAME)
    counter = Counter()
    path = download(web.address + NAME, tmp_path, counter)
    assert path.read_bytes() == web.files["/" + NAME]
    assert counter.total is None


def test_a_missing_file_is_said_with_its_address(web, tmp_path):
    with pytest.raises(DataMissingError, match=rf"{web.address}nothing: 404 Not Found"):
        download(web.address + "nothing", tmp_path, Progress())


def test_a_file_cut_short_is_refused(web, tmp_path):
    web.truncated.add("/" + NAME)
    whole = len(web.files["/" + NAME])
    with pytest.raises(DataMissingError, match=rf"ended after {whole // 2} of {whole} bytes"):
        download(web.address + NAME, tmp_path, Progress())


def test_a_server_that_falls_silent_is_given_up(web, tmp_path):
    """It would go on when the test is over: who waits for that gets the file."""
    web.stalled.add("/" + NAME)
    with pytest.raises(DataMissingError, match="timed out"):
        download(web.address + NAME, tmp_path, Progress(), timeout=0.2)
    assert not web.released.is_set()


def test_a_server_that_is_not_there_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/{NAME}"
        with pytest.raises(DataMissingError, match="refused"):
            download(address, tmp_path, Progress())


def test_the_tiny_set_is_what_the_server_gives(web):
    assert set(web.files) == {f"/{name}.gz" for name in tiny.CONTENTS}
