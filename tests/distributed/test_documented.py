"""What the page on many ranks shows works on them."""

import functools

import numpy as np
import pytest

from distributed import documented


@functools.cache
def expected(question, *args):
    return question(*args)


def same(found, wanted):
    return all(np.abs(found[name] - wanted[name]).max() <= 1e-10 for name in wanted)


@pytest.mark.parametrize("way", documented.WAYS)
def test_every_way_of_the_page_leads_where_one_process_goes(four, way):
    for found in four.ask(documented.used, way):
        assert same(found, expected(documented.used, "alone"))


def test_the_page_carries_a_run_over(four, tmp_path):
    for found in four.ask(documented.kept, "sharded", "split", str(tmp_path)):
        assert same(found, expected(documented.twice))
