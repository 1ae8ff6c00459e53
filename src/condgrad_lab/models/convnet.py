"""The convolutional network whose sparsity is followed during training (figure 4)."""

from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu


class ConvNet(nn.Module):
    """Three 3x3 convolutions without padding, the first two halved by a maximum; two layers.

    28 pixels a side become 26, 13, 11, 5 and 3, so that 64 x 3 x 3 numbers reach the hidden layer.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.hidden = nn.Linear(64 * 3 * 3, 64)
        self.classify = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = max_pool2d(relu(self.conv1(x)), 2)
        x = max_pool2d(relu(self.conv2(x)), 2)
        x = relu(self.conv3(x)).flatten(1)
        return self.classify(relu(self.hidden(x)))
