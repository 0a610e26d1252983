"""Largest sizes are right, steps of every model are exact, and estimates beat no bound."""

from typing import Any

import pytest
from command_line import said
from comparison import wrong_columns
from oracle import step_table
from plain_files import plain_file
from serving_tables import expected_rows, sweep_of

import rooflines
from rooflines import models
from rooflines.evaluation.row_frames import StepTable
from rooflines.models.tensor_dtypes import model_dtypes, step_dtypes
from rooflines.solvers.threshold_frames import sweep_thresholds

LLAMA: dict[str, Any] = {"models": ["llama-3.1-70b"], "dtypes": ["bf16"], "splits": [{"tp": 8}]}


@pytest.mark.parametrize(
    "sizes",
    [
        {"phase": ["prefill"], "grid": {"B": [1], "S": [2**32]}},
        {"phase": ["prefill"], "grid": {"B": [2**53], "S": [2**53]}},
        {"phase": ["decode"], "grid": {"B": [1], "S": [2**53]}},
        {
            "phase": ["decode"],
            "grid": {"B": [2**53], "S": [128]},
            "splits": [{"tp": 8, "dp": 2**30}],
        },
    ],
)
def test_the_largest_sizes_are_right(sizes):
    dense = {"name": "dense", "layers": 80, "D": 8192, "V": 128256, "mlp": {"F": 28672}}
    model = {**dense, "attention": {"N": 64, "K": 8, "H": 128}}
    sweep = {**LLAMA, "models": [model], "chips": ["mine"], **sizes, "thresholds": ["B"]}
    chip = {
        "units": {"matrix": {"bf16": {"flops_per_s": 9.89e14}}},
        "memory": {"hbm": {"bytes_per_s": 3.35e12, "capacity_bytes": 8e10}},
        "networks": {"a": {"bytes_per_s": 4.5e11, "topology": "switch", "domain": "unlimited"}},
    }
    config = {"model-sweeps": {"large": sweep}, "chips": {"mine": chip}}
    (exact,) = (row.values for row in expected_rows(config))
    assert exact is not None
    (found,) = StepTable(sweep_of(config)).frame().collect().to_dicts()
    assert not wrong_columns(found, exact)
    (solved,) = sweep_thresholds(sweep_of(config)).to_dicts()
    assert solved["max_B_fit"] == (exact["max_B"] if exact["max_B"] <= 2**62 else None)


def kernels_of(chip, model, **options):
    answer = rooflines.explain_model(chip, model, **options)
    return answer, {each["group"]: each for each in answer.groups}


def test_the_router_and_the_ranks_of_latent_attention_are_whole_on_each_chip():
    form = dict.fromkeys(("weights", "cache", "activations", "compute"), "fp8")
    question = {"B": 1, "S": 4096, "dtypes": form}
    answer, on_each = kernels_of("h200-sxm", "deepseek-v3", **question, split="tp8")
    assert answer.row["t_lower_s"] == pytest.approx(1.17e-3, abs=5e-6)
    _, alone = kernels_of("h200-sxm", "deepseek-v3", **question)
    for work in ("weight_bytes", "flops", "activation_bytes"):
        for name in ("router", "qkv-down"):
            assert on_each[name][work] == alone[name][work]
        assert on_each["q-up"][work] < alone["q-up"][work]
    assert on_each["q-up"]["flops"] == alone["q-up"]["flops"] / 8
    assert answer.assumptions["split"] == "qkv-down and router replicated on each chip"
    assert "qkv-down and router replicated on each chip" in " ".join(str(answer).split())
    assert answer.to_dict()["assumptions"]["split"] == answer.assumptions["split"]


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("deepseek-v3.2", "qkv-down, index-q, index-k, indexer and router"),
        ("nemotron-3-super", "router, latent-in and latent-out"),
        (
            "kimi-k3",
            "q-a and kv-a of qkv-down, low ranks of state-in, router, latent-in and latent-out",
        ),
        ("gpt-oss-120b", "router"),
        ("llama-3.1-70b", None),
    ],
)
def test_an_answer_names_what_is_whole_on_each_chip(name, kernels):
    answer = rooflines.explain_model("b200", name, B=8, S=4096, split="tp2")
    split = answer.assumptions.get("split")
    assert split == (kernels and f"{kernels} replicated on each chip")


@pytest.mark.parametrize(
    ("tp", "megabytes", "copies"), [(8, "20.97", ""), (16, "12.58", "2 copies")]
)
def test_beyond_its_heads_chips_have_copies_of_the_keys_projections(tp, megabytes, copies):
    answer, kernels = kernels_of(
        "h100-sxm", "llama-3.1-70b", B=64, S=8192, split={"tp": tp}, dtypes="bf16",
        network=["nvlink", "infiniband"],
    )  # fmt: skip
    assert f"{kernels['qkv']['weight_bytes'] / 1e6:.2f}" == megabytes
    assert answer.assumptions.get("split", "").endswith(copies)
    held = models.load("llama-3.1-70b").weights_bytes("bf16") / tp
    held += (tp // 8 - 1) * 80 * 2 * 2048 * 8192 / tp  # bf16, of 80 layers
    assert answer.row["weights_footprint_bytes"] == held


@pytest.mark.parametrize(("rest", "size"), [("fp8", 1), ("bf16", 2)])
def test_a_router_is_held_whole_by_each_chip_in_its_own_format(rest, size):
    stored = {"weights": "fp8", "rest": rest}
    computed = {"cache": "fp8", "activations": "fp8", "compute": "fp8"}
    answer, kernels = kernels_of(
        "h200-sxm", "mixtral-8x7b", B=8, S=1024, dtypes={**stored, **computed}, split="tp4"
    )
    router = size * 8 * 4096
    assert kernels["router"]["weight_bytes"] == router
    held = models.load("mixtral-8x7b").weights_bytes(stored) / 4
    assert answer.row["weights_footprint_bytes"] == held + 32 * router * (1 - 1 / 4)


@pytest.mark.parametrize("shard", ["none", "optimizer", "gradients", "weights"])
def test_in_training_a_router_has_all_weights_on_each_chip_and_a_share_of_the_tokens(shard):
    keys = {"B": 8, "S": 4096, "shard": shard}
    row = {
        tp: rooflines.train("h100-sxm", "mixtral-8x7b", split={"tp": tp, "dp": 8 // tp}, **keys).row
        for tp in (1, 2)
    }
    flops, states = ([row[tp][column] for tp in (1, 2)] for column in ("flops", "state_bytes"))
    assert flops[0] == flops[1]
    weights, gradients, optimizer = (
        size / (4 if shard in shards else 1)
        for size, shards in (
            (2, ["weights"]),
            (4, ["gradients", "weights"]),
            (12, ["optimizer", "gradients", "weights"]),
        )
    )
    held = weights + gradients + optimizer
    router, total = 32 * 4096 * 8, models.load("mixtral-8x7b").parameters().total
    assert states[1] == pytest.approx(((total + router) / 2) * held, rel=1e-12)


@pytest.mark.parametrize("words", ["", "--split auto --chips 8", "B=64,128"])
def test_a_narrow_format_of_a_model_is_said_to_be_that_of_linear_weights_alone(capsys, words):
    asked = ["explain", "h100-sxm", "llama-3.1-70b", "S=8192", "--split", "tp8", "fp8"]
    asked = asked if not words.startswith("--split") else [*asked[:4], "fp8"]
    asked += words.split() + ([] if "B=" in words else ["B=64"])
    meaning = "linear weights in fp8, computed in fp8; embedding, LM head, KV cache"
    for more in ([], ["--json"]):
        screen = " ".join(said(capsys, *asked, *more).split())
        assert f"{meaning}, activations and attention in bf16" in screen
    screen = " ".join(said(capsys, *asked, "kv=fp8").split())
    assert "linear weights, KV cache and attention in fp8, computed in fp8;" in screen
    everything = "weights=fp8,head=fp8,cache=fp8,activations=fp8,compute=fp8"
    screen = said(capsys, *(everything if word == "fp8" else word for word in asked))
    assert "linear weights" not in screen


@pytest.mark.parametrize(
    ("form", "computed"),
    [("fp8", "fp8"), ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("int8", "int8"), ("int4", "bf16")],
)
def test_a_narrow_format_leaves_tables_caches_and_attention_in_16_bit(form, computed):
    dtypes = step_dtypes(form)
    assert (dtypes.label, dtypes.compute_dtypes) == (form, (computed, "bf16"))
    tensors = {"head": "bf16", "cache": "bf16", "activations": "bf16", "combine": "bf16"}
    assert dtypes.storage_dtypes == {"weights": form, "experts": form, **tensors}
    stored = model_dtypes(form).storage_dtypes
    assert stored == {"weights": form, "experts": form, "head": "bf16", "cache": "bf16"}


@pytest.mark.parametrize(
    ("chip", "form", "attention"), [("t4", "int8", "fp16"), ("rubin-cpx", "nvfp4", "nvfp4")]
)
def test_chips_without_bf16_attend_in_what_they_compute_in(chip, form, attention):
    answer = rooflines.explain_model(chip, "llama-3.1-8b", B=4, S=4096, dtypes=form)
    assert {each["compute"] for each in answer.to_dict()["products"]} == {form, attention}


def test_memory_of_a_model_in_fp8_has_16_bit_tables_and_caches():
    """8,030,261,248 weights, two tables of 128,256 × 4,096 in them; 131,072 B a token cached."""
    llama = models.load("llama-3.1-8b")
    weights_bytes = 8_030_261_248 + 2 * 128_256 * 4096
    assert llama.weights_bytes("fp8") == weights_bytes
    assert llama.max_batch(24e9, 8192, "fp8") == (24 * 10**9 - weights_bytes) // (131_072 * 8192)


CATALOGUE = plain_file("models.yaml")["models"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_steps_of_every_model_of_the_catalogue_are_the_exact_ones(name):
    """Decode and prefill on chips with room for all of it: works, times, footprints."""
    chip = {
        "units": {"matrix": {"bf16": {"flops_per_s": 9.89e14}}},
        "memory": {"hbm": {"bytes_per_s": 3.35e12, "capacity_bytes": 1e13}},
    }
    sweep: dict[str, Any] = {"models": [name], "phase": ["decode", "prefill"], "chips": ["mine"]}
    sweep |= {"dtypes": ["bf16"], "splits": [{"tp": 1}], "grid": {"B": [3], "S": [1, 9000]}}
    config = {"model-sweeps": {"one": sweep}, "chips": {"mine": chip}}
    formats = plain_file("dtypes.yaml")["formats"]
    truth = list(step_table.model_rows(sweep, CATALOGUE, {"mine": chip}, formats))
    found = StepTable(sweep_of(config)).frame().collect().to_dicts()
    assert len(found) == len(truth) == 4
    for row, exact in zip(found, truth, strict=True):
        assert exact.values is not None
        assert wrong_columns(row, exact.values) == []


def test_shipped_calibrations_beat_no_bound(default_results):
    every = rooflines.scan(default_results, "serving")
    rows = every.select("chip", "t_serial_s", "t_estimate_s").drop_nulls("t_estimate_s").collect()
    assert set(rows["chip"]) == {"b200", "h100-sxm", "h200-sxm"}
    assert (rows["t_serial_s"] <= rows["t_estimate_s"]).all()


@pytest.mark.parametrize(
    ("routing", "read"), [("uniform", 32 * (1 - (28 / 32) ** 4)), ("same", 4), ("all", 32)]
)
def test_an_answer_says_how_many_experts_are_read_by_routing(routing, read):
    """Four tokens choose 4 of 32 experts each."""
    asked = rooflines.explain_model("h100-sxm", "gpt-oss-20b", B=4, S=1024, routing=routing)
    assert asked.experts == {"routing": routing, "touched": pytest.approx(read), "E": 32}
