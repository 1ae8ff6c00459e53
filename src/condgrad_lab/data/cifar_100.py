"""CIFAR-100: 60,000 photographs of a hundred things, 32 × 32 in colour (Krizhevsky 2009).

Two copies of the official layout are known, with the same images in different orders; they differ
in their coarse labels too. The cached form keeps the fine labels alone and orders the images by
content, so that both copies give the same data.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from condgrad_lab.data import cifar
from condgrad_lab.data.checks import Files
from condgrad_lab.data.dataset import Split
from condgrad_lab.data.ordering import by_content
from condgrad_lab.data.packing import Foretold
from condgrad_lab.data.recipe import File, Form, Recipe, archive

CLASSES = tuple(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
    butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
    crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house
    kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
    mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
    plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
    shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table
    tank telephone television tiger tractor train trout tulip turtle wardrobe whale
    willow_tree wolf woman worm
    """.split()  # noqa: SIM905
)
OFFICIAL = ("train.bin", "test.bin")  # records of coarse label, fine label, image
CACHED = ("train_batch.bin", "test_batch.bin")  # records of fine label, image, as in CIFAR-10
ARCHIVE = "cifar-100-binary.tar.gz"
# The official copy first, then the one that is sorted by class.
SHA256 = {
    "train.bin": (
        "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
        "75d515109786315278dc4f6090553602ec5fe455fd36bd7a7967967ab7be846d",
    ),
    "test.bin": (
        "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
        "2fce158546caae6e2d975c24eb75b99194fe4190bc7c4e2d7d20774ecd155612",
    ),
    ARCHIVE: (
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        "8a8c535da43e326ac1344fadc19592b6197e2a6a04ea8bf527f98f909b9630d4",
    ),
}


def read(files: Mapping[str, bytearray]) -> tuple[Split, Split]:
    train, test = (cifar.decode(files[name], name, labels=1, classes=100) for name in CACHED)
    return train, test


def cached(files: Files) -> Files:
    """The cached form of the two official files."""
    return {
        name: _ordered(files[official], official)
        for name, official in zip(CACHED, OFFICIAL, strict=True)
    }


def _ordered(content: bytes | bytearray, name: str) -> bytes:
    cifar.decode(bytearray(content), name, labels=2, classes=100)
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, 2 + cifar.PIXELS)
    fine = np.ascontiguousarray(records[:, 1:])
    return fine[by_content(record.data for record in fine)].tobytes()


RECIPE = Recipe(
    name="cifar-100",
    title="CIFAR-100, photographs of a hundred things",
    classes=CLASSES,
    shape=cifar.SHAPE,
    files=tuple(File(name) for name in CACHED),
    forms=(
        Form(OFFICIAL, convert=cached, sha256=SHA256),
        archive(ARCHIVE, *OFFICIAL, convert=cached, sha256=SHA256),
    ),
    read=read,
    official=((f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",),),
    packing=Foretold(),
    places=("cifar-100-binary",),
)
