"""WideResNet28x10 (table 3).

Zagoruyko, Komodakis (2016), "Wide Residual Networks"; without dropout.
"""

from torch import Tensor, nn

from condgrad_lab.models._layers import conv, norm_relu, pool

WIDTH = 10
# Depth 28 = 3 stages x 4 blocks x 2 convolutions, the stem, and the first block's shortcuts.
BLOCKS = 4


class WideBlock(nn.Module):
    """Two 3x3 convolutions, each normalised and rectified beforehand, beside a shortcut.

    Where the shape changes, the shortcut is a 1x1 convolution of the rectified input; elsewhere
    the input itself passes.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = conv(inputs, outputs, 3, stride=stride)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = conv(outputs, outputs, 3)
        self.shortcut = conv(inputs, outputs, 1, stride=stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        y = norm_relu(self.norm1, x)
        shortcut = x if self.shortcut is None else self.shortcut(y)
        y = norm_relu(self.norm2, self.conv1(y))
        return self.conv2(y) + shortcut


def _stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    first = WideBlock(inputs, outputs, stride)
    return nn.Sequential(first, *(WideBlock(outputs, outputs, 1) for _ in range(BLOCKS - 1)))


class WideResNet28x10(nn.Module):
    """Three stages of four wide blocks, of 160, 320 and 640 channels."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = conv(3, 16, 3)
        self.stages = nn.Sequential(
            _stage(16, 16 * WIDTH, stride=1),
            _stage(16 * WIDTH, 32 * WIDTH, stride=2),
            _stage(32 * WIDTH, 64 * WIDTH, stride=2),
        )
        self.norm = nn.BatchNorm2d(64 * WIDTH)
        self.classify = nn.Linear(64 * WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(x))
        return self.classify(pool(norm_relu(self.norm, x)))
