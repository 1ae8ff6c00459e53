"""The code of the page on many ranks, run on them."""

import functools
import re
import warnings
from pathlib import Path

import torch
from torch import nn

import condgrad as cg
from distributed.models import values
from inputs import normal

PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"
WAYS = ("sharded", "hybrid", "split", "replicated", "constrained_first")
STEPS = 6


@functools.cache
def page():
    """The names that the page's code defines."""
    names = {"__name__": "page"}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(code, PAGE.name, "exec", dont_inherit=True), names)
    return names


def alone(model):
    """What the page's ways are compared with."""
    return model, cg.SFW(cg.constrain(model, page()["RULES"]), lr=0.1)


def made(way):
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, on how it lays out meshes
        torch.manual_seed(5)
        return (alone if way == "alone" else page()[way])(page()["Net"]().double())


def stepped(model, optimizer, first=0):
    for t in range(first, first + STEPS):
        optimizer.zero_grad()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* returned a view tensor")
            logits = model(normal((8, 20), 100 + t))
        nn.functional.cross_entropy(logits, torch.arange(8) % 5).backward()
        optimizer.step()
    return values(model)


def used(way):
    """Where the page's way of using a model leads."""
    return stepped(*made(way))


def kept(way, other, folder):
    """Where it leads when the page's functions have carried it over to another way."""
    model, optimizer = made(way)
    stepped(model, optimizer)
    page()["save"](model, optimizer, folder)
    model, optimizer = made(other)
    page()["load"](model, optimizer, folder)
    return stepped(model, optimizer, STEPS)


def twice():
    model, optimizer = made("alone")
    stepped(model, optimizer)
    return stepped(model, optimizer, STEPS)
