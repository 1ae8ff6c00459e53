"""Optimizers over regions, each a torch.optim.Optimizer.

Adding one means: a file of this room, and a line here.
"""

from ._adaptive import AdamSFW, AdaSFW
from ._orgfw import ORGFW
from ._projected import ProjectedSGD
from ._sfw import SFW
from ._spider import SPIDERFW
from ._svrf import SVRF

__all__ = ["ORGFW", "SFW", "SPIDERFW", "SVRF", "AdaSFW", "AdamSFW", "ProjectedSGD"]
