"""The fully connected networks on the digits and the clothes (figures 1, 4, 5 and 6)."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import relu


class MLP(nn.Module):
    """784 pixels, hidden layers with ReLU, classes; every layer has a bias."""

    def __init__(self, classes: int, *, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(n, m) for n, m in pairwise((784, *hidden)))
        self.classify = nn.Linear(hidden[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = relu(layer(x))
        return self.classify(x)
