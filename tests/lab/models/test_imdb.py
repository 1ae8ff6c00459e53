"""The network over sparse rows, against its dense twin."""

import pytest
import torch
from torch import nn

from condgrad_lab.models import build
from condgrad_lab.models.imdb import SparseLinear
from condgrad_lab.sparse import SparseRows

WIDTH = 8185


@pytest.fixture
def rows():
    """Four reviews as sparse and as dense rows; the second is empty, as is the last."""
    generator = torch.Generator().manual_seed(11)
    active = [torch.randperm(WIDTH, generator=generator)[:n] for n in (120, 0, 1, 40, 0)]
    offsets = torch.tensor([0, *torch.tensor([len(a) for a in active]).cumsum(0).tolist()])
    dense = torch.zeros(len(active), WIDTH)
    for row, indices in zip(dense, active, strict=True):
        row[indices] = 1
    return SparseRows(torch.cat(active), offsets, WIDTH), dense


def test_sparse_rows_answer_as_dense_rows_do(rows):
    sparse, dense = rows
    model = build("imdb-mlp", seed=0)
    answers, gradients = [], []
    for x in (sparse, dense):
        model.zero_grad()
        answer = model(x)
        answer.square().sum().backward()
        answers.append(answer)
        gradients.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(answers[0], answers[1])
    torch.testing.assert_close(gradients[0], gradients[1])
    assert not gradients[0][0].is_sparse


def test_it_is_the_linear_layer_of_torch(rows):
    _, dense = rows
    torch.manual_seed(4)
    ours = SparseLinear(WIDTH, 32)
    torch.manual_seed(4)
    theirs = nn.Linear(WIDTH, 32)
    assert torch.equal(ours.weight, theirs.weight.t())
    torch.testing.assert_close(ours(dense), theirs(dense))


def test_another_vocabulary_is_refused():
    x = SparseRows(torch.tensor([0, 3]), torch.tensor([0, 2]), 10)
    with pytest.raises(ValueError, match=r"`x` has rows of width 10, .* takes 8185 inputs"):
        build("imdb-mlp", seed=0)(x)
