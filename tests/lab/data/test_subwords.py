"""Subwords: the published example, and a slow twin that follows the encoder's rules one by one."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from condgrad_lab.data import subwords

VOCABULARY = ["the_", "the", "e_", ", ", "he", "\\&undsc", "...", "é", "th_"]


def slow(vocabulary: list[str], text: str) -> list[int]:
    """Split into runs, give words their space, escape, match greedily: each rule on its own."""
    runs = [run for run in re.split(r"(\W+)", text) if run]
    tokens: list[str] = []
    while runs:
        run = runs.pop(0).replace("_", "\\&undsc")
        if runs and runs[0] == " ":
            runs.pop(0)
            run += "_"
        tokens.append(run)
    first_byte = 1 + len(vocabulary)
    ids = []
    for token in tokens:
        while token:
            fitting = [word for word in [*vocabulary, "\\&undsc"] if token.startswith(word)]
            word = max(fitting, key=len, default=token[0])
            token = token[len(word) :]
            if word == "\\&undsc":
                ids.append(first_byte + ord("_"))
            elif fitting:
                ids.append(1 + vocabulary.index(word))
            else:
                ids += [first_byte + b for b in (" " if word == "_" else word).encode()]
    return ids


def test_the_published_example():
    encoder = subwords.imdb()
    assert encoder.width == 8185
    assert encoder.encode("Hello TensorFlow.") == [4025, 222, 6307, 2327, 4043, 2120, 7975]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("the ", [1]),
        ("the", [2]),
        ("the the", [1, 2]),
        ("the  the", [2, 10 + 32, 10 + 32, 2]),  # two spaces are a run of their own
        ("the, the", [2, 4, 2]),
        ("a_b", [10 + ord("a"), 10 + ord("_"), 10 + ord("b")]),
        ("x ", [10 + ord("x"), 10 + ord(" ")]),
        ("é", [8]),
        ("ñ", [10 + 0xC3, 10 + 0xB1]),
        ("....", [7, 10 + ord(".")]),
    ],
)
def test_every_rule_by_example(text, ids):
    assert subwords.Subwords(VOCABULARY).encode(text) == ids
    assert slow(VOCABULARY, text) == ids


@given(st.text("the_ ,.é\\&undsc\n\x85’"))
@example("_ the_ _")
def test_it_follows_its_slow_twin(text):
    if "\\&undsc" in text:  # a reserved word of the original, in no review
        return
    encoder = subwords.Subwords(VOCABULARY)
    assert encoder.encode(text) == slow(VOCABULARY, text)
    assert encoder.present(text) == set(encoder.encode(text))


def test_real_words_follow_the_slow_twin_too():
    text = "Well, __this__ movie (1984) was  simply *awful*... 10/10 naïve <br /><br />Überfilm! "
    source = subwords.files("condgrad_lab.data") / "imdb_subwords8k.subwords"
    vocabulary = subwords.parse(source.read_bytes().decode())
    assert len(vocabulary) == 7928
    assert subwords.imdb().encode(text) == slow(vocabulary, text)


def test_a_vocabulary_is_read_line_by_line():
    text = "### SubwordTextEncoder\n### Metadata: {}\n'a_'\n'\x85 '\n'it's'\n"
    assert subwords.parse(text) == ["a_", "\x85 ", "it's"]


@pytest.mark.parametrize("text", ["", "a\nb\n", "### SubwordTextEncoder\n### Metadata: {}\na_\n"])
def test_another_file_is_no_vocabulary(text):
    with pytest.raises(ValueError, match="not a vocabulary of subwords"):
        subwords.parse(text)
