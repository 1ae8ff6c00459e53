"""Table 3: WideResNet28x10 on CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from condgrad_lab.papers.dnn_fw_2020._deep import DeepTable, Printed, Setup


class Table3(DeepTable):
    """Five runs a method."""

    name, title = "table-3", "WideResNet28x10 on CIFAR-10"
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "short": 1, "paper": 5}
    setup = Setup(
        model="wideresnet28x10",
        small="wideresnet10x1",
        data="cifar-10",
        epochs=200,
        batch=128,
        milestones=(60, 120, 160),
        factor=0.2,
        widths=(30, 100),
    )
    printed = {  # noqa: RUF012
        "SGD": Printed((0.0007, 0.0001), (99.98, 0.01), (0.4446, 0.0107), (94.44, 0.12)),
        "SGD with decay": Printed((0.0008, 0.0001), (100.0, 0.0), (0.2226, 0.0127), (95.13, 0.11)),
        "SFW L2": Printed((0.001, 0.0001), (99.99, 0.01), (0.2843, 0.0101), (94.58, 0.18)),
        "SFW L∞": Printed((0.0006, 0.0001), (99.99, 0.0), (0.5246, 0.0798), (94.03, 0.35)),
    }
