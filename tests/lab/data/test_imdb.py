"""Reviews: the mirror's file and the official archive give the same bytes."""

import json

import pytest
import torch

from condgrad_lab.data import DataDamagedError, imdb, subwords

TEXTS = {
    ("test", 0): ["Dull.", "I slept, and how"],
    ("train", 0): ["A bore", "Never again!"],
    ("test", 1): ["Grand", "I laughed"],
    ("train", 1): ["Ünglaublich gut", "Go and see it."],
}


def mirrored(texts=TEXTS) -> dict[str, bytes]:
    reviews = [{"t": text, "s": label} for (_, label), some in texts.items() for text in some]
    return {"reviews.json": json.dumps(reviews).encode()}


def official() -> dict[str, bytes]:
    return {
        f"{part}/{imdb.CLASSES[label]}/{i}_7.txt": text.encode()
        for (part, label), some in sorted(TEXTS.items())
        for i, text in enumerate(reversed(some))
    }


def test_both_sources_give_the_same_bytes():
    assert imdb.from_json(mirrored()) == imdb.from_texts(official())


def test_a_split_has_the_subwords_of_its_reviews():
    train, test = imdb.read({k: bytearray(v) for k, v in imdb.from_json(mirrored()).items()})
    for split, part in ((train, "train"), (test, "test")):
        assert split.inputs.width == 8185
        assert split.inputs.indices.dtype == split.labels.dtype == torch.int64
        got = {
            (int(label), tuple(split.inputs[torch.tensor([i])].indices.tolist()))
            for i, label in enumerate(split.labels)
        }
        encode = subwords.imdb().encode
        assert got == {
            (label, tuple(sorted(set(encode(text)))))
            for (some, label), texts in TEXTS.items()
            if some == part
            for text in texts
        }


def test_a_file_in_another_order_is_refused():
    reviews = json.loads(mirrored()["reviews.json"])
    reviews[0], reviews[-1] = reviews[-1], reviews[0]
    with pytest.raises(DataDamagedError, match="reviews 0… are not those of test, label 0"):
        imdb.from_json({"reviews.json": json.dumps(reviews).encode()})


def test_bad_files_are_refused_by_name():
    with pytest.raises(DataDamagedError, match=r"`reviews.json` is damaged: it is not JSON"):
        imdb.from_json({"reviews.json": mirrored()["reviews.json"][:-5]})
    cached = imdb.from_json(mirrored())
    with pytest.raises(DataDamagedError, match=r"`test.npz` is damaged"):
        imdb.read({"train.npz": bytearray(cached["train.npz"]), "test.npz": bytearray(b"no zip")})
