"""What a data set is, once it is in memory."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from condgrad_lab.sparse import SparseRows


@dataclass(frozen=True, eq=False)
class Split:
    """Samples and their labels: images as uint8 or texts as `SparseRows`, labels as int64."""

    inputs: Tensor | SparseRows
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
        what = repr(inputs) if isinstance(inputs, SparseRows) else f"uint8 {tuple(inputs.shape)}"
        return f"Split({what})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test split over the same classes; label i means ``classes[i]``."""

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
