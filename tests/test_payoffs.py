"""Levers: published and worked values, and the sign of the gain on both sides of an end.

Worked values are those of a peak of 989.4 TFLOP/s, the whitepaper's.
"""

import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outputs_made import make_outputs
from scenes import misfits

import rooflines
from rooflines import charts
from rooflines.answers.claims import broken
from rooflines.answers.lever_options import take_lever_keys
from rooflines.basics.text import significant
from rooflines.charts.chart_files import views_file, views_of
from rooflines.charts.lever_lines import lever_view
from rooflines.charts.views import View
from rooflines.cli.main import run
from rooflines.config.model_fields import PullLink
from rooflines.solvers.payoffs import ends_of
from rooflines.solvers.serving_levers import prefix_seconds, pull_seconds, scoring_all
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.theory.attention_window import AttentionWindow

PEAK, BANDWIDTH = Fraction(9894, 10) * 10**12, Fraction(335, 100) * 10**12
CHIPS = {
    "h100-whitepaper": {
        "base": "h100-sxm",
        "source": "a test",
        "units.matrix.bf16.flops_per_s": 9.894e14,
    }
}
EIGHT = {"grid": {"B": 64, "S": 8192}, "splits": [{"tp": 8}]}
LLAMA = ("llama-3.1-70b", 69_501_714_432, 4 * 64 * 128 * 80, 327_680)
"""A model, its weights with the LM head, FLOPs a pair, and bytes of KV cache a token."""


def payoffs(**keys):
    """Rows of levers in a sweep, by axis."""
    sweep = {
        "models": [LLAMA[0]],
        "chips": ["h100-whitepaper"],
        "dtypes": ["bf16"],
        "grid": {"B": 1, "S": 1024},
        **keys,
    }
    config = rooflines.load_config({"chips": CHIPS, "model-sweeps": {"s": sweep}})
    rows = rooflines.thresholds(config, "s").to_dicts()
    assert len(rows) <= config.sweep("s").max_thresholds()
    return [row for row in rows if row["axis"] in keys["thresholds"]]


def ends(rows, time="t_lower_s"):
    return [(row["side"], row["critical"]) for row in rows if row["time"] == time]


# ---------------------------------------------------------------- worked values


@pytest.mark.parametrize(
    ("rate", "bound", "estimate"),
    [
        (18.66e9, "always", "always"),
        (12.5e9, 52_253, "always"),
        (10e9, 91_829, "always"),
        (9.33e9, None, "always"),
        (9.30e9, None, "found"),
    ],
)
def test_a_cache_of_llama_70b_is_worth_pulling_from_these_prefixes(rate, bound, estimate):
    levers = {"pull": {"bytes_per_s": rate}, "slowdown": 2}
    rows = payoffs(thresholds=["S_pull"], levers=levers, **EIGHT)
    by_bound, doubled = (
        [row for row in rows if row["time"] == time] for time in ("t_lower_s", "t_estimate_s")
    )
    if bound == "always":
        assert by_bound[0]["outcome"] == "always"
    elif bound:
        assert ends(by_bound)[-1] == ("from", bound)
        assert ends(by_bound)[0][0] == "to"  # short prefixes take as long as reading the weights
    assert doubled[0]["outcome"] == estimate


def test_a_prefix_longer_than_the_context_is_said_to_be():
    levers = {"pull": {"bytes_per_s": 1e9}}
    first, last = payoffs(thresholds=["S_pull"], levers=levers, **EIGHT)
    assert (first["limit"], last["limit"]) == (None, "context")
    assert last["critical"] > 131_072


def test_measured_times_of_serving_give_prefixes():
    """Fits of llm-d on H200: gpt-oss-120b and GLM-5.2 (rounded fits: 13,833 unrounded)."""
    (oss,) = rooflines.pull_threshold(
        token_s=26.745e-6, square_s=1.105e-10, pull_token_s=10.616e-6, delay_s=27.96e-3
    )
    (glm,) = rooflines.pull_threshold(
        token_s=123.96e-6, square_s=1.672e-10, pull_token_s=6.502e-6, delay_s=1.657
    )
    assert (oss.side, oss.critical) == ("from", 1_714)
    assert glm.critical == pytest.approx(13_833, abs=3)
    token_s = 2 * LLAMA[1] / (8 * PEAK)
    square_s = Fraction(LLAMA[2]) / (16 * PEAK)
    assert f"{float(token_s) * 1e6:.3f} {float(square_s):.3e}" == "17.562 1.656e-10"
    ties = LLAMA[3] / token_s / 10**9
    assert f"{float(ties):.2f} {float(ties / 2):.2f}" == "18.66 9.33"


def test_without_attention_a_slow_link_never_pays_and_a_fast_one_always_does():
    never = rooflines.pull_threshold(token_s=1e-6, pull_token_s=1e-6)
    always = rooflines.pull_threshold(token_s=1e-6, pull_token_s=0.9e-6)
    late = rooflines.pull_threshold(token_s=1e-6, pull_token_s=0.9e-6, delay_s=1)
    assert [end.outcome for end in (*never, *always)] == ["never", "always"]
    assert [(end.side, end.critical, end.exact) for end in late] == [("from", 10**7 + 1, 1e7)]


@pytest.mark.parametrize(
    ("tokens", "accepted", "short", "longer", "always"),
    [
        (1, 0.7, "607.4", None, "1745.4"),
        (3, 1.8, "397.4", "5107.0", "2134.4"),
        (3, 1, "222.8", "453.5", "3037.1"),
        (7, 2.5, "182.7", "311.6", "3499.4"),
    ],
)
def test_a_draft_pays_up_to_these_batches(tokens, accepted, short, longer, always):
    draft = {"tokens": tokens, "accepted": accepted}
    first, last = payoffs(thresholds=["B_draft"], draft=draft, grid={"B": 1, "S": [1024, 2048]})
    assert f"{first['critical_exact']:.1f}" == short
    assert (first["side"], first["critical"]) == ("to", int(first["critical_exact"]))
    assert f"{first['always_S']:.1f}" == always
    if longer is None:
        assert last["outcome"] == "always"
    else:
        assert f"{last['critical_exact']:.1f}" == longer


def test_accepted_tokens_that_a_draft_must_exceed():
    draft = {"tokens": 3, "accepted": 1}
    (row,) = payoffs(thresholds=["accepted_draft"], draft=draft, grid={"B": 256, "S": 2048})
    assert f"{row['critical_exact']:.4f} {row['side']} {row['outcome']}" == "0.6105 from found"
    (row,) = payoffs(thresholds=["accepted_draft"], draft=draft, grid={"B": 9999, "S": 64})
    assert 2.999 < row["critical_exact"] < 3  # fewer pairs in one step than in four
    keys = {
        "models": ["deepseek-v3"],
        "grid": {"B": 99999, "S": 64},
        "splits": [{"ep": 8, "dp": 8}],
    }
    (row, *_) = payoffs(thresholds=["accepted_draft"], draft=draft, **keys)
    assert row["outcome"] == "never"  # its MTP layer takes time, too


@pytest.mark.parametrize(
    ("tpot", "gain"), [(12, "1.471"), (15, "1.345"), (20, "1.238"), (30, "1.147"), (50, "1.083")]
)
def test_gain_of_separate_servers(tpot, gain):
    """Lengths 8,192 / 512, eight H100 each: a step of 4.990 + 0.10850 B, prompts 0.3642 ms."""
    pools = rooflines.pools_threshold(
        weights_s=4.990, sequence_s=0.10850, prompt_s=0.3642, tpot_s=tpot
    )
    assert pools is not None
    tokens = [pools.mixed / tpot / 8, pools.apart / tpot / (8 * (1 + pools.servers))]
    assert float(pools.gain) == pytest.approx(float(gain), abs=6e-4)
    assert tokens[1] / tokens[0] == pools.gain
    if tpot == 20:
        shown = f"{float(pools.mixed):.1f} {float(pools.apart):.1f} {float(pools.servers):.3f}"
        assert shown == "31.8 138.3 2.519"
        assert [f"{float(rate) * 1e3:.1f}" for rate in tokens] == ["198.5", "245.7"]


def test_separate_servers_never_pay_by_the_bound_and_need_a_step_within_the_target():
    rows = payoffs(
        thresholds=["B_pools"],
        requests=[{"input": 8192, "output": 512}],
        targets={"t_step_s": [0.004, 0.02]},
        splits=[{"tp": 8}],
        grid={"B": 1},
        levers={"slowdown": 2},
    )
    by_time = {(row["target_s"], row["time"]): row for row in rows}
    assert {row["outcome"] for key, row in by_time.items() if key[1] == "t_lower_s"} == {"never"}
    assert by_time[0.004, "t_serial_s"]["outcome"] == "never"
    row, doubled = by_time[0.02, "t_serial_s"], by_time[0.02, "t_estimate_s"]
    assert (row["side"], row["critical"]) == ("from", int(row["critical_exact"]) + 1)
    assert row["apart_B"] == pytest.approx(138.3, abs=0.2)  # its steps are lines in pieces
    assert 1.2 < row["gain"] < doubled["gain"]


def test_tokens_of_a_prompt_that_ride_in_a_step():
    """Real sizes are those that round to 775, 1,054, 1,610 and 193, 476, 1,038."""
    rows = payoffs(thresholds=["chunk"], targets={"t_step_s": [0.015, 0.02, 0.03]}, **EIGHT)
    free, *limited = rows
    assert (free["side"], free["critical"], free["target_s"]) == ("to", 583, None)
    reals = {(row["target_s"], row["time"]): row["critical_exact"] for row in limited}
    assert {key: round(size) for key, size in reals.items()} == {
        (0.015, "t_lower_s"): 775,
        (0.02, "t_lower_s"): 1_054,
        (0.03, "t_lower_s"): 1_610,
        (0.015, "t_upper_s"): 193,
        (0.02, "t_upper_s"): 476,
        (0.03, "t_upper_s"): 1_038,
    }
    assert all(row["critical"] == int(row["critical_exact"]) for row in limited)


def test_no_chunk_rides_where_decode_is_compute_bound_or_over_the_target():
    rows = payoffs(
        thresholds=["chunk"], targets={"t_step_s": [0.01]}, grid={"B": [64, 600], "S": [64, 8192]},
        splits=[{"tp": 8}],
    )  # fmt: skip
    by = {(row["B"], row["S"], row["target_s"], row["time"]): row for row in rows}
    assert by[600, 64, None, "t_lower_s"]["outcome"] == "never"
    assert by[600, 64, None, "t_lower_s"]["limit"] == "compute"
    assert by[64, 8192, 0.01, "t_lower_s"]["limit"] == "memory"
    assert by[64, 64, 0.01, "t_lower_s"]["outcome"] == "found"


def test_offloaded_tensors_hide_from_these_contexts_and_tokens():
    dtypes = {"weights": "bf16", "cache": "bf16", "activations": "bf16", "compute": "bf16"}
    keys = {
        "phase": "train",
        "grid": {"B": 8, "S": 1024},
        "splits": [{"dp": 8}],
        "dtypes": [{**dtypes, "gradients": "bf16"}],
    }
    saved = []
    for model in ("llama-3.1-8b", "llama-3.1-70b"):
        rows = payoffs(models=[model], thresholds=["S_offload", "X_offload"], **keys)
        inputs, every, states = rows
        assert [row["offload"] for row in rows] == ["inputs", "saved", "states"]
        assert (inputs["outcome"], states["outcome"], states["side"]) == ("always", "found", "from")
        assert (round(states["critical_exact"]), states["critical"]) == (5_153, 5_154)
        saved.append(round(every["critical_exact"]))
        levers = {"host_bytes_per_s": 4.5e11, "slowdown": 1}
        c2c = payoffs(models=[model], thresholds=["S_offload"], levers=levers, **keys)
        assert {row["outcome"] for row in c2c} == {"always"}
        assert [row["offload"] for row in c2c] == ["inputs"] * 2 + ["saved"] * 2
    assert saved == [209_803, 154_738]
    for chip, tokens in (("b200", 11_719), ("gb200", 1_852)):
        (row, *_) = payoffs(chips=[chip], models=["llama-3.1-8b"], thresholds=["X_offload"], **keys)
        assert row["critical"] == tokens


def test_adapters_alone_hide_under_the_frozen_weights_math():
    """8B, rank 16: b A C / ((4 W + 6 A) link) tokens, A = 41,943,040, W with the LM head."""
    keys = {"phase": "train", "grid": {"B": 8, "S": 1024}, "models": ["llama-3.1-8b"]}
    (row,) = payoffs(thresholds=["X_offload"], splits=[{"dp": 8}], lora=16, **keys)[:1]
    adapters, weights = 41_943_040, 7_504_658_432
    link, gradient_bytes = 64 * 10**9, 4
    tokens = gradient_bytes * adapters * PEAK / ((4 * weights + 6 * adapters) * link)
    assert row["critical_exact"] == pytest.approx(float(tokens), rel=1e-12)
    assert row["critical"] == int(tokens) + 1


def test_a_question_that_offloads_asks_when_that_hides():
    keys = take_lever_keys({"phase": "train", "offload": "saved"}, has_draft=False)
    assert keys == {"thresholds": ["S_offload"]}
    typed = {"phase": "train", "host_link": "64GB/s", "slowdown": "2"}
    keys = take_lever_keys({**typed}, has_draft=False)
    assert keys["thresholds"] == ["S_offload", "X_offload"]
    assert keys["levers"] == {"host_bytes_per_s": 64 * 10**9, "slowdown": 2}


# ---------------------------------------------------------------- laws


def pays_by_hand(shape, levers, size):
    """Closed form for a dense model: True if pulling pays."""
    weights, pairs, cached = shape
    rate, delay, slowdown = levers
    math = Fraction(2 * weights * size) / PEAK + Fraction(pairs * size * size) / (2 * PEAK)
    memory = Fraction(2 * weights + cached * size) / BANDWIDTH
    return slowdown * max(math, memory) > delay + Fraction(cached * size) / rate


@settings(max_examples=12)
@given(
    layers=st.integers(1, 60),
    width=st.sampled_from([256, 1024, 4096]),
    heads=st.sampled_from([4, 16]),
    rate=st.sampled_from([10**8, 10**9, 3 * 10**9, 10**10, 10**12]),
    delay=st.sampled_from([0, 1, 30]),
    slowdown=st.sampled_from([1, 2]),
)
def test_a_pull_pays_exactly_where_the_closed_form_says(  # noqa: PLR0913, PLR0917
    layers, width, heads, rate, delay, slowdown
):
    model = {
        "name": "drawn", "layers": layers, "D": width, "V": 1000,
        "attention": {"N": heads, "K": 4, "H": 64}, "mlp": {"F": 4 * width}, "context": 8192,
    }  # fmt: skip
    weights = layers * (width * 64 * (2 * heads + 8) + 12 * width * width) + 1000 * width
    shape = weights, 4 * heads * 64 * layers, 2 * layers * 2 * 4 * 64
    levers = {"pull": {"bytes_per_s": rate, "latency_s": delay / 1000}, "slowdown": slowdown}
    rows = payoffs(models=[model], thresholds=["S_pull"], levers=levers)
    typed = rate, Fraction(delay, 1000), slowdown
    for row in (row for row in rows if row["time"] == "t_estimate_s"):
        outcome, size = row["outcome"], row["critical"]
        if outcome != "found":
            scan = {pays_by_hand(shape, typed, size) for size in (*range(1, 200), 2**20, 2**40)}
            assert scan == {outcome == "always"}
            continue
        beyond = size - 1 if row["side"] == "from" else size + 1
        assert pays_by_hand(shape, typed, size)
        assert not pays_by_hand(shape, typed, beyond)
    if slowdown == 1:
        assert ends(rows, "t_estimate_s") == ends(rows)


@settings(max_examples=8)
@given(
    model=st.sampled_from(["gpt-oss-120b", "deepseek-v3", "gemma-3-27b", "mixtral-8x7b"]),
    split=st.sampled_from([{"tp": 8}, {"tp": 4, "dp": 2}, {"dp": 8, "ep": 8}]),
    tokens=st.sampled_from([1, 3, 7]),
    share=st.sampled_from([0.1, 0.5, 0.9]),
    context=st.sampled_from([64, 1024, 8192]),
)
def test_a_draft_pays_at_its_ends_and_not_beyond(model, split, tokens, share, context):
    """Times are those of tables, with experts, windows, latent attention and MTP layers."""
    keys = {"models": [model], "splits": [split], "chips": ["h100-sxm"], "layers": False}
    if "ep" in split and model == "gemma-3-27b":
        keys["splits"] = [{"tp": 2}]
    draft = {"tokens": tokens, "accepted": share * tokens}
    rows = payoffs(thresholds=["B_draft"], draft=draft, grid={"B": 8, "S": context}, **keys)
    rows = [row for row in rows if row["time"] == "t_lower_s"]
    sizes = {8, 16, 100, 1000, 10**4, 10**6}
    for row in rows:
        if row["outcome"] == "found":
            sizes |= {row["critical"], row["critical"] + (1 if row["side"] == "to" else -1)}
    grid = {"B": sorted(size for size in sizes if size >= 8), "S": context}

    def times(**more):
        sweep = {"dtypes": ["bf16"], "grid": grid, "thresholds": [], **keys, **more}
        config = rooflines.load_config({"model-sweeps": {"s": sweep}})
        return rooflines.rows(config, "s").select("B", "t_lower_s").collect().rows()

    gains = {
        batch: (1 + share * tokens) * plain / drafted - 1
        for (batch, plain), (_, drafted) in zip(times(), times(draft=draft), strict=True)
    }
    for batch, gain in gains.items():
        if abs(gain) > 1e-12:
            assert (gain > 0) == pays_in(rows, batch), (batch, gain)


def pays_in(rows, size):
    """Payoff at a size, from ends."""
    if rows[0]["outcome"] != "found":
        return rows[0]["outcome"] == "always"
    before = [row for row in rows if row["critical"] <= size - (row["side"] == "to")]
    return before[-1]["side"] == "from" if before else rows[0]["side"] == "to"


@settings(max_examples=30)
@given(
    slopes=st.lists(st.integers(-5, 9), min_size=1, max_size=4),
    constants=st.lists(st.integers(-60, 60), min_size=4, max_size=4),
    square=st.sampled_from([0, Fraction(1, 7)]),
    chunk=st.sampled_from([0, 7, 16]),
    ties=st.booleans(),
)
def test_ends_are_those_of_a_scan(slopes, constants, square, chunk, ties):
    pairs = AttentionWindow(chunk, chunked=True).pairs

    def gain(size):
        lines = (a * size + b for a, b in zip(slopes, constants, strict=False))
        sawtooth = pairs(size, size) - chunk * size if chunk else 0
        return max(lines) + square * size * size + sawtooth - 20

    scan = [gain(size) > 0 or (ties and gain(size) == 0) for size in range(1, 101)]
    found = ends_of(gain, 1, 100, range(chunk, 100, chunk) if chunk else (), ties=ties)
    if len({*scan}) == 1:
        assert [end.outcome for end in found] == ["always" if scan[0] else "never"]
        return
    expected = [
        ("from", size + 1) if after else ("to", size)
        for size, (before, after) in enumerate(pairwise(scan), 1)
        if before != after
    ]
    assert [(end.side, end.critical) for end in found] == expected


@pytest.mark.parametrize(("model", "rate"), [("gpt-oss-120b", 2e9), ("mixtral-8x7b", 3e10)])
def test_experts_that_short_prefixes_do_not_read_bend_the_time_of_a_prefix(model, rate):
    levers = {"pull": {"bytes_per_s": rate, "latency_s": 2e-4}}
    keys = {"models": [model], "chips": ["h100-sxm"], "splits": [{"tp": 8}], "levers": levers}
    rows = [row for row in payoffs(thresholds=["S_pull"], **keys) if row["time"] == "t_lower_s"]
    sweep = {"dtypes": ["bf16"], "grid": {"B": 1, "S": 1024}, "thresholds": ["S_pull"], **keys}
    case = rooflines.load_config({"model-sweeps": {"s": sweep}}).sweep("s", ModelSweep).cases[0]
    link = PullLink.model_validate(levers["pull"])
    computing, pulling = prefix_seconds(scoring_all(case.prefill)), pull_seconds(case, link)
    for size in (*range(1, 200), 1_000, 10_000):
        assert (computing(size) > pulling(size)) == pays_in(rows, size), size
    assert rows[0]["outcome"] == "found"


def test_windows_and_chunks_of_attention_bend_the_time_of_a_prefix():
    """Beyond its windows only a sixth of the layers of Gemma 3 grow with the square."""
    levers = {"pull": {"bytes_per_s": 2e9, "latency_s": 0.01}}
    keys = {"splits": [{"tp": 8}], "chips": ["h100-sxm"], "thresholds": ["S_pull"]}
    (window, *_) = payoffs(models=["gemma-3-27b"], levers=levers, **keys)
    assert (window["side"], window["limit"]) == ("from", "context")
    rows = payoffs(models=["llama-4-scout"], levers={"pull": {"bytes_per_s": 4e9}}, **keys)
    chunks = [row for row in rows if row["time"] == "t_lower_s"]
    assert (chunks[0]["side"], chunks[-1]["side"]) == ("to", "from")
    sizes = [row["critical"] for row in chunks]
    assert sizes == sorted(sizes)


# ---------------------------------------------------------------- charts and summaries


def test_a_chart_has_a_line_for_each_chip_with_the_thresholds_of_the_table():
    sweep = {
        "models": "llama-3.1-70b",
        "chips": ["h100-sxm", "mi300x"],
        "dtypes": "bf16",
        "splits": [{"tp": 8}],
        "grid": {"B": [1, 128, 512], "S": 2048},
        "draft": {"tokens": 3, "accepted": 1.8},
        "thresholds": ["accepted_draft", "B_draft"],
    }
    config = rooflines.load_config({"model-sweeps": {"s": sweep}})
    rows = rooflines.thresholds(config)
    view = lever_view(rows, "accepted_draft")
    drawn = view.data["points"]
    expected = rows.filter(axis="accepted_draft", time="t_lower_s")
    assert sorted(drawn["threshold"]) == sorted(expected["critical_exact"])
    assert view.data["names"]["chip"].to_list() == ["h100-sxm", "mi300x"]
    assert view.title == "A draft pays above 0 to 1.48 accepted tokens"
    svg = charts.svg(charts.spec_of(charts.levers(rows, "accepted_draft")))
    assert "Batch B" in svg
    with pytest.raises(rooflines.RooflinesError, match="too few for a line"):
        charts.levers(rows, "B_draft")
    with pytest.raises(rooflines.RooflinesError, match="no lever along a grid"):
        charts.levers(rows, "tp")
    other = rows.with_columns(model=pl.lit("another"))
    with pytest.raises(rooflines.RooflinesError, match="several model") as refusal:
        charts.levers(pl.concat([rows.cast({"model": pl.String}), other]), "accepted_draft")
    assert ".filter(model=..)" in str(refusal.value)


DRAWN: dict[str, Any] = {
    "models": "llama-3.1-70b",
    "chips": ["h100-sxm", "h200-sxm"],
    "dtypes": "bf16",
    "splits": [{"tp": 8}],
    "layers": False,
    "grid": {"B": [1, 128, 512], "S": [1024, 1536]},
    "draft": {"tokens": 3, "accepted": 1.8},
    "targets": {"t_step_s": [0.02]},
    "levers": {"slowdown": 2},
    "thresholds": ["accepted_draft", "B_draft", "chunk"],
}


def test_auto_draws_levers_along_sizes_with_the_thresholds_of_the_table(tmp_path):
    config = {"model-sweeps": {"s": DRAWN}}
    loaded = rooflines.load_config(config)
    (chart,) = (chart for chart in loaded.charts if chart.chart == "levers")
    assert chart.auto
    make_outputs(config, tmp_path, "model-thresholds.parquet")
    solved, views = rooflines.thresholds(loaded), [*views_of(charts.on_disk(tmp_path), chart)]
    assert {case["lever"] for case, _ in views} == {*DRAWN["thresholds"]}
    for case, view in views:
        assert isinstance(view, View)
        assert broken(view.claim) is None
        time = "t_lower_s" if case["basis"] == "nominal" else "t_estimate_s"
        expected = solved.filter(axis=case["lever"], time=time).drop_nulls("critical_exact")
        expected = expected.filter(**{name: case[name] for name in ("S", "T") if name in case})
        if "target" in case:
            limit = {"free": None, "20 ms": 0.02}[str(case["target"])]
            expected = expected.filter(pl.col("target_s").eq_missing(limit))
        drawn = view.data["points"]
        assert sorted(drawn["threshold"]) == sorted(expected["critical_exact"])
        turning = expected.filter(outcome="found")
        ends = turning["critical_exact" if case["lever"] == "accepted_draft" else "critical"]
        for end in (min(ends), max(ends)):
            assert significant(end) in view.title
    specs = {str(case): view.spec() for case, view in views}
    for size in ("slide", "paper"):
        assert misfits(specs, size) == {}
    choice: dict[str, Any] = {"lever": "chunk", "basis": "nominal", "S": 1536, "target": "20 ms"}
    view = charts.view("levers", charts.of_config(loaded), "s", **choice)
    titles = [
        drawn["title"]
        for drawn in views_file(views)["views"]
        if choice.items() <= drawn["values"].items()
    ]
    assert titles == [view.title]


RANGED: dict[str, dict[str, Any]] = {
    "pull": {
        **DRAWN,
        "draft": None,
        "targets": None,
        "chips": ["h100-sxm", "b200"],
        "grid": {"B": 1, "S": 8192},
        "levers": {"pull": {"bytes_per_s": 1e10, "latency_s": 0.002}, "slowdown": 2},
        "thresholds": ["S_pull"],
    },
    "train": {
        "models": ["llama-3.1-8b"],
        "chips": ["h100-sxm", "gb200"],
        "dtypes": "bf16",
        "phase": "train",
        "splits": [{"dp": 8}],
        "layers": False,
        "grid": {"B": 8, "S": 8192},
        "levers": {"slowdown": 2},
        "thresholds": ["S_offload", "X_offload"],
    },
}


@pytest.mark.parametrize(
    ("sweep", "choice", "texts"),
    [
        ("pull", {"lever": "S_pull"}, ["up to 97 and from 91,881", "up to 255 and from 763"]),
        ("train", {"lever": "S_offload", "offload": "inputs"}, ["always"] * 4),
        ("train", {"lever": "S_offload"}, ["from 209,697", "from 78,225", "from 41,284", "always"]),
        ("train", {"lever": "X_offload"}, ["from 10,303", "from 5,152", "from 3,704"]),
    ],
)
def test_bars_show_where_a_pull_or_an_offload_pays(sweep, choice, texts):
    config = rooflines.load_config({"model-sweeps": RANGED})
    view = charts.view("levers", charts.of_config(config), sweep, **choice)
    assert broken(view.claim) is None
    assert view.data["texts"]["text"].to_list()[: len(texts)] == texts
    solved = rooflines.thresholds(config, sweep).filter(axis=choice["lever"])
    starts = {*solved.filter(side="from")["critical"]}
    drawn = view.data["bars"].filter(pl.col("start") > pl.col("start").min())
    assert {*drawn["start"]} <= starts
    assert misfits({sweep: view.spec()}, "slide") == {}
    assert misfits({sweep: view.spec()}, "paper") == {}
    if choice == {"lever": "X_offload"}:
        assert view.title == "Offloading the optimizer is free from 1,852 tokens at best"
        assert charts.levers(solved, "X_offload").to_dict()["layer"]
    if choice == {"lever": "S_offload"}:
        with pytest.raises(rooflines.RooflinesError, match="several offload, such as inputs and"):
            charts.levers(solved, "S_offload")


def test_a_range_beyond_the_context_has_no_bar():
    sweep = {**RANGED["pull"], "chips": "h100-sxm"}
    sweep["levers"] = {"pull": {"bytes_per_s": 1e9, "latency_s": 1}}
    config = rooflines.load_config({"model-sweeps": {"s": sweep}})
    view = charts.view("levers", charts.of_config(config), "s")
    assert view.data["texts"]["text"].to_list() == ["beyond the context"] * 2
    assert view.data["bars"].is_empty()


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"thresholds": ["B"], "levers": None}, "among its thresholds; s lacks that"),
        (
            {"grid": {"B": 1, "S": 1024}},
            "several sizes along which a lever's thresholds differ, or",
        ),
    ],
)
def test_levers_without_a_size_are_not_drawn(keys, problem):
    sweep = {**DRAWN, "thresholds": ["B_draft"], "targets": None, **keys}
    config = {"model-sweeps": {"s": sweep}}
    assert "levers" not in [chart.chart for chart in rooflines.load_config(config).charts]
    with pytest.raises(rooflines.RooflinesError, match=problem):
        rooflines.load_config({**config, "charts": [{"chart": "levers", "sweep": "s"}]})


def test_separate_servers_are_drawn_over_targets_by_kernels_one_after_another():
    sweep = {
        **DRAWN,
        "grid": {"B": [1, 64]},
        "requests": [{"input": 8192, "output": 512}],
        "targets": {"t_step_s": [0.02, 0.03]},
        "thresholds": ["B_pools"],
    }
    config = rooflines.load_config({"model-sweeps": {"s": {**sweep, "draft": None}}})
    view = charts.view("levers", charts.of_config(config), "s", basis="nominal")
    expected = rooflines.thresholds(config).filter(time="t_serial_s").drop_nulls("critical_exact")
    assert sorted(view.data["points"]["threshold"]) == sorted(expected["critical_exact"])
    assert "by kernels one after another" in view.subtitle


def test_a_name_has_the_threshold_at_the_largest_size_or_none():
    config = rooflines.load_config({"model-sweeps": {"s": DRAWN}})
    rows = rooflines.thresholds(config).filter(axis="B_draft")
    cut = rows.filter(~((pl.col("chip") == "h200-sxm") & (pl.col("S") == 1536)))
    texts = lever_view(cut, "B_draft").data["names"]["text"].to_list()
    last = rows.filter(chip="h100-sxm", S=1536, time="t_lower_s")["critical"].item()
    assert texts == [f"H100 SXM · {last:,}", "H200 SXM"]


def test_a_lever_with_several_thresholds_at_a_size_is_no_line():
    config = rooflines.load_config({"model-sweeps": {"s": DRAWN}})
    rows = rooflines.thresholds(config).filter(axis="B_draft")
    with pytest.raises(rooflines.RooflinesError, match="several thresholds of B_draft at one S"):
        lever_view(pl.concat([rows, rows]), "B_draft")


def test_a_summary_counts_thresholds_of_levers_by_the_bound(tmp_path):
    sweep = {
        "models": "llama-3.1-70b",
        "chips": "h100-sxm",
        "dtypes": "bf16",
        "layers": False,
        **EIGHT,
        "levers": {"pull": {"bytes_per_s": 1e10}, "slowdown": 2},
        "thresholds": ["S_pull", "chunk"],
    }
    config = {"model-sweeps": {"s": sweep}, "charts": []}
    make_outputs(config, tmp_path, "model-thresholds.parquet", "summary.csv")
    (row,) = pl.read_csv(tmp_path / "summary.csv").to_dicts()
    assert (row["axis"], row["critical_min"], row["critical_max"]) == ("S_pull", 91_749, 91_749)
    solved = pl.read_parquet(tmp_path / "model-thresholds.parquet")
    assert solved.height == 5
    assert solved["side"].to_list() == ["to", "from", None, "to", "to"]


# ---------------------------------------------------------------- questions


def asked(capsys, *words):
    status = run([*words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_question_with_levers_has_a_section_and_rows(capsys):
    words = ["explain", "h100", "llama-3.1-70b", "B=64", "S=8k", "tp8", "pull=12.5GB/s"]
    words += ["--chunk", "20ms", "--draft", "tokens=3,accepted=1.8", "--slowdown", "2"]
    words += ["--set", "units.matrix.bf16.flops_per_s=9.894e14"]
    status, out, _ = asked(capsys, *words)
    shown = " ".join(out.split("When it pays:")[1].split())
    assert status == 0
    assert "from 52,253 by the bound" in shown
    assert "583 free by the bound" in shown
    assert "(2 times the bound)" in shown
    answer = json.loads(asked(capsys, *words, "--json")[1])
    assert {row["axis"] for row in answer["payoffs"]} == {
        "S_pull", "chunk", "B_draft", "accepted_draft"
    }  # fmt: skip
    assert not {row["axis"] for row in answer["thresholds"]} - {"B", "S", "chips"}
    assert "When it pays" not in asked(capsys, *words[:6])[1]


def test_requests_and_training_say_when_servers_and_offloading_pay(capsys):
    status, out, _ = asked(
        capsys, "explain", "h100", "llama-3.1-70b", "isl=8192", "osl=512", "B=64", "tp8",
        "--pools", "20ms", "--bound",
    )  # fmt: skip
    assert status == 0
    assert "never by the bound" in out
    status, out, _ = asked(
        capsys, "train", "h100", "llama-3.1-8b", "B=8", "S=8k", "dp8", "--host-link", "auto"
    )
    assert status == 0
    assert "from 209,697" in out


def test_python_has_the_rows_too():
    answer = rooflines.explain_model(
        "h100", "llama-3.1-8b", B=8, S=1024, pull="5GB/s,latency=1ms", chunk="free", slowdown=2
    )
    assert {row["axis"] for row in answer.payoffs} == {"S_pull", "chunk"}
    assert {row["slowdown"] for row in answer.payoffs} == {None, 2.0}
    step = rooflines.train("h100", "llama-3.1-8b", B=8, S=1024, split="dp8", host_link="64GB/s")
    assert {row["axis"] for row in step.payoffs} == {"S_offload", "X_offload"}


@pytest.mark.parametrize(
    ("words", "problem", "fix"),
    [
        ("--pull 0GB/s", "not above 0", "write a number above 0"),
        ("--pull 12.5GB", "none for bandwidth", "write 4.8TB/s"),
        ("--pull 5GB/s,x=2", "no key here", "latency=28ms"),
        ("--chunk 20kg", "none for time", "write 50ms"),
        ("--chunk free --phase prefill", "is of decode, not of prefill", "leave out the phase"),
        ("--pools 20ms", "needs the tokens of prompt and answer", "isl=8192 osl=512"),
        ("--slowdown 2", "without a lever", "--chunk free"),
        ("--chunk free --slowdown -1", "not above 0", "write 2"),
        ("host_link=3", "is of training", "rooflines train"),
        ("h200 --chunk free", "needs one case", "thresholds of a config"),
        ("tp4 --chunk free --split auto --chips 8", "", ""),
    ],
)
def test_a_mistake_about_a_lever_is_one_message(words, problem, fix, capsys):
    line = ["explain", "h100", "llama-3.1-8b", "B=8", "S=8k", *words.split()]
    status, _, err = asked(capsys, *line)
    assert status != 0
    assert problem in err
    assert fix in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"thresholds": ["S_pull"]}, "there is no link"),
        ({"thresholds": ["B_draft"]}, "there is no draft"),
        ({"thresholds": ["accepted_draft"]}, "no step has several tokens"),
        ({"thresholds": ["B_pools"]}, "there are no requests"),
        ({"thresholds": ["chunk"], "phase": "prefill"}, "which is of decode"),
        ({"thresholds": ["S_offload"]}, "which is of training"),
        ({"thresholds": ["B"], "levers": {"slowdown": 2}}, "lists no lever"),
        ({"thresholds": ["chunk"], "levers": {"earlier": -1}}, "less than 0"),
    ],
)
def test_a_config_that_lacks_what_a_lever_needs_is_refused(keys, problem):
    with pytest.raises(rooflines.RooflinesError, match=problem) as refusal:
        payoffs(**keys)
    assert "fix: " in str(refusal.value)
