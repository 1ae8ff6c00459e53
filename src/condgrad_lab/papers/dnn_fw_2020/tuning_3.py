"""Tuning 3: rates and sizes for a short schedule of table 3."""

from __future__ import annotations

from condgrad_lab.papers.dnn_fw_2020._search import Grid, Search
from condgrad_lab.papers.dnn_fw_2020.table_3 import Table3


class Tuning3(Search):
    """Nine tries a method."""

    name, title = "tuning-3", "Rates and sizes for WideResNet28x10 on CIFAR-10"
    of = Table3()
    grids = {  # noqa: RUF012
        "SGD with decay": Grid(rates=(0.03, 0.1, 0.3), sizes=(0.0001, 0.0005, 0.002)),
        "SFW L2": Grid(rates=(0.5, 1, 2), sizes=(1, 2, 4), ball="L2Ball"),
        "SFW L∞": Grid(rates=(0.5, 1, 2), sizes=(3, 10, 30), ball="LinfBall"),
    }
