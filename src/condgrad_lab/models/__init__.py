"""The networks of the paper, one architecture per file.

`build(name, seed=...)` makes one; `ARCHITECTURES` says what each of them is fed with. The small
networks start at PyTorch's defaults, the deep ones at the initialisation they were published with
(He et al., 2015). To add a network, write its file and one line in the list of `_registry.py`.
"""

from condgrad_lab.models._registry import (
    ARCHITECTURES,
    Architecture,
    Init,
    InputKind,
    architecture,
    build,
)

__all__ = ["ARCHITECTURES", "Architecture", "Init", "InputKind", "architecture", "build"]
