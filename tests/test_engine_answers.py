"""Serving engines in answers, sweeps and configs: pools beside the exact need, refusals."""

import json
from typing import Any

import polars as pl
import pytest
from command_line import refused, said

import rooflines
from rooflines import charts
from rooflines.basics.errors import RooflinesError
from rooflines.models.engine_rules import GIB, USUAL_UTILIZATION, engine_entries

SWEEP: dict[str, Any] = {
    "models": ["gemma-3-27b", "llama-3.1-8b"],
    "grid": {"B": [1, 4], "S": [8192, 32768]},
    "dtypes": "bf16",
    "chips": "h100-sxm",
}


def rows_of(**keys):
    config = rooflines.load_config({"model-sweeps": {"a": {**SWEEP, **keys}}})
    return rooflines.rows(config, "a").collect()


@pytest.fixture
def explained(capsys):
    return lambda question: " ".join(said(capsys, "explain", *question.split()).split())


@pytest.fixture
def message_of(capsys):
    return lambda question: " ".join(refused(capsys, "explain", *question.split()).split())


def test_a_screen_has_the_sum_the_blocks_and_what_gives_them_back(explained):
    output = explained("h100-sxm gemma-3-27b B=4 S=8192 bf16 --engine vllm --utilization 0.95")
    assert "exact need alone B up to 27" in output
    assert (
        "vllm 0.19 4.49 requests of 8,192 tokens: 79.2 GiB x 0.95 - 51.4 weights - 3.87 activation "
        "- 0.25 other = 19.7 GiB for caches"
    ) in output
    assert "16,108 blocks in 7 groups of 10 layers (8 of 70 padding), 3,590 a request" in output
    assert (
        "52 windowed layers keep 8,192 tokens, not 1,024, while the budget of a step is 8,192: "
        "--max-batched-tokens 2048 gives 9.68"
    ) in output


def test_without_an_engine_the_head_room_and_the_batch_of_engines_are_said(explained):
    shares = [rules.utilization for entry in engine_entries().values() for rules in entry.versions]
    assert float(USUAL_UTILIZATION) == min(filter(None, shares))
    answer = rooflines.explain_model("h100", "llama-3.1-8b", B=64, S=8192)
    row, capacity, batch = answer.row, answer.capacity_bytes, answer.usual_batch
    assert capacity is not None
    assert batch is not None
    sequence = row["kv_cache_footprint_bytes"] / row["B"]
    weights = row["weights_footprint_bytes"]
    assert weights + batch * sequence <= 0.9 * capacity < weights + (batch + 1) * sequence
    output = explained("h100 llama-3.1-8b B=64 S=8192")
    assert f"0.28%); engines set aside 10%: B up to {batch}" in output
    with_engine = explained("h100 llama-3.1-8b B=8 S=8192 --engine vllm")
    assert "engines set aside" not in with_engine
    assert "engines set aside" not in explained("h100 llama-3.1-70b B=8 S=8192 tp1")
    assert "engines set aside 10%" in explained("h100,b200 llama-3.1-8b B=8 S=8192")
    assert "set aside" not in explained("h100,b200 llama-3.1-8b B=8 S=8192 --engine vllm")


def test_python_has_the_pool_of_an_engine_in_numbers():
    engine = {"name": "vllm", "utilization": 0.95, "max_batched_tokens": 2048}
    answer: Any = rooflines.explain_model("h100", "gemma-3-27b", B=4, S=8192, engine=engine)
    assert answer.engine.concurrency == pytest.approx(9.68, abs=0.005)
    assert answer.engine.pool_gib + answer.engine.weights_gib < 0.95 * answer.engine.capacity_gib
    assert json.dumps(answer.to_dict()["engine"])
    assert rooflines.explain_model("h100", "gemma-3-27b", B=4, S=8192).engine is None


BY_POOL = ("fits", "max_B")
"""Columns that the pool of an engine decides."""


def test_an_engine_changes_what_fits_and_no_other_column():
    plain, vllm = rows_of(), rows_of(engine="vllm")
    both = rows_of(engine=["vllm", {"name": "sglang", "utilization": "80%"}], columns="all")
    costs = ["usd_per_mtok", "usd_per_mtok_serial", "usd_per_mtok_estimate"]
    costs += [name.replace("usd", "j").replace("mtok", "token") for name in costs]
    kept = [name for name in plain.columns if name not in (*BY_POOL, *costs)]
    assert vllm.select(kept).equals(plain.select(kept))
    assert vllm["max_B_exact"].equals(plain["max_B"])
    added = [name for name in vllm.columns if name not in plain.columns]
    assert added == [
        *("engine", "engine_version", "pool_bytes", "engine_reserved_bytes", "block_tokens"),
        *("groups", "page_bytes", "blocks", "pool_tokens", "concurrency", "max_B_exact"),
    ]
    assert both["engine"].unique().sort().to_list() == ["sglang utilization=0.8", "vllm"]
    assert both.filter(pl.col("engine") == "vllm").select(vllm.columns).equals(vllm)
    assert both.filter(pl.col("engine") != "vllm").select(kept).equals(plain.select(kept))


def test_what_fits_is_by_the_pool_where_an_engine_is_given():
    vllm = rows_of(engine="vllm", splits=[{"tp": 2}, {"dp": 2, "tp": 1}], grid={"B": 8, "S": 8192})
    for row in vllm.to_dicts():
        assert row["max_B"] == int(row["concurrency"]) * row["dp"] <= row["max_B_exact"]
        assert row["fits"] == (row["max_B"] >= 8)
        assert (row["usd_per_mtok"] is None) == (not row["fits"])
    assert {False, True} == {*vllm["fits"]}


def test_rows_have_the_pool_of_their_context():
    vllm = rows_of(engine={"name": "vllm", "utilization": 0.95})
    row = vllm.filter(model="gemma-3-27b", B=1, S=8192).row(0, named=True)
    assert (row["blocks"], row["groups"], row["block_tokens"]) == (16108, 7, 16)
    assert row["page_bytes"] == 16 * 81920
    assert row["concurrency"] == 16108 / 3590
    assert row["pool_tokens"] == 16108 // 7 * 16
    assert row["pool_bytes"] // row["page_bytes"] == 16108
    requests = [{"input": 8000, "output": 192}, {"input": 32000, "output": 768}]
    asked = rows_of(engine={"name": "vllm", "utilization": 0.95}, grid={"B": 1}, requests=requests)
    assert asked["concurrency"].to_list() == vllm.filter(B=1)["concurrency"].to_list()


def test_thresholds_have_the_batch_of_each_pool_and_kernels_no_engine():
    thresholds = {"thresholds": ["B", "S", "chips"], "models": "gemma-3-27b"}
    sweeps = {
        name: rooflines.load_config({"model-sweeps": {"a": {**SWEEP, **thresholds, **keys}}})
        for name, keys in (("plain", {}), ("engines", {"engine": ["vllm", "sglang"]}))
    }
    kernels = {
        name: rooflines.model_layers(config, "a").collect() for name, config in sweeps.items()
    }
    assert kernels["plain"].equals(kernels["engines"])
    plain, solved = (rooflines.thresholds(sweeps[name], "a") for name in ("plain", "engines"))
    assert solved.height <= sweeps["engines"].sweep("a").max_thresholds()
    same = [name for name in plain.columns if name != "max_B_fit"]
    for axis, rows in (("B", 2), ("S", 1)):
        part = solved.filter(axis=axis)
        assert part.select(same).unique().height == plain.filter(axis=axis).height
        assert part.height == rows * plain.filter(axis=axis).height
    pools = rooflines.rows(sweeps["engines"], "a").collect().filter(B=1)
    batches = solved.filter(axis="B").join(pools, on=["engine", "S"], validate="1:1")
    assert batches["max_B_fit"].to_list() == batches["max_B"].to_list()
    fewest = solved.filter(axis="chips", B=4, S=32768, engine="vllm").row(0, named=True)
    exact = plain.filter(axis="chips", B=4, S=32768).row(0, named=True)
    assert (exact["critical"], fewest["critical"]) == (1, 2)
    assert fewest["max_B_fit"] >= 4


def test_an_engine_picks_its_fit_where_no_calibration_is_named():
    asked: dict[str, Any] = {"B": 4, "S": 8192, "dtypes": "bf16"}
    chip, model = "h100", "llama-3.1-8b"
    assert "trtllm" in rooflines.explain_model(chip, model, engine="trtllm", **asked).softwares
    named = rooflines.explain_model(chip, model, engine="trtllm", calibration="vllm", **asked)
    assert "vllm" in named.softwares


def test_an_engine_of_a_config_stands_beside_those_of_the_package():
    own: dict[str, Any] = {
        "name": "Own",
        "vendors": ["NVIDIA"],
        "versions": [
            {
                "version": "1",
                "from": "1",
                "date": "2026-11",
                "share": "capacity",
                "utilization": 0.5,
                "budgets": [{"least_gib": 0, "max_batched_tokens": 512}],
                "layout": "blocks",
                "block_tokens": 16,
                "tokens_printed": "groups",
                "error": "none is fitted",
                "source": "a test",
            }
        ],
    }
    sweep = {**SWEEP, "models": "llama-3.1-8b", "engine": "own"}
    config = rooflines.load_config({"engines": {"own": own}, "model-sweeps": {"a": sweep}})
    row = rooflines.rows(config, "a").collect().row(0, named=True)
    capacity: Any = config.chips["h100-sxm"].memory["hbm"].capacity_bytes
    weights = capacity / 2 - row["pool_bytes"]
    assert weights / GIB == pytest.approx(14.99, abs=0.005)
    with pytest.raises(RooflinesError, match=r"engines.own.versions\[0\].layout"):
        rooflines.load_config(
            {
                "engines": {"own": own | {"versions": [own["versions"][0] | {"layout": "heap"}]}},
                "model-sweeps": {"a": sweep},
            }
        )


def test_searches_take_the_pool_of_the_engine(explained):
    question = "h100-sxm gemma-3-27b bf16 S=8192"
    assert "decode B=27 " in explained(f"{question} --within 1")
    for words in ("--within 1", "max batch"):
        assert "decode B=3 " in explained(f"{question} {words} --engine vllm")
    misfit = explained(f"{question} B=8 --engine vllm")
    assert "does not fit: vllm 0.19 holds 3 of 8 requests of 8,192 tokens; fits from" in misfit
    splits = rooflines.best_splits(
        "h100-sxm", "gemma-3-27b", S=8192, B=16, dtypes="bf16", chips=4, engine="vllm"
    )
    held = dict(splits.select("split", "max_B").iter_rows())
    assert [split for split, fits in splits.select("split", "fits").iter_rows() if not fits] == [
        split for split, most in held.items() if most < 16
    ]
    assert held["tp1-dp4"] == 4 * 3


def test_sglang_keeps_more_for_drafts_and_most_for_a_model_that_drafts():
    draft = {"tokens": 3, "accepted": 1.8}
    shares = []
    engines: tuple[Any, ...] = "sglang", "sglang", {"name": "sglang", "standalone_draft": True}
    for engine, drafted in zip(engines, (None, draft, draft), strict=True):
        answer: Any = rooflines.explain_model(
            "h100-sxm", "llama-3.1-8b", B=4, S=8192, engine=engine, draft=drafted
        )
        shares.append(answer.engine.share)
    assert shares == [0.835, 0.81, 0.76]


BAD = {
    "--engine vlm": "engine is 'vlm', which has no rules of its memory. close to it: vllm",
    "--engine vllm:0.15": "engine version is '0.15', of which vLLM has no rules. fix: use one of "
    "0.17 to 0.20, 0.21 on",
    "--engine vllm --utilization 1.2": "--utilization is '1.2', which is no share above 0, up to 1",
    "--utilization 0.9": "--utilization is of a serving engine. fix: add --engine vllm",
    "--engine vllm --engine-reserve lots": "--engine-reserve is 'lots', which is no memory",
    "--engine vllm --peak 20GiB": "--peak is given, but vLLM takes a share of the capacity",
    "--engine sglang --engine-reserve 4GiB": "SGLang keeps what utilization leaves",
    "--engine trtllm --peak 2GiB": "peak is 2 GiB, less than 14.99 of weights",
    "--engine vllm --full-windows maybe": "--full-windows is 'maybe'. fix: write yes or no",
    "--engine vllm --cache-split batch --split tp=2": "engines split caches by heads",
    "--engine vllm --phase train": "engine is given, but is not of training",
    "--engine vllm --engine-reserve 60GiB": "60.0 kept leave nothing",
}


@pytest.mark.parametrize("options", BAD)
def test_wrong_options_get_one_message_with_what_would_do(message_of, options):
    message = message_of(f"h100-sxm llama-3.1-8b B=4 S=8192 bf16 {options}")
    assert BAD[options] in message
    assert "fix: " in message


def test_weights_over_the_budget_name_the_least_share_that_holds_a_block(message_of, explained):
    question = "h100-sxm qwen2.5-72b B=1 S=8192 bf16 tp2 --engine vllm"
    message = message_of(question)
    assert "0.9 x 79.2 GiB is 71.3; 67.8 of weights and 4.4 kept leave nothing" in message
    assert "--utilization 0.92 is the least that holds a block" in message
    assert "requests of 8,192 tokens" in explained(f"{question} --utilization 0.92")


def test_an_engine_on_a_chip_it_does_not_run_on_is_said_not_refused(explained):
    output = explained("mi300x llama-3.1-8b B=4 S=8192 bf16 --engine trtllm")
    assert "TensorRT-LLM is not known to run on this chip" in output


def test_a_chart_has_the_requests_of_tables_by_context():
    keys = {"grid": {"B": [1, 2], "S": [1024, 8192, 65536]}, "models": "gemma-3-27b"}
    engine = ["vllm", {"name": "vllm", "utilization": 0.95}]
    config = rooflines.load_config({"model-sweeps": {"a": {**SWEEP, **keys, "engine": engine}}})
    assert [chart.chart for chart in config.charts] == ["time", "front", "requests"]
    rows = rooflines.rows(config, "a").collect().filter(B=1)
    drawn = charts.view("requests", charts.of_config(config), "a").data["lines"]
    exact = drawn.filter(series="exact need")["requests"].to_list()
    assert exact == rows.filter(engine="vllm")["max_B_exact"].to_list()
    for name in ("vllm", "vllm utilization=0.95"):
        series = drawn.filter(series=name.replace("vllm", "vllm 0.19"))
        assert series["requests"].to_list() == rows.filter(engine=name)["concurrency"].to_list()
    plain = rooflines.load_config({"model-sweeps": {"a": {**SWEEP, **keys}}})
    assert "requests" not in [chart.chart for chart in plain.charts]
