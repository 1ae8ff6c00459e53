"""Lightning drives every optimizer, by itself and by hand, clips, saves and resumes."""

import lightning
import pytest
import torch
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

import condgrad as cg
from integration.scripts import BATCHES, RULES, Script, batch, close, network
from optim.cases import MEMBERS, asked_of_optimizers, build, same

TRIED = asked_of_optimizers()

pytestmark = [
    # Lightning's own call of torch.
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning"),
    # Its advice on machines with many cores, and on those with an accelerator.
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:GPU available but not used:UserWarning"),
]


class Automatic(lightning.LightningModule):
    """A module as Lightning's guide writes it; each epoch begins with a full gradient."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.model = kind, network()

    def configure_optimizers(self):
        optimizer = build(self.kind, cg.constrain(self.model, RULES))
        return {"optimizer": optimizer, "lr_scheduler": ExponentialLR(optimizer, 0.9)}

    def loss(self, given):
        inputs, labels = given
        return torch.nn.functional.cross_entropy(self.model(inputs), labels)

    def on_train_epoch_start(self):
        if MEMBERS[self.kind].period:
            optimizer = self.optimizers().optimizer
            pairs = [(self.closure(optimizer, given), 8) for given in batches()]
            optimizer.refresh(pairs)

    def closure(self, optimizer, given):
        def evaluate():
            optimizer.zero_grad()
            loss = self.loss(given)
            loss.backward()
            return loss

        return evaluate

    def training_step(self, given, _):
        return self.loss(given)

    def values(self):
        return [p.detach().clone() for p in self.model.parameters()]


class ByHand(Automatic):
    """The same with manual optimization."""

    def __init__(self, kind):
        super().__init__(kind)
        self.automatic_optimization = False

    def training_step(self, given, _):
        optimizer = self.optimizers()

        def closure():
            optimizer.zero_grad()
            loss = self.loss(given)
            self.manual_backward(loss)
            return loss

        if MEMBERS[self.kind].needs_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()

    def on_train_epoch_end(self):
        self.lr_schedulers().step()


def batches():
    return DataLoader(TensorDataset(*batch(None)), batch_size=8)


def fitted(module, folder, epochs=2, resume=None, **more):
    """The trainer, after that many epochs."""
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **more,
    )
    trainer.fit(module, batches(), ckpt_path=resume)
    return trainer


def plain(kind, epochs=2, clip=None):
    """The same without Lightning."""
    script = Script(kind)
    schedule = ExponentialLR(script.optimizer, 0.9)
    for _ in range(epochs):
        if MEMBERS[kind].period:
            script.optimizer.refresh([(script.closure(t), 8) for t in range(BATCHES)])
        for t in range(BATCHES):

            def closure(t=t):
                loss = script.closure(t)()
                if clip is not None:
                    torch.nn.utils.clip_grad_norm_(script.model.parameters(), clip)
                return loss

            if MEMBERS[kind].needs_closure:
                script.optimizer.step(closure)
            else:
                closure()
                script.optimizer.step()
        schedule.step()
    return script.values()


@TRIED
@pytest.mark.parametrize("module", [Automatic, ByHand])
def test_lightning_trains_alike(kind, module, tmp_path):
    trained = module(kind)
    trainer = fitted(trained, tmp_path)
    assert trainer.global_step == 2 * BATCHES
    assert same(trained.values(), plain(kind))
    assert float(cg.violation(trainer.optimizers[0])) <= 1e-14


@TRIED
def test_gradients_are_clipped_at_every_evaluation(kind, tmp_path):
    trained = Automatic(kind)
    fitted(trained, tmp_path, gradient_clip_val=0.05)
    assert close(trained.values(), plain(kind, clip=0.05))  # it sums the norm in another order
    assert not close(trained.values(), plain(kind), slack=1e-3)


@TRIED
def test_a_checkpoint_resumes_the_run(kind, tmp_path):
    path = tmp_path / "state.ckpt"
    fitted(Automatic(kind), tmp_path).save_checkpoint(path)
    resumed = Automatic(kind)
    fitted(resumed, tmp_path, epochs=4, resume=path)
    assert same(resumed.values(), plain(kind, epochs=4))


@asked_of_optimizers([cg.SFW, cg.ORGFW])
def test_a_trial_run_of_one_batch(kind, tmp_path):
    trained = Automatic(kind)
    trainer = fitted(trained, tmp_path, fast_dev_run=True)
    assert trainer.global_step == 1
    assert not same(trained.values(), Automatic(kind).values())
