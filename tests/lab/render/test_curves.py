"""What is in the axes of curves: the lines and their bands, limits, scales and words."""

import math

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from condgrad_lab.render import curves
from lab.render.made import line, record

LOSSES = ((9.0, 3.0, 2.0, 1.0), (9.0, 5.0, 2.0, 3.0))


def drawn(ax):
    return {one.get_label(): one.get_xydata() for one in ax.lines}


def band(ax):
    """The edges of the only band: of each x, the least and the largest y."""
    (region,) = ax.collections
    (found,) = region.get_paths()
    points = found.vertices
    return {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max())
            for x in np.unique(points[:, 0])}  # fmt: skip


def legend(figure):
    (found,) = figure.legends
    return [text.get_text() for text in found.get_texts()]


def test_a_line_is_the_mean_over_seeds_from_the_first_epoch_on():
    (ax,) = curves.grid([line("SFW", *LOSSES)], ["test_loss"]).axes
    np.testing.assert_allclose(drawn(ax)["SFW"], [[1, 4], [2, 2], [3, 2]])


def test_a_band_is_a_standard_deviation_wide_to_each_side():
    (ax,) = curves.grid([line("SFW", *LOSSES)], ["test_loss"]).axes
    found = band(ax)
    half = math.sqrt(2)  # of 3 and 5, with one degree of freedom less
    assert found[1] == pytest.approx((4 - half, 4 + half))
    assert found[2] == pytest.approx((2, 2))
    low, high = ax.get_ylim()
    assert low < 2 - half
    assert 4 + half < high < 6


def test_one_seed_has_no_band():
    (ax,) = curves.grid([line("SFW", LOSSES[0])], ["test_loss"]).axes
    assert not ax.collections


def test_rows_are_steps_and_columns_are_numbers():
    numbers = {"train_loss": (9, 3, 2, 1), "test_accuracy": (0.1, 0.5, 0.75, 0.875)}
    lines = [curves.Line("SFW", [record(numbers)])]
    figure = curves.grid(lines, list(numbers), across=("epoch", "evaluations"))
    a, b, c, d = figure.axes
    assert [ax.get_title() for ax in figure.axes] == ["training loss", "test accuracy in %", "", ""]
    assert [ax.get_xlabel() for ax in figure.axes] == ["epoch"] * 2 + ["gradient evaluations"] * 2
    np.testing.assert_allclose(drawn(b)["SFW"], [[1, 50], [2, 75], [3, 87.5]])
    np.testing.assert_allclose(drawn(c)["SFW"], [[100, 3], [200, 2], [300, 1]])
    assert a.get_ylim() == c.get_ylim()
    assert a.get_xlim()[0] > 0
    assert c.get_xlim()[0] == d.get_xlim()[0] == 0  # budgets are compared from nothing on
    assert legend(figure) == ["SFW"]


def test_a_line_aside_is_drawn_but_does_not_stretch():
    lines = [line("SFW", *LOSSES), line("SPIDER-FW", (900, 90, 80, 70), evaluations=900)]
    for across in ("epoch", "evaluations"):
        free = curves.grid(lines, ["test_loss"], across=[across]).axes[0]
        bound = curves.grid(lines, ["test_loss"], across=[across], aside=["SPIDER-FW"]).axes[0]
        alone = curves.grid(lines[:1], ["test_loss"], across=[across]).axes[0]
        assert (bound.get_xlim(), bound.get_ylim()) == (alone.get_xlim(), alone.get_ylim())
        assert bound.get_ylim()[1] < 70 < free.get_ylim()[1]
        assert drawn(bound)["SPIDER-FW"][-1, 1] == 70


def test_lines_that_are_all_aside_are_shown():
    (ax,) = curves.grid([line("A", *LOSSES)], ["test_loss"], aside=["A"]).axes
    assert ax.get_ylim()[1] > 4
    assert not ax.texts


def test_losses_over_more_than_a_decade_are_shown_by_their_logarithm():
    (ax,) = curves.grid([line("SFW", (9, 3, 1, 0.01), (9, 3, 1, 0.03))], ["test_loss"]).axes
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert 0 < low < 0.01  # the band's lower edge, not the mean of 0.02
    assert 3 < high < 5
    shares = line("SFW", (0.01, 0.01, 0.3, 0.9), name="test_accuracy")
    (ax,) = curves.grid([shares], ["test_accuracy"]).axes
    assert ax.get_yscale() == "linear"
    (ax,) = curves.grid([line("SFW", (9, 3, 1, 0.4))], ["test_loss"]).axes
    assert ax.get_yscale() == "linear"


def test_a_band_below_zero_is_no_reason_for_a_logarithm_without_end():
    (ax,) = curves.grid([line("SFW", (9, 30, 1, 0.001), (9, 30, 1, 3))], ["test_loss"]).axes
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[0] > 0.5


def test_a_seed_that_diverges_is_said_and_leaves_the_mean_to_the_others():
    lost = record({"test_loss": (9, 5)}, 1, status="diverged")
    figure = curves.grid(
        [curves.Line("SFW", [record({"test_loss": LOSSES[0]}), lost])], ["test_loss"]
    )
    np.testing.assert_allclose(
        drawn(figure.axes[0])["SFW (1 of 2 diverged)"], [[1, 4], [2, 2], [3, 1]]
    )
    assert legend(figure) == ["SFW (1 of 2 diverged)"]


def test_what_is_not_there_is_left_out():
    lines = [line("SFW", *LOSSES), line("SGD", (1, 1, 1, 1), name="gap"), curves.Line("Adam", [])]
    figure = curves.grid(lines, ["test_loss", "gap"])
    assert [list(drawn(ax)) for ax in figure.axes] == [["SFW"], ["SGD"]]
    (ax,) = curves.grid([curves.Line("Adam", [])], ["gap"]).axes
    assert [text.get_text() for text in ax.texts] == ["no records"]
    assert not ax.lines


def test_a_line_keeps_its_look_whoever_else_is_there():
    lines = [curves.Line("SFW", []), line("SGD", LOSSES[0])]
    both = [line("SFW", LOSSES[1]), lines[1]]
    looks = [
        [
            (one.get_color(), one.get_marker())
            for one in curves.grid(some, ["test_loss"]).axes[0].lines
        ]
        for some in (lines, both)
    ]
    assert looks[0] == looks[1][1:]


def test_no_two_of_many_lines_look_alike():
    lines = [line(f"method {index}", LOSSES[0]) for index in range(20)]
    figure = curves.grid(lines, ["test_loss"])
    looks = {(one.get_color(), one.get_linestyle()) for one in figure.axes[0].lines}
    assert len(looks) == 20
    (found,) = figure.legends
    figure.draw_without_rendering()
    box = found.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_markers_tell_lines_apart_as_long_as_there_is_room():
    lines = [line(str(index), LOSSES[0]) for index in range(8)]
    short = curves.grid(lines, ["test_loss"]).axes[0].lines
    assert len({one.get_marker() for one in short} - {"None"}) == 8
    (ax,) = curves.grid([line("SFW", (1.0,) * 101, epochs=100)], ["test_loss"]).axes
    assert ax.lines[0].get_marker() == "None"


def test_the_text_for_those_who_do_not_see_names_numbers_and_methods():
    figure = curves.grid([line("SFW", *LOSSES), line("Adam", *LOSSES)], ["test_loss", "gap"])
    assert figure.get_label() == "Curves of test loss, Frank–Wolfe gap over epoch: SFW, Adam."


# ---- paths

SPARSE = {"active": (26506, 20000, 8000, 4000), "sparse_test_accuracy": (0.1, 0.9, 0.92, 0.98)}


def thinned(label, factor=1.0):
    active = tuple(factor * count for count in SPARSE["active"])
    records = [record({**SPARSE, "active": active}), record({**SPARSE, "active": active}, 1)]
    return curves.Line(label, records)


def test_a_path_is_one_mean_against_the_other_with_growing_markers():
    figure = curves.paths({"fully connected": [thinned("L1")], "convolutional": [thinned("L2", 2)]})
    assert [ax.get_title() for ax in figure.axes] == ["fully connected", "convolutional"]
    first, second = figure.axes
    expected = [[20000, 10], [8000, 8], [4000, 2]]
    np.testing.assert_allclose(first.lines[0].get_xydata(), expected)
    (dots,) = (c for c in second.collections if isinstance(c, PathCollection))
    np.testing.assert_allclose(dots.get_offsets(), np.multiply(expected, (2, 1)))
    assert np.all(np.diff(dots.get_sizes()) > 0)
    assert first.get_xlabel() == "active parameters"
    assert first.get_ylabel() == "test error of the sparse network in %"
    assert legend(figure) == ["L1", "L2"]
    assert figure.get_label() == (
        "Paths of active parameters against test error of the sparse network in % over the "
        "epochs, fully connected, convolutional: L1, L2."
    )


def test_a_path_ends_in_its_deviations():
    records = [
        record({"active": (9, 8, 7, 2 + d), "sparse_test_accuracy": (0, 0, 0, 0.5 + d / 20)}, d)
        for d in range(2)
    ]
    (ax,) = curves.paths({"": [curves.Line("L1", records)]}).axes
    spans = [c.get_segments()[0] for c in ax.collections if not isinstance(c, PathCollection)]
    half = math.sqrt(0.5)
    np.testing.assert_allclose(spans[0], [[2.5 - half, 47.5], [2.5 + half, 47.5]])
    np.testing.assert_allclose(spans[1], [[2.5, 47.5 - 5 * half], [2.5, 47.5 + 5 * half]])


def test_an_empty_panel_stays_empty():
    figure = curves.paths({"a": [curves.Line("L1", [])], "b": [thinned("L1")]})
    assert not figure.axes[0].lines
    assert figure.axes[1].lines
