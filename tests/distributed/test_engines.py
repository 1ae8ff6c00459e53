"""What engines do besides sharing parameters out: each next to a plain optimizer told the same."""

import pytest
import torch

from distributed import engines
from optim.cases import MEMBERS, asked_of_optimizers

FEW = 8
"""Units in the last place, after eighteen steps."""
CLOSE = 1e-12
"""In float64."""


def test_gradients_accumulate_on_their_ranks(four):
    assert max(four.ask(engines.accumulation)) <= FEW


@pytest.mark.parametrize(
    ("compute", "reduce", "stored", "offload"),
    [
        (torch.bfloat16, torch.float32, torch.float32, False),
        (None, None, torch.bfloat16, False),
        (None, None, torch.float64, True),
    ],
    ids=["mixed", "low", "offloaded"],
)
def test_precision_policies_and_shards_on_the_host(four, compute, reduce, stored, offload):
    for apart, formats in four.ask(engines.policy, compute, reduce, stored, offload):
        assert set(formats) == {str(stored)}
        assert apart <= FEW


def test_layers_without_gradients_stay_where_they_are(four):
    for apart, untouched in four.ask(engines.quiet_layers):
        assert untouched
        assert apart <= FEW


def test_whole_parameters_and_pieces_share_an_optimizer(four):
    for apart, kinds in four.ask(engines.mixed_model):
        assert kinds == [False, True]
        assert apart <= FEW


def test_a_model_may_be_built_without_values(four):
    for apart, early in four.ask(engines.from_meta):
        assert early == 8
        assert apart <= FEW


def test_settings_mean_what_they_mean_elsewhere(four):
    for found in four.ask(engines.settings):
        for apart, shared_out in found:
            assert apart <= FEW
            assert shared_out


def test_gradients_may_be_placed_otherwise(four):
    assert max(four.ask(engines.other_gradients)) <= 1e-15


def test_what_is_whole_everywhere_needs_nobody(four):
    assert max(four.ask(engines.replicated)) <= 1e-15


@pytest.mark.parametrize("engine", ["fsdp", "both"])
def test_a_fresh_optimizer_shows_its_state_and_does_not_move(four, engine):
    answers = four.ask(engines.fresh_state, engine)
    assert all(answer == answers[0] for answer in answers), "other keys on other ranks"
    assert [name for name, *_ in answers[0]] == [kind.__name__ for kind in MEMBERS]
    for name, moved, keys, shared_out in answers[0]:
        assert not moved, name
        assert shared_out, name
        assert all(keys.values()), name
        assert len(keys) == 8, name


@pytest.mark.parametrize("layout", ["four", "columns"])
def test_regions_answer_users_about_pieces(four, layout):
    for wrong in four.ask(engines.public_answers, layout):
        assert not wrong, "\n".join(wrong)


@asked_of_optimizers()
def test_forward_passes_alone_change_nothing(four, kind):
    assert max(four.ask(engines.glances, kind)) <= CLOSE


@pytest.mark.parametrize("scaled", [False, True], ids=["clipped", "scaled"])
def test_gradients_are_clipped_and_scaled(four, scaled):
    assert max(four.ask(engines.tools, scaled)) <= CLOSE


@pytest.mark.parametrize("what", ["plain", "checkpointed", "tied"])
def test_what_was_constrained_may_be_wrapped_and_shared(four, what):
    assert max(four.ask(engines.changed, what)) <= CLOSE


def test_random_numbers_are_left_to_the_user(four):
    assert all(four.ask(engines.random_streams))


def test_parameters_that_cannot_be_moved_are_refused(four):
    for kind, text in four.ask(engines.refused, "partial"):
        assert kind == "TypeError"
        assert "a sum that is not yet added up cannot be constrained; redistribute it" in text
    for what in ("flat", "flat views"):
        for kind, text in four.ask(engines.refused, what):
            assert kind == "TypeError"
            assert "is flattened by FullyShardedDataParallel (FSDP1), and its shape is lost" in text
    for kind, text in four.ask(engines.refused, "lost"):
        assert kind == "ValueError"
        assert "no longer has third.weight, third.bias: constrain it again" in text
    kind, text = four.ask(engines.refused, "other part")[2]
    assert kind == "ValueError"
    assert "rank 2 holds (2, 4) of a parameter of shape (3, 4)" in text
    assert "where (1, 4) was expected" in text
