"""`rooflines explain` and `rooflines.explain`: what they say is what the tables say."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import polars as pl
import pytest
from command_line import said
from documents import DOCS, README
from explained import EXAMPLE, FOLDER, as_config
from pages import commands

import rooflines
from rooflines.catalogue.chips import dtype_entries
from rooflines.catalogue.measured import measured_quantiles
from rooflines.explanation.text import WIDTH

CASES = sorted(FOLDER.glob("*.txt"))


MOST_LINES, MOST_MODEL_LINES = 30, 42
"""Lines of a screen, of an operation and of a model, the prompt aside [1]."""


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_an_explanation_is_the_text_that_was_reviewed(case, capsys, monkeypatch):
    monkeypatch.chdir(FOLDER)
    command, _, expected = case.read_text(encoding="utf-8").partition("\n")
    assert said(capsys, "explain", *shlex.split(command)[3:]) == expected
    assert max(map(len, expected.splitlines())) <= WIDTH
    most = MOST_MODEL_LINES if case.stem.startswith("model-") else MOST_LINES
    assert len(expected.splitlines()) <= most


def test_what_is_offered_makes_it_faster():
    """No lower peak, and no dtypes that are compute-bound because they compute more slowly."""
    for case in CASES:
        remedies = case.read_text(encoding="utf-8").partition("all else equal:")[2]
        assert " at most " not in remedies.partition("Numbers of")[0]
    found = rooflines.explain("h100-sxm", "256x8192x8192", "bf16-out-fp32")
    slower = [each for each in found.dtypes if each["t_lower_s"] >= found.row["t_lower_s"]]
    offered = str(found).partition("  dtypes ")[2].partition("Numbers of")[0]
    assert any(each["bound"] == "compute" for each in slower)
    assert not [each["dtypes"] for each in slower if f" {each['dtypes']} " in offered]


TEXT = README.read_text(encoding="utf-8")


def test_the_first_screen_of_readme_is_what_the_command_prints(capsys):
    (screen,) = re.findall(r"^```console\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert TEXT.index(screen) < TEXT.index("make sweep")
    assert screen == f"$ rooflines explain {EXAMPLE}\n" + said(capsys, "explain", *EXAMPLE.split())


def test_the_examples_of_the_page_work(capsys):
    examples = commands(DOCS / "explain.md", "rooflines explain")
    assert len(examples) >= 5
    for example in examples:
        said(capsys, "explain", *shlex.split(example)[2:])


def test_the_reviewed_explanations_cover_what_can_be_said():
    text = " ".join(" ".join(case.read_text(encoding="utf-8").split()) for case in CASES)
    for kind in (
        "compute-bound at every size",
        "never",
        "rule of thumb 240.2",
        "estimate 48.9 µs, calibrated",
        "calibrated to trtllm-dynamic; compute-bound; includes dynamic scaling of x",
        "(derived, estimate)",
        "half of the figure with sparsity",
        "its hops alone take",
        "the network takes longer than the math",
        "fits no:",
        "fits not known:",
        "compute-bound as it is",
        "≤ 2",
        "42.7% of peak",
        "99.993% of peak; 90% of peak from 234",
        "99.6% of attainable peak",
        "90% of peak up to 2",
        "at boost clock",
    ):
        assert kind in text


QUESTIONS: dict[str, tuple[tuple[str, Any, Any], dict[str, Any]]] = {
    "matmul": (("h100-sxm", "128x8192x8192", "bf16"), {}),
    "split": (
        ("tpu-v5e", {"B": 512, "D": 8192, "F": 4096}, "int8"),
        {"shards": 16, "sharding": "contracting/all-reduce"},
    ),
    "hops": (
        ("slow-hops", [256, 4096, 8192], "bf16"),
        {"shards": 4, "sharding": "column/gather-x"},
    ),
    "long form": (
        ("h100-sxm", "S=512 B=2 D=4096 F=8192", "bf16,int8->fp32@bf16"),
        {
            "operation": "BSD,DF->BSF",
            "shards": 2,
            "sharding": {"split": "S", "first": "all-gather w"},
        },
    ),
    "two levels": (
        ("h100-sxm", "128x8192x8192", "bf16"),
        {"shards": 16, "sharding": "contracting/all-reduce", "network": "nvlink,infiniband"},
    ),
    "several axes": (
        ("tpu-v4", "4096x8192x4096", "bf16"),
        {"shards": "4x4", "sharding": "column/gather-x"},
    ),
    "all-to-all": (
        ("tpu-v5e", "1024x2048x4096", "int8"),
        {"shards": 16, "sharding": {"split": "B", "first": "all-to-all x"}},
    ),
    "calibrated": (("calibrated", "64x1024x1024", "bf16"), {}),
    "efficient": (("half-efficient", "512x4096x4096", "int8"), {"flops": "exact"}),
}


@pytest.mark.parametrize(("question", "asked"), QUESTIONS.values(), ids=QUESTIONS)
def test_every_number_is_one_of_the_tables(question, asked):
    own = rooflines.load_config(FOLDER / "own.yaml").chips
    answer = rooflines.explain(*question, **asked, chips=own)
    found = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    form = as_config(question[0], answer.sizes, question[2], asked)
    config = rooflines.load_config(form)
    row = rooflines.rows(config, "explain").collect().row(0, named=True)
    assert found["row"] == row
    thresholds = rooflines.thresholds(config, "explain").to_dicts()
    assert found["thresholds"] == thresholds
    for use in found["uses"]:
        assert use["work"] == row[use["column"]]
        assert use["time_s"] == row[f"t_{use['resource']}_s"]
        assert use["intensity"] == row.get(f"{use['resource']}_intensity")
        assert use["time_s"] == pytest.approx(max(use["work"] / use["per_s"], use["latency_s"]))
    for change in found["changes"]:
        form["sweeps"]["explain"]["thresholds"] = [change["rate"]]
        solved, *_ = rooflines.thresholds(rooflines.load_config(form), "explain").to_dicts()
        factor = solved["critical_exact"]
        assert change["factor"] == (factor and pytest.approx(factor, rel=1e-14))
        assert change["limit"] == solved["limit"]
    listed = rooflines.chips(config).filter(chip=question[0])
    values = dict(zip(listed["path"], listed["value"], strict=True))
    sources = dict(zip(listed["path"], listed["source"], strict=True))
    for number in found["numbers"]:
        if number["path"] in values:
            assert number["value"] == values[number["path"]]
            assert number["source"] == sources[number["path"]]
        assert number["source"]
    used = {number["path"].rpartition(".")[0] for number in found["numbers"]}
    networks = row["network"].split("+") if row["network_bytes"] else []
    assert {f"networks.{name}" for name in networks} | {"memory.hbm"} <= used
    assert any(path.startswith(f"units.{row['unit']}.") for path in used)


def test_the_other_dtypes_are_those_of_the_unit(config_of_all):
    answer = rooflines.explain("h100-sxm", "128x8192x8192", "bf16")
    expected = config_of_all.filter(pl.col("dtypes") != "bf16").sort("t_lower_s")
    assert [other["dtypes"] for other in answer.dtypes] == expected["dtypes"].to_list()
    assert [other["bound"] for other in answer.dtypes] == expected["bound"].to_list()
    assert [other["t_lower_s"] for other in answer.dtypes] == expected["t_lower_s"].to_list()


@pytest.fixture(scope="module")
def config_of_all():
    sweep = {
        "operation": "matmul",
        "grid": {"B": 128, "D": 8192, "F": 8192},
        "dtypes": list(dtype_entries().combinations),
        "chips": "h100-sxm",
    }
    return rooflines.rows(rooflines.load_config({"sweeps": {"all": sweep}}), "all").collect()


def test_how_far_timings_are_is_that_of_the_same_case():
    answer = rooflines.explain("h100-sxm", "128x8192x8192", "bf16")
    rows = measured_quantiles().filter(of="matmul", chip="h100-sxm", dtypes="bf16", over="bound")
    long = rows.filter(length="long").sort("n").row(-1, named=True)
    assert answer.measured == {name: long[name] for name in ("software", "n", "p10", "p50", "p90")}
    short = rooflines.explain("h100-sxm", "128x1024x1024", "bf16").measured
    assert short is not None
    assert short["p50"] > long["p50"]
    split = rooflines.explain("h100-sxm", "128x8192x8192", "bf16", shards=8, sharding="column")
    assert split.measured is None
    assert "over 8 chips" in split.sheet.asked
    assert "nvlink" not in split.sheet.asked, "it moves no byte"
    assert rooflines.explain("h100-sxm", "128x8192x8192", "w4a16").measured is None
