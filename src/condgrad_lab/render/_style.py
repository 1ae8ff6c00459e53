"""How everything that is shown looks: colours, sizes, and matplotlib's settings for them.

Nothing here changes matplotlib's global state: whoever draws or saves does it inside `style()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

from matplotlib import style as styles
from matplotlib.colors import Colormap, LinearSegmentedColormap

P = ParamSpec("P")
T = TypeVar("T")

INK = "#1b1d23"  # text and axes; a page may replace it by its own colour of text
FAINT = "#8b90a0"  # frames and grids: seen on a light and on a dark page

# Told apart with any kind of colour vision, on white and on black. The markers tell them apart in
# print.
_HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#a0522d")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_DASHES = ("-", "--", ":", "-.")

# The paper's: red is negative, green positive. This red has some yellow and this green some blue,
# for those who confuse pure ones.
WEIGHTS: Colormap = LinearSegmentedColormap.from_list(
    "weights", ["#c1200b", "#f4a582", "#ffffff", "#7fcdb0", "#00744c"]
).with_extremes(bad="#c8c8c8")

DPI = 150

_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 3.5,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "svg.hashsalt": "condgrad",  # else every file has other ids
    "svg.fonttype": "path",
}


def hue(index: int) -> str:
    """The colour of a line by its place among the lines."""
    return _HUES[index % len(_HUES)]


def marker(index: int) -> str:
    """The marker of a line by its place among the lines."""
    return _MARKERS[index % len(_MARKERS)]


def dashes(index: int) -> str:
    """The dashes of a line by its place: other ones when the colours begin anew."""
    return _DASHES[index // len(_HUES) % len(_DASHES)]


def style() -> AbstractContextManager[None]:
    """These settings over matplotlib's own defaults, whatever the user's are."""
    return styles.context(["default", _SETTINGS])


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """The function, drawing in this style."""

    @functools.wraps(draw)
    def drawing(*args: P.args, **kwargs: P.kwargs) -> T:
        with style():
            return draw(*args, **kwargs)

    return drawing


# An image follows the reader's choice of light or dark by itself; paper is always light.
THEMED = f"svg{{color:{INK}}}@media screen and (prefers-color-scheme:dark){{svg{{color:#e6e7ec}}}}"

PAGE = """
:root { --ink: #1b1d23; --page: #ffffff; --rule: #d9dbe3; --quiet: #5b6070; --shade: #f4f5f8;
  --link: #00609a; --met: #00664a; --missed: #a81c0a; --open: #7a5200; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e7ec; --page: #16181d; --rule: #3a3e4a; --quiet: #a6abba; --shade: #20232b;
    --link: #7cc4f5; --met: #5fd3ac; --missed: #ff9a85; --open: #f0c35a; } }
* { box-sizing: border-box; }
body { max-width: 72rem; margin: 0 auto; padding: 1rem clamp(0.75rem, 3vw, 2rem) 4rem;
  font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1rem 0 0.5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.5rem; }
p, li { max-width: 46rem; }
a { color: var(--link); }
code { padding: 0.1em 0.3em; font-size: 0.9em; background: var(--shade); border-radius: 0.25em; }
section { margin-top: 2.5rem; padding-top: 1.5rem; border-top: 1px solid var(--rule); }
.wide { overflow-x: auto; margin: 0.5rem 0; }
figure img { display: block; max-width: 100%; min-width: min(36rem, 200vw); height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.35rem 1.25rem 0.35rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
thead th { font-weight: 500; color: var(--quiet); }
tbody th { font-weight: 500; }
td span, nav th { white-space: nowrap; }
small { display: block; font-weight: 400; color: var(--quiet); }
.met { color: var(--met); } .missed { color: var(--missed); font-weight: 700; }
.open { color: var(--open); } .not-judged { color: var(--quiet); }
nav span { margin-right: 0.75em; }
@media screen and (max-width: 42rem) {
  section thead { display: none; }
  section tr { display: block; padding: 0.5rem 0; border-bottom: 1px solid var(--rule); }
  section tbody th, section td { display: block; padding: 0; border: 0; }
  section td::before { content: attr(data-name) ": "; color: var(--quiet); }
  section td:empty { display: none; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  .wide { overflow: visible; } figure img { min-width: 0; }
  section { break-before: page; border: 0; padding: 0; margin: 0; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""
