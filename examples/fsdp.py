"""A small transformer that reads the documentation of Python, on as many processes as there are.

    torchrun --nproc-per-node 2 examples/fsdp.py

Its parameters are sharded by FSDP2 and stay in their regions: matrices in spectral balls,
embeddings and the head in hypercubes, one matrix of every block in a K-sparse polytope. Each
process reads its share of every batch, so that any number of them takes the same steps. On CPUs
they talk through gloo, on CUDA devices through nccl. The text is that of `pydoc_data`, which is
part of Python; `--text` names another file.

With `--checkpoint FOLDER` a run is kept, and any number of processes can go on with it:

    torchrun --nproc-per-node 4 examples/fsdp.py --checkpoint kept --stop 150
    torchrun --nproc-per-node 2 examples/fsdp.py --checkpoint kept
"""

import argparse
import gc
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import condgrad as cg

RULES = {
    r".*norm.*|.*bias": cg.Free(),
    r"blocks\..*\.down\.weight": cg.sized(cg.KSparsePolytope, width=10, k=0.1),
    r"blocks\..*\.weight": cg.sized(cg.SpectralBall, width=5),
    r"(letters|places|head)\.weight": cg.sized(cg.LinfBall, width=10),
}


class Block(nn.Module):
    """Attention to what was read before, then a perceptron."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width, bias=False)
        self.merged = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        parts = self.mixed(self.first_norm(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merged(seen.transpose(1, 2).flatten(-2))
        return x + self.down(nn.functional.gelu(self.up(self.second_norm(x))))


class Reader(nn.Module):
    """Predicts every next letter."""

    def __init__(self, letters, context, width, layers):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads=4) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        for embedding in (self.letters, self.places):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, read):
        x = self.letters(read) + self.places.weight[: read.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def text_of(path):
    """The text to read: that of a file, or the help pages of Python."""
    if path is not None:
        return path.read_text(encoding="utf-8")
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


class Text:
    """A text as numbers, the last tenth of which is kept for the end."""

    def __init__(self, text, context, device):
        letters = sorted(set(text))
        number = {letter: place for place, letter in enumerate(letters)}
        self.letters, self.context, self.device = len(letters), context, device
        every = torch.tensor([number[letter] for letter in text])
        self.parts = {"train": every[: len(every) * 9 // 10], "test": every[len(every) * 9 // 10 :]}

    def batch(self, part, size, seed):
        """This process's share of so many lines from random places, and the letters after each."""
        source, generator = self.parts[part], torch.Generator().manual_seed(seed)
        starts = torch.randint(len(source) - self.context, (size, 1), generator=generator)
        starts = starts[dist.get_rank() :: dist.get_world_size()]
        lines = source[starts + torch.arange(self.context + 1)].to(self.device)
        return lines[:, :-1], lines[:, 1:]


def loss_of(model, lines):
    read, next_letters = lines
    return nn.functional.cross_entropy(model(read).flatten(0, 1), next_letters.flatten())


def averaged(loss):
    """The mean over all processes."""
    total = loss.detach().clone()
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()


def sharded(model, mesh):
    """The model, its blocks and the rest sharded by FSDP2."""
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(options, device):
    """Train and report; returns the losses on the text that was kept."""
    text = Text(text_of(options.text), options.context, device)
    torch.manual_seed(options.seed)  # the same start on every process
    model = Reader(text.letters, options.context, options.width, options.layers).to(device)
    sharded(model, init_device_mesh(device.type, (dist.get_world_size(),)))
    groups = cg.constrain(model, RULES)
    optimizer = cg.SFW(groups, lr=options.lr, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 - t / options.steps)
    if options.checkpoint and options.checkpoint.exists():
        load(model, optimizer, schedule, options.checkpoint)
    if dist.get_rank() == 0:
        print(groups, "\n\nstep   train    test     gap  violation", flush=True)
    reports = []
    for t in range(schedule.last_epoch, options.stop or options.steps):
        loss = loss_of(model, text.batch("train", options.batch, 1000 * options.seed + t))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (t + 1) % max(1, options.steps // 10) == 0:
            reports.append(report(model, optimizer, text, options, t + 1, averaged(loss)))
    if options.checkpoint:
        save(model, optimizer, schedule, options.checkpoint)
    return reports


@torch.no_grad()
def report(model, optimizer, text, options, step, train_loss):
    """Print how far it is; returns the loss on the text that was kept."""
    test_loss = averaged(loss_of(model, text.batch("test", 4 * options.batch, 7)))
    gap, violation = float(cg.fw_gap(optimizer)), float(cg.violation(optimizer))
    if dist.get_rank() == 0:
        print(
            f"{step:4d}  {train_loss:6.3f}  {test_loss:6.3f}  {gap:6.2f}   {violation:.1e}",
            flush=True,
        )
    return test_loss


def state_of(model, optimizer, schedule):
    """All that a run goes on from; tensors remain in pieces."""
    states = get_state_dict(model, optimizer)
    return {"model": states[0], "optimizer": states[1], "schedule": schedule}


def save(model, optimizer, schedule, folder):
    """Keep the run so that any number of processes can go on with it."""
    dcp.save(state_of(model, optimizer, schedule), checkpoint_id=folder)


def load(model, optimizer, schedule, folder):
    """Go on with a run that was kept."""
    state = state_of(model, optimizer, schedule)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--stop", type=int, help="the step to stop after, if before the last one")
    parser.add_argument("--batch", type=int, default=32, help="lines a step, of all processes")
    parser.add_argument("--context", type=int, default=64, help="letters a line")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", type=Path, help="a file to read instead of Python's help pages")
    parser.add_argument("--checkpoint", type=Path, help="a folder to go on from and to keep")
    options = parser.parse_args(argv)
    if "RANK" not in os.environ:
        parser.error("no process group: launch it by torchrun --nproc-per-node 2 examples/fsdp.py")
    if options.batch % int(os.environ["WORLD_SIZE"]):
        parser.error("the number of processes must divide --batch, so that all shares weigh alike")
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        train(options, torch.device("cuda" if cuda else "cpu"))
    finally:
        gc.collect()  # what the model's cycles hold of process groups must not outlive them
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
