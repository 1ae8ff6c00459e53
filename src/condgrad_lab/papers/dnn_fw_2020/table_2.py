"""Table 2: DenseNet121 on CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from condgrad_lab.papers.dnn_fw_2020._deep import DeepTable, Printed, Setup


class Table2(DeepTable):
    """Three runs a method."""

    name, title = "table-2", "DenseNet121 on CIFAR-10"
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "short": 1, "paper": 3}
    setup = Setup(
        model="densenet121",
        small="densenet13",
        data="cifar-10",
        epochs=200,
        batch=64,
        milestones=(90, 180),
        factor=0.1,
        widths=(13, 30),
    )
    printed = {  # noqa: RUF012
        "SGD": Printed((0.0019, 0.0004), (99.94, 0.01), (0.4916, 0.0177), (93.32, 0.17)),
        "SGD with decay": Printed((0.002, 0.0002), (99.97, 0.01), (0.2848, 0.0066), (94.2, 0.19)),
        "SFW L2": Printed((0.0034, 0.0003), (99.96, 0.01), (0.2425, 0.0074), (94.46, 0.13)),
        "SFW L∞": Printed((0.0028, 0.0002), (99.95, 0.01), (0.2744, 0.0104), (94.2, 0.19)),
    }
