"""How much of the data, and for how long, at each scale.

"paper" is what the paper prints. "small" shows the same on a part of the real data in minutes,
"smoke" on invented data that nothing must be fetched for, in seconds.
"""

from __future__ import annotations

from condgrad_lab.spec import Data

_EPOCHS = {"smoke": 2, "small": 5, "paper": 10}


def data(name: str, scale: str) -> Data:
    """The samples at a scale."""
    if scale == "smoke":
        return Data(name, train=320, test=160, synthetic=True)
    return Data(name, train=10_000, test=5_000) if scale == "small" else Data(name)


def epochs(scale: str) -> int:
    """The length of a run at a scale."""
    return _EPOCHS[scale]
