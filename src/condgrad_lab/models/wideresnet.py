"""WideResNet28x10 (table 3), and a narrow one.

Zagoruyko, Komodakis (2016), "Wide Residual Networks"; without dropout.
"""

from torch import Tensor, nn

from condgrad_lab.models._layers import conv, norm_relu, pool


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


def _stage(inputs: int, outputs: int, stride: int, blocks: int) -> nn.Sequential:
    first = WideBlock(inputs, outputs, stride)
    return nn.Sequential(first, *(WideBlock(outputs, outputs, 1) for _ in range(blocks - 1)))


class WideResNet(nn.Module):
    """Three stages of wide blocks; 28x10 has four of 160, 320 and 640 channels.

    Depth 28 = 3 stages x 4 blocks x 2 convolutions, the stem, and the first blocks' shortcuts.
    """

    def __init__(self, classes: int, *, blocks: int = 4, width: int = 10) -> None:
        super().__init__()
        self.stem = conv(3, 16, 3)
        self.stages = nn.Sequential(
            _stage(16, 16 * width, 1, blocks),
            _stage(16 * width, 32 * width, 2, blocks),
            _stage(32 * width, 64 * width, 2, blocks),
        )
        self.norm = nn.BatchNorm2d(64 * width)
        self.classify = nn.Linear(64 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(x))
        return self.classify(pool(norm_relu(self.norm, x)))
