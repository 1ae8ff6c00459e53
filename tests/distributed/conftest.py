"""One team of each size for all tests; and short-lived ones for those that need their own."""

import pytest

from distributed.team import Nursery


@pytest.fixture(scope="session")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def _keeper():
    return {}


@pytest.fixture
def team_of(nursery, _keeper):
    """So many ranks; others, if the last ones have been lost."""

    def found(size):
        if size not in _keeper or not _keeper[size].alive:
            _keeper[size] = nursery.team(size)
        return _keeper[size]

    return found


@pytest.fixture
def four(team_of):
    """Four ranks."""
    return team_of(4)
