"""What the deep networks share: their convolutions, their pooling, their start."""

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu


def conv(inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """The square convolution that keeps the image's size at stride 1.

    It has no bias: a normalisation follows every one of them and would subtract it again.
    """
    return nn.Conv2d(
        inputs, outputs, size, stride=stride, padding=size // 2, groups=groups, bias=False
    )


def norm_relu(norm: nn.BatchNorm2d, x: Tensor) -> Tensor:
    """`relu(norm(x))`; in place, because the backward of the norm needs its input alone."""
    return relu(norm(x), inplace=True)


def pool(x: Tensor) -> Tensor:
    """The mean over the image, channel by channel: (N, C, H, W) to (N, C)."""
    return x.mean((2, 3))


class ConvNormReLU(nn.Module):
    """A convolution, its normalisation, ReLU."""

    def __init__(
        self, inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.conv = conv(inputs, outputs, size, stride=stride, groups=groups)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return norm_relu(self.norm, self.conv(x))


class ImageNetStem(nn.Module):
    """From 224 to 56 pixels a side: a 7x7 convolution and a maximum, each of stride 2."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.conv = conv(3, outputs, 7, stride=2)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return max_pool2d(norm_relu(self.norm, self.conv(x)), 3, stride=2, padding=1)


@torch.no_grad()
def he_normal(model: nn.Module) -> None:
    """Draw the weights of a deep network anew, as He et al. (2015) do.

    Convolutions are N(0, 2 / fan_out), fan_out = outputs x height x width, which keeps the
    variance of the gradients from layer to layer; normalisations start as the identity; the
    classifier keeps PyTorch's uniform weights and starts without bias.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
