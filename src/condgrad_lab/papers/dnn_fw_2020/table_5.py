"""Table 5: DenseNet121 on ImageNet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from condgrad_lab.papers.dnn_fw_2020._deep import DeepTable, Setup, single


class Table5(DeepTable):
    """One run a method."""

    name, title = "table-5", "DenseNet121 on ImageNet"
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "short": 1, "paper": 1}
    setup = Setup(
        model="densenet121-imagenet",
        small="densenet13-imagenet",
        data="imagenet",
        epochs=90,
        batch=256,
        milestones=(30, 60),
        factor=0.1,
        widths=(30, 100),
        top5=True,
    )
    printed = {  # noqa: RUF012
        "SGD": single(0.9409, 76.95, 1.2945, 71.06, 91.45, 89.77),
        "SGD with decay": single(1.0107, 75.57, 0.9957, 74.89, 91.1, 92.3),
        "SFW L2": single(1.1931, 71.85, 1.0542, 73.46, 89.04, 91.47),
        "SFW L∞": single(1.1871, 71.64, 1.1111, 72.22, 88.89, 90.72),
    }
