"""`rooflines draw`: charts of finished results in other formats, sizes and themes."""

import io
import json
import re
from pathlib import Path

import pytest
from bundles import CHARTS
from PIL import Image
from small_config import matmul

import rooflines
from rooflines import charts
from rooflines.charts.kit.render import html
from rooflines.cli import main as cli

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(autouse=True)
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep = matmul(grid={"B": [1, 64], "D": 4096, "F": 4096}, chips=["h100-sxm", "tpu-v5e"])
    config = rooflines.load_config({"sweeps": {"own": sweep}})
    made = charts.view("chips", charts.of_config(config), "own").spec()
    folder = tmp_path / "results" / "charts" / "chips"
    folder.mkdir(parents=True)
    (folder / "chips-own.vl.json").write_text(json.dumps(made))
    (folder / "index.json").write_text("[]")
    return made


def test_the_charts_of_a_run_are_drawn(site, capsys):
    results = str(site.parent)
    assert cli.run(["draw", "--results", results, "--format", "svg"]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(
        f"pictures/{chart}.svg" for chart in CHARTS
    )
    draw = ["draw", "roofline-shapes", "--results", results, "--format", "svg"]
    assert cli.run([*draw, "--set", "chip=h100-sxm"]) == 0
    assert capsys.readouterr().out == "pictures/roofline-shapes-h100-sxm.svg\n"
    assert "H100 SXM" in Path("pictures/roofline-shapes-h100-sxm.svg").read_text()
    for word, message in (
        ("chip=h10-sxm", "--set.chip.* is 'h10-sxm'"),
        ("colour=red", "--set.colour is no choice of 'roofline'"),
        ("chip", "--set.*chip.* is ''"),
    ):
        assert cli.run([*draw, "--set", word]) == 2
        assert re.search(message, capsys.readouterr().err)


def test_options_are_set_in_all_charts_that_have_them(site, capsys):
    results, options = str(site.parent), ["--format", "svg", "--set", "chip=h100-sxm"]
    assert cli.run(["draw", "--results", results, *options]) == 0
    printed = capsys.readouterr()
    drawn = [Path(line).name.removesuffix("-h100-sxm.svg") for line in printed.out.split()]
    head, _, rest = printed.err.strip().partition(": ")
    assert head == "left out, without chip=h100-sxm"
    assert sorted([*drawn, *rest.split(", ")]) == sorted(CHARTS)
    assert min(len(drawn), len(rest.split(", "))) >= 1
    without = rest.split(", ")[0]
    assert cli.run(["draw", without, *drawn, "--results", results, *options]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("--set.chip is no choice of")
    assert printed.out == "", "nothing is drawn before all are known to be possible"


def test_a_picture_has_the_format_size_theme_and_scale(capsys):
    assert cli.run(["draw"]) == 0
    assert capsys.readouterr().out == "pictures/chips-own.pdf\n"
    assert Path("pictures/chips-own.pdf").read_bytes().startswith(b"%PDF")
    words = "draw chips-own --format png --size paper --scale 2 --dark -o out"
    assert cli.run(words.split()) == 0
    picture = Image.open(io.BytesIO(Path("out/chips-own-dark.png").read_bytes())).convert("RGB")
    assert picture.size == (920, 600)
    corner = picture.getpixel((0, 0))
    assert isinstance(corner, tuple)
    assert max(corner) < 64, "the background is dark"


def test_a_page_has_no_script_of_a_text(spec):
    page = html({**spec, "description": HOSTILE})
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "http-equiv" not in page
    assert 'src="http' not in page, "it needs no network"


def test_wrong_words_are_one_message(spec, capsys):
    words = "draw chip chips-own --format gif --size a4 --scale 9"
    assert cli.run(words.split()) == 2
    message = capsys.readouterr().err
    assert "chart[0] is 'chip', which is no chart of these results" in message
    assert "--format is 'gif', which is no format" in message
    assert "--size is 'a4', which is no size" in message
    assert "--scale is 9" in message
    assert cli.run(["draw", "--scale", "2"]) == 2
    assert "--scale is given for pdf, which has no pixels" in capsys.readouterr().err
    broken: list[object] = [
        [1],
        {k: v for k, v in spec.items() if k != "params"},
        {**spec, "usermeta": None},
    ]
    for each in (*broken, spec | {"layer": 7}, spec | {"params": [7]}):
        Path("results/charts/chips/chips-own.vl.json").write_text(json.dumps(each))
        assert cli.run(["draw"]) == 2
        assert "chips-own.vl.json is no specification of a chart" in capsys.readouterr().err
    assert not Path("pictures").exists()
