"""ResNeXt50 (32x4d) for ImageNet (table 6), and a shallow one.

Xie, Girshick, Dollár, Tu, He (2017), "Aggregated Residual Transformations for Deep Neural
Networks".
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import relu

from condgrad_lab.models._layers import ConvNormReLU, ImageNetStem, conv, pool


class Shortcut(nn.Module):
    """A normalised 1x1 convolution that carries the input to a new shape."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv = conv(inputs, outputs, 1, stride=stride)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Bottleneck(nn.Module):
    """1x1 down, 3x3 in groups, 1x1 up to twice the width, beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, groups: int = 32) -> None:
        super().__init__()
        outputs = 2 * width
        self.down = ConvNormReLU(inputs, width, 1)
        self.grouped = ConvNormReLU(width, width, 3, stride=stride, groups=groups)
        self.conv = conv(width, outputs, 1)
        self.norm = nn.BatchNorm2d(outputs)
        self.shortcut = Shortcut(inputs, outputs, stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        y = self.norm(self.conv(self.grouped(self.down(x))))
        return relu(y + shortcut)


class ResNeXt(nn.Module):
    """Four stages of bottlenecks; those of ResNeXt50 (32x4d) unless told otherwise.

    That has 3, 4, 6 and 3 of them, of 256 to 2,048 channels.
    """

    def __init__(
        self,
        classes: int,
        *,
        blocks: Sequence[int] = (3, 4, 6, 3),
        groups: int = 32,
        width: int = 128,
    ) -> None:
        super().__init__()
        channels = 64
        self.stem = ImageNetStem(channels)
        made = []
        for stage, count in enumerate(blocks):
            for block in range(count):
                # The stem has halved the image twice: the first stage keeps its size.
                stride = 2 if stage > 0 and block == 0 else 1
                made.append(Bottleneck(channels, width << stage, stride, groups))
                channels = 2 * width << stage
        self.blocks = nn.Sequential(*made)
        self.classify = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(pool(self.blocks(self.stem(x))))
