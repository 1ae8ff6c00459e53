"""Mutants of the step over parameters in pieces: what lies where, and what ranks make of it."""

from mutants import of

DISTRIBUTED = "tests/distributed"
CHOICES = f"{DISTRIBUTED}/test_choices.py -k 'four and pieces'"
LOOKED = f"{DISTRIBUTED}/test_choices.py -k 'four and looked'"
PARITY = f"{DISTRIBUTED}/test_parity.py -k 'single_process and"
ROWS = f"{PARITY} four'"
CRUMBS = f"{DISTRIBUTED}/test_parity.py -k 'nothing and four'"
GROUPS = f"{DISTRIBUTED}/test_parity.py -k 'groups and four'"
COUNTED = f"{DISTRIBUTED}/test_collectives.py -k"
ENGINES = f"{DISTRIBUTED}/test_engines.py -k"
FAILURES = f"{DISTRIBUTED}/test_failures.py -k"

MUTANTS = [
    *of(
        "regions/_tally.py",
        CHOICES,
        (
            "lengths of pieces added up",
            "(self.numbers / scale).pow(orders).sum(0).pow(1 / orders) * scale",
            "(self.numbers / scale).sum(0) * scale",
        ),
        (
            "the largest numbers of the ranks added up",
            "self.tops_here = self.numbers.amax(0)",
            "self.tops_here = self.numbers.sum(0)",
        ),
        (
            "who has nothing says zero",
            "values.amax() if values.numel() else values.new_full((), -torch.inf)",
            "values.amax() if values.numel() else values.new_full((), 0.0)",
        ),
        (
            "priorities of smaller numbers count",
            "last = torch.where(wins, table.ranks[:, row], LOWEST).amax()",
            "last = table.ranks[:, row].amax()",
        ),
        (
            "whoever has the largest number has it alone",
            "alone = table.host and count.item() == 1 and threshold != 0",
            "alone = table.host",
        ),
        (
            "shares of other units added up",
            "shares = norms * (tops.clamp(min=0) / torch.where(top > 0, top, 1))",
            "shares = norms",
        ),
        (
            "unlooked at, ties go to whoever is not tied",
            "ranks = torch.where(tied, piece.priority(tied), LOWEST)",
            "ranks = piece.priority(tied)",
            LOOKED,
        ),
    ),
    *of(
        "regions/_search.py",
        CHOICES,
        ("larger values forgotten", "        self._need -= above\n", ""),
        (
            "the next range one bin higher",
            "(((place - 1) << shift) + 1)",
            "((place << shift) + 1)",
        ),
        (
            "more values than have room",
            "if tied is None or isinstance(self._question, Kth):",
            "if True:",
        ),
        (
            "numbers of entries searched from the other end",
            "if random else (1 - piece.size, 0)",
            "if random else (0, piece.size - 1)",
        ),
    ),
    *of(
        "regions/_shards.py",
        ROWS,
        (
            "places counted from the piece's beginning",
            "along + line.start if isinstance(line, slice)",
            "along if isinstance(line, slice)",
            CHOICES,
        ),
        (
            "entries counted from the piece's beginning",
            "torch.arange(line.start, line.stop, device=device)",
            "torch.arange(line.stop - line.start, device=device)",
        ),
        (
            "strides ignored",
            'pieces = getattr(placement, "split_factor", 1)',
            "pieces = 1",
            f"{PARITY} strided'",
        ),
        (
            "rows whole though columns are cut",
            "rows_whole = all(placements[dim].dim == 0 for dim in dims)",
            "rows_whole = True",
            f"{PARITY} columns'",
        ),
        (
            "sums taken before they are added up",
            "if found.placements != like.placements:",
            "if False:",
            f"{ENGINES} placed",
        ),
        (
            "process groups held beyond their end",
            "self._group = None if group is None else weakref.ref(group)",
            "self._group = None if group is None else lambda: group",
            GROUPS,
        ),
        (
            "a process group for every mesh",
            "        _groups[numbers] = weakref.ref(group)\n",
            "",
            f"{DISTRIBUTED}/test_parity.py -k cube",
        ),
        (
            "a group that is gone replaced by that of all",
            "if group is None:  # which torch would take for the group of all ranks",
            "if False:",
            f"{FAILURES} gone",
        ),
        (
            "copies taken for parameters",
            "                module.reshard()",
            "                pass",
            f"{DISTRIBUTED}/test_models.py -k 'fsdp-constrained'",
        ),
    ),
    *of(
        "regions/_lead.py",
        ROWS,
        ("all ranks write in the first row", "table[ranks.place] = words", "table[0] = words"),
        (
            "what ranks are about to lead not compared",
            "    return [rank for rank, mark in zip(ranks.numbers, marks, strict=True)"
            " if mark != marks[0]]",
            "    return []",
            f"{FAILURES} 'different_things and rule'",
        ),
        (
            "notes not heard",
            "tally.note(note, lambda said: heard(self._ranks.numbers, said))",
            "pass",
            f"{FAILURES} own",
        ),
        (
            "listeners go on asking",
            "                    voice.open = {}\n",
            "                    pass\n",
            f"{COUNTED} no_gradient",
        ),
    ),
    *of(
        "regions/_exchange.py",
        ROWS,
        (
            "all matrices to one rank",
            "owner = loads.index(min(loads))",
            "owner = 0",
            f"{COUNTED} shared_out",
        ),
        (
            "pieces put at the beginning",
            "there = slice(start - self.first, stop - self.first)",
            "there = slice(0, stop - start)",
        ),
        (
            "rows of a block from the piece's beginning",
            "here = slice(start - rows.start, stop - rows.start)",
            "here = slice(0, stop - start)",
            f"{PARITY} columns'",
        ),
    ),
    *of(
        "regions/_sharded.py",
        ROWS,
        (
            "matrices of a batch in the first one's ball",
            "vertex.reshape(block.shape) * job._region.radius",
            "vertex.reshape(block.shape) * jobs[0]._region.radius",
            f"{PARITY} one'",
        ),
        (
            "rows draw alike",
            "return self._points(like) * within.numel() + within",
            "return within + 0 * self._points(like)",
        ),
        (
            "rows counted from the piece's beginning",
            "rows = numbered(shard.lines(shard.ranks.place)[0], x.device)",
            "rows = torch.arange(len(x), device=x.device)",
        ),
        (
            "rows of a block counted from its beginning",
            "rows = torch.arange(firsts[0], firsts[0] + len(x), device=x.device)",
            "rows = torch.arange(len(x), device=x.device)",
            f"{PARITY} columns'",
        ),
    ),
    *of(
        "optim/_move_sharded.py",
        ROWS,
        (
            "a step beyond the vertex, in pieces",
            "return reach / gap if gap > reach else 1.0",
            "return reach / max(gap, 1e-300)",
            CRUMBS,
        ),
        (
            "nothing in pieces is ever pulled back",
            "and recall_due(work.parameter, work.step)",
            "and False",
            f"{COUNTED} 'three_small and four'",
        ),
        (
            "works never compared",
            "if ranks.size > 1 and key not in agreed:",
            "if False:",
            f"{FAILURES} 'step_over and rule'",
        ),
        (
            "rates never compared",
            "if notes != notes[:1] * len(notes):",
            "if False:",
            f"{FAILURES} own",
        ),
        (
            "state kept as what lies here",
            "self._state[name] = with_part(self._parameter, value)",
            "self._state[name] = value",
            f"{ENGINES} settings",
        ),
    ),
    *of(
        "optim/_base.py",
        f"{FAILURES} 'no_gradient and split and SFW'",
        (
            "a step that was refused is counted",
            "                work.step.sub_(1)",
            "                pass",
        ),
    ),
    *of(
        "optim/_evaluate.py",
        f"{ENGINES} 'alone and SVRF'",
        ("references evaluated at copies", "            put_away(module)", "            pass"),
    ),
    *of(
        "_members.py",
        f"{ENGINES} wrapped",
        (
            "names with those of wrappers",
            'name = name.replace(wrapper, "")',
            "name = name.replace(wrapper, wrapper)",
        ),
        (
            "numbers without a shape constrained",
            'if getattr(parameter, "_fsdp_flattened", False):',
            "if False:",
            f"{ENGINES} refused",
        ),
    ),
    *of(
        "metrics.py",
        f"{FAILURES} 'different_things and gap'",
        (
            "a gradient on some ranks alone",
            "if int(count) not in (0, size):",
            "if False:",
        ),
    ),
]
