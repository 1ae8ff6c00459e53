"""Figure 2: figure 7 in brief, as the paper's main text shows it."""

from __future__ import annotations

from condgrad_lab.papers.dnn_fw_2020._comparison import BRIEF
from condgrad_lab.papers.dnn_fw_2020.figure_7 import Figure7


class Figure2(Figure7):
    """The runs and the claims are those of figure 7."""

    name, shown = "figure-2", BRIEF
