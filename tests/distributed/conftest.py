"""One team of four ranks for all tests; and short-lived ones for those that need their own."""

import pytest

from distributed.team import Nursery


@pytest.fixture(scope="session")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def _keeper():
    return []


@pytest.fixture
def four(nursery, _keeper):
    """Four ranks; others, if the last ones have been lost."""
    if not (_keeper and _keeper[-1].alive):
        _keeper.append(nursery.team(4))
    return _keeper[-1]
