"""A choice among the entries of all ranks is exact: to the entry, ties and extremes included."""

import pytest
import torch

from distributed import choices

DTYPES = {torch.float64: 8, torch.float32: 6, torch.bfloat16: 6}
"""And in how many rounds at most the k-th largest is found, its ties with it."""


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [("four", torch.float64), ("grid", torch.float32), ("hybrid", torch.bfloat16)],
    ids=str,
)
def test_vertices_in_pieces_are_the_pieces_of_vertices(four, layout, dtype):
    for wrong, rounds in four.ask(choices.unequal, layout, dtype):
        assert not wrong, "\n".join(wrong)
        assert rounds <= DTYPES[dtype]


@pytest.mark.parametrize(
    ("layout", "dtype"), [("four", torch.float64), ("grid", torch.float32)], ids=str
)
def test_so_they_are_where_nothing_is_looked_at(four, layout, dtype):
    """The way of accelerators, tried on the host."""
    for wrong, rounds in four.ask(choices.unequal_elsewhere, layout, dtype):
        assert not wrong, "\n".join(wrong)
        assert rounds <= DTYPES[dtype]
