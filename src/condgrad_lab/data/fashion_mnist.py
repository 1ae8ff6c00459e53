"""Fashion-MNIST: 70,000 pictures of clothing in MNIST's format (Xiao, Rasul, Vollgraf 2017)."""

from condgrad_lab.data import idx
from condgrad_lab.data.mirrors import Apt

RECIPE = idx.recipe(
    "fashion-mnist",
    "Fashion-MNIST, pictures of clothing",
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    sha256=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    archive="dataset-fashion-mnist_*.deb",
    official=("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    mirror=Apt("dataset-fashion-mnist"),
    places=("raw", "FashionMNIST/raw", "data/fashion", "usr/share/datasets/fashion-mnist"),
)
