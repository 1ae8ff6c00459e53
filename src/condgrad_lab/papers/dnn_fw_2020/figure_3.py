"""Figure 3: what the choice of the region does to the weights that tell a 0 and a 3."""

from __future__ import annotations

from condgrad_lab.papers.dnn_fw_2020._weights import WeightPictures
from condgrad_lab.papers.dnn_fw_2020.figure_8 import Figure8


class Figure3(WeightPictures):
    """Six of figure 8's columns and two of its rows; the runs are the same."""

    name, title = "figure-3", "Weights for the digits 0 and 3 under different constraints"
    data = Figure8.data
    classes = {0: "0", 3: "3"}  # noqa: RUF012
    columns = {  # noqa: RUF012
        label: column for label, column in Figure8.columns.items() if label == "SGD" or column.rules
    }
