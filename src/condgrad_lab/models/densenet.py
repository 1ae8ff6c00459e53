"""DenseNet121, for small images and for ImageNet (tables 2 and 5), and shallow ones.

Huang, Liu, van der Maaten, Weinberger (2017), "Densely Connected Convolutional Networks".
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from condgrad_lab.models._layers import ImageNetStem, conv, norm_relu, pool


class DenseLayer(nn.Module):
    """Appends `growth` channels, computed from all channels before them by way of a bottleneck."""

    def __init__(self, inputs: int, growth: int = 32) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = conv(inputs, 4 * growth, 1)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = conv(4 * growth, growth, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(norm_relu(self.norm1, x))
        y = self.conv2(norm_relu(self.norm2, y))
        return torch.cat((x, y), 1)


class Transition(nn.Module):
    """Halves the channels and the sides of the image."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = conv(inputs, inputs // 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return avg_pool2d(self.conv(norm_relu(self.norm, x)), 2)


class DenseNet(nn.Module):
    """Four dense blocks with transitions between them; those of DenseNet121 unless told otherwise.

    The stem for small images is one bare 3x3 convolution: the first dense layer normalises.
    """

    def __init__(
        self,
        classes: int,
        *,
        layers: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        imagenet: bool = False,
    ) -> None:
        super().__init__()
        channels = 2 * growth
        self.stem = ImageNetStem(channels) if imagenet else conv(3, channels, 3)
        blocks: list[nn.Module] = []
        for count in layers:
            if blocks:
                blocks.append(Transition(channels))
                channels //= 2
            ends = range(channels, channels + count * growth, growth)
            blocks.append(nn.Sequential(*(DenseLayer(end, growth) for end in ends)))
            channels += count * growth
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.classify = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        return self.classify(pool(norm_relu(self.norm, x)))
