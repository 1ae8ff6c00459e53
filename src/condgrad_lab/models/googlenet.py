"""GoogLeNet for small images (table 4), and a thin one.

Szegedy et al. (2015), "Going Deeper with Convolutions", in the form in common use on CIFAR: every
convolution is normalised, two 3x3 convolutions stand for the 5x5 one, one 3x3 convolution is the
stem, and there are no auxiliary classifiers. That form is usually counted with a bias on each
convolution; the normalisation behind it makes the bias void, so it is left out here.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from condgrad_lab.models._layers import ConvNormReLU, pool


class Inception(nn.Module):
    """Four branches over one image, side by side: 1x1; 3x3; 5x5 as twice 3x3; maximum.

    A pair is (channels of the 1x1 reduction, channels of the branch).
    """

    def __init__(
        self, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], maximum: int
    ) -> None:
        super().__init__()
        self.one = ConvNormReLU(inputs, one, 1)
        self.three = nn.Sequential(
            ConvNormReLU(inputs, three[0], 1), ConvNormReLU(three[0], three[1], 3)
        )
        self.five = nn.Sequential(
            ConvNormReLU(inputs, five[0], 1),
            ConvNormReLU(five[0], five[1], 3),
            ConvNormReLU(five[1], five[1], 3),
        )
        self.maximum = nn.Sequential(nn.MaxPool2d(3, 1, 1), ConvNormReLU(inputs, maximum, 1))
        self.outputs = one + three[1] + five[1] + maximum

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.one(x), self.three(x), self.five(x), self.maximum(x)), 1)


# The table of the publication, stage by stage; the image is halved between stages.
STAGES = (
    (
        (64, (96, 128), (16, 32), 32),
        (128, (128, 192), (32, 96), 64),
    ),
    (
        (192, (96, 208), (16, 48), 64),
        (160, (112, 224), (24, 64), 64),
        (128, (128, 256), (24, 64), 64),
        (112, (144, 288), (32, 64), 64),
        (256, (160, 320), (32, 128), 128),
    ),
    (
        (256, (160, 320), (32, 128), 128),
        (384, (192, 384), (48, 128), 128),
    ),
)


def _thinned(shape: Any, by: int) -> Any:
    """The channels of a module, or of a pair of them, divided."""
    return shape // by if isinstance(shape, int) else tuple(_thinned(part, by) for part in shape)


class GoogLeNet(nn.Module):
    """Nine inception modules in three stages; dropout of 40 % before the classifier.

    `thin` divides the channels of all of them.
    """

    def __init__(self, classes: int, *, dropout: float = 0.4, thin: int = 1) -> None:
        super().__init__()
        channels = 192 // thin
        self.stem = ConvNormReLU(3, channels, 3)
        self.stages = nn.ModuleList()
        for stage in STAGES:
            modules = []
            for shape in stage:
                modules.append(Inception(channels, *_thinned(shape, thin)))
                channels = modules[-1].outputs
            self.stages.append(nn.Sequential(*modules))
        self.dropout = nn.Dropout(dropout)
        self.classify = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for i, stage in enumerate(self.stages):
            if i:
                x = max_pool2d(x, 3, stride=2, padding=1)
            x = stage(x)
        return self.classify(self.dropout(pool(x)))
