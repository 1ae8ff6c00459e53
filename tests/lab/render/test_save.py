"""Figures as files: whole, the same again, and nothing of matplotlib's own state changed."""

import base64
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from condgrad_lab import render
from condgrad_lab.render import _style, curves, pictures
from lab.render.made import found, line

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=[0, 1], ids=["curves", "pictures"])
def pair(request):
    return found()[request.param]


def saved(pair, folder):
    return {path.suffix: path for path in render.save(*pair, folder)}


def test_save_writes_a_png_and_an_svg_of_the_artifacts_name(pair, tmp_path):
    artifact, _ = pair
    paths = saved(pair, tmp_path / "new" / "folder")
    assert {path.name for path in paths.values()} == {
        f"{artifact.name}.png",
        f"{artifact.name}.svg",
    }
    inches = artifact.draw(pair[1]).get_size_inches()
    with Image.open(paths[".png"]) as image:
        image.load()
        # A pixel less is rounding.
        np.testing.assert_allclose(image.size, inches * _style.DPI, atol=1)
        colours = image.convert("RGB").getcolors(1 << 20)
        assert max(colours)[1] == (255, 255, 255)
        assert len(colours) > 10
    root = ET.parse(paths[".svg"]).getroot()
    assert root.tag == f"{SVG}svg"
    np.testing.assert_allclose(
        [float(root.get(side).removesuffix("pt")) for side in ("width", "height")], 72 * inches
    )


def test_one_figure_is_one_file_whenever_it_is_drawn(pair, tmp_path):
    first, second = saved(pair, tmp_path / "a"), saved(pair, tmp_path / "b")
    for kind in first:
        assert first[kind].read_bytes() == second[kind].read_bytes()
    text = first[".svg"].read_text()
    assert "<dc:date>" not in text
    assert "Matplotlib v" not in text


def test_an_svg_needs_no_font_and_nothing_from_elsewhere(pair, tmp_path):
    root = ET.parse(saved(pair, tmp_path)[".svg"]).getroot()
    assert not list(root.iter(f"{SVG}text"))  # letters are shapes
    links = [v for e in root.iter() for k, v in e.attrib.items() if k.endswith("href")]
    assert links
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))


def test_weights_stay_pixels_in_an_svg(tmp_path):
    root = ET.parse(saved(found()[1], tmp_path)[".svg"]).getroot()
    (image,) = root.iter(f"{SVG}image")
    link = next(v for k, v in image.attrib.items() if k.endswith("href"))
    content = io.BytesIO(base64.b64decode(link.partition(",")[2]))
    assert Image.open(content).size == (4, 4)
    assert "pixelated" in image.get("style")


def test_drawing_leaves_the_settings_of_others_alone(pair, tmp_path):
    with mpl.rc_context({"font.size": 3.0, "savefig.dpi": 10, "axes.linewidth": 5}):
        before = dict(mpl.rcParams)
        mine = saved(pair, tmp_path / "mine")
        assert dict(mpl.rcParams) == before
    default = saved(pair, tmp_path / "default")
    for kind in mine:  # nor do theirs change what is drawn
        assert mine[kind].read_bytes() == default[kind].read_bytes()


def test_a_drawing_that_fails_leaves_the_settings_alone_too():
    before = dict(mpl.rcParams)
    with pytest.raises(ValueError, match="row_names"):
        pictures.table([pictures.Column("a", [])], ["0"])
    assert dict(mpl.rcParams) == before


def test_pyplot_is_not_needed():
    # It keeps every figure alive, and may look for a screen.
    program = (
        "import sys; from condgrad_lab.render import curves; "
        "curves.grid([curves.Line('a', [])], ['gap']).savefig('/dev/null', format='svg'); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_hues_are_told_apart_on_light_and_on_dark():
    for page in ("#ffffff", "#16181d"):
        for index in range(8):
            assert contrast(_style.hue(index), page) > 2, (page, index)


def contrast(one, other):
    """The ratio of the luminances as the web's guidelines define it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = np.array([int(part, 16) for part in re.findall("..", colour.lstrip("#"))]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_lines_are_told_apart_by_those_who_see_two_colours_only():
    # Viénot, Brettel and Mollon 1999: what is left of linear light without one kind of cone.
    blind = {
        "protan": [[0.1121, 0.8853, -0.0005], [0.1127, 0.8897, -0.0001], [0.0045, 0.0, 1.0019]],
        "deutan": [[0.2920, 0.7054, -0.0003], [0.2934, 0.7089, 0.0], [-0.0209, 0.0256, 0.9946]],
    }
    (ax,) = curves.grid([line(str(i), (1, 2, 3, 4)) for i in range(6)], ["test_loss"]).axes
    colours = np.array([mpl.colors.to_rgb(one.get_color()) for one in ax.lines])
    for matrix in blind.values():
        seen = np.clip(colours**2.2 @ np.transpose(matrix), 0, 1) ** (1 / 2.2)
        apart = np.linalg.norm(seen[:, None] - seen, axis=-1)[~np.eye(6, dtype=bool)]
        assert apart.min() > 0.1
