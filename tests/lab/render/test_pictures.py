"""What is in a table of pictures: the images, their colours, where they stand."""

import colorsys

import numpy as np
import pytest

from condgrad_lab.render import pictures
from condgrad_lab.render.pictures import Column

RAMP = np.linspace(-1, 0.5, 16).reshape(4, 4)


def colour(ax, value):
    (image,) = ax.images
    return image.cmap(image.norm(value))


def test_red_is_negative_green_positive_and_white_is_zero():
    (ax,) = pictures.table([Column("SGD", [RAMP])], ["0"]).axes
    red, green = colour(ax, -1), colour(ax, 1)
    assert red[0] > 2 * max(red[1:3])
    assert green[1] > 1.5 * max(green[0], green[2])
    assert colour(ax, 0) == pytest.approx((1, 1, 1, 1), abs=0.01)
    # Nor do they differ by hue alone: the darker of two shades has the larger weight behind it.
    lightness = [colorsys.rgb_to_hls(*colour(ax, v)[:3])[1] for v in (0, 0.3, 0.6, 1)]
    assert lightness == sorted(lightness, reverse=True)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_each_image_has_its_own_symmetric_scale(scale):
    figure = pictures.table([Column("a", [scale * RAMP]), Column("b", [-RAMP])], ["0"])
    first, second = figure.axes
    assert first.images[0].get_clim() == pytest.approx((-scale, scale))
    assert second.images[0].get_clim() == (-1, 1)
    np.testing.assert_array_equal(first.images[0].get_array(), scale * RAMP)


def test_zeros_are_white_and_numbers_that_are_none_are_grey():
    zeros = pictures.table([Column("a", [np.zeros((2, 2))])], ["0"]).axes[0]
    assert colour(zeros, 0) == pytest.approx((1, 1, 1, 1), abs=0.01)
    broken = np.array([[1.0, np.nan], [0.0, np.inf]])
    ax = pictures.table([Column("a", [broken])], ["0"]).axes[0]
    assert ax.images[0].get_clim() == (-1, 1)
    shown = ax.images[0].cmap(np.ma.masked_invalid(broken))
    assert np.ptp(shown[0, 1, :3]) == 0
    assert shown[0, 1, 0] < 0.9


def test_a_row_a_name_a_column_a_label_and_a_missing_image_an_empty_cell():
    columns = [Column("SGD", [RAMP, RAMP], "92.00 %"), Column("L1", [None, RAMP])]
    figure = pictures.table(columns, ["zero", "one"])
    boxes = {ax.get_label(): ax.get_position() for ax in figure.axes}
    assert set(boxes) == {"SGD zero", "SGD one", "L1 one"}
    assert boxes["SGD zero"].y0 > boxes["SGD one"].y1
    assert boxes["L1 one"].x0 > boxes["SGD one"].x1
    assert boxes["L1 one"].y0 == boxes["SGD one"].y0
    words = {text.get_text(): text.get_position() for text in figure.texts}
    assert words["zero"][0] < boxes["SGD zero"].x0
    assert boxes["SGD zero"].y0 < words["zero"][1] < boxes["SGD zero"].y1
    assert words["SGD"][1] > boxes["SGD zero"].y1
    assert words["92.00 %"][1] < boxes["SGD one"].y0
    assert boxes["L1 one"].x0 < words["L1"][0] < boxes["L1 one"].x1
    width, height = figure.get_size_inches()
    box = boxes["L1 one"]
    assert box.width * width == pytest.approx(box.height * height)  # pixels are squares


@pytest.mark.parametrize("names", [["a name of some length"] * 2, ["0", "1"], ["T-shirt", "bag"]])
def test_no_word_leaves_the_figure_or_meets_a_picture(names):
    figure = pictures.table([Column("Adadelta", [RAMP, RAMP], "92.55 %")] * 9, names)
    figure.draw_without_rendering()
    pixels = [ax.get_window_extent() for ax in figure.axes]
    for text in figure.texts:
        box = text.get_window_extent()
        assert 0 <= box.x0 <= box.x1 <= figure.bbox.width
        assert 0 <= box.y0 <= box.y1 <= figure.bbox.height
        if text.get_text():
            assert not any(box.overlaps(other) for other in pixels), text.get_text()


def test_the_text_for_those_who_do_not_see_names_rows_and_columns():
    figure = pictures.table([Column("SGD", [RAMP], "92 %"), Column("L1", [None])], ["bag"])
    assert figure.get_label() == (
        "Weights as pictures, red negative and green positive. Rows: bag. Columns: SGD 92 %, L1."
    )


def test_images_that_do_not_fit_the_rows_are_refused():
    with pytest.raises(ValueError, match="`columns`: SGD has 1 images for 2 `row_names`; give Non"):
        pictures.table([Column("SGD", [RAMP])], ["0", "1"])
