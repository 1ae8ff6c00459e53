"""Figure 1: figure 6 in brief, as the paper's main text shows it."""

from __future__ import annotations

from condgrad_lab.papers.dnn_fw_2020._comparison import BRIEF
from condgrad_lab.papers.dnn_fw_2020.figure_6 import Figure6


class Figure1(Figure6):
    """The runs and the claims are those of figure 6."""

    name, shown = "figure-1", BRIEF
