"""Table 6: ResNeXt50 on ImageNet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from condgrad_lab.papers.dnn_fw_2020._deep import DeepTable, Setup, single


class Table6(DeepTable):
    """One run a method."""

    name, title = "table-6", "ResNeXt50 on ImageNet"
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "short": 1, "paper": 1}
    setup = Setup(
        model="resnext50",
        small="resnext14",
        data="imagenet",
        epochs=90,
        batch=256,
        milestones=(30, 60),
        factor=0.1,
        widths=(30, 100),
        top5=True,
    )
    printed = {  # noqa: RUF012
        "SGD": single(0.5382, 86.77, 1.6467, 70.15, 95.31, 88.79),
        "SGD with decay": single(0.6889, 83.16, 0.981, 76.09, 94.37, 92.98),
        "SFW L2": single(0.9257, 78.12, 0.9598, 75.77, 92.18, 92.64),
        "SFW L∞": single(0.9476, 76.92, 1.057, 73.95, 91.69, 91.44),
    }
