"""What a data set is, once it is in memory."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from condgrad_lab.data.pictures import Pictures
from condgrad_lab.sparse import SparseRows


@dataclass(frozen=True, eq=False)
class Split:
    """Samples and their labels, which are int64.

    Images are uint8, texts `SparseRows`, pictures in files `Pictures`.
    """

    inputs: Tensor | SparseRows | Pictures
    labels: Tensor

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise ValueError(
                f"`labels` must be as many as `inputs`, "
                f"got {len(self.labels)} labels for {len(self.inputs)} inputs"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        inputs = self.inputs
        what = f"uint8 {tuple(inputs.shape)}" if isinstance(inputs, Tensor) else repr(inputs)
        return f"Split({what})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test split over the same classes; label i means ``classes[i]``."""

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
