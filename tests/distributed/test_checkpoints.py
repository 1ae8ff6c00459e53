"""A run goes on alike on more ranks or on fewer than it was saved on."""

import functools

import numpy as np
import pytest

import condgrad as cg
from distributed import saved
from optim.cases import MEMBERS

WAYS = [
    ("fsdp", "fsdp on two"),
    ("fsdp", "none"),
    ("none", "hsdp"),
    ("fsdp on two", "fsdp"),
    ("both", "fsdp"),
]


@functools.cache
def expected(kind):
    return saved.uninterrupted(kind)


def same(found, wanted):
    return all(np.abs(found[name] - wanted[name]).max() <= 1e-10 for name in wanted)


@pytest.mark.parametrize(("engine", "other"), WAYS, ids=[" to ".join(way) for way in WAYS])
def test_a_run_is_resumed_on_other_ranks(four, tmp_path, engine, other):
    kinds = list(MEMBERS) if other == "fsdp on two" else [cg.SFW, cg.SVRF]
    four.ask(saved.written, engine, kinds, str(tmp_path))
    for answer in four.ask(saved.resumed, other, kinds, str(tmp_path)):
        for kind in kinds:
            assert same(answer[kind.__name__], expected(kind)), kind.__name__


def test_whole_states_pass_between_engines(four):
    for plain, found in four.ask(saved.through_whole_states, ("fsdp", "tensor"), cg.SFW):
        assert plain
        assert same(found, expected(cg.SFW))
