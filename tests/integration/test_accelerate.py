"""Accelerate prepares, accumulates, clips, saves and loads every optimizer."""

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import ProjectConfiguration
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

import condgrad as cg
from integration.scripts import BATCHES, RULES, Script, batch, close, network
from optim.cases import MEMBERS, asked_of_optimizers, build, same

TRIED = asked_of_optimizers()


@pytest.fixture(autouse=True)
def _fresh():
    """Accelerate keeps its state for the whole process."""
    yield
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


class Prepared:
    """A script whose parts have been through `Accelerator.prepare`."""

    def __init__(self, kind, folder=None, **settings):
        where = None if folder is None else ProjectConfiguration(str(folder))
        self.kind = kind
        self.accelerator = Accelerator(cpu=True, project_config=where, **settings)
        model = network()
        optimizer = build(kind, cg.constrain(model, RULES))
        data = DataLoader(TensorDataset(*batch(None)), batch_size=8)
        self.model, self.optimizer, self.data, self.schedule = self.accelerator.prepare(
            model, optimizer, data, ExponentialLR(optimizer, 0.9)
        )

    def evaluate(self, inputs, labels, clip):
        loss = torch.nn.functional.cross_entropy(self.model(inputs), labels)
        self.accelerator.backward(loss)
        if clip is not None and self.accelerator.sync_gradients:
            self.accelerator.clip_grad_norm_(self.model.parameters(), clip)

    def closure(self, inputs, labels, clip=None):
        def zeroed():
            self.optimizer.zero_grad()
            self.evaluate(inputs, labels, clip)

        return zeroed

    def epoch(self, clip=None):
        """Once through the data, as Accelerate's guide writes it."""
        if MEMBERS[self.kind].period:  # the wrapper has torch's methods only
            pairs = [(self.closure(*each), len(each[1])) for each in self.data]
            self.optimizer.optimizer.refresh(pairs)
        for each in self.data:
            with self.accelerator.accumulate(self.model):
                if MEMBERS[self.kind].needs_closure:
                    self.optimizer.step(self.closure(*each, clip))
                else:
                    self.evaluate(*each, clip)
                    self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad()
        return [p.detach().clone() for p in self.model.parameters()]


def plain(kind, epochs, every=1, clip=None):
    """The same without Accelerate: a step after so many batches, on their mean."""
    script = Script(kind)
    schedule = ExponentialLR(script.optimizer, 0.9)
    for _ in range(epochs):
        if MEMBERS[kind].period:
            script.optimizer.refresh([(script.closure(t), 8) for t in range(BATCHES)])
        for first in range(0, BATCHES, every):

            def closure(first=first):
                script.optimizer.zero_grad()
                loss = sum(script.loss(t) for t in range(first, first + every)) / every
                loss.backward()
                if clip is not None:
                    torch.nn.utils.clip_grad_norm_(script.model.parameters(), clip)

            if MEMBERS[kind].needs_closure:
                script.optimizer.step(closure)
            else:
                closure()
                script.optimizer.step()
            schedule.step()
    return script.values()


@TRIED
@pytest.mark.parametrize("clip", [None, 0.05])
def test_a_prepared_script_trains_alike(kind, clip):
    prepared = Prepared(kind)
    prepared.epoch(clip)
    assert same(prepared.epoch(clip), plain(kind, 2, clip=clip))
    assert float(cg.violation(prepared.optimizer)) <= 1e-14


@asked_of_optimizers(kind for kind in MEMBERS if not MEMBERS[kind].needs_closure)
def test_accumulated_gradients_make_one_step(kind):
    """The wrapper withholds steps and zeroing until a sum is complete."""
    prepared = Prepared(kind, gradient_accumulation_steps=2)
    prepared.epoch()
    assert close(prepared.epoch(), plain(kind, 2, every=2))


@TRIED
def test_saved_state_resumes_the_run(kind, tmp_path):
    prepared = Prepared(kind, tmp_path)
    prepared.epoch()
    prepared.accelerator.save_state(str(tmp_path / "state"))
    expected = prepared.epoch()
    again = Prepared(kind, tmp_path)
    again.epoch()
    again.epoch()
    again.accelerator.load_state(str(tmp_path / "state"))
    assert same(again.epoch(), expected)


@TRIED
def test_saved_state_over_another_region_is_refused(kind, tmp_path):
    prepared = Prepared(kind, tmp_path)
    prepared.epoch()
    prepared.accelerator.save_state(str(tmp_path / "state"))
    model = network()
    other = build(kind, cg.constrain(model, {**RULES, r".*": cg.L1Ball(3.0)}))
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(model, other)
    with pytest.raises(ValueError, match=r"`state_dict` was saved over LinfBall\(radius=0.3\)"):
        accelerator.load_state(str(tmp_path / "state"))
