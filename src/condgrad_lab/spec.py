"""What a run is: frozen dataclasses that hold everything that decides its numbers, and no more.

Two runs with equal fields give the same record; two that differ in any field have different keys.
Fields at their default do not enter the key, so a field added later leaves every key as it was.
For the same reason a default, once records exist, never changes: change the meaning, add a field.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

MEASURES = ("train", "gap", "active", "weights", "sampled-gap", "top5")
_DEVICES = ("cpu", "cuda")
_DTYPES = ("float32", "float64")
_AUTOCAST = (None, "bfloat16")


@dataclass(frozen=True)
class _Plain:
    """A frozen dataclass that goes to plain data and back."""

    def to_dict(self, *, defaults: bool = True) -> dict[str, Any]:
        """The fields as JSON-ready data; without `defaults`, only those that differ from them."""
        fields = ((field, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {
            field.name: _plain(value, defaults=defaults)
            for field, value in fields
            if defaults or value != field.default
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The object whose `to_dict` is `data`, with or without its defaults."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(
                f"`{cls.__name__}` has no field {unknown}; its fields: {sorted(known)}"
            )
        return cls(**{name: _PARTS.get(name, _same)(value) for name, value in data.items()})

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type in ("float", "float | None") and isinstance(value, int):
                # 1 and 1.0 are one learning rate and must have one key.
                object.__setattr__(self, field.name, float(value))
            elif isinstance(value, list):
                object.__setattr__(self, field.name, tuple(value))

    def _positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"`{name}` must be positive and finite, got {value!r}")

    def _one_of(self, name: str, allowed: tuple[str | None, ...]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            named = ", ".join(map(str, allowed))
            raise ValueError(f"`{name}` must be one of {named}, got {value!r}")


@dataclass(frozen=True)
class Data(_Plain):
    """Which samples a run sees.

    `train` and `test` cut the splits to that many samples, the same ones for every seed; None
    takes all. `synthetic` replaces the data set by its small generated twin of those sizes.
    `validation` takes that many samples out of the training split, the same ones for every seed,
    and puts them in the place of the test split: what is chosen by them has not seen the test.
    """

    name: str
    train: int | None = None
    test: int | None = None
    synthetic: bool = False
    validation: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("train", "test", "validation")
        if self.synthetic and (self.train is None or self.test is None):
            raise ValueError("synthetic data has no size of its own: give `train` and `test`")


@dataclass(frozen=True)
class Rule(_Plain):
    """The region of every parameter whose name matches `pattern`; the first rule that matches wins.

    `region` is the name of a class of `condgrad`, sized by one of `radius`, `diameter`, `width`.
    `k` is a count, a fraction of the entries, or the pair (count, fraction) for the larger of both.
    """

    region: str
    pattern: str = ".*"
    radius: float | None = None
    diameter: float | None = None
    width: float | None = None
    p: float | None = None
    k: int | float | tuple[int, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("radius", "diameter", "width", "p")
        if isinstance(self.k, float) and self.k >= 1:
            # As a key 1.0 would equal 1, which is one entry and not all of them.
            raise ValueError(f"`k` is a count (int) or a fraction below 1, got {self.k!r}")
        sizes = [name for name in ("radius", "diameter", "width") if getattr(self, name)]
        wanted = 0 if self.region == "Free" else 1
        if len(sizes) != wanted:
            found = " and ".join(sizes) or "none of them"
            raise ValueError(
                f"`{self.region}` takes {wanted} of radius, diameter and width; got {found}"
            )

    @property
    def short(self) -> str:
        """The region's name without its noun: L2Ball is L2, KSparsePolytope is KSparse."""
        name = self.region if self.p is None else f"L{self.p:g}"
        for noun in ("Ball", "Polytope"):
            name = name.removesuffix(noun)
        return name


@dataclass(frozen=True)
class Optimizer(_Plain):
    """An optimizer of `condgrad` or `torch.optim`, by the name of its class.

    What is not said here is off: no momentum, no rescaling, whatever the class's own defaults are.
    """

    name: str
    lr: float
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    rescale: str | None = None
    ties: str = "random"
    dampening: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.lr >= 0 and math.isfinite(self.lr)):
            raise ValueError(f"`lr` must be finite and not negative, got {self.lr!r}")


@dataclass(frozen=True)
class Schedule(_Plain):
    """The learning rate over epochs: times `factor` at each milestone, and the band rule."""

    milestones: tuple[int, ...] = ()
    factor: float = 1.0
    band: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("factor")
        if list(self.milestones) != sorted(set(self.milestones)):
            raise ValueError(f"`milestones` must increase, got {self.milestones}")


@dataclass(frozen=True)
class Run(_Plain):
    """One training run: everything that decides the numbers of its record.

    `measure` says what the record holds beside the losses and accuracies it always has:

    - "train": loss and accuracy of the whole training set after every epoch (without it they are
      the means over the epoch's batches, as trained);
    - "gap": the Frank-Wolfe gap at the full gradient after every epoch;
    - "sampled-gap": that at the gradient over 5,000 samples, the same ones in every epoch; their
      noise makes it larger than the gap on average;
    - "top5": the share of samples whose class is among the five of the largest outputs;
    - "active": the count of active parameters, and the test accuracy with the others at zero;
    - "weights": the final parameters.

    `augment` moves the training images anew in every epoch: small ones by a random crop after
    padding by 4, pictures in files by a random crop of random size and shape; both by a flip or
    none. `autocast` is the format of forward and backward; parameters stay in `dtype`. `ranks` is
    the number of processes that share every batch: each normalises by the statistics of its part.
    """

    data: Data
    model: str
    optimizer: Optimizer
    rules: tuple[Rule, ...] = ()
    schedule: Schedule = Schedule()
    epochs: int = 10
    batch: int = 64
    seed: int = 0
    measure: tuple[str, ...] = ("train",)
    device: str = "cpu"
    dtype: str = "float32"
    augment: bool = False
    autocast: str | None = None
    ranks: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("epochs", "batch", "ranks")
        self._one_of("device", _DEVICES)
        self._one_of("dtype", _DTYPES)
        self._one_of("autocast", _AUTOCAST)
        if self.batch < self.ranks:
            raise ValueError(f"`batch` is {self.batch}, too few for {self.ranks} `ranks`")
        if self.seed < 0:
            raise ValueError(f"`seed` must not be negative, got {self.seed}")
        if unknown := sorted(set(self.measure) - set(MEASURES)):
            raise ValueError(f"`measure` knows {', '.join(MEASURES)}; got {unknown}")
        patterns = [rule.pattern for rule in self.rules]
        if len(set(patterns)) < len(patterns):
            raise ValueError(f"`rules` has two rules for one pattern: {patterns}")
        if {"gap", "sampled-gap"} & set(self.measure) and not self.rules:
            raise ValueError("`measure` asks for the gap, but no rule constrains the run")
        # One set of measures, one key, whatever their order.
        ordered = tuple(name for name in MEASURES if name in self.measure)
        object.__setattr__(self, "measure", ordered)

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits of the SHA-256 of the run's canonical JSON."""
        text = json.dumps(self.to_dict(defaults=False), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def key(self) -> str:
        """The run's name: what a reader wants to know of it, then its digest. Fit for a file."""
        method = "-".join([self.optimizer.name, *dict.fromkeys(r.short for r in self.rules)])
        return f"{self.data.name}_{self.model}_{method}_s{self.seed}_{self.digest}"

    @property
    def configuration(self) -> Run:
        """The run with seed 0: what the seeds of one line of a figure have in common."""
        return dataclasses.replace(self, seed=0)


def _same(value: Any) -> Any:
    return value


def _rules(value: Any) -> tuple[Rule, ...]:
    return tuple(Rule.from_dict(rule) for rule in value)


_PARTS = {
    "data": Data.from_dict,
    "optimizer": Optimizer.from_dict,
    "schedule": Schedule.from_dict,
    "rules": _rules,
}


def _plain(value: Any, *, defaults: bool) -> Any:
    if isinstance(value, _Plain):
        return value.to_dict(defaults=defaults)
    if isinstance(value, tuple):
        return [_plain(item, defaults=defaults) for item in value]
    return value
