"""Text as subwords: the vocabulary of 8,185 entries that the paper's IMDB network reads.

Identifier 0 is padding and never occurs in a text, then come the subwords of the vocabulary, then
256 single bytes for whatever the subwords cannot spell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

# A word takes the single space after it along; any other run between words is a token of its own.
_TOKEN = re.compile(r"\w+(?: (?!\W))?|\W+")
_WORD = re.compile(r"\w")
# In the vocabulary "_" stands for the space after a word, so an underscore of the text is spelt:
_UNDERSCORE = "\\&undsc"
_HEADER = "### SubwordTextEncoder"


class Subwords:
    """The encoder over one vocabulary: greedy, longest subword first, bytes where none fits.

    Most tokens of a corpus are ones it has had before, so each is split only once.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._ids = {subword: i for i, subword in enumerate(vocabulary, start=1)}
        self._bytes = len(self._ids) + 1  # the identifier of byte 0
        self._longest = max(map(len, (*self._ids, _UNDERSCORE)))
        self._known = _Memo(self._split)

    @property
    def width(self) -> int:
        """The number of identifiers, padding and bytes included."""
        return self._bytes + 256

    def encode(self, text: str) -> list[int]:
        """The identifiers of a text, in order."""
        return [i for token in _TOKEN.findall(text) for i in self._known[token]]

    def present(self, text: str) -> set[int]:
        """The identifiers that occur in a text."""
        return set().union(*map(self._known.__getitem__, set(_TOKEN.findall(text))))

    def _split(self, token: str) -> tuple[int, ...]:
        spaced = token.endswith(" ") and _WORD.match(token) is not None
        rest = (token[:-1] if spaced else token).replace("_", _UNDERSCORE) + "_" * spaced
        found: list[int] = []
        while rest:
            ids, length = self._longest_match(rest)
            found += ids
            rest = rest[length:]
        return tuple(found)

    def _longest_match(self, rest: str) -> tuple[list[int], int]:
        for length in range(min(len(rest), self._longest), 0, -1):
            subword = rest[:length]
            if subword == _UNDERSCORE:
                return [self._bytes + ord("_")], length
            if subword in self._ids:
                return [self._ids[subword]], length
        character = " " if rest[0] == "_" else rest[0]
        return [self._bytes + byte for byte in character.encode()], 1


class _Memo(dict[str, tuple[int, ...]]):
    def __init__(self, split) -> None:
        self._split = split

    def __missing__(self, token: str) -> tuple[int, ...]:
        ids = self[token] = self._split(token)
        return ids


def parse(text: str) -> list[str]:
    """The subwords in a vocabulary file: two lines of header, then one in quotes a line."""
    # Not splitlines: the vocabulary has subwords with other characters that end a line.
    header, *lines = text.rstrip("\n").split("\n")
    lines = lines[1:]  # after a line of metadata, which is empty
    if header != _HEADER or any(line[:1] + line[-1:] != "''" for line in lines):
        raise ValueError(f"not a vocabulary of subwords: it must start with {_HEADER!r}")
    return [line[1:-1] for line in lines]


@cache
def imdb() -> Subwords:
    """The encoder over the vocabulary of the IMDB reviews."""
    source = files("condgrad_lab.data") / "imdb_subwords8k.subwords"
    return Subwords(parse(source.read_bytes().decode()))
