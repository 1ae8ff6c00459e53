"""The tables of deep networks: what they ask for, what they say of records, a run of each."""

import dataclasses
import itertools
import math

import pytest

from condgrad_lab import papers, queue
from condgrad_lab.models import architecture
from condgrad_lab.papers.dnn_fw_2020._deep import METHODS, scaled
from condgrad_lab.render import markdown, report, save
from condgrad_lab.spec import Optimizer, Rule
from condgrad_lab.store import Store
from condgrad_lab.train._build import build
from lab.papers.records import results, verdicts

ARTIFACTS = {artifact.name: artifact for artifact in papers.artifacts()}
TABLES = [name for name in ARTIFACTS if name.startswith("table")]
DEEP = TABLES[1:]
SCALES = ("smoke", "short", "paper")
asked_of_all = pytest.mark.parametrize("name", TABLES)
asked_of_each = pytest.mark.parametrize("name", DEEP)

# As printed: model, data, epochs, batch, milestones and factor, widths, seeds; a fifth of it.
PAPER = {
    "table-2": ("densenet121", "cifar-10", 200, 64, (90, 180), 0.1, (13, 30), 3),
    "table-3": ("wideresnet28x10", "cifar-10", 200, 128, (60, 120, 160), 0.2, (30, 100), 5),
    "table-4": ("googlenet", "cifar-100", 200, 128, (60, 120, 160), 0.2, (10, 30), 3),
    "table-5": ("densenet121-imagenet", "imagenet", 90, 256, (30, 60), 0.1, (30, 100), 1),
    "table-6": ("resnext50", "imagenet", 90, 256, (30, 60), 0.1, (30, 100), 1),
}
SHORT = {
    "table-2": (40, (18, 36)),
    "table-3": (40, (12, 24, 32)),
    "table-4": (40, (12, 24, 32)),
    "table-5": (18, (6, 12)),
    "table-6": (18, (6, 12)),
}
ACCURACIES = {
    "table-2": ((93.32, 0.17), (94.20, 0.19), (94.46, 0.13), (94.20, 0.19)),
    "table-3": ((94.44, 0.12), (95.13, 0.11), (94.58, 0.18), (94.03, 0.35)),
    "table-4": ((76.82, 0.25), (77.50, 0.13), (78.88, 0.10), (76.54, 0.50)),
    "table-5": ((71.06, None), (74.89, None), (73.46, None), (72.22, None)),
    "table-6": ((70.15, None), (76.09, None), (75.77, None), (73.95, None)),
}
IN_TABLE_1 = ACCURACIES | {"table-2": ((93.14, 0.11), (94.01, 0.09), (94.46, 0.13), (94.20, 0.19))}


def keys(name, scale):
    return {run.key for line in ARTIFACTS[name].runs(scale).values() for run in line}


def test_the_six_tables_are_there_in_order():
    assert [f"table-{number}" for number in range(1, 7)] == TABLES


@asked_of_each
def test_paper_scale_is_the_papers(name):
    model, data, epochs, batch, milestones, factor, widths, seeds = PAPER[name]
    lines = ARTIFACTS[name].runs("paper")
    assert tuple(lines) == METHODS
    for line in lines.values():
        assert [run.seed for run in line] == list(range(seeds))
        (run, *_) = line
        assert (run.model, run.data.name, run.epochs, run.batch) == (model, data, epochs, batch)
        assert (run.data.train, run.data.test, run.data.synthetic) == (None, None, False)
        schedule = run.schedule
        assert (schedule.milestones, schedule.factor, schedule.band) == (milestones, factor, True)
        assert run.augment
        assert (run.autocast, run.device, run.ranks) == ("bfloat16", "cuda", 1)
        assert ("top5" in run.measure) == (data == "imagenet")
    firsts = [line[0] for line in lines.values()]
    assert [run.optimizer for run in firsts] == [
        Optimizer("SGD", 0.1, 0.9, nesterov=True),
        Optimizer("SGD", 0.1, 0.9, nesterov=True, weight_decay=1e-4),
        *[Optimizer("SFW", 0.1, 0.9, rescale="gradient")] * 2,
    ]
    l2, linf = widths
    expected = [(), (), (Rule("L2Ball", width=l2),), (Rule("LinfBall", width=linf),)]
    assert [run.rules for run in firsts] == expected
    assert ["sampled-gap" in run.measure for run in firsts] == [False, False, True, True]


@asked_of_each
def test_short_scale_is_a_fifth_of_the_papers(name):
    for label, (short,) in ARTIFACTS[name].runs("short").items():
        long = ARTIFACTS[name].runs("paper")[label][0]
        assert (short.epochs, short.schedule.milestones) == SHORT[name]
        schedule = dataclasses.replace(short.schedule, milestones=long.schedule.milestones)
        assert dataclasses.replace(short, epochs=long.epochs, schedule=schedule) == long


def test_milestones_are_scaled_to_the_nearest_epoch():
    assert scaled((60, 120, 160), 200, 15) == (5, 9, 12)
    assert scaled((60, 120, 160), 200, 200) == (60, 120, 160)
    assert scaled((90, 180), 200, 2) == (1, 2)
    assert scaled((1, 2, 3), 200, 4) == (1,)  # no two in one epoch, none before the first


@asked_of_each
def test_smoke_scale_is_small_and_says_so(name):
    for run in ARTIFACTS[name].lines("smoke").values():
        assert run.data.synthetic
        assert run.device == "cpu"
        assert run.model != PAPER[name][0]
        kinds = [type(architecture(m).make(2)) for m in (run.model, PAPER[name][0])]
        assert kinds[0] is kinds[1]


@pytest.mark.slow
@asked_of_each
def test_networks_of_the_paper_can_be_built_with_their_balls(name):
    run = ARTIFACTS[name].lines("paper")["SFW L2"]
    parts = build(dataclasses.replace(run, device="cpu"), architecture(run.model).classes)
    regions = [group["region"] for group in parts.optimizer.param_groups]
    assert {type(region).__name__ for region in regions} == {"L2Ball"}
    count = sum(len(group["params"]) for group in parts.optimizer.param_groups)
    assert count == len(list(parts.model.parameters()))


@pytest.mark.parametrize("scale", SCALES)
def test_table_1_is_made_of_the_others_runs(scale):
    assert keys("table-1", scale) == set().union(*(keys(name, scale) for name in DEEP))
    for one, other in itertools.combinations(DEEP, 2):
        assert not keys(one, scale) & keys(other, scale)
    runs = [run for name in TABLES for line in ARTIFACTS[name].runs(scale).values() for run in line]
    plan = queue.plan(runs, Store("there-is-none"))
    assert len(plan.left) == len(keys("table-1", scale))


@asked_of_all
def test_scales_have_records_of_their_own(name):
    for one, other in itertools.combinations(SCALES, 2):
        assert not keys(name, one) & keys(name, other)


# ---- at smoke scale


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The records of every run at smoke scale."""
    folder = tmp_path_factory.mktemp("smoke")
    runs = [run for line in ARTIFACTS["table-1"].runs("smoke").values() for run in line]
    failed = []
    queue.execute(
        runs,
        queue.Settings(folder),
        jobs=1,
        listen=lambda event: failed.append(event) if event.kind == "failed" else None,
    )
    assert not failed, failed[0].text
    return Store(folder)


@asked_of_all
def test_each_runs_and_draws_at_smoke_scale(name, smoke, tmp_path):
    artifact = ARTIFACTS[name]
    found = artifact.results(smoke, "smoke")
    assert found.complete
    assert {claim.verdict for claim in artifact.judge(found)} == {"open"}
    paths = save(artifact, found, tmp_path)
    assert [path.stem for path in paths] == [f"{name}-smoke"] * 2
    assert all(path.stat().st_size > 1000 for path in paths)
    for record in found.records:
        for column in ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "lr"):
            assert all(map(math.isfinite, record.column(column)[1:])), column
        assert record.throughput > 0
        if record.run.rules:
            assert (record.column("violation") <= 1e-5).all()
            assert (record.column("sampled_gap") > 0).all()


@asked_of_all
def test_pages_say_that_it_is_not_the_papers_scale(name, smoke, tmp_path):
    artifact = ARTIFACTS[name]
    pair = artifact, artifact.results(smoke, "smoke")
    assert "(smoke scale)" in artifact.table(pair[1]).said
    assert "(smoke scale)" in artifact.draw(pair[1]).get_label()
    markdown([pair], tmp_path / "page.md", [ARTIFACTS["figure-8"]])
    text = (tmp_path / "page.md").read_text("utf-8")
    assert f"## {name}: {artifact.title}, smoke scale" in text
    assert "on invented images" in text
    assert f"(figures/{name}-smoke.png)" in text
    assert "## Not run yet\n\nThere are no records of:\n\n- figure-8: " in text
    report([pair], tmp_path / "page.html", [ARTIFACTS["figure-8"]])
    text = (tmp_path / "page.html").read_text("utf-8")
    assert f'<section id="{name}-smoke"' in text
    assert "<h2>Not run yet</h2>" in text


# ---- what is said of records


@asked_of_all
@pytest.mark.parametrize("scale", SCALES)
def test_each_draws_and_judges_without_records(name, scale, tmp_path):
    artifact = ARTIFACTS[name]
    nothing = results(artifact, lambda label, seed: None, scale=scale)
    assert {claim.verdict for claim in artifact.judge(nothing)} == {"open"}
    ours = [cells for label, cells in artifact.table(nothing).rows if label.endswith("ours")]
    assert len(ours) == 4
    assert all(set(cells) == {"–"} for cells in ours)
    if scale == "short":
        save(artifact, nothing, tmp_path)


def invented(name, percents, scale="paper"):
    """Records that end at these test accuracies, by method."""
    names = ["train_loss", "train_accuracy", "test_loss"]
    names += ["train_top5_accuracy", "test_top5_accuracy"]

    def numbers(label, seed):
        same = {column: [0.5, 0.25] for column in names}
        return same | {"test_accuracy": [0.1, percents(label) / 100]}

    return results(ARTIFACTS[name], numbers, scale=scale)


@asked_of_each
@pytest.mark.parametrize("share", [-1.01, -0.99, 0.99, 1.01])
def test_at_paper_scale_two_deviations_decide(name, share):
    printed = dict(zip(METHODS, ACCURACIES[name], strict=True))

    def percents(label):
        value, deviation = printed[label]
        return value + share * (0.6 if deviation is None else 2 * deviation)

    found = verdicts(ARTIFACTS[name], invented(name, percents))
    assert tuple(found) == METHODS
    for label, claim in found.items():
        assert claim.paper == printed[label][0]
        assert claim.verdict == ("met" if abs(share) < 1 else "missed")


def test_table_1_holds_to_the_numbers_of_its_own():
    artifact = ARTIFACTS["table-1"]
    claims = artifact.claims(results(artifact, lambda label, seed: None))
    expected = [each for name in DEEP for each in IN_TABLE_1[name]]
    assert [claim.paper for claim in claims] == [value for value, _ in expected]
    wanted = [0.6 if deviation is None else 2 * deviation for _, deviation in expected]
    assert [claim.tolerance for claim in claims] == pytest.approx(wanted)


@asked_of_all
@pytest.mark.parametrize(
    ("ours", "plain", "decay", "expected"),
    [
        (90.0, 89.9, 90.4, ["met", "met"]),
        (90.0, 90.0, 90.51, ["missed", "missed"]),
        (90.0, 90.1, 89.0, ["missed", "met"]),
        (math.nan, 50.0, 50.0, ["missed", "missed"]),
    ],
)
def test_at_short_scale_the_order_decides(name, ours, plain, decay, expected):
    accuracies = {"SFW L2": ours, "SGD": plain, "SGD with decay": decay, "SFW L∞": 10.0}
    found = invented(name, lambda label: accuracies[label.split(": ")[-1]], "short")
    claims = ARTIFACTS[name].judge(found)
    assert [claim.verdict for claim in claims] == expected * (5 if name == "table-1" else 1)
    assert all(claim.name.startswith("short scale: ") for claim in claims)
    assert "(short scale)" in ARTIFACTS[name].table(found).said


@asked_of_each
def test_a_table_shows_the_paper_above_ours(name):
    artifact = ARTIFACTS[name]
    table = artifact.table(invented(name, lambda label: 90.0))
    at = table.columns.index("test accuracy in %")
    assert [label for label, _ in table.rows] == [
        f"{method}: {whose}" for method in METHODS for whose in ("paper", "ours")
    ]
    for (_, paper), (_, ours), (value, deviation) in zip(
        table.rows[::2], table.rows[1::2], ACCURACIES[name], strict=True
    ):
        assert paper[at] == f"{value:.2f}" + (f" ± {deviation:.2f}" if deviation else "")
        assert ours[at] == "90.00" + (" ± 0.00" if deviation else "")
        assert ours[0].startswith("0.2500")
    assert table.said == ""
