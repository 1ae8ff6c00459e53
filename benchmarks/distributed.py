"""What a training step says and takes on some processes of this machine: FSDP2, then the optimizer.

    PYTHONPATH=src torchrun --nproc-per-node 2 benchmarks/distributed.py --out FILE

The network is that of examples/fsdp.py, sharded block by block. Messages are counted as torch hands
them to the process group, times are medians over steps in which all optimizers take turns. FILE
keeps one entry for each number of processes; `python benchmarks/distributed.py --table FILE` prints
the table of docs/distributed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from costs import shown  # noqa: E402

PLANS = ("torch's SGD", "L2", "K-sparse", "spectral")
KINDS = {
    "allreduce_": "sum",
    "alltoall_base_": "exchange",
    "_allgather_base_": "all-gather",
    "_reduce_scatter_base_": "reduce-scatter",
}
BLOCKS = r"blocks\..*(mixed|merged|up|down)\.weight"
LISTENED = 1
"""The step that is listened to: in the first one the ranks compare what they step over."""
SIZES = {"letters": 103, "context": 64, "width": 128, "layers": 4}


def measured(steps: int) -> dict[str, Any]:
    """Messages and milliseconds of a step, by plan."""
    runs = {plan: Run(plan) for plan in PLANS}
    for t in range(LISTENED + 1 + steps):
        for run in runs.values():
            run.step(t)
    return {plan: run.told() for plan, run in runs.items()}


class Run:
    """One network and one optimizer."""

    def __init__(self, plan: str) -> None:
        import torch
        from torch.distributed.device_mesh import init_device_mesh

        import condgrad as cg

        example = runpy.run_path(str(HERE.parent / "examples" / "fsdp.py"))
        torch.manual_seed(0)
        self._model = example["Reader"](**SIZES)
        self.entries = sum(p.numel() for p in self._model.parameters())
        ranks = torch.distributed.get_world_size()
        example["sharded"](self._model, init_device_mesh("cpu", (ranks,)))
        self._loss_of = example["loss_of"]
        if plan == "torch's SGD":
            self._optimizer: Any = torch.optim.SGD(self._model.parameters(), 0.1, momentum=0.9)
        else:
            ball = cg.sized(cg.L2Ball, width=30)
            blocks = {
                "L2": ball,
                "K-sparse": cg.sized(cg.KSparsePolytope, width=30, k=0.1),
                "spectral": cg.sized(cg.SpectralBall, width=10),
            }
            rules = {BLOCKS: blocks[plan], r".*": ball}
            self._optimizer = cg.SFW(cg.constrain(self._model, rules))
        self._rank = torch.distributed.get_rank()
        self._seconds: dict[str, list[tuple[float, float]]] = {"FSDP2": [], "step": []}
        self._said: dict[str, dict[str, list[int]]] = {}

    def step(self, t: int) -> None:
        """Forward and backward on made-up letters, then a step; both listened to and timed."""
        import torch

        made = torch.Generator().manual_seed(1000 * t + self._rank)
        letters = torch.randint(SIZES["letters"], (4, SIZES["context"] + 1), generator=made)
        self._optimizer.zero_grad()
        self._heard(t, "FSDP2", lambda: self._learn((letters[:, :-1], letters[:, 1:])))
        self._heard(t, "step", self._optimizer.step)

    def _learn(self, lines: Any) -> None:
        self._loss_of(self._model, lines).backward()

    def _heard(self, t: int, part: str, act: Callable[[], Any]) -> None:
        import torch

        if t == LISTENED:
            with listening() as self._said[part]:
                act()
            return
        torch.distributed.barrier()
        begun = time.perf_counter(), time.process_time()
        act()
        ended = time.perf_counter(), time.process_time()
        if t > LISTENED:
            self._seconds[part].append((ended[0] - begun[0], ended[1] - begun[1]))

    def told(self) -> dict[str, Any]:
        """What was heard, and how long the steps took that nobody listened to."""
        parts = {}
        for part, seconds in self._seconds.items():
            said = {kind: [len(each), sum(each)] for kind, each in self._said[part].items()}
            walls, owns = zip(*seconds, strict=True)
            times = {"ms": statistics.median(walls), "own": statistics.median(owns)}
            parts[part] = {"said": said, **{name: 1e3 * each for name, each in times.items()}}
        return parts


def listening() -> Any:
    """A context in which the messages to process groups are noted: by kind, the bytes of each."""
    import contextlib

    import torch
    from torch.distributed.tensor import DTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    messages: dict[str, list[int]] = {}

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if any(issubclass(each, DTensor) for each in types):
                return NotImplemented
            space, _, name = func._schema.name.partition("::")
            if space == "c10d" and name in KINDS:
                tensors = [x for x in torch.utils._pytree.tree_leaves(args) if torch.is_tensor(x)]
                sizes = [x.numel() * x.element_size() for x in tensors]
                kind = KINDS[name]
                # Of what arrives and what is sent, one is a rank's part of the other.
                size = sum(sizes) / 2 if kind == "exchange" else max(sizes)
                messages.setdefault(kind, []).append(int(size))
            return func(*args, **(kwargs or {}))

    @contextlib.contextmanager
    def listened() -> Any:
        with Listener():
            yield messages

    return listened()


def planned(matrices: int = 200) -> dict[int, float]:
    """Milliseconds of processor time in which a rank settles who gets which matrix, by ranks.

    The ranks are made up, the matrices are not decomposed.
    """
    import torch

    import condgrad as cg
    from condgrad.regions import _exchange, _shards
    from condgrad.regions._sharded import Vertices

    class MadeUp(_shards.Ranks):
        def swap(self, values: Any, outgoing: list[int], incoming: list[int]) -> Any:
            return values.new_zeros(sum(incoming))

    class Kept(Vertices):
        def done(self, jobs: Any, blocks: list[Any], firsts: list[int]) -> list[Any]:
            return blocks

    found = {}
    for size in (64, 512, 4096):
        ranks = MadeUp(None, tuple(range(size)), 0, "cpu")
        rows = max(64, size // 8)

        def cut(place: int, rows: int = rows, share: int = -(-rows // size)) -> Any:
            return slice(min(place * share, rows), min((place + 1) * share, rows)), slice(0, 8)

        shard = _shards.Shard((rows, 8), ranks, cut, rows_whole=True)
        job = Kept(cg.SpectralBall(1.0), None)
        asked = [_exchange.Whole(torch.zeros(shard.part), shard, job) for _ in range(matrices)]
        times = []
        for _ in range(7):
            begun = time.process_time()
            _exchange.exchanged(ranks, asked)
            times.append(time.process_time() - begun)
        found[size] = 1e3 * statistics.median(times)
    return found


def table(kept: dict[str, Any]) -> str:
    """The measured points, for docs/distributed.md."""
    rows = [
        "| processes | what | messages | their bytes | ms | of its processor |",
        "|---|---|---|---|---|---|",
    ]
    for ranks, entry in sorted(kept.items(), key=lambda item: int(item[0])):
        every = [each["FSDP2"] for each in entry["plans"].values()]
        times = {name: statistics.median(each[name] for each in every) for name in ("ms", "own")}
        first = {**every[0], **times}
        rows.append(_row(ranks, "forward and backward under FSDP2", first))
        rows += [_row(ranks, f"step: {plan}", e["step"]) for plan, e in entry["plans"].items()]
    return "\n".join(rows)


def _row(ranks: str, what: str, part: dict[str, Any]) -> str:
    said = part["said"].items()
    names = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, (count, _) in said)
    sizes = ", ".join(shown(size) for _, (_, size) in said)
    cells = [
        ranks,
        what,
        names or "none",
        sizes or "0 B",
        *(f"{part[t]:.3g}" for t in ("ms", "own")),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="the file that keeps what was measured")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--plan", action="store_true", help="time who gets which matrix")
    parser.add_argument("--table", type=Path, help="print the table of what this file has kept")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.table.read_text())))
        return
    if given.plan:
        print(*(f"{ranks:,} ranks: {ms:.3g} ms" for ranks, ms in planned().items()), sep="\n")
        return
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    plans = measured(given.steps)
    if torch.distributed.get_rank() == 0 and given.out:
        kept = json.loads(given.out.read_text()) if given.out.exists() else {}
        kept[os.environ["WORLD_SIZE"]] = {
            "torch": torch.__version__,
            "steps": given.steps,
            "load": os.getloadavg()[0],
            "plans": plans,
        }
        given.out.write_text(json.dumps(kept, indent=1) + "\n")
    torch.distributed.barrier()
    os._exit(0)  # what lies in cycles holds process groups, whose end would abort this one


if __name__ == "__main__":
    main()
