"""Routes between chips: which interconnects a question takes, what it refuses, and its hops."""

import math
import re
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from command_line import refused, said
from pages import words_of
from small_config import matmul

import rooflines
from rooflines.answers.question import QuestionCatalogues, question_sweep
from rooflines.answers.question_words import Question
from rooflines.fits.time_form import ring_steps
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.support import default_route, routes_joining
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.theory.network import NetworkLevel, Route, axes_text, fastest_axes, torus_axes

ON_TWO = ["nvlink", "infiniband"]


def thresholds(**keys):
    """The thresholds of a sweep of matmuls."""
    about: dict[str, Any] = {"sharding": "contracting/all-reduce", "shards": [1], **keys}
    return rooflines.thresholds(
        rooflines.load_config({"sweeps": {"one": matmul(**about)}, "charts": []})
    )


def test_an_estimate_over_two_networks_adds_up_their_hops_and_a_bound_takes_the_larger():
    chip = {
        "base": "h100-sxm",
        "source": "a test",
        "networks.nvlink.typical_hop_latency_s": 3e-6,
        "networks.infiniband.typical_hop_latency_s": 5e-6,
        "calibration.bf16": {"math": 1, "memory": 1, "network": 1, "overhead_s": 0},
    }
    keys: dict[str, Any] = {
        "shards": [16],
        "sharding": "contracting/all-reduce",
        "network": [ON_TWO],
    }
    sweep = matmul(grid={"B": 1, "D": 16, "F": 1}, chips=["two"], thresholds=[], **keys)
    config = rooflines.load_config({"sweeps": {"one": sweep}, "chips": {"two": chip}, "charts": []})
    row = rooflines.rows(config, "one").collect().row(0, named=True)
    assert row["t_estimate_s"] == pytest.approx(2 * 3e-6 + 2 * 5e-6, rel=1e-12)
    assert row["t_network_s"] == pytest.approx(2 * 2.7e-6, rel=1e-12)


def test_a_torus_inside_another_network_joins_one_chip():
    keys: dict[str, Any] = {
        "network": [["ici", "dcn"]],
        "thresholds": ["shards"],
        "chips": ["tpu-v5p"],
    }
    large = thresholds(grid={"B": 8192, "D": 8192, "F": 8192}, **keys).row(0, named=True)
    small = thresholds(grid={"B": 1, "D": 8192, "F": 8192}, **keys).row(0, named=True)
    assert (large["outcome"], large["critical"], large["limit"]) == ("always", 1, None)
    assert (small["outcome"], small["critical"]) == ("never", None)


LLAMA = "llama-3.1-70b"
V6E: dict[str, Any] = {"B": 1, "S": 8192, "phase": "prefill", "dtypes": "bf16"}


def test_training_on_a_torus_is_never_put_on_dcn_unless_asked():
    plan: dict[str, Any] = {"split": {"tp": 4, "dp": 64}, "shard": "weights"}
    row = rooflines.train("tpu-v5p", LLAMA, B=1024, S=2048, **plan).row
    assert row["network"] == "ici"
    asked = rooflines.train("tpu-v5p", LLAMA, B=1024, S=2048, network=["dcn"], **plan)
    assert asked.row["network"] == "dcn", "as asked"
    assert any("is idle" in route for route in asked.routes)


@pytest.mark.parametrize(
    ("chip", "chips", "groups"),
    [
        ("gb200", 256, "4 groups of 64 of 72 chips"),
        ("gb200", 512, "8 groups of 64 of 72 chips"),
        ("gb200", 96, "2 groups of 48 of 72 chips"),
        ("gb200", 144, ""),
        ("h100-sxm", 12, "2 groups of 6 of 8 chips"),
    ],
)
def test_training_divides_chips_into_the_largest_groups(chip, chips, groups):
    answer = rooflines.train(chip, "llama-3.1-8b", B=chips, S=8192, split={"dp": chips})
    assert answer.row["network"] == "nvlink+infiniband"
    assert "".join(answer.routes).startswith(groups) if groups else answer.routes == []


def test_a_prime_number_of_chips_is_refused_with_the_nearest_that_groups_divide():
    with pytest.raises(rooflines.RooflinesError, match="ask for 250 or 252 chips over nvlink,inf"):
        rooflines.train("gb200", "llama-3.1-8b", B=251, S=8192, split={"dp": 251})


def test_typed_groups():
    ask = partial(rooflines.train, "gb200", "llama-3.1-8b", B=256, S=8192, split={"dp": 256})
    smaller, largest = ask(group=4).row, ask().row
    assert smaller["t_network_s"] > largest["t_network_s"]
    with pytest.raises(rooflines.RooflinesError, match="which do not divide 256"):
        ask(group=48)


def test_chips_of_a_served_model_form_the_largest_equal_groups(capsys):
    """256 chips in racks of 72: 4 groups of 64, also where an operation is split."""
    text = said(capsys, "explain", "gb200", "deepseek-v3", "B=4096", "S=4k", "dp256", "ep256")
    assert "route     4 groups of 64 of 72 chips on one nvlink" in text
    words = "explain", "gb200", "B=8192", "D=8192", "F=28672", "tp256"
    assert "4 groups of 64 of 72 chips" in said(capsys, *words, "--network", "nvlink,infiniband")
    assert "no divisor of 251 is one" in refused(
        capsys, "explain", "gb200", "deepseek-v3", "B=251", "S=4k", "dp251", "ep251"
    )


def test_parallelisms_have_the_largest_divisor_inside_a_group(capsys):
    question: dict[str, Any] = {"B": 96, "S": 6144, "dtypes": "bf16"}
    for split in ("tp4-cp3-dp2", "cp2-dp6-pp2", "tp4-dp6"):
        row = rooflines.train("h100-sxm", "llama-3.1-8b", split=split, **question).row
        assert row["network"] == "nvlink+infiniband"
    words = "train", "h100-sxm", "llama-3.1-8b", "B=96", "S=8192", "--chips", "24"
    assert "best plans of 24 chips over nvlink+infiniband" in said(capsys, *words)


def test_a_search_takes_both_networks_where_the_inner_one_does_not_join_all_chips():
    rows = rooflines.best_splits("gb200", "llama-3.1-405b", B=1152, S=8192, dtypes="bf16", chips=96)
    assert set(rows["network"]) == {"nvlink+infiniband"}
    alone = rooflines.explain_model(
        "gb200", "llama-3.1-405b", B=1152, S=8192, dtypes="bf16", split="tp8-dp12", network="nvlink"
    )
    (row,) = rows.filter(split="tp8-dp12").to_dicts()
    assert row["t_lower_s"] == alone.row["t_lower_s"], "tp stays inside"


@pytest.mark.parametrize(("chip", "tp"), [("tpu-v6e", 8), ("tpu-v5p", 16), ("tpu-v5e", 32)])
def test_no_typed_axes_beat_a_plain_number_of_a_question(chip, tp):
    found = rooflines.explain_model(chip, LLAMA, split={"tp": tp}, **V6E)
    link = chip_entries()[chip].networks["ici"].exact
    axes = fastest_axes(link, tp)
    assert axes is not None
    assert found.routes == [f"ici over axes {axes_text(axes)}, the fastest"]
    for typed in torus_axes(link, tp):
        if len(typed) > 1:
            other = rooflines.explain_model(chip, LLAMA, split={"tp": axes_text(typed)}, **V6E)
            assert found.row["t_lower_s"] <= other.row["t_lower_s"]
    assert f"over axes {axes_text(axes)}" in str(found)


def test_a_slice_of_v6e_is_no_line():
    row = rooflines.explain_model("tpu-v6e", LLAMA, split={"tp": 8}, **V6E).row
    assert 1e3 * row["t_lower_s"] == pytest.approx(208.8, abs=0.05)


def test_an_outer_network_alone_is_taken_only_as_asked_and_the_answer_says_what_idles():
    found = rooflines.explain_model(
        "h100-sxm", LLAMA, B=64, S=8192, split={"tp": 16}, network="infiniband"
    )
    idle = "infiniband alone, as requested: nvlink (8 chips) is idle"
    assert found.to_dict()["routes"] == [idle]
    for chip in chip_entries().values():
        first, *others = chip.networks or [""]
        offered = {name for chips in (2, 8, 16, 512) for name in routes_joining(chip, (chips,))}
        assert offered <= {first, *(f"{first},{other}" for other in others)}
        assert {default_route(chip, chips)[0] for chips in (12, 256) if first} <= {first}


def test_a_table_says_the_axes_of_each_chip(capsys):
    words = "explain", "tpu-v6e", "h100-sxm", LLAMA, "B=1,2", "S=8192", "--split", "tp=8"
    assert "Route: tpu-v6e: ici over axes 2x4, the fastest." in said(capsys, *words).splitlines()


def test_the_fewest_chips_may_be_on_any_axes():
    found = rooflines.explain_model(
        "tpu-v5e", "llama-3.1-405b", B=1, S=8192, dtypes="int8", split={"tp": 16}
    )
    (fewest,) = (each for each in found.thresholds if each["axis"] == "chips")
    assert (fewest["outcome"], fewest["critical"]) == ("found", 32)


def test_the_fewest_replicas_fill_groups():
    plan: dict[str, Any] = {
        "split": "dp144-fsdp",
        "phase": "train",
        "recompute": "full",
        "network": ON_TWO,
    }
    asked = Question(["gb200"], model="deepseek-v3", dtypes=["bf16"], sizes={"B": 144, "S": 8192})
    solved = sweep_thresholds(
        question_sweep(asked, QuestionCatalogues(chip_entries()), **plan)
    ).to_dicts()
    (fewest,) = (each for each in solved if each["axis"] == "chips")
    assert (fewest["outcome"], fewest["critical"]) == ("found", 144)


@pytest.mark.parametrize(
    ("chip", "axes", "seconds"),
    [
        ("tpu-v5e", "16x16", Fraction(17, 3072)),
        ("tpu-v5e", "8x16", Fraction(127, 17280)),
        ("tpu-v5p", "4x4x4", Fraction(7, 3840)),
    ],
)
def test_a_gather_over_axes_takes_the_time_by_hand(chip, axes, seconds):
    link = chip_entries()[chip].networks["ici"].exact
    typed = tuple(map(int, axes.split("x")))
    assert fastest_axes(link, math.prod(typed)) == typed
    level = NetworkLevel(link, typed)
    assert 10**9 * level.bytes_per_payload_byte("all-gather") / level.bytes_per_s == seconds


FP8 = {
    "weights": "fp8", "cache": "bf16", "activations": "bf16", "compute": "fp8",
    "attention": "bf16", "head": "bf16",
}  # fmt: skip
STEPS = [
    ("llama-3.1-405b", 256, "bf16", 1536, 8192, 98.34),
    ("llama-3.1-405b", 256, FP8, 1536, 8192, 64.37),
    ("llama-3.1-70b", 64, "bf16", 256, 8192, 12.2),
    ("llama-3.1-70b", 64, FP8, 256, 8192, 7.93),
    ("llama-3.1-70b", 256, "bf16", 1024, 8192, 12.27),
    ("qwen3-235b-a22b", 256, "bf16", 8192, 4096, 30.87),
]
"""Steps of sharded data parallelism on TPU7x: model, chips, dtypes, B, S, seconds.

Source: AI-Hypercomputer/tpu-recipes, training/ironwood/README.md (Apache-2.0, Google LLC).
"""


@pytest.mark.parametrize(("model", "chips", "dtypes", "B", "S", "measured"), STEPS)
def test_no_published_step_on_a_torus_is_below_its_bound(model, chips, dtypes, B, S, measured):  # noqa: N803, PLR0913, PLR0917, a row of the table
    plan: dict[str, Any] = {"split": {"dp": chips}, "shard": "weights", "micro_batch": B // chips}
    row = rooflines.train("tpu-7x", model, B=B, S=S, dtypes=dtypes, **plan).row
    assert row["network"] == "ici"
    assert 1 < measured / row["t_lower_s"] < 4


def test_the_docs_say_the_steps_that_an_estimate_of_a_collective_takes():
    link = chip_entries()["h100-sxm"].networks["nvlink"].exact
    steps = ring_steps(Route((link,), (8,)), "all-reduce")
    said_steps = re.search(
        r"N - 1 steps a pass, (\d+) for an all-reduce over 8", words_of("model.md")
    )
    assert said_steps is not None
    assert int(said_steps[1]) == steps


def test_a_route_that_joins_no_second_chip_has_a_threshold_without_chips():
    """The inner network is a torus, and no chip has axes on it beside a second network."""
    networks = {
        "inner": {"bytes_per_s": 1e10, "topology": "torus"},
        "outer": {"bytes_per_s": 1e10, "topology": "switch", "hop_latency_s": 2.5e-5},
    }
    chip = {"source": "a test", "units": {"matrix": {"bf16": {"flops_per_s": 1e15}}}}
    chip |= {"memory": {"hbm": {"bytes_per_s": 3e12}}, "networks": networks}
    sweep = {"operation": "matmul", "grid": {"B": 64, "D": 4096, "F": 4096}, "dtypes": ["bf16"]}
    sweep |= {"sharding": "contracting/reduce-scatter", "thresholds": ["shards"]}
    sweep |= {"chips": ["own"], "network": ["inner", "outer"]}
    config = rooflines.load_config({"chips": {"own": chip}, "sweeps": {"one": sweep}})
    (row,) = rooflines.thresholds(config).to_dicts()
    assert (row["outcome"], row["critical"], row["critical_network"]) == ("never", None, 1)
    assert row["limit"] == "memory"
