"""A measured number in the question: what it amounts to, its shares, and why it can be too good."""

import csv
import io
import json
import re
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import pytest
from command_line import refused, said

import rooflines
from rooflines.answers.measured_number import judged_number
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import measured_value
from rooflines.basics.text import seconds
from rooflines.evaluation.measured_times import rate_works
from rooflines.evaluation.row_frames import table_of
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.run.table_parts import parts_of
from rooflines.sweep.recipes import recipe_of, sweep_of

TYPED = {
    "tokens_per_s": "{!r}tok/s",
    "tokens_per_s_per_chip": "{!r}tok/s/gpu",
    "tokens_per_s_per_user": "{!r}tok/s/user",
    "flops_per_s": "{!r}FLOP/s",
    "mfu": "{!r}mfu",
    "mfu_full": "{!r}mfu full",
    "hfu": "{!r}hfu",
    "mbu": "{!r}mbu",
}
"""Texts by kind of a rate."""


def operation(**options):
    return rooflines.explain("h100-sxm", "128x8192x8192", "bf16", **options)


def decode(**options):
    sizes: dict[str, Any] = {"B": 64, "S": 8192, "split": "tp4", "dtypes": "fp8"}
    return rooflines.explain_model("h100-sxm", "llama-3.1-70b", **sizes, **options)


def drafted(**options):
    sizes: dict[str, Any] = {"B": 8, "S": 4096, "draft": "tokens=3,accepted=1.8"}
    return rooflines.explain_model("h100-sxm", "llama-3.1-8b", **sizes, **options)


def prefill(**options):
    sizes: dict[str, Any] = {"B": 2, "S": 4096, "phase": "prefill"}
    return rooflines.explain_model("h100-sxm", "llama-3.1-8b", **sizes, **options)


def training(**options):
    sizes: dict[str, Any] = {
        "B": 64,
        "S": 8192,
        "split": "dp64",
        "shard": "weights",
        "recompute": "full",
    }
    return rooflines.train("h100-sxm", "llama-3.1-8b", **sizes, **options)


ASKED = pytest.mark.parametrize("asked", [operation, decode, drafted, prefill, training])


@ASKED
def test_the_time_of_the_basis_has_the_rates_of_the_basis(asked):
    plain = asked()
    number = asked(measured=f"{plain.time_s!r}s").measured_number
    assert number.time_s == plain.time_s
    row, suffix = plain.row, plain.basis.suffix
    for kind, rate in number.rates.items():
        column = f"{kind}{suffix}"
        if column in row:
            assert rate == pytest.approx(row[column], rel=1e-13)
    assert 0 < number.rates["mfu"] <= 1
    assert 0 < number.rates["mbu"] <= 1


@ASKED
def test_every_rate_is_the_inverse_of_its_time(asked):
    number = asked(measured="0.173s").measured_number
    assert len(number.rates) >= 3
    for kind, rate in number.rates.items():
        if kind in ("mfu", "mfu_full", "hfu", "mbu") and rate > 1:
            continue
        again = asked(measured=TYPED[kind].format(rate)).measured_number
        assert again.kind == kind
        assert again.time_s == pytest.approx(0.173, rel=1e-13)


def test_tokens_are_counted_as_said():
    """B sequences add a token each in decode, accepted + 1 with a draft; B * S in training."""
    assert decode(measured="0.5s").measured_number.rates["tokens_per_s"] == 128
    assert decode(measured="0.5s").measured_number.rates["tokens_per_s_per_chip"] == 32
    assert decode(measured="0.5s").measured_number.rates["tokens_per_s_per_user"] == 2
    added = drafted(measured="1s").measured_number.rates
    assert added["tokens_per_s"] == pytest.approx(8 * 2.8)
    assert added["tokens_per_s_per_user"] == pytest.approx(2.8)
    trained = training(measured="1s").measured_number.rates
    assert trained["tokens_per_s"] == pytest.approx(64 * 8192)
    assert "tokens_per_s_per_user" not in trained
    assert prefill(measured="1s").measured_number.rates["tokens_per_s"] == pytest.approx(8192)


def test_all_pairs_of_a_prefill_are_all_tokens_squared():
    """32 layers, 32 heads of 128: scores and values, a multiply-add each, of the masked pairs."""
    rates = prefill(measured="1s").measured_number.rates
    masked_pairs = 4096**2 - Fraction(4096 * 4097, 2)
    flops = 2 * 32 * 32 * 128 * 4 * masked_pairs
    assert rates["mfu_full"] - rates["mfu"] == pytest.approx(float(flops) / 989e12, rel=1e-9)
    steps = decode(measured="1s").measured_number.rates
    assert steps["mfu_full"] == pytest.approx(steps["mfu"], rel=1e-13)


def test_the_shares_are_quotients_of_times():
    plain = decode()
    low, high = plain.row["t_estimate_p10_s"], plain.row["t_estimate_p90_s"]
    for factor in (0.7, 0.9, 1.0, 1.1, 1.3):
        time_s = plain.estimate.time_s * factor
        number = decode(measured=f"{time_s!r}s").measured_number
        assert number.estimate_ratio == pytest.approx(factor)
        assert number.bound_share == pytest.approx(plain.bound_s / time_s)
        place = "below" if time_s < low else "above" if time_s > high else "inside"
        assert number.place == place
        assert number.above_estimate_s == pytest.approx(time_s - plain.estimate.time_s)
        assert number.busy["memory"] == pytest.approx(plain.row["t_memory_s"] / time_s)


LEVERS = re.compile(r"\n  faster    (.*?)(?=\n  \w)", re.DOTALL)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.0, 1.3, 3.0])
def test_what_is_faster_is_the_fastest_of_its_kind_that_beats_the_number_and_the_estimate(factor):
    """The second chip is slower than the first, and a draft is other work."""
    plain = decode()
    time_s = plain.time_s * factor
    answer = decode(measured=f"{time_s!r}s")
    said, kinds = LEVERS.search(str(answer)), dict[str, list[float]]()
    for lever in answer.levers:
        kinds.setdefault(lever.kind, []).append(lever.time_s)
    assert [len(kinds[kind]) for kind in ("dtypes", "split", "chip", "draft")] == [1, 1, 2, 1]
    fastest = {kind: min(times) for kind, times in kinds.items() if kind != "draft"}
    expected = [f"as vllm runs it, {seconds(plain.time_s)}"] * (factor > 1)
    expected += [
        f"{lever.kind} {lever.change}, {seconds(lever.time_s)}"
        for lever in answer.levers
        if lever.time_s == fastest.get(lever.kind) and lever.time_s < min(time_s, plain.time_s)
    ]
    assert (" ".join(said[1].split()).split("; ") if said else []) == expected
    assert len(expected) == {0.5: 0, 0.8: 2, 1.0: 3, 1.3: 4, 3.0: 4}[factor]


@pytest.mark.parametrize(("share", "outside"), [(0.29, True), (0.31, False)])
def test_a_time_in_which_no_resource_is_busy_is_spent_outside_the_kernels(share, outside):
    plain = operation()
    answer = operation(measured=f"{plain.bound_s / share!r}s")
    assert answer.measured_number.outside_kernels is outside
    assert ("outside the kernels" in str(answer)) is outside
    assert plain.estimate.time_s < answer.measured_number.time_s


def test_a_number_is_faster_than_the_bound_beyond_its_digits():
    """The bound is 41.317 us: typed as 41us it may be 41.5 us, as 41.0us at most 41.05 us."""
    for typed, beats in {"41us": False, "41.0us": True, "41.3us": False, "41.32us": False}.items():
        number = operation(measured=typed).measured_number
        assert number.beats_bound is beats, typed
        assert bool(number.reasons) is beats


def reasons(answer):
    return {reason.subject: reason.text for reason in answer.measured_number.reasons}


def test_reasons_for_an_unbelievable_number_are_checked():
    small = rooflines.explain("h100-sxm", "64x4096x4096", "bf16", measured="5us")
    assert "repeated runs read the cache" in reasons(small)["cache"]
    assert small.row["footprint_bytes"] < chip_entries()["h100-sxm"].memory["l2"].capacity_bytes
    large = rooflines.explain("h100-sxm", "64x8192x28672", "bf16", measured="100us")
    assert reasons(large)["cache"].startswith("not alone")
    dense = rooflines.explain("h100-sxm", "4096x4096x4096", "bf16", measured="100us")
    assert "2:4" in reasons(dense)["sparsity"]
    assert "cache" not in reasons(dense)
    assert "fp8" in reasons(dense)["dtypes"]
    too_fast = rooflines.explain("h100-sxm", "4096x4096x4096", "bf16", measured="10us")
    assert "sparsity" not in reasons(too_fast)
    share = rooflines.explain("h100-sxm", "64x4096x4096", "bf16", measured="90%mfu")
    assert "count" not in reasons(share)  # an operation has no tokens
    counted = decode(measured="2000tok/s/gpu")
    assert "of all 4 chips" in reasons(counted)["count"]
    assert "'80%mfu full'" in reasons(training(measured="80%mfu"))["count"]
    slow = rooflines.explain("h100-pcie", "4096x4096x4096", "bf16", measured="150us")
    name = reasons(slow)["chip"].partition(" ")[0]
    assert chip_entries()[name].generation == "Hopper"
    bound = rooflines.explain(name, "4096x4096x4096", "bf16").bound_s
    assert bound <= 150e-6


@pytest.mark.parametrize(
    ("typed", "value", "kind", "full"),
    [
        ("250 us", 250e-6, "time", False),
        ("1,397tok/s", 1397, "tokens_per_s", False),
        ("1.2Mtokens/s", 1.2e6, "tokens_per_s", False),
        ("9500tok/s/GPU", 9500, "tokens_per_s_per_chip", False),
        ("9.5ktok/s/chip", 9500, "tokens_per_s_per_chip", False),
        ("41% MFU full", 0.41, "mfu", True),
        ("0.41mfu-full", 0.41, "mfu", True),
        ("620TFLOP/s", 620e12, "flops_per_s", False),
    ],
)
def test_a_number_is_read_as_people_type_it(typed, value, kind, full):
    measured = measured_value(typed)
    assert (measured.kind, measured.full) == (kind, full)
    assert measured.value == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "typed",
    ["", "30", "41%", "fast", "-3ms", "0ms", "30 parsecs", "130%mfu", "41%hfu full", "nanms",
     "1e999999999ms", "1e-999999999ms", "1e308ms", "12,34tok/s", "tok/s", 30, None, ["30ms"]],
)  # fmt: skip
def test_what_is_no_measured_number_is_refused(typed):
    with pytest.raises(RooflinesError) as error:
        measured_value(typed)
    assert len(str(error.value).splitlines()) <= 2


def test_a_rate_that_an_answer_does_not_have_is_refused():
    row = decode().row
    assert (
        judged_number(measured_value("45tok/s/user"), row, rate_works(row)).kind
        == "tokens_per_s_per_user"
    )
    for asked, typed in [
        (operation, "45tok/s"),
        (operation, "41%hfu"),
        (operation, "41%mfu full"),
        (training, "45tok/s/user"),
        (prefill, "45tok/s/user"),
        (decode, "400TFLOP/s"),
    ]:
        with pytest.raises(RooflinesError, match="measured is"):
            asked(measured=typed)


def test_every_kind_of_question_has_reasons(capsys):
    for words in (
        "train b200 deepseek-v3 B=1024 S=4k pp16-dp64-ep64 1Mtok/s/gpu",
        "explain gb200 deepseek-v3 B=64 S=4k ep32 --measured 1us",
        "explain tpu-v5e llama-3.1-8b B=8 S=4k tp4 --measured 1us",
        "explain h100 128x8192x28672 --shards 8 --sharding column/gather-x --measured 1us",
        "explain h100 llama-3.1-8b isl=8192 osl=1024 concurrency=16 100ktok/s",
    ):
        text = said(capsys, *words.split())
        _, _, reasons_text = text.partition("by a reason below")
        assert "\n  sizes " in reasons_text, words


def test_json_and_csv_have_the_number(capsys):
    words = ["explain", "h100", "128x8192x8192", "bf16", "--measured", "250us"]
    whole = json.loads(said(capsys, *words, "--json"))
    expected = asdict(operation(measured="250us").measured_number)
    assert whole["measured_number"] == {**expected, "reasons": []}
    (row,) = csv.DictReader(io.StringIO(said(capsys, *words, "--csv")))
    assert float(row["measured_s"]) == 250e-6
    assert float(row["measured_over_bound"]) == pytest.approx(1 / expected["bound_share"])
    assert float(row["measured_mfu"]) == pytest.approx(expected["rates"]["mfu"])
    requests = ["explain", "h100", "llama-3.1-8b", "isl=8192", "osl=1024", "bs=16", "45tok/s/user"]
    (row,) = csv.DictReader(io.StringIO(said(capsys, *requests, "--csv")))
    assert float(row["measured_s"]) == pytest.approx(1 / 45)


@pytest.mark.parametrize("words", ["B=1,2", "B=8 tp1 tp2", "B=8 fp8 bf16", "B=8 auto", "tp8 50ms"])
def test_one_number_is_of_one_case(capsys, words):
    typed = ["explain", "h100", "llama-3.1-8b", "S=8k", *words.split(), "--measured", "9ms"]
    assert "measured is '9ms', one number, but" in refused(capsys, *typed)


SWEEPS = """
sweeps:
  kernels:
    operation: matmul
    grid: {B: [1, 128, 4096], D: 8192, F: 8192}
    dtypes: bf16
    chips: h100-sxm
    measured: [90us, 700TFLOP/s, 41%mfu]
model-sweeps:
  served:
    models: llama-3.1-8b
    grid: {B: [1, 8], S: [4096, 8192]}
    dtypes: bf16
    chips: h100-sxm
    measured: [9ms, 90tok/s/user, 700tok/s, 50%mbu]
  trained:
    models: llama-3.1-8b
    phase: train
    grid: {B: [64, 128], S: 8192}
    dtypes: bf16
    chips: h100-sxm
    splits: {dp: 64}
    network: [[nvlink, infiniband]]
    shard: weights
    measured: [9500tok/s/gpu, 41%mfu full]
"""
"""Sweeps with a measured number for each row."""


def config_in(tmp_path, text):
    path = tmp_path / "measured.yaml"
    path.write_text(text)
    return rooflines.load_config(path)


def test_tables_have_a_number_for_each_row(tmp_path):
    config = config_in(tmp_path, SWEEPS)
    kernels = rooflines.rows(config, "kernels").collect()
    by_hand = [90e-6, 2 * 128 * 8192**2 / 700e12, 2 * 4096 * 8192**2 / 989e12 / 0.41]
    assert kernels["measured_s"].to_list() == pytest.approx(by_hand, rel=1e-13)
    served = rooflines.rows(config, "served").collect()
    traffic_s = served["t_memory_s"][3]
    assert served["measured_s"].to_list() == pytest.approx(
        [9e-3, 1 / 90, 8 / 700, traffic_s / 0.5], rel=1e-13
    )
    trained = rooflines.rows(config, "trained").collect()
    tokens = 128 * 8192
    full_s = trained["mfu_full"][1] * trained["t_lower_s"][1] / 0.41
    assert trained["measured_s"].to_list() == pytest.approx(
        [64 * 8192 / 64 / 9500, full_s], rel=1e-13
    )
    assert trained["measured_tokens_per_s"][1] == pytest.approx(tokens / full_s)
    for table in (kernels, served, trained):
        over = table["measured_s"] / table["t_lower_s"]
        assert table["measured_over_bound"].to_list() == pytest.approx(over.to_list())
        estimated = table["measured_over_estimate"] * table["t_estimate_s"]
        assert estimated.to_list() == pytest.approx(table["measured_s"].to_list())
        names = [name for name in table.columns if name.startswith("measured_")]
        described = {column.name for column in config.sweeps["kernels"].columns}
        assert {"measured_s", "measured_mfu"} <= {*names} & described


def test_a_table_has_the_numbers_of_answers(tmp_path):
    table = rooflines.rows(config_in(tmp_path, SWEEPS), "trained").collect()
    sizes: dict[str, Any] = {"B": 128, "S": 8192, "split": "dp64", "shard": "weights"}
    answer = rooflines.train("h100-sxm", "llama-3.1-8b", **sizes, measured="41%mfu full")
    number = answer.measured_number
    assert number is not None
    expected = number.columns()
    row = table.row(1, named=True)
    for name in (name for name in row if name.startswith("measured_")):
        assert row[name] == (expected[name] and pytest.approx(expected[name], rel=1e-13))


SEVERAL = """
sweeps:
  kernels:
    operation: matmul
    grid: {B: [1, 128], D: 8192, F: 8192}
    dtypes: bf16
    chips: [h100-sxm, v100-sxm2-32gb, b200]
    rows_per_part: 3
    measured: [90us, 250us, 41%mfu, 7ms]
model-sweeps:
  served:
    models: [llama-3.1-8b, qwen3-8b]
    grid: {B: [1, 8], S: 4096}
    dtypes: bf16
    chips: [h100-sxm, b200]
    rows_per_part: 3
    measured: [1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms, 8ms]
"""
"""Sweeps with several parts, and with a chip that has no bf16."""


@pytest.mark.parametrize(("name", "folder"), [("kernels", "tables"), ("served", "models")])
def test_parts_of_a_table_have_the_numbers_of_their_rows(tmp_path, name, folder):
    config = config_in(tmp_path, SEVERAL)
    parts = []
    for part in parts_of((config.sweeps | config.model_sweeps)[name], folder):
        spec = json.loads(part.spec)
        parts.append(table_of(sweep_of(spec)).frame(spec["start"], spec["stop"]).collect())
    assert len(parts) > 1
    rows = rooflines.rows(config, name).collect()
    together = [value for part in parts for value in part["measured_s"].to_list()]
    assert together == rows["measured_s"].to_list()
    assert len({*together}) == rows.height


def test_rows_of_some_chips_have_no_measured_numbers(tmp_path):
    sweep = config_in(tmp_path, SEVERAL).sweeps["kernels"]
    some = sweep_of(recipe_of(sweep, chips=["b200"]))
    assert "measured_s" not in {column.name for column in some.columns}
    assert "measured_s" in {column.name for column in sweep_of(recipe_of(sweep)).columns}


@pytest.mark.parametrize(
    ("numbers", "said_of_it"),
    [
        ("[90us, 250us]", "has 2 numbers, but the sweep 3 rows"),
        ("[90us, 250us, 300]", "no number with a unit"),
        ("[90us, 250us, '300']", "has no unit"),
        ("[90us, 250us, 45tok/s]", "a rate that the rows do not have"),
        ("[90us, 250us, 41%mfu full]", "a rate that the rows do not have"),
        ("[90us, 250us, 0ms]", "not above zero"),
        ("{}", "measured"),
    ],
)
def test_wrong_numbers_of_a_config_are_refused(tmp_path, numbers, said_of_it):
    text = SWEEPS.replace("[90us, 700TFLOP/s, 41%mfu]", numbers)
    with pytest.raises(RooflinesError, match="measured") as error:
        config_in(tmp_path, text)
    assert said_of_it in str(error.value)
