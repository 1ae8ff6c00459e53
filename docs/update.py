"""The parts of these pages that come from the code: `python docs/update.py` writes them anew.

A page marks the place: `<!-- made: gallery -->` and everything up to `<!-- end -->` is replaced by
the gallery of all exported regions. `made: loop SFW` is an optimizer's listing, `made: names` the
index of all public names; `made: words`, `costs` and `measured` are tables of what ranks say to
each other. A test compares the pages with what this would write.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import condgrad as cg

FOLDER = Path(__file__).parent
BENCHMARKS = FOLDER.parent / "benchmarks"
MADE = re.compile(r"(<!-- made: (\w+) ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)
FIELD = re.compile(r"(?:^|(?<=[.;] ))(Set|Vertex[^:.]*|Diameter|Projection): ")

EXAMPLES = {"radius": 1.0, "p": 3.0, "k": 2, "low": -1.0, "high": 1.0, "region": cg.L2Ball(1.0)}
DIRECTIONS = (
    torch.tensor([1.2, -0.3, 0.5, -0.9], dtype=torch.float64),
    torch.tensor([[1.2, -0.3], [0.5, -0.9]], dtype=torch.float64),
    torch.tensor([[[1.2, -0.3]], [[0.5, -0.9]]], dtype=torch.float64),
)
"""None of them has a tie; a region is shown on the first one it can hold."""


def updated(page: str) -> str:
    """The text of a page with its made parts made anew."""
    return MADE.sub(lambda found: f"{found[1]}{_made(found[2], found[3])}\n{found[4]}", page)


def benchmark(name: str) -> Any:
    """A script of the benchmarks, as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages() -> list[Path]:
    """The pages that have made parts."""
    return [page for page in sorted(FOLDER.glob("*.md")) if MADE.search(page.read_text())]


def _made(what: str, name: str) -> str:
    if what == "gallery":
        return "\n".join(entry(kind) for kind in regions())
    if what == "loop":
        return listing(getattr(cg, name))
    if what == "names":
        return names()
    if what in ("words", "costs"):
        return getattr(benchmark("costs"), f"{what}_table")()
    if what == "measured":
        kept = BENCHMARKS / "results" / "distributed.json"
        return benchmark("distributed").table(json.loads(kept.read_text()))
    raise ValueError(f"a page asks for `made: {what}`, which nothing makes")


# ---- regions


def regions() -> list[type[cg.Region]]:
    """The exported regions."""
    every = [getattr(cg.regions, name) for name in cg.regions.__all__]
    return [kind for kind in every if not inspect.isabstract(kind)]


def entry(kind: type[cg.Region]) -> str:
    """The gallery's words on a region: its docstring, field by field, and an example."""
    title, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    parts = FIELD.split(" ".join(rest.split()))
    lines = [f"### {signature(kind)}", "", title, ""]
    if parts[0]:
        lines += [parts[0], ""]
    fields = list(zip(parts[1::2], parts[2::2], strict=True))
    lines += [f"- **{name[0].lower()}{name[1:]}**: {text.strip()}" for name, text in fields]
    # Outside of code an underscore would begin slanted letters.
    words = [line.replace("_", r"\_") for line in lines]
    return "\n".join([*words, f"- **example**: {example(kind)}", ""])


def signature(kind: type[cg.Region]) -> str:
    """How the region is called."""
    parameters = inspect.signature(kind).parameters.values()
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    return f"{kind.__name__}({', '.join(shown)})"


def example(kind: type[cg.Region]) -> str:
    """The region's answers for one direction."""
    names = inspect.signature(kind).parameters.keys() & EXAMPLES.keys()
    region = kind(**{name: EXAMPLES[name] for name in names})
    x = next(x for x in DIRECTIONS if _holds(region, x))
    text = f"`{region}` at x = {shown(x)}: "
    if not isinstance(region, cg.Free):
        text += f"vertex {shown(region.lmo(x))}, "
    return (
        text + f"nearest point {shown(region.project(x))}, diameter {region.diameter(x.shape):.4g}"
    )


def _holds(region: cg.Region, x: Tensor) -> bool:
    try:
        region.diameter(x.shape)
    except ValueError:
        return False
    return True


def shown(x: Tensor) -> str:
    """The entries, in brackets that show the shape."""
    if x.ndim == 0:
        return f"{round(float(x), 3) + 0.0:g}"
    return f"({', '.join(map(shown, x))})"


# ---- optimizers


def listing(kind: type[torch.optim.Optimizer]) -> str:
    """The loop that an optimizer's docstring prints, as a block."""
    _, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n::\n\n")
    lines = []
    for line in rest.splitlines():
        if line and not line.startswith("    "):
            break
        lines.append(line.removeprefix("    "))
    return "\n".join(["```text", *"\n".join(lines).strip("\n").splitlines(), "```"])


# ---- everything


def public() -> dict[str, Any]:
    """Every public name, as a user writes it behind `cg.`, and what it stands for."""
    found = {name: getattr(cg, name) for name in cg.__all__}
    rooms = {name: value for name, value in found.items() if inspect.ismodule(value)}
    for room, module in rooms.items():
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__ and callable(value)
            if own and name not in found and not name.startswith("_"):
                found[f"{room}.{name}"] = value
    return {name: value for name, value in found.items() if name not in rooms}


def names() -> str:
    """The public names with the first lines of their docstrings, by kind."""
    rows = {"regions": [], "optimizers": [], "functions": [], "other classes": []}
    for name, value in public().items():
        summary = inspect.cleandoc(value.__doc__ or "").splitlines()[0]
        rows[_room(value)].append(f"| `{name}` | {summary.replace('_', chr(92) + '_')} |")
    tables = [
        "\n".join([f"| {kind} | |", "|---|---|", *sorted(lines)]) for kind, lines in rows.items()
    ]
    return "\n\n".join(tables)


def _room(value: Any) -> str:
    if not inspect.isclass(value):
        return "functions"
    if issubclass(value, cg.Region):
        return "regions"
    return "optimizers" if issubclass(value, torch.optim.Optimizer) else "other classes"


if __name__ == "__main__":
    for path in pages():
        path.write_text(updated(path.read_text()))
