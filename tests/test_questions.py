"""Questions as newcomers type them: what each is taken for, and the title of its answer."""

import shlex

import pytest
from case_files import CASES
from command_line import table
from transcripts import asked_in

from rooflines.answers.name_search import find_checkpoint, released_model
from rooflines.answers.word_forms import WORD_FORMS
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import MeasuredValue, measured_value, quantity
from rooflines.basics.text import seconds
from rooflines.cli.main import run

QUESTIONS = asked_in(CASES / "questions.txt")


def test_there_are_a_hundred_questions():
    assert len({question.typed for question in QUESTIONS}) >= 100


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.typed)
def test_a_question_is_taken_as_was_reviewed(asked, capsys, reviewed):
    assert run(asked.words) == 0
    printed = capsys.readouterr()
    reviewed(asked, f"{printed.err}{printed.out.splitlines()[0]}\n")


@pytest.mark.parametrize("form", WORD_FORMS, ids=lambda form: form.name)
def test_the_example_of_a_form_of_words_is_answered(form, capsys):
    assert run([form.commands[0], *shlex.split(form.example)]) == 0
    assert capsys.readouterr().out


def test_a_command_without_words_shows_questions_that_are_answered(capsys):
    assert run(["explain"]) == 0
    shown = capsys.readouterr().out.splitlines()
    lines = [line.split() for line in shown if line.startswith("  rooflines ")]
    assert len(lines) == 3
    for words in lines:
        assert run(words[1:]) == 0


def test_a_dtype_of_one_class_changes_that_class_alone(capsys):
    question = ("explain", "h100", "llama-3.1-8b", "B=8", "S=8k")
    (wide,), (cache,), (weights,) = (
        table(capsys, *question, word) for word in ("bf16", "kv=fp8", "weights=fp8")
    )
    assert float(cache["kv_cache_footprint_bytes"]) == float(wide["kv_cache_footprint_bytes"]) / 2
    assert cache["weights_footprint_bytes"] == wide["weights_footprint_bytes"]
    assert weights["kv_cache_footprint_bytes"] == wide["kv_cache_footprint_bytes"]
    share = float(weights["weights_footprint_bytes"]) / float(wide["weights_footprint_bytes"])
    assert 0.5 < share < 0.6, "embedding and LM head stay wide"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("50ms", "time", 0.05),
        ("2s", "time", 2),
        ("0.05", "time", 0.05),
        ("50MS", "time", 0.05),
        ("15T", "tokens", 15 * 10**12),
        ("50k", "tokens", 50_000),
        ("4.8TB/s", "bandwidth", 4.8e12),
        ("80GiB", "bytes", 80 * 2**30),
        ("1PFLOP/s", "compute", 10**15),
        ("$2.50/h", "money", 2.5),
    ],
)
def test_a_quantity_is_read_into_its_unit(text, kind, value):
    assert quantity(text, kind) == value


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("30ms", MeasuredValue(0.03, "time")),
        ("250us", MeasuredValue(0.00025, "time")),
        ("1397tok/s", MeasuredValue(1397, "tokens_per_s")),
        ("9500tok/s/gpu", MeasuredValue(9500, "tokens_per_s_per_chip")),
        ("35tok/s/user", MeasuredValue(35, "tokens_per_s_per_user")),
        ("41%mfu", MeasuredValue(0.41, "mfu")),
        ("41%mfu full", MeasuredValue(0.41, "mfu", full=True)),
        ("52% hfu", MeasuredValue(0.52, "hfu")),
    ],
)
def test_a_measured_number_is_read_with_its_kind(text, measured):
    assert measured_value(text)[:3] == measured[:3]


@pytest.mark.parametrize(
    ("text", "kind"), [("50GB", "time"), ("15ms", "tokens"), ("x", "time"), ("4.8TB", "bandwidth")]
)
def test_a_quantity_of_another_kind_is_refused(text, kind):
    with pytest.raises(RooflinesError, match="is '"):
        quantity(text, kind)


@pytest.mark.parametrize("text", ["30", "0ms", "-3ms", "30apples", "fast"])
def test_a_measured_number_without_a_meaning_is_refused(text):
    with pytest.raises(RooflinesError, match="is '"):
        measured_value(text)


@pytest.mark.parametrize(
    ("name", "model", "dtypes", "roles"),
    [
        ("Qwen/Qwen3-32B-FP8", "Qwen3-32B", "fp8", {}),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen3-235B-A22B", "fp8", {}),
        ("x/Llama-3.1-8B-Instruct-FP8-KV", "Llama-3.1-8B-Instruct", "fp8", {"cache": "fp8"}),
        ("Llama-3.1-70B-Instruct-AWQ-INT4", "Llama-3.1-70B-Instruct", "w4a16-g128", {}),
        ("RedHatAI/Llama-3.1-8B-Instruct-quantized.w8a8", "Llama-3.1-8B-Instruct", "w8a8", {}),
    ],
)
def test_a_checkpoint_is_a_model_and_its_dtypes(name, model, dtypes, roles):
    checkpoint = find_checkpoint(name)
    assert checkpoint is not None
    assert find_checkpoint(model) is None
    assert (checkpoint.dtypes, checkpoint.roles) == (dtypes, roles)
    assert find_checkpoint(f"{name}-and-more") is None
    assert find_checkpoint("nobody/no-model-FP8") is None
    assert released_model("mistralai/Mistral-7B-Instruct-v0.3") == "Mistral-7B"
    assert released_model("nobody/no-model-Instruct") is None


def test_numbers_of_two_chips_are_compared_on_one_basis(capsys):
    words = ("compare", "4xmi300x", "vs", "8xh100", "llama-3.1-70b", "B=64", "S=4k")
    amd, nvidia = table(capsys, *words)
    assert (amd["chips"], nvidia["chips"]) == ("4", "8")
    assert amd["t_estimate_s"] == "", "no calibration of mi300x"
    single = table(capsys, "explain", "mi300x", "llama-3.1-70b", "B=64", "S=4k", "tp4")[0]
    assert amd["t_serial_s"] == single["t_serial_s"]


def test_a_split_asked_for_under_a_limit_is_the_smallest_that_keeps_it(capsys):
    rows = table(capsys, "explain", "h100", "llama-3.1-70b", "S=4k", "tp=?", "within", "15ms")
    assert all(float(row["t_estimate_s"]) <= 0.015 for row in rows)
    for row in rows:
        words = ("explain", "h100", "llama-3.1-70b", f"B={int(row['B']) + 1}", "S=4k", row["split"])
        assert float(table(capsys, *words)[0]["t_estimate_s"]) > 0.015


def test_a_size_asked_for_is_the_smallest_that_is_compute_bound(capsys):
    (row,) = table(capsys, "explain", "h100", "Mx8192x8192")
    size = int(row["B"])
    below, at = table(capsys, "explain", "h100", f"M={size - 1},{size}", "K=8192", "N=8192")
    assert (below["bound"], at["bound"]) == ("memory", "compute")


def test_micro_batches_of_all_replicas_are_the_batch(capsys):
    words = ("train", "64xh100", "llama-3.1-8b", "dp64", "fsdp", "gas=8", "mbs=2", "S=4k")
    (row,) = table(capsys, *words)
    assert int(row["B"]) == 64 * 8 * 2
    assert int(row["micro_batches"]) == 8


def test_requests_over_every_split_have_a_first_token_and_a_cost(capsys):
    words = ("explain", "8xh100", "llama-3.1-70b", "isl=1k", "osl=1k", "concurrency=16", "auto")
    rows = table(capsys, *words)
    single = table(capsys, *words[:-1], "tp8")[0]
    (best,) = (row for row in rows if row["split"] == "tp8")
    for column in ("ttft_basis_s", "tpot_basis_s", "usd_per_output_mtok"):
        assert best[column] == single[column]


def test_plans_of_training_are_searched_with_sharded_weights(capsys):
    words = "train", "8xh100", "llama-3.1-8b", "B=8", "S=4k", "auto", "--all", "--recompute", "none"
    names = {row["split"] for row in table(capsys, *words)}
    assert {"dp8", "dp8-fsdp"} <= names
    typed = table(capsys, *words, "--shard", "none")
    assert all("zero0" in row["split"] for row in typed)
    weights = table(capsys, *words[:-3], "fsdp")
    assert {row["shard"] for row in weights} == {"weights"}
    tp = table(capsys, *words[:-3], "tp4")
    assert {row["tp"] for row in tp} == {"4"}


def test_a_table_of_splits_leads_with_its_best(capsys):
    words = ("explain", "8xh100", "llama-3.1-8b", "B=64", "S=8k", "auto")
    assert run([*words]) == 0
    headline = capsys.readouterr().out.splitlines()[1]
    rows = [row for row in table(capsys, *words) if row["fits"] != "false"]
    best = min(rows, key=lambda row: float(row["t_estimate_s"]))
    assert headline.startswith(f"By the estimate {best['split']} is the quickest: ")
    for column in ("t_estimate_s", "t_estimate_p10_s", "t_lower_s"):
        assert seconds(float(best[column])) in headline


def test_requests_on_several_chips_have_the_basis_of_each(capsys):
    words = ("isl=1k", "osl=1k", "concurrency=16", "tp4")
    rows = table(capsys, "explain", "h100", "mi300x", "llama-3.1-70b", *words)
    assert [row["basis"] for row in rows] == ["estimate", "serialized"]
    for chip, row in zip(("h100", "mi300x"), rows, strict=True):
        (alone,) = table(capsys, "explain", chip, "llama-3.1-70b", *words)
        for column in ("ttft_basis_s", "tpot_basis_s", "output_tokens_per_s"):
            assert row[column] == alone[column]
