"""What chance decides: crops and flips as one would do them by hand, and what is held out."""

import dataclasses

import pytest
import torch

from condgrad_lab.spec import Data, Optimizer, Rule, Run
from condgrad_lab.train import Trial, _draws, load
from condgrad_lab.train._draws import Draws, generator
from condgrad_lab.train._measure import averages, sampled
from condgrad_lab.train._samples import samples

CIFAR = Data("cifar-10", train=40, test=20, synthetic=True)
RUN = Run(
    CIFAR, "wideresnet10x1", Optimizer("SFW", 0.1, 0.9, rescale="gradient"),
    (Rule("L2Ball", width=30),), batch=20, augment=True, measure=("sampled-gap", "top5"),
)  # fmt: skip


def by_hand(image, down, right, flip):
    """One image: black around it, a window of its size, mirrored or not."""
    _, height, width = image.shape
    large = torch.zeros(3, height + 8, width + 8, dtype=image.dtype)
    large[:, 4:-4, 4:-4] = image
    window = large[:, down : down + height, right : right + width]
    return window.flip(2) if flip else window


def test_crops_and_flips_are_those_made_by_hand():
    images = load(CIFAR).train.inputs
    order = torch.tensor([7, 0, 39, 7, 12])
    moves = torch.tensor([[0, 0, 0], [8, 8, 1], [4, 4, 0], [4, 4, 1], [3, 6, 1]])
    found = _draws.moved(_draws.padded(images), Draws(order, moves))
    for image, number, move in zip(found, order, moves, strict=True):
        assert torch.equal(image, by_hand(images[number], *move.tolist()))
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found[2], images[39])


def test_images_of_any_shape_are_moved():
    images = torch.arange(2 * 1 * 5 * 9, dtype=torch.uint8).view(2, 1, 5, 9)
    moves = torch.tensor([[1, 7, 1]])
    found = _draws.moved(_draws.padded(images), Draws(torch.tensor([1]), moves))
    expected = by_hand(images[1].expand(3, 5, 9), 1, 7, True)[:1]
    assert torch.equal(found[0], expected)


def test_all_moves_occur_as_often_and_epochs_differ():
    drawn = _draws.crops(20_000, generator(0, "augment", 1))
    assert drawn[:, 2].float().mean() == pytest.approx(0.5, abs=0.02)
    for column in (0, 1):
        counts = drawn[:, column].bincount(minlength=9) / len(drawn)
        assert len(counts) == 9
        assert counts.sub(1 / 9).abs().max() < 0.01
    train, _ = samples(load(CIFAR), RUN)
    one, again, other = (train.draws(0, epoch) for epoch in (1, 1, 2))
    assert torch.equal(one.moves, again.moves)
    assert not torch.equal(one.moves, other.moves)
    assert not torch.equal(one.moves, train.draws(1, 1).moves)


def test_only_training_sees_moved_images():
    train, test = samples(load(CIFAR), RUN)
    plain, _ = samples(load(CIFAR), dataclasses.replace(RUN, augment=False))
    for ours, theirs in zip(train.batches(15), plain.batches(15), strict=True):
        assert all(map(torch.equal, ours, theirs))
    assert test.draws(0, 1).moves is None
    draws = train.draws(0, 1)
    moved, _ = next(train.batches(40, draws))
    still, _ = next(train.batches(40, Draws(draws.order)))
    assert not torch.equal(moved, still)
    black = -1 / plain._scale._moments[1].flatten() * plain._scale._moments[0].flatten()
    corner = moved[draws.moves[:, 0] > 4][0][:, -1, 0]  # a row from below the image
    torch.testing.assert_close(corner, black)


def test_what_is_no_image_is_not_moved():
    run = Run(Data("mnist", 20, 10, synthetic=True), "mlp-32", Optimizer("SGD", 0.1), augment=True)
    with pytest.raises(ValueError, match="`augment` moves images, but mlp-32 is not fed with"):
        samples(load(run.data), run)


@pytest.mark.parametrize("data", [CIFAR, Data("mnist", 50, 20, synthetic=True)])
def test_validation_takes_the_place_of_the_test_and_leaves_training(data):
    held = load(dataclasses.replace(data, validation=10))
    whole = load(dataclasses.replace(data, train=data.train + 10))
    assert (len(held.train), len(held.test)) == (data.train, 10)
    flat = [split.inputs.flatten(1) for split in (held.train, held.test, whole.train)]
    rows = [{row.numpy().tobytes() for row in part} for part in flat]
    assert rows[0] | rows[1] == rows[2]
    assert not rows[0] & rows[1]
    again = load(dataclasses.replace(data, validation=10))
    assert torch.equal(held.test.inputs, again.test.inputs)


def test_validation_of_real_data_leaves_some_to_train_on(monkeypatch):
    whole = load(Data("mnist", 60, 30, synthetic=True))
    monkeypatch.setattr("condgrad_lab.data.load", lambda name, folder: whole)
    held = load(Data("mnist", train=40, validation=15))
    assert (len(held.train), len(held.test)) == (40, 15)
    with pytest.raises(ValueError, match="`validation` takes 60 of 60 samples and leaves none"):
        load(Data("mnist", validation=60))


def test_the_sampled_gap_of_few_samples_is_the_gap():
    run = dataclasses.replace(RUN, measure=("gap", "sampled-gap"))
    trial = Trial(run, load(CIFAR))
    row = trial.measure()
    assert row["sampled_gap"] == pytest.approx(row["gap"], rel=1e-6)
    assert len(sampled(trial.train)) == 40


def test_the_sampled_gap_sees_the_same_samples_of_all_classes(monkeypatch):
    monkeypatch.setattr("condgrad_lab.train._measure.SAMPLED", 30)
    trial = Trial(RUN, load(CIFAR))
    chosen = sampled(trial.train)
    assert torch.equal(chosen.order, sampled(trial.train).order)
    assert len(chosen.order.unique()) == 30
    assert chosen.order.max() >= 30  # not the first ones: a set may be sorted by class
    assert trial.train._labels[chosen.order].unique().numel() > 8


def test_the_five_largest_outputs_are_counted():
    trial = Trial(RUN, load(CIFAR))
    found = averages(trial.parts.model, trial.test, RUN)
    inputs, labels = next(trial.test.batches(20))
    with torch.no_grad():
        outputs = trial.parts.model.eval()(inputs)
    ranks = (outputs > outputs.gather(1, labels[:, None])).sum(1)
    assert found["accuracy"] == (ranks == 0).double().mean()
    assert found["top5_accuracy"] == (ranks < 5).double().mean()
    assert found["top5_accuracy"] > found["accuracy"]
