"""When a rank does otherwise than the others, they are told why, and nobody waits for ever."""

import pytest
import torch

import condgrad as cg
from condgrad.regions._shards import Ranks
from distributed import broken

PATIENCE = 2
"""Seconds after which a rank gives the others up, where that is what is asked about."""


@pytest.fixture(scope="module")
def pair(nursery):
    team = nursery.team(2)
    yield team
    team.close()


@pytest.mark.parametrize("kind", ["split", "whole"])
def test_a_rank_dies(nursery, kind):
    team = nursery.team(2)
    (answer, _), failures = team.outcomes(broken.killed, kind, PATIENCE)
    team.close()
    assert failures == {1: "died"}
    name, text, stayed = answer
    assert name == "RuntimeError"
    assert "ranks 0, 1 hold sharded parameters between them" in text
    assert "one has died, leaves this step out, or steps over other parameters" in text
    assert "The process group says: " in text
    assert stayed


def test_a_rank_leaves_a_step_out(nursery, tmp_path):
    """The other one lives on meanwhile: it is patience that ends the wait."""
    team = nursery.team(2)
    (answer, _), _ = team.outcomes(broken.left_out, PATIENCE, str(tmp_path / "gone"))
    team.close()
    name, text, stayed = answer
    assert name == "RuntimeError"
    assert "leaves this step out" in text
    assert stayed


@pytest.mark.parametrize("kind", ["split", "whole", "sparse"])
@pytest.mark.parametrize("optimizer", [cg.SFW, cg.AdaSFW, cg.ProjectedSGD])
def test_a_rank_has_no_gradient(pair, kind, optimizer):
    if kind == "split" and optimizer is cg.ProjectedSGD:
        kind = "sparse"  # where the nearest point of the last region takes a message
    for failed, after, steps in pair.ask(broken.missing_gradient, kind, optimizer):
        assert after is None, "the ranks cannot go on"
        name, text, stayed = failed
        assert name == "ValueError"
        last = len(broken.REGIONS[kind]) - 1
        assert f"parameter `{last}.0` has a gradient on some ranks but none on 1" in text
        assert stayed
        assert set(steps) <= {2.0}


def test_ranks_have_rates_of_their_own(pair):
    for name, text, stayed in pair.ask(broken.other_rate):
        assert name == "ValueError"
        assert "`lr` of parameter `1.0` differs between the ranks (0.1 on 0, 0.2 on 1)" in text
        assert stayed


@pytest.mark.parametrize(
    "about", ["start", "rules", "number", "vertex", "point", "active", "gap", "gap of batches"]
)
def test_ranks_ask_about_different_things(pair, about):
    """They are told, and can go on to ask the same."""
    answers = pair.ask(broken.other_questions, about)
    assert len({after for _, after in answers}) == 1
    for (name, text), after in answers:
        assert isinstance(after, float)
        assert after > 0
        assert name == "ValueError"
        if about.startswith("gap"):
            assert "parameter `0.0` has a gradient on 1 of the 2 ranks that hold it" in text
        else:
            assert "ranks 1 ask about other sharded tensors or regions than rank 0" in text


def test_a_process_group_that_is_gone_is_missed():
    """And not taken for that of all ranks, which torch would do."""

    class Group:
        pass

    ranks = Ranks(Group(), (0, 1), 0, "cpu")
    with pytest.raises(RuntimeError, match="the process group in which they talked was destroyed"):
        ranks.total(torch.ones(2, dtype=torch.int64))


@pytest.mark.parametrize("how", ["region", "rule"])
def test_ranks_step_over_different_things(pair, how):
    for name, text, stayed in pair.ask(broken.other_works, how):
        assert name == "ValueError"
        assert "ranks 1 step over other parameters, regions or step rules than rank 0" in text
        assert stayed
