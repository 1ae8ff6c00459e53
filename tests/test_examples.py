"""The scripts of ``examples/`` that measure do it on a small scale, too."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {
    "theorem": ["--runs", "2", "--further", "1"],
    "variance": ["--runs", "2", "--budget", "300"],
}


def test_every_script_that_draws_is_run():
    drawing = {script.stem for script in EXAMPLES.glob("*.py") if "--out" in script.read_text()}
    assert set(SMALL) == drawing, "say in SMALL how it is run in little time"


@pytest.mark.parametrize("name", SMALL)
def test_it_prints_a_table_and_saves_a_picture(name, tmp_path, capsys):
    main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    main([*SMALL[name], "--out", str(tmp_path / "picture.png")])
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(rows) > 2
    assert len({row.count("|") for row in rows}) == 1
    assert not any("nan" in cell for row in rows for cell in row.split("|")[-3:])
