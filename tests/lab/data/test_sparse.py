"""Rows of zeros and ones: what a selection holds, and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from condgrad_lab.sparse import SparseRows

WIDTH = 7


def rows_of(sets: list[set[int]]) -> SparseRows:
    offsets = torch.tensor([0, *map(len, sets)]).cumsum(0)
    indices = [torch.tensor(sorted(row), dtype=torch.int64) for row in sets]
    return SparseRows(torch.cat([*indices, torch.zeros(0, dtype=torch.int64)]), offsets, WIDTH)


def dense_of(sets: list[set[int]]) -> torch.Tensor:
    dense = torch.zeros(len(sets), WIDTH)
    for i, row in enumerate(sets):
        for j in row:
            dense[i, j] = 1
    return dense


sets = st.lists(st.sets(st.integers(0, WIDTH - 1)), max_size=6)


@given(sets)
def test_dense_has_a_one_at_every_index(rows):
    assert torch.equal(rows_of(rows).dense(), dense_of(rows))
    assert rows_of(rows).lengths.tolist() == [len(row) for row in rows]


@given(sets, st.data())
def test_a_selection_by_index_is_that_of_the_dense_rows(rows, data):
    places = st.integers(-len(rows), len(rows) - 1) if rows else st.just(0)
    chosen = data.draw(st.lists(places, max_size=8 if rows else 0))
    chosen = torch.tensor(chosen, dtype=torch.int64)
    selected = rows_of(rows)[chosen]
    assert len(selected) == len(chosen)
    assert torch.equal(selected.dense(), dense_of(rows)[chosen])


@given(sets, st.slices(6))
def test_a_slice_is_that_of_a_list(rows, part):
    assert torch.equal(rows_of(rows)[part].dense(), dense_of(rows[part]))


def test_a_selection_feeds_an_embedding_bag():
    rows = rows_of([{0, 3}, set(), {1, 2, 6}])[torch.tensor([2, 0, 1])]
    weight = torch.randn(WIDTH, 4, generator=torch.Generator().manual_seed(0))
    bag = torch.nn.functional.embedding_bag(
        rows.indices, weight, rows.offsets, mode="sum", include_last_offset=True
    )
    torch.testing.assert_close(bag, rows.dense() @ weight)


@pytest.mark.parametrize("place", [3, -4])
def test_a_row_that_does_not_exist_is_refused(place):
    with pytest.raises(IndexError, match=f"row {place} of 3 rows does not exist"):
        rows_of([{0}, {1}, {2}])[torch.tensor([0, place])]


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (torch.tensor([True, False, True]), "1-D bool tensor"),
        (torch.tensor([[0]]), "2-D int64 tensor"),
        (1, "not int"),
    ],
)
def test_other_choices_are_refused(chosen, found):
    with pytest.raises(TypeError, match=found):
        rows_of([{0}, {1}, {2}])[chosen]


def test_wrong_parts_are_refused():
    good = torch.tensor([0, 1])
    with pytest.raises(TypeError, match="`indices` must be a 1-D int64 tensor, got a 1-D float32"):
        SparseRows(torch.tensor([0.0]), good, 3)
    with pytest.raises(TypeError, match="`offsets` must be a 1-D int64 tensor, got list"):
        SparseRows(good, [0, 1], 3)
    with pytest.raises(ValueError, match="`offsets` needs one entry more"):
        SparseRows(good, good[:0], 3)
    with pytest.raises(ValueError, match="must share a device"):
        SparseRows(good, good.to("meta"), 3)


def test_it_is_frozen_and_moves():
    rows = rows_of([{0}, {1, 2}])
    with pytest.raises(AttributeError):
        rows.width = 8
    moved = rows.to("meta")
    assert moved.device.type == "meta"
    assert len(moved) == 2
    assert repr(rows) == "SparseRows(2 rows of width 7, 3 ones, device='cpu')"
