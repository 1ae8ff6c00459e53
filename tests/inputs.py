"""Tensors to ask regions about: all of them from explicit seeds."""

import math

import numpy as np
import torch


def generator(seed):
    return torch.Generator().manual_seed(seed)


def normal(shape, seed, scale=1.0, dtype=torch.float64):
    """A Gaussian tensor: no ties, no zeros."""
    return torch.randn(shape, generator=generator(seed), dtype=dtype) * scale


def distinct(shape, seed, dtype=torch.float64):
    """Whole numbers of distinct absolute values and random signs, exact even in bfloat16."""
    rng = np.random.default_rng(seed)
    n = math.prod(shape)
    assert 4 * n + 3 < 256, "bfloat16 holds whole numbers up to 256"
    sizes = 4 * rng.permutation(np.arange(1, n + 1)) + rng.integers(0, 3, n)
    return torch.tensor(sizes * rng.choice([-1, 1], n), dtype=dtype).reshape(shape)


def array(x):
    """The tensor as a NumPy array in float64, which holds every smaller format exactly."""
    return x.detach().double().numpy()


def tensor(a, dtype=torch.float64):
    return torch.as_tensor(np.asarray(a, dtype=np.float64)).to(dtype)


def dot(a, b):
    return float((a.double() * b.double()).sum())


def coordinates(shape):
    """The unit vectors, their negatives, and the all-ones directions."""
    n = math.prod(shape)
    eye = torch.eye(n, dtype=torch.float64)
    ones = torch.ones(1, n, dtype=torch.float64)
    return [row.reshape(shape) for row in torch.cat([eye, -eye, ones, -ones])]


def centre(region, shape):
    """A point well inside the region: an average of vertices in all directions."""
    vertices = [region.lmo(x, generator=generator(i)) for i, x in enumerate(coordinates(shape))]
    return torch.stack(vertices).mean(0)


def inside(region, shape, seed, share=0.9):
    """A point inside, most of the way from the centre to a mixture of three vertices."""
    weights = torch.rand(3, generator=generator(seed), dtype=torch.float64)
    weights = weights / weights.sum()
    vertices = [
        region.lmo(normal(shape, 1000 * seed + i), generator=generator(i)) for i in range(3)
    ]
    mixture = sum(w * v for w, v in zip(weights, vertices, strict=True))
    return share * mixture + (1 - share) * centre(region, shape)
