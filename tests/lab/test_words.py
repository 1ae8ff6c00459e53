"""How numbers, claims and times are said."""

import math

import pytest

from condgrad_lab import words
from condgrad_lab.artifact import Claim, Results
from condgrad_lab.words import Said


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            Claim("x", 92.15, 92.203, 0.126, 0.6, True, "a note"),
            Said("x", "92.15", "92.20 ± 0.13", "+0.05 (± 0.6)", "met", "a note"),
        ),
        (Claim("x", 50, 40, holds=False), Said("x", "50.00", "40.00", "-10.00", "missed", "")),
        (Claim("x", 50, math.nan, None, 1), Said("x", "50.00", "–", "– (± 1)", "open", "")),
        (
            Claim("x", "A < B", "so it is", holds=True),
            Said("x", "A < B", "so it is", "", "met", ""),
        ),
    ],
)
def test_a_claim_is_said_in_words(claim, said):
    assert Said.of(claim) == said
    assert Said.of(claim, judged=False).verdict == "not judged"


def test_verdicts_are_counted_in_a_fixed_order():
    claims = [Claim("x", 1, 1, holds=holds) for holds in (None, False, True, True)]
    assert words.counted(map(Said.of, claims)) == "2 met, 1 missed, 1 open"
    assert words.counted([Said.of(claims[0], judged=False)]) == "1 not judged"
    assert words.counted([]) == ""


@pytest.mark.parametrize(
    ("found", "wanted", "said"),
    [(2, 2, "2 records"), (1, 1, "1 record"), (1, 3, "1 of 3 records"), (0, 1, "0 of 1 record")],
)
def test_records_are_counted(found, wanted, said):
    assert words.records(Results("paper", {"a": (None,) * found}, wanted)) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "1 s"), (40, "40 s"), (200, "3 min"), (9000, "2.5 h")]
)
def test_times_are_said_as_people_say_them(seconds, said):
    assert words.duration(seconds) == said


def test_of_many_names_a_few_are_said():
    assert words.listed(["a", "b"]) == "a, b"
    assert words.listed(list("abcdef")) == "a, b, c, d and 2 more"
