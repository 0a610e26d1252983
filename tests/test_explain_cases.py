"""`rooflines explain` of several cases, other numbers and layers: tables say what rows say."""

import json

import polars as pl
import pytest
from command_line import said

import rooflines
from rooflines.answers.overrides import with_overrides
from rooflines.answers.question import QuestionCatalogues
from rooflines.answers.question_words import Question
from rooflines.basics.errors import RooflinesError
from rooflines.cli.main import run
from rooflines.fits.calibration_files import Calibrations
from rooflines.hardware.chip_catalogue import base_chips, chip_entries
from rooflines.hardware.timing_errors import measured_quantiles

EXAMPLE = ("128x8192x8192", "bf16")


def rows_of(capsys, words):
    return json.loads(said(capsys, "explain", *words.split(), "--json"))["rows"]


def test_every_case_is_the_row_of_its_own_question(capsys):
    rows = rows_of(capsys, "h100 b200 M=64,128 K=8k N=8192 BF16")
    cases = [(row["chip"], row["B"]) for row in rows]
    assert cases == [(chip, B) for chip in ("h100-sxm", "b200") for B in (64, 128)]
    for row in rows:
        one = rooflines.explain(row["chip"], [row["B"], 8192, 8192], "bf16")
        assert one.row["t_lower_s"] == row["t_lower_s"]
        assert row["compute_bound_from"] == f"{one.thresholds[0]['critical']}"
    words = ["h100", "b200", "M=64,128", "K=8k", "N=8192", "BF16", "--bound"]
    table = said(capsys, "explain", *words)
    assert table.splitlines()[0] == "matmul D=8192 F=8192 · bf16"
    assert table.splitlines()[2].split()[:4] == ["chip", "B", "at", "least"]


def test_cases_of_a_model_are_rows_of_it(capsys):
    rows = rows_of(capsys, "h100 llama-3.1-8b B=1,64 S=8k fp8 bf16")
    assert [(row["dtypes"], row["B"]) for row in rows] == [
        (dtypes, B) for dtypes in ("fp8", "bf16") for B in (1, 64)
    ]
    one = rooflines.explain_model("h100-sxm", "llama-3.1-8b", B=64, S=8192, dtypes="fp8")
    assert rows[1]["t_serial_s"] == one.row["t_serial_s"]


@pytest.mark.parametrize(
    ("asked", "column"),
    [("", "t_estimate_s"), ("--calibration none", "t_serial_s"), ("--bound", "t_lower_s")],
)
def test_rates_of_cases_are_at_the_time_that_leads(asked, column, capsys):
    rows = rows_of(capsys, f"h100 llama-3.1-8b B=1,64 S=8k --split tp=2 {asked}")
    assert [row["B"] for row in rows] == [1, 64]
    for row in rows:
        assert row["tokens_per_s_per_user"] == pytest.approx(1 / row[column])


def test_cases_left_out_say_how_many_and_of_what(capsys):
    words = ("h100-sxm", "llama-3.1-8b", "B=1,2", "S=1024", "--split", "dp=2")
    printed = said(capsys, "explain", *words)
    left_out = "Left out: 1 case of llama-3.1-8b tp1-dp2: fewer sequences than the 2 replicas.\n"
    assert left_out in printed


@pytest.mark.parametrize(
    ("chips", "joined"), [("h100 b200", "8 chips over nvlink"), ("h100 tpu-v6e", "8 chips")]
)
def test_a_title_names_a_network_only_where_all_cases_have_it(chips, joined, capsys):
    served = f"{chips} llama-3.1-70b B=8 S=1024 bf16 --split tp=8".split()
    trained = f"{chips} llama-3.1-8b B=64 S=4096 bf16 --split dp=8 --shard weights".split()
    for command, words in (("explain", served), ("train", trained)):
        title = said(capsys, command, *words).partition("\n")[0]
        assert title.endswith(f" on {joined}")


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("64,128,64", [64, 128]),
        ("1..8", [1, 2, 4, 8]),
        ("3..20", [3, 6, 12, 20]),
        ("64..256+64", [64, 128, 192, 256]),
        ("1k..4k", [1024, 2048, 4096]),
        ("1.5k,2M", [1536, 2**21]),
    ],
)
def test_sizes_are_lists_and_ranges(written, values, capsys):
    rows = rows_of(capsys, f"h100 B={written} D=64 F=64 bf16")
    assert [row["B"] for row in rows] == values


def test_python_takes_the_names_that_are_typed():
    typed = rooflines.explain("H100", (128, 8192, 8192))
    assert typed.row == rooflines.explain("h100-sxm", (128, 8192, 8192), "bf16").row
    model = rooflines.explain_model("b200", "Llama 3.1 8B", B=8, S=8192, dtypes="FP8")
    assert (model.row["model"], model.row["dtypes"]) == ("llama-3.1-8b", "fp8")


def test_every_memory_level_with_a_rate_is_asked(capsys):
    rows = rows_of(capsys, "h100 128x8192x8192 bf16 --memory all")
    levels = chip_entries()["h100-sxm"].memory
    assert [row["memory"] for row in rows] == [name for name in levels if levels[name].bytes_per_s]


def test_a_layer_goes_up_and_down_with_one_all_reduce(capsys):
    words = "h100 128x8192x28672 bf16 --split tp=8"
    up, down = rows_of(capsys, words)
    for row, sizes, sharding in (
        (up, "128x8192x28672", "column"),
        (down, "128x28672x8192", "contracting/all-reduce"),
    ):
        one = rooflines.explain("h100-sxm", sizes, "bf16", shards=8, sharding=sharding)
        assert row["t_lower_s"] == one.row["t_lower_s"]
        assert row["network_bytes"] == one.row["network_bytes"]
    assert up["network_bytes"] == 0 < down["network_bytes"]
    both = 1e6 * (up["t_lower_s"] + down["t_lower_s"])
    printed = said(capsys, "explain", *words.split(), "--bound")
    assert f"Up and down, one after the other: {both:.1f} µs." in printed


def test_other_numbers_of_a_chip_are_those_of_a_variant(capsys):
    words = ["h100", *EXAMPLE, "--set", "memory.hbm.bytes_per_s=4.8e12"]
    shown = json.loads(said(capsys, "explain", *words, "--json"))
    own = {"mine": {"base": "h100-sxm", "memory.hbm.bytes_per_s": 4.8e12, "source": "me"}}
    chips = rooflines.load_config({"chips": own}, needs_sweeps=False).chips
    answer = rooflines.explain("mine", *EXAMPLE, config=QuestionCatalogues(chips))
    assert shown["row"]["t_lower_s"] == answer.row["t_lower_s"]
    assert "typed with --set" in said(capsys, "explain", *words)
    twice = ["h100", *EXAMPLE, "--set", "memory.hbm.bytes_per_s=6.7e12"]
    assert run(["explain", *twice]) == 0
    assert "reads and writes together" in capsys.readouterr().err


def test_a_price_of_ones_own_is_the_only_one(capsys):
    for chip in ("h100", "mi300x"):
        words = [chip, "llama-3.1-8b", "B=8", "S=1k", "--price", "2.5"]
        row = json.loads(said(capsys, "explain", *words, "--json"))["row"]
        assert row["usd_per_mtok"] == pytest.approx(2.5 / 3600 * 1e6 / row["tokens_per_s"])
        assert row["price_provider"] == "your price"


def test_each_kernel_has_the_batch_from_which_it_is_compute_bound():
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=1024, split="tp=8")
    found = {group["group"]: group for group in answer.groups}
    assert found["attention"]["outcome"] == "never"
    for batch in (found["qkv"]["critical_B"], found["qkv"]["critical_B"] - 1):
        other = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=batch, S=1024, split="tp=8")
        (qkv,) = (group for group in other.groups if group["group"] == "qkv")
        assert (qkv["bound"] == "compute") == (batch == found["qkv"]["critical_B"])


def test_numbers_are_set_for_every_chip_of_the_question():
    chips = chip_entries()
    rate = "memory.hbm.bytes_per_s=3.0e12"
    asked = Question(["h100-sxm", "h200-sxm"])
    known = with_overrides(asked, QuestionCatalogues(chips, Calibrations()), [rate])
    assert asked.chips == ["h100-sxm-set", "h200-sxm-set"]
    assert [known.chips[name].memory["hbm"].bytes_per_s for name in asked.chips] == [3e12, 3e12]


def test_a_combination_gives_the_dtypes_of_a_model(capsys):
    """Weights in 4 bit, all else in 16, as the publishers of such checkpoints do it."""
    question = "h100-sxm b200 mixtral-8x7b B=8 S=1k"
    plain = "weights=int4,head=bf16,cache=bf16,activations=bf16,compute=bf16"
    short, long = (rows_of(capsys, f"{question} {each}") for each in ("w4a16", plain))
    assert [row["dtypes"] for row in short] == ["w4a16", "w4a16"]
    assert short == [row | {"dtypes": "w4a16"} for row in long]


def fix_of(chip):
    with pytest.raises(RooflinesError) as refused:
        rooflines.explain_model(chip, "llama-3.1-8b", B=8, S=1024, dtypes="bf16")
    return refused.value.fix


def test_a_format_that_a_chip_lacks_is_answered_with_what_it_can():
    lacking = [name for name in base_chips() if "bf16" not in chip_entries()[name].units["matrix"]]
    offers = {
        chip: fix_of(chip).partition("weights alone can be narrower: ")[2] for chip in lacking
    }
    assert (offers["gb10"], offers["v100-sxm2-32gb"]) == ("", "w-int4-x-fp16")
    for chip, offered in offers.items():
        if offered:
            asked = rooflines.explain_model(chip, "llama-3.1-8b", B=8, S=1024, dtypes=offered)
            assert asked.row["dtypes"] == offered, chip


def test_training_takes_another_capacity_with_set(capsys):
    asked = "train", "h100", "llama-3.1-8b", "B=8", "S=8k", "--split", "dp=8", "--shard", "weights"
    row = json.loads(said(capsys, *asked, "--json"))["row"]
    small = "--set", "memory.hbm.capacity_bytes=5e10"
    own = json.loads(said(capsys, *asked, *small, "--json"))["row"]
    assert (row["chip"], row["fits"]) == ("h100-sxm", True)
    assert (own["chip"], own["fits"]) == ("h100-sxm-set", False)
    assert own["footprint_bytes"] == row["footprint_bytes"] > 5e10


def test_timings_below_the_bound_are_said_to_be_in_cache():
    """The least of L40S is 0.56 times a bound that reads operands from memory."""
    low = "below 1 from cache"
    for chip in ("l40s", "rtx-pro-6000-server"):
        answer = rooflines.explain(chip, "16x1024x3584", "bf16", calibration=None)
        assert low in " ".join(str(answer).split()), chip
    assert low not in str(rooflines.explain("h100-sxm", "128x8192x8192", "bf16", calibration=None))
    below = measured_quantiles().filter(pl.col("over") == "bound", pl.col("p10") < 1)
    assert all(chip_entries()[chip].last_level_cache for chip in below["chip"])
