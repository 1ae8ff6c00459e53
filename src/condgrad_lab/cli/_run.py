"""`condgrad run`: say what will be done, do it in sight, answer with the paper beside ours."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condgrad_lab import words
from condgrad_lab.cli import _common, _look

if TYPE_CHECKING:
    from condgrad_lab.artifact import Artifact
    from condgrad_lab.queue import Event, Listener, Plan
    from condgrad_lab.spec import Run
    from condgrad_lab.trackers import Tracker
    from condgrad_lab.train import Team


def add(commands: Any) -> None:
    """Add the command."""
    parser = _common.command(commands, "run", "train what is missing, then show the result", run)
    _common.artifact_options(parser, all_by_default=False)
    parser.add_argument("--jobs", type=_positive(int), metavar="N", help="side by side (cores)")
    parser.add_argument("--data", metavar="DIR", help="a folder with the data sets' files")
    parser.add_argument(
        "--minutes",
        type=_positive(float),
        metavar="M",
        help="stop between two epochs, before M minutes are over; the same command goes on",
    )
    parser.add_argument(
        "--without",
        choices=("compile", "capture", "fused"),
        action="append",
        default=[],
        help="leave out what speeds steps up on CUDA; may be repeated",
    )
    parser.add_argument(
        "--tracker",
        choices=("tensorboard", "wandb"),
        action="append",
        default=[],
        help="tell it of every epoch too, in OUT/tensorboard or OUT/wandb; may be repeated",
    )
    parser.add_argument(
        "--workers", type=_whole, metavar="N", help="processes that read pictures (cores)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def run(arguments: argparse.Namespace) -> int:
    """Train what is missing of the artifacts, then show them."""
    began = time.time()
    from condgrad_lab.train import expected, joined

    artifacts = _common.chosen(arguments)
    runs = _runs(artifacts, arguments)
    if (ranks := _common.ranks(arguments)) != expected() and not arguments.dry_run:
        raise _common.UsageError(
            f"{ranks} ranks are asked for and {expected()} are here: "
            f"torchrun --nproc-per-node {ranks} -m condgrad_lab run …"
        )
    with joined("cuda" if any(run.device == "cuda" for run in runs) else "cpu") as team:
        arguments.deadline = arguments.minutes and began + 60 * arguments.minutes
        return _run(artifacts, runs, arguments, team)


def _run(
    artifacts: Sequence[Artifact], runs: Sequence[Run], arguments: argparse.Namespace, team: Team
) -> int:
    """The work of every process of a team; the leading one speaks."""
    from condgrad_lab import queue
    from condgrad_lab.store import Store

    store = Store(arguments.out)
    with _common.console(error=True).status("looking at what is there"):
        plan = team.told(queue.plan(runs, store) if team.leads else None)
    assert plan is not None
    workers = _workers(plan.left) if team.alone else 1
    jobs = min(arguments.jobs or workers, max(len(plan.left), 1))
    if not team.alone and jobs > 1:
        raise _common.UsageError("several processes share a run, so --jobs is 1")
    if team.leads:
        _announce(artifacts, arguments.scale, plan, jobs)
    if arguments.dry_run:
        return 0
    store.folder.mkdir(parents=True, exist_ok=True)  # or say so before anything is trained
    ends = _train(plan, jobs, arguments, team) if plan.left else []
    if not team.leads:
        return 0
    for artifact in artifacts:
        _look.answer(
            artifact, _common.results(artifact, store, arguments, arguments.scale), store.folder
        )
    return _tell(plan, ends)


def _runs(artifacts: Sequence[Artifact], arguments: argparse.Namespace) -> list[Run]:
    scale, seeds, device = arguments.scale, arguments.seeds, arguments.device
    runs = [
        run
        for artifact in artifacts
        for line in artifact.runs(scale, seeds, device, _common.ranks(arguments)).values()
        for run in line
    ]
    if any(run.device == "cuda" for run in runs) and not arguments.dry_run:
        import torch

        if not torch.cuda.is_available():
            raise _common.UsageError(
                "the runs need CUDA, which torch does not find: --device cpu, or other artifacts"
            )
    return runs


def _workers(runs: Sequence[Run]) -> int:
    """As many as there are cores; an accelerator is shared only by those who ask for it."""
    from condgrad_lab.queue import cores

    return 1 if any(run.device != "cpu" for run in runs) else cores()


def _announce(artifacts: Sequence[Artifact], scale: str, plan: Plan, jobs: int) -> None:
    names = words.listed([artifact.name for artifact in artifacts])
    parts = [
        (len(plan.ended), "there already"),
        (len(plan.begun), "to finish"),
        (len(plan.left) - len(plan.begun), "to do"),
    ]
    said = ", ".join(f"{count} {what}" for count, what in parts if count)
    total = len(plan.ended) + len(plan.left)
    text = f"{names} at {scale} scale: {total} {'run' if total == 1 else 'runs'}: {said}"
    if plan.left:
        seconds = plan.duration(jobs)
        workers = "1 worker" if jobs == 1 else f"{jobs} workers"
        long = "for an unknown time" if seconds is None else f"about {words.duration(seconds)}"
        text += f"; {long} with {workers}"
    _common.console().print(text)


def _train(plan: Plan, jobs: int, arguments: argparse.Namespace, team: Team) -> list[Event]:
    """Run the plan; returns the last event of every run that was taken up."""
    from condgrad_lab import data, queue
    from condgrad_lab.train import Speed

    # Here and now, with a progress bar, rather than in every worker.
    for name in dict.fromkeys(run.data.name for run in plan.left if not run.data.synthetic):
        if team.leads:
            data.get(name, folder=arguments.data)
        team.told(None)  # the others find it in the cache
    ends: list[Event] = []
    with ExitStack() as stack:
        listeners = _listeners(plan, arguments, stack) if team.leads else []

        def listen(event: Event) -> None:
            for listener in listeners:
                listener(event)
            if event.kind not in ("begin", "epoch"):
                ends.append(event)

        speed = Speed(**dict.fromkeys(arguments.without, False), workers=arguments.workers)
        settings = queue.Settings(arguments.out, arguments.deadline, speed, team)
        queue.execute(plan.left, settings, jobs=jobs, listen=listen)
    return ends


def _listeners(plan: Plan, arguments: argparse.Namespace, stack: ExitStack) -> list[Listener]:
    """Those who watch: the terminal, and the trackers that are asked for."""
    listeners = [stack.enter_context(tracker) for tracker in _trackers(arguments)]
    if find_spec("rich"):
        from condgrad_lab.cli._progress import Display

        listeners.append(stack.enter_context(Display(plan)))
    return listeners


def _trackers(arguments: argparse.Namespace) -> list[Tracker]:
    from condgrad_lab.trackers import tracker

    try:
        return [tracker(name, Path(arguments.out) / name) for name in arguments.tracker]
    except ModuleNotFoundError as error:
        raise _common.UsageError(str(error)) from None


def _tell(plan: Plan, ends: list[Event]) -> int:
    """Say what did not end as it should; returns the exit code."""
    error = _common.console(error=True)
    failed = [event for event in ends if event.kind == "failed"]
    for event in failed:
        error.print(f"[red]failed[/red] {event.run.key}")
        error.print(event.text.rstrip(), markup=False)
    for event in ends:
        if event.kind == "busy":
            error.print(event.text, markup=False)
    left = len(plan.left) - sum(event.kind in ("end", "failed") for event in ends)
    if left:
        error.print(f"{left} of {len(plan.left)} runs are unfinished; the same command goes on")
    return 1 if failed else 3 if left else 0


def _positive(kind: type[int] | type[float]) -> Any:
    def parse(text: str) -> float:
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not positive")
        return value

    parse.__name__ = f"positive {kind.__name__}"  # argparse names it where the text is no number
    return parse


def _whole(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value
