"""How many messages a step takes, and how large they are: counted, whatever the depth."""

import pytest

import condgrad as cg
from distributed import messages

SPLITTING = [
    cg.L1Ball(0.3),
    cg.L2Ball(0.7),
    cg.LinfBall(0.1),
    cg.LpBall(3.0, 0.1),
    cg.UnitSimplex(0.3),
    cg.ProbabilitySimplex(0.1),
    cg.Box(-0.1, 0.3),
    cg.Free(),
]
ROWS = [cg.PerRow(cg.KSparsePolytope(0.3, 0.1)), cg.PerRow(cg.Permutahedron(0.3))]
"""These split where rows are whole."""
SPARSE = [cg.KSparsePolytope(0.3, 0.1), cg.KNormBall(0.3, 0.1), *SPLITTING[:2]]
WHOLE = [
    cg.SpectralBall(0.1),
    cg.SpectralBall(0.1, method="polynomial"),
    cg.NuclearBall(0.1, method="lanczos"),
    cg.Permutahedron(0.1),
    cg.L2Ball(0.7),
]
STEPS = 4
"""The third one pulls parameters back inside."""


@pytest.mark.parametrize("layout", ["four", "grid", "fsdp", "hsdp"])
def test_regions_that_split_need_three_small_sums_at_most(four, layout):
    regions = SPLITTING if layout == "grid" else SPLITTING + ROWS
    counted = {}
    for depth in (1, 5):
        (counted[depth],) = {
            str(x): x for x in four.ask(messages.of, regions, depth, layout, STEPS)
        }.values()
    for depth, steps in counted.items():
        for step in steps:
            assert set(step) <= {"all_reduce"}
            sizes = step.get("all_reduce", [])
            assert len(sizes) <= 3
            assert sum(sizes) <= 4 * 8 * 6 * depth * len(regions)  # of the parameters: thousands
    shallow, deep = ([len(s.get("all_reduce", [])) for s in counted[d]] for d in (1, 5))
    assert shallow == deep
    assert deep == [2, 3, 2]


@pytest.mark.parametrize(
    ("dtype", "ties"),
    [("float32", False), ("float32", True), ("float64", True), ("bfloat16", False)],
)
def test_k_sparse_needs_ten_sums_at_most(four, dtype, ties):
    found = {}
    for depth in (1, 4):
        (found[depth],) = {
            str(x): x for x in four.ask(messages.of, SPARSE, depth, "four", STEPS, dtype, ties)
        }.values()
    for steps in found.values():
        assert all(set(step) == {"all_reduce"} for step in steps)
        assert max(len(step["all_reduce"]) for step in steps) <= 10


def test_whole_points_travel_there_and_back(four):
    """In two exchanges whatever their number; four when they are pulled back inside, too."""
    for depth in (1, 4):
        for steps in four.ask(messages.of, WHOLE, depth, "four", STEPS):
            assert [len(step["all_to_all"]) for step in steps] == [2, 4, 2]
            for step in steps:
                assert set(step) == {"all_reduce", "all_to_all"}
                assert len(step["all_reduce"]) <= 3


def test_work_on_whole_points_is_shared_out(four):
    """Of equal matrices every rank decomposes as many, and large ones go alone."""
    assert sorted(four.ask(messages.decomposed, [(16, 16)] * 8)) == [2, 2, 2, 2]
    assert sorted(four.ask(messages.decomposed, [(32, 32)] + [(4, 4)] * 3)) == [1, 1, 1, 1]
    assert sum(four.ask(messages.decomposed, [(5, 3)])) == 1


def test_who_has_no_gradient_is_asked_once(four):
    """Whether that is so everywhere; and then takes part in nothing."""
    idle = (cg.KSparsePolytope(0.3, 0.1), cg.SpectralBall(0.1))
    regions = [cg.L2Ball(0.7), *idle]
    for steps in four.ask(
        messages.of, regions, 2, "four", STEPS, "float64", False, "gradient", idle
    ):
        assert [len(step["all_reduce"]) for step in steps] == [2, 3, 2]
        assert all(set(step) == {"all_reduce"} for step in steps)


def test_entries_alone_need_nobody(four):
    """A hypercube without rescaling by the gradient: nothing to ask."""
    for steps in four.ask(
        messages.of, [cg.LinfBall(0.1), cg.Free()], 3, "four", 3, "float64", False, None
    ):
        assert steps == [{}, {}]


def test_replicas_do_not_talk(four):
    for steps in four.ask(messages.of, [*SPARSE, *WHOLE], 1, "ddp", 3):
        assert steps == [{}, {}]
