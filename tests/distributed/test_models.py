"""Sizes, starts and measurements of a model are those of the whole, wherever its pieces lie."""

import functools

import numpy as np
import pytest

from distributed import models

CLOSE = 1e-11


@functools.cache
def expected():
    return models.facts("none", True)


def compare(found, wanted, path):
    """Raise unless equal to rounding."""
    if isinstance(wanted, dict):
        assert set(found) == set(wanted), path
        for name in wanted:
            compare(found[name], wanted[name], f"{path} {name}")
    elif isinstance(wanted, (list, str)):
        if isinstance(wanted, str) or isinstance(wanted[0], str):
            assert found == wanted, path
        else:
            for a, b in zip(found, wanted, strict=True):
                compare(a, b, path)
    else:
        a, b = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
        assert np.abs(a - b).max() <= CLOSE * (1 + np.abs(b).max()), f"{path}: {a} is not {b}"


@pytest.mark.parametrize("first", [True, False], ids=["constrained first", "shared first"])
@pytest.mark.parametrize("engine", list(models.ENGINES)[1:])
def test_a_model_is_measured_whole(four, engine, first):
    for found in four.ask(models.facts, engine, first):
        compare(found, expected(), engine)
