"""The checks that a device will be asked, as far as they need none, on smaller tensors."""

import importlib.util
from pathlib import Path

import pytest

import condgrad as cg

FILE = Path(__file__).parents[2] / "cuda" / "checks.py"
SPEC = importlib.util.spec_from_file_location("checks", FILE)
checks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(checks)

ASKED = (
    "steps_are_those_of_the_reference",
    "ties_fall_as_in_the_reference",
    "a_selection_among_a_million_is_exact",
    "low_precision_and_channels_last",
    "what_is_not_finite_stays_with_its_tensor",
    "a_step_takes_the_kernels_where_asked_and_leaves_the_rest",
    "a_resumed_run_is_the_uninterrupted_one",
)


@pytest.fixture(autouse=True)
def _smaller_and_on_the_host(monkeypatch):
    monkeypatch.setattr(checks, "HERE", "cpu")
    monkeypatch.setattr(checks, "SIZES", (33,))
    monkeypatch.setattr(checks, "LARGE", 8200)
    monkeypatch.setattr(checks, "HUGE", 8203)
    rows = (cg.PerRow(cg.KSparsePolytope(0.3, 0.1)), (2, 33))
    monkeypatch.setattr(checks, "BLOCKS", (rows, *checks.BLOCKS[2:]))


@pytest.mark.parametrize("name", ASKED)
def test_a_check_of_devices_holds_in_the_interpreter(name):
    checks.CHECKS[name]()
