"""What a step over sharded parameters says between the ranks, and what that costs: on paper.

    python benchmarks/costs.py

`tests/distributed/test_costs.py` holds the words of the regions against what ranks really say. The
shapes of the networks, the speed of a link and the delay of a message are assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

WORD = 8
"""Bytes of what ranks say to each other: an int64, or the bits of a float64."""
BINS = (2**11 + 1, 2**11 + 1, 2**9)
"""Bins that are counted in the rounds of a search among float32 numbers, if it needs all three."""
LENGTH = 2
"""Words for the length of a step under rescale="gradient": ‖d‖ and ‖v − θ‖."""
NOTE = 1
"""A word on hosts: the learning rate, or that there is no gradient. Devices do not look at it."""
PERIOD = 16
"""Steps from one pull back inside to the next."""


class Words(NamedTuple):
    """What a parameter adds to the messages, in words a rank; a search counts bins besides.

    `vertex` is said first, `pull` when parameters are pulled back inside. `whole`: the entries
    travel to one rank and back, too.
    """

    vertex: int = 0
    search: bool = False
    pull: int = 0
    search_of_pull: bool = False
    whole: bool = False


WORDS = {
    "L1Ball": Words(3, pull=1),
    "L2Ball": Words(1, pull=1),
    "LinfBall": Words(),
    "LpBall": Words(2, pull=1),
    "KSparsePolytope": Words(1, search=True, pull=2),
    "KNormBall": Words(6, pull=2, search_of_pull=True),
    "UnitSimplex": Words(3, pull=1),
    "ProbabilitySimplex": Words(3, pull=1),
    "Permutahedron": Words(whole=True),
    "Box": Words(),
    "SpectralBall": Words(whole=True),
    "NuclearBall": Words(whole=True),
    "PerRow": Words(),
    "PerFilter": Words(),
}
"""By the region's name. `Free` says nothing at all."""


class Said(NamedTuple):
    """The sums that ranks form: how many, and how many bytes they have together."""

    messages: int
    size: int


def step(names: Iterable[str], ranks: int, *, gradient: bool = True, host: bool = False) -> Said:
    """What is said in an ordinary step over parameters in these regions, on so many ranks."""
    messages = size = 0
    for name in names:
        if name == "Free":
            continue
        words = WORDS[name]
        asks = gradient or words != Words()
        note = NOTE if host and asks else 0
        size += WORD * ranks * (words.vertex + note + (LENGTH if gradient else 0))
        size += WORD * sum(BINS) * words.search
        first = len(BINS) if words.search else int(words.vertex > 0 or (words.whole and host))
        messages = max(messages, first + gradient)
    return Said(messages, size)


def pull(names: Iterable[str], ranks: int) -> Said:
    """What is said besides when parameters are pulled back inside."""
    messages = size = 0
    for name in names:
        words = WORDS.get(name, Words())
        size += WORD * (ranks * words.pull + sum(BINS) * words.search_of_pull)
        messages = max(messages, len(BINS) * words.search_of_pull + (words.pull > 0))
    return Said(messages, size)


# ---- networks


class Network(NamedTuple):
    """A transformer with gated perceptrons, as they are usual."""

    name: str
    layers: int
    width: int
    hidden: int
    shared: int
    """The width of keys and values."""
    letters: int
    tied: bool

    def matrices(self) -> list[tuple[int, int]]:
        """Those of the blocks."""
        d, h, kv = self.width, self.hidden, self.shared
        return [(d, d), (kv, d), (kv, d), (d, d), (h, d), (h, d), (d, h)] * self.layers

    def others(self) -> list[tuple[int, ...]]:
        """Embeddings and normalisations."""
        tables = 1 if self.tied else 2
        return [(self.letters, self.width)] * tables + [(self.width,)] * (2 * self.layers + 1)

    def size(self) -> int:
        """The number of parameters."""
        return sum(map(math.prod, [*self.matrices(), *self.others()]))


NETWORKS = (
    Network("0.12 B", 12, 768, 2048, 768, 50_304, True),
    Network("1.2 B", 16, 2048, 8192, 512, 128_256, True),
    Network("8 B", 32, 4096, 14_336, 1024, 128_256, False),
    Network("71 B", 80, 8192, 28_672, 1024, 128_256, False),
)
RANKS = (8, 64, 512, 4096)

LINK = 25e9
"""Bytes a second that a rank sends: 200 Gbit/s. Assumed."""
DELAY = 10e-6
"""Seconds that each doubling of the ranks adds to a message. Assumed."""
GATHERED, REDUCED = 2, 4
"""Bytes of an entry in FSDP2's two all-gathers (bfloat16) and its reduce-scatter (float32)."""


def sent_by_fsdp(network: Network, ranks: int) -> float:
    """Bytes that a rank sends in a training step for the parameters themselves."""
    return (ranks - 1) / ranks * network.size() * (2 * GATHERED + REDUCED)


def messages_of_fsdp(network: Network) -> int:
    """How many collectives those are, sharded block by block; the root is gathered once."""
    return 3 * network.layers + 2


def sent(said: Said, ranks: int) -> float:
    """Bytes that a rank sends for sums over a ring."""
    return 2 * (ranks - 1) / ranks * said.size


def seconds(messages: float, size: float, ranks: int) -> float:
    """What that takes if nothing else goes on, by the assumed link and delay."""
    return messages * DELAY * math.log2(ranks) + size / LINK


def dealt(shapes: Sequence[tuple[int, int]], ranks: int) -> list[float]:
    """The bytes that each rank sends when matrices travel whole, in float32, there and back.

    The dearest matrix goes to whoever has least to do, as in the library.
    """
    loads, owned = [0.0] * ranks, [0.0] * ranks
    for rows, columns in sorted(shapes, key=lambda s: -s[0] * s[1] * min(s)):
        owner = loads.index(min(loads))
        loads[owner] += rows * columns * min(rows, columns)
        owned[owner] += rows * columns
    total = sum(owned)
    # Its share of all that is not its own, there; and of all that is, back to the others.
    return [4 * ((total - own) / ranks + own * (ranks - 1) / ranks) for own in owned]


def plans(network: Network) -> dict[str, list[str]]:
    """Which regions the parameters are in: what the tables compare."""
    blocks, others = len(network.matrices()), len(network.others())
    return {
        "L2": ["L2Ball"] * (blocks + others),
        "K-sparse": ["KSparsePolytope"] * blocks + ["L2Ball"] * others,
        "spectral": ["SpectralBall"] * blocks + ["L2Ball"] * others,
    }


# ---- tables, for docs/distributed.md


def words_table() -> str:
    """What each region asks of other ranks."""
    rows = ["| region | for the vertex | for the pull | whole |", "|---|---|---|---|"]
    for name, words in WORDS.items():
        vertex = _words(words.vertex, words.search)
        back = _words(words.pull, words.search_of_pull)
        rows.append(f"| `{name}` | {vertex} | {back} | {'yes' if words.whole else ''} |")
    return "\n".join(rows)


def _words(words: int, search: bool) -> str:
    told = f"{words} {'word' if words == 1 else 'words'}" if words else "nothing"
    return f"{told}, a search" if search else told


def costs_table() -> str:
    """What a step says on devices, beside what FSDP2 moves."""
    sizes, times = (
        "bytes: FSDP2 | L2 | K-sparse | spectral, mean (most)",
        "time: FSDP2 | L2 | K-sparse",
    )
    rows = [f"| network | ranks | {sizes} | {times} |", "|---|---|---|---|---|---|---|---|---|"]
    rows += [_row(network, ranks) for network in NETWORKS for ranks in RANKS]
    return "\n".join(rows)


def _row(network: Network, ranks: int) -> str:
    moved = sent_by_fsdp(network, ranks)
    said = {plan: step(names, ranks) for plan, names in plans(network).items()}
    size = {plan: sent(each, ranks) for plan, each in said.items()}
    whole = dealt(network.matrices(), ranks)
    spectral = size["spectral"] + sum(whole) / ranks, size["spectral"] + max(whole)
    times = [seconds(messages_of_fsdp(network), moved, ranks)]
    times += [seconds(said[plan].messages, size[plan], ranks) for plan in ("L2", "K-sparse")]
    cells = [
        network.name,
        f"{ranks:,}",
        shown(moved),
        shown(size["L2"]),
        shown(size["K-sparse"]),
        f"{shown(spectral[0])} ({shown(spectral[1])})",
        *(f"{each:.3g} s" if each >= 1 else f"{1e3 * each:.3g} ms" for each in times),
    ]
    return f"| {' | '.join(cells)} |"


def shown(size: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"


if __name__ == "__main__":
    print(words_table(), costs_table(), sep="\n\n")
    for each in NETWORKS:
        print(each.name, f"{each.size():,}", len(each.matrices()) + len(each.others()))
