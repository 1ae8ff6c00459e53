"""Counter-based noise: the same number for the same (key, entry), on any device and any shard."""

from __future__ import annotations

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_WORDS = 1 << 64


def _signed(word: int) -> int:
    """The 64-bit word as torch's int64 holds it."""
    return word - (1 << 64) if word >= 1 << 63 else word


def _shifted(word: Tensor, by: int) -> Tensor:
    """A logical shift: torch's own drags the sign along, and the map would not be one-to-one."""
    return (word >> by) & ((1 << (64 - by)) - 1)


def scramble(counter: Tensor, key: Tensor | int) -> Tensor:
    """Int64 noise, one-to-one in the counter for each key (splitmix64's finaliser).

    One-to-one matters: priorities of different entries never collide, so a tie is always broken.
    """
    word = counter * _signed(_GOLDEN) + key
    word = (word ^ _shifted(word, 30)) * _signed(_FIRST)
    word = (word ^ _shifted(word, 27)) * _signed(_SECOND)
    return word ^ _shifted(word, 31)


def _scrambled(counter: int, key: int) -> int:
    """What `scramble` makes of two numbers, as an unsigned word."""
    word = (counter * _GOLDEN + key) % _WORDS
    word = (word ^ word >> 30) * _FIRST % _WORDS
    word = (word ^ word >> 27) * _SECOND % _WORDS
    return word ^ word >> 31


def _at_hand(word: Tensor | int) -> bool:
    """Whether a word can be read without a wait."""
    return isinstance(word, int) or word.is_cpu


class Draw:
    """How ties are settled for one tensor in one step: by a key, made only when a tie is met.

    `words` are folded into the key one after another (seed, parameter, step); each is an int64 or a
    0-dim tensor, so that a step counter on the device stays there.
    """

    __slots__ = ("words",)

    def __init__(self, *words: Tensor | int) -> None:
        self.words = words

    @classmethod
    def of(cls, generator: torch.Generator | None) -> Draw:
        """A draw keyed by the next number of a torch generator (torch's default one for None)."""
        device = "cpu" if generator is None else generator.device
        return cls(torch.randint(1 << 62, (), generator=generator, device=device))

    def key(self, device: torch.device) -> Tensor:
        """The key, a 0-dim int64 tensor that operations on `device` accept."""
        if device.type == "cpu" and all(_at_hand(word) for word in self.words):
            key = 0
            for word in self.words:
                key = _scrambled(int(word), key)
            return torch.tensor(_signed(key))
        return _folded([_word([word]) for word in self.words])[0].to(device)


def keys(draws: list[Draw]) -> Tensor:
    """The keys of several draws with the same kinds of words, a vector where the last words are."""
    words = zip(*(draw.words for draw in draws), strict=True)
    return _folded([_word(list(word)) for word in words])


def _word(column: list[Tensor | int]) -> Tensor:
    if isinstance(column[0], Tensor):
        return torch.stack([torch.as_tensor(entry) for entry in column]).to(torch.int64)
    return torch.tensor(column, dtype=torch.int64)


def _folded(words: list[Tensor]) -> Tensor:
    key = torch.zeros_like(words[-1])
    for word in words:
        key = scramble(word.to(key.device), key)
    return key


FIRST = None
"""In place of a Draw: the first of several solutions, and nothing random."""
