"""Tuning 4: rates and sizes for a short schedule of table 4."""

from __future__ import annotations

from condgrad_lab.papers.dnn_fw_2020._search import Grid, Search
from condgrad_lab.papers.dnn_fw_2020.table_4 import Table4


class Tuning4(Search):
    """Nine tries a method."""

    name, title = "tuning-4", "Rates and sizes for GoogLeNet on CIFAR-100"
    of = Table4()
    grids = {  # noqa: RUF012
        "SGD with decay": Grid(rates=(0.03, 0.1, 0.3), sizes=(0.0001, 0.0005, 0.002)),
        "SFW L2": Grid(rates=(0.5, 1, 2), sizes=(1, 2, 4), ball="L2Ball"),
        "SFW L∞": Grid(rates=(0.5, 1, 2), sizes=(3, 10, 30), ball="LinfBall"),
    }
