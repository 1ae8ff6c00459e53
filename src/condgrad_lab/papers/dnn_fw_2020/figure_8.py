"""Figure 8: the weights of a linear classifier on MNIST, trained in nine ways."""

from __future__ import annotations

from condgrad_lab.papers.dnn_fw_2020._weights import WeightPictures, free, inside
from condgrad_lab.spec import Rule


class Figure8(WeightPictures):
    """One run a column; the accuracies are those of the paper's caption."""

    name, title = "figure-8", "Weights of a linear classifier on MNIST"
    data = "mnist"
    classes = {digit: str(digit) for digit in range(10)}  # noqa: RUF012
    columns = {  # noqa: RUF012
        "SGD": free("SGD", lr=0.1, accuracy=92.15),
        "Adam": free("Adam", lr=0.001, accuracy=92.65),
        "Adagrad": free("Adagrad", lr=0.1, accuracy=92.42),
        "Adadelta": free("Adadelta", lr=1, accuracy=92.55),
        "L1": inside(Rule("L1Ball", radius=10_000), lr=0.3, accuracy=86.96),
        "K-sparse": inside(Rule("KSparsePolytope", radius=1000, k=1000), lr=0.3, accuracy=91.92),
        "L2": inside(Rule("L2Ball", radius=1000), lr=0.3, accuracy=92.17),
        "L5": inside(Rule("LpBall", radius=100, p=5), lr=0.1, accuracy=92.09),
        "L∞": inside(Rule("LinfBall", radius=1), lr=0.03, accuracy=90.07),
    }
