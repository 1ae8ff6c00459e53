"""Table 4: GoogLeNet on CIFAR-100."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from condgrad_lab.papers.dnn_fw_2020._deep import DeepTable, Printed, Setup


class Table4(DeepTable):
    """Three runs a method."""

    name, title = "table-4", "GoogLeNet on CIFAR-100"
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "short": 1, "paper": 3}
    setup = Setup(
        model="googlenet",
        small="googlenet-thin",
        data="cifar-100",
        epochs=200,
        batch=128,
        milestones=(60, 120, 160),
        factor=0.2,
        widths=(10, 30),
    )
    printed = {  # noqa: RUF012
        "SGD": Printed((0.0094, 0.0012), (99.71, 0.04), (1.9856, 0.0278), (76.82, 0.25)),
        "SGD with decay": Printed((0.0113, 0.0007), (99.85, 0.02), (1.0385, 0.0126), (77.5, 0.13)),
        "SFW L2": Printed((0.0152, 0.0011), (99.94, 0.01), (0.8188, 0.0039), (78.88, 0.1)),
        "SFW L∞": Printed((0.0131, 0.0015), (99.82, 0.02), (1.0462, 0.014), (76.54, 0.5)),
    }
