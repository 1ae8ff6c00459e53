"""The network over sparse binary reviews (figures 2 and 7)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, relu

from condgrad_lab.sparse import SparseRows

SUBWORDS = 8185


class SparseLinear(nn.Module):
    """`nn.Linear` over binary rows of which few entries are one.

    The product of such a row and a matrix is the sum of the matrix's rows at the ones: the zeros
    are never stored, moved or multiplied. So the weight lies as (inputs, outputs), the transpose
    of `nn.Linear.weight`. It starts where `nn.Linear(inputs, outputs)` would with the same seed.
    A dense tensor of rows gives the same answer.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        start = nn.Linear(inputs, outputs)
        self.weight = nn.Parameter(start.weight.detach().t().contiguous())
        self.bias = nn.Parameter(start.bias.detach())

    def forward(self, x: SparseRows | Tensor) -> Tensor:
        if isinstance(x, Tensor):
            return torch.addmm(self.bias, x, self.weight)
        if x.width != len(self.weight):
            raise ValueError(
                f"`x` has rows of width {x.width}, but this layer takes {len(self.weight)} inputs: "
                "encode the reviews with the vocabulary the network was built for"
            )
        # Offsets have one entry more than there are rows: row i is offsets[i] to offsets[i + 1].
        rows = embedding_bag(
            x.indices, self.weight, x.offsets, mode="sum", include_last_offset=True
        )
        return rows + self.bias


class ImdbMLP(nn.Module):
    """8,185 subwords, present or not; one hidden layer of 32 with ReLU; a logit a class.

    Two logits, not one, so that the loss is the cross-entropy of all the other networks.
    """

    def __init__(self, classes: int, *, subwords: int = SUBWORDS, hidden: int = 32) -> None:
        super().__init__()
        self.hidden = SparseLinear(subwords, hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, x: SparseRows | Tensor) -> Tensor:
        return self.classify(relu(self.hidden(x)))
