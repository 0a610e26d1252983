"""Words of `rooflines explain` of a model: free order, and one message for mistakes."""

from __future__ import annotations

import json

import pytest
from command_line import offered, refused, said
from explained import CONFIG_FORM, MODEL
from hf_configs import config_of

import rooflines
from rooflines import models
from rooflines.cli.main import run
from rooflines.models.library import model_entries

SAME = (
    "llama-3.1-70b S=8192 B=64 h100-sxm --split tp=8",
    "h100-sxm meta-llama/Llama-3.1-70B B=64 S=8192 bf16 --split tp=8,dp=1",
    "h100-sxm LLAMA-3.1-70B bf16 B=64 S=8.192e3 --split tp=8 --phase decode --memory hbm",
    "h100-sxm llama-3.1-70b B=64 S=8192 --split tp=8 --cache-split heads --network nvlink",
)


@pytest.mark.parametrize("words", SAME)
def test_the_order_of_words_is_free(words, capsys):
    assert said(capsys, "explain", *words.split()) == said(capsys, "explain", *MODEL.split())


def test_a_config_json_is_a_model(tmp_path, capsys):
    path = tmp_path / "config.json"
    entry = model_entries()["llama-3.1-8b"].model_dump(exclude_none=True)
    path.write_text(json.dumps(config_of(entry)), encoding="utf-8")
    for named in (path, tmp_path):
        shown = said(capsys, "explain", "h100-sxm", str(named), "B=8", "S=1024", "--json")
        row = json.loads(shown)["row"]
        assert row["max_B"] == models.load("llama-3.1-8b").max_batch(80e9, 1024, "bf16")
    model = models.load("llama-3.1-8b")
    answer = rooflines.explain_model("h100-sxm", model, B=8, S=1024)
    assert answer.row["t_lower_s"] == row["t_lower_s"]


def test_a_folder_with_the_name_of_a_chip_is_no_model(tmp_path, capsys, monkeypatch):
    for name in ("h100-sxm", "bf16", "128x8192x8192"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    monkeypatch.chdir(tmp_path)
    for words in ("h100-sxm dot 1024 bf16", MODEL):
        assert said(capsys, "explain", *words.split()).startswith("h100-sxm · ")
    assert run(["explain", "h100-sxm", "bf16", "x" * 5000]) == 2


WRONG: dict[str, tuple[str, str]] = {
    "h100-sxm lamma-3.1-70b B=64 S=8192": (
        "model is 'lamma-3.1-70b', which is no model of the catalogue.",
        "close to it: llama-3.1-70b",
    ),
    "h100-sxm llama-3.1-7b B=64 S=8192": ("model is", "or give the path of its config.json."),
    "h100-sxm meta/Llama-3.1-70B B=64 S=8192": ("model is", "close to it: llama-3.1-70b"),
    "h101 llama-3.1-70b B=64 S=8192": ("chip is 'h101', which is no chip.", "h100-sxm"),
    "h100-sxm llama-70b B=64 S=8192": ("model is 'llama-70b', which 2 models", "llama-3.1-70b"),
    "llama-3.1-70b B=64 S=8192": ("chip is missing.", "h100-sxm"),
    "h100-sxm llama-3.1-70b": ("sizes lack B and S.", "B=64 S=8192"),
    "h100-sxm llama-3.1-70b B=64": ("sizes lack S.", "B=64 S=8192"),
    "h100-sxm llama-3.1-70b B=64 S=0": ("size S is '0', which is less than 1.", "from 1"),
    "h100-sxm llama-3.1-70b B=1 S=2 D=3": ("size D is no size of a model.", "B=64 S=8192"),
    "h100-sxm llama-3.1-70b B=1 B=2 S=1": ("size B is given twice", "one size"),
    "h100-sxm llama-3.1-70b 1x2x3": ("the question has '1x2x3'", "B=64 S=8192"),
    "h100-sxm llama-3.1-70b qwen3-8b B=1 S=1": ("model is given twice", "one at a time"),
    "h100-sxm llama-3.1-70b B=1 S=1 w8a16": (
        "dtypes is 'w8a16', which is no format",
        "such as bf16",
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 bf61": ("dtypes is 'bf61'", "close to it: bf16"),
    "h100-sxm llama-3.1-70b B=1 S=1 nvfp4": ("no nvfp4 peak of its matrix unit", "fp8, int8"),
    "h100-sxm llama-3.1-70b B=1 S=1 weights=fp8": (
        "dtypes lacks cache",
        "write weights=fp8,cache=fp8,activations=bf16,compute=fp8.",
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 weights=fp8,fp8": ("dtypes has 'fp8'", "cache="),
    "h100-sxm llama-3.1-70b B=1 S=1 --split 8": ("split has '8'", "write tp=8"),
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8,tp=4": ("split gives 'tp' twice", "write tp=8"),
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=x": ("split tp is 'x'", "axis"),
    "h100-sxm llama-3.1-70b B=1 S=1 --split pp=2": ("split pp is pipeline", "tp, dp and ep"),
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=3": (
        "the question asks for llama-3.1-70b, tp3: tp is 3, which does not divide",
        "another split",
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=16": (
        "the question asks for tp16, h100-sxm, hbm: 8 chips at most on one nvlink.",
        "fewer chips, such as 8, or choose the network nvlink,infiniband or infiniband.",
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --split dp=2": ("fewer sequences than the 2", "replicas"),
    "h100-sxm llama-3.1-70b B=1 S=1 --split ep=2,tp=2": ("has no experts", "another split"),
    "h100-sxm llama-3.1-70b B=1 S=1 --phase decod": ("phase is 'decod'", "close to it: decode"),
    "h100-sxm llama-3.1-70b B=1 S=1 --routing al": ("routing is 'al'", "'same'"),
    "h100-sxm llama-3.1-70b B=1 S=1 --cache-split x": ("cache-split is 'x'", "'batch'"),
    "h100-sxm llama-3.1-70b B=1 S=1 --network nvlik": ("network is 'nvlik'", "nvlink"),
    "h100-sxm llama-3.1-70b B=1 S=1 --memory l9": ("no memory level l9", "hbm, l2"),
    "h100-sxm llama-3.1-70b B=1 S=9 T=3 --phase prefill": ("size T gives new tokens", "prefill"),
    "h100-sxm llama-3.1-70b B=1 S=1 --shards 2 --unit vector": (
        "the question asks for a model, but has --shards, --unit of operations.",
        "--split",
    ),
    "h100-sxm 1x2x3 bf16 --split tp=8 --cache-split heads": (
        "the question names no model, but has --cache-split of models.",
        "name a model",
    ),
    "h100-sxm gemm 128x8192x8192 bf16": (
        "the question has 'gemm', which is no operation",
        "correct",
    ),
    "h100-sxm nope.json B=1 S=1": ("nope.json does not exist.", "path"),
}


FIXED: dict[str, str] = {
    "h100-sxm lamma-3.1-70b B=64 S=8192": "h100-sxm llama-3.1-70b B=64 S=8192",
    "h100-sxm llama-3.1-7b B=64 S=8192": "h100-sxm config.json B=64 S=8192",
    "h100-sxm meta/Llama-3.1-70B B=64 S=8192": "h100-sxm llama-3.1-70b B=64 S=8192",
    "h101 llama-3.1-70b B=64 S=8192": "h100-sxm llama-3.1-70b B=64 S=8192",
    "h100-sxm llama-70b B=64 S=8192": "h100-sxm llama-3.1-70b B=64 S=8192",
    "llama-3.1-70b B=64 S=8192": "llama-3.1-70b B=64 S=8192 h100-sxm",
    "h100-sxm llama-3.1-70b": "h100-sxm llama-3.1-70b B=64 S=8192",
    "h100-sxm llama-3.1-70b B=64": "h100-sxm llama-3.1-70b B=64 S=8192",
    "h100-sxm llama-3.1-70b B=64 S=0": "h100-sxm llama-3.1-70b B=64 S=1",
    "h100-sxm llama-3.1-70b B=1 S=2 D=3": "h100-sxm llama-3.1-70b B=1 S=2",
    "h100-sxm llama-3.1-70b B=1 B=2 S=1": "h100-sxm llama-3.1-70b B=64,128 S=1",
    "h100-sxm llama-3.1-70b 1x2x3": "h100-sxm llama-3.1-70b B=64 S=8192",
    "h100-sxm llama-3.1-70b qwen3-8b B=1 S=1": "h100-sxm qwen3-8b B=1 S=1",
    "h100-sxm llama-3.1-70b B=1 S=1 w8a16": "h100-sxm llama-3.1-70b B=1 S=1 bf16",
    "h100-sxm llama-3.1-70b B=1 S=1 bf61": "h100-sxm llama-3.1-70b B=1 S=1 bf16",
    "h100-sxm llama-3.1-70b B=1 S=1 nvfp4": "h100-sxm llama-3.1-70b B=1 S=1 int8",
    "h100-sxm llama-3.1-70b B=1 S=1 weights=fp8": (
        "h100-sxm llama-3.1-70b B=1 S=1 weights=fp8,cache=fp8,activations=bf16,compute=fp8"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 weights=fp8,fp8": (
        "h100-sxm llama-3.1-70b B=1 S=1 weights=fp8,cache=fp8,activations=bf16,compute=fp8"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --split 8": "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8",
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8,tp=4": (
        "h100-sxm llama-3.1-70b B=2 S=1 --split tp=4,dp=2"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=x": "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8",
    "h100-sxm llama-3.1-70b B=1 S=1 --split pp=2": "h100-sxm llama-3.1-70b B=1 S=1 --split tp=2",
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=3": "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8",
    "h100-sxm llama-3.1-70b B=1 S=1 --split tp=16": (
        "h100-sxm llama-3.1-70b B=1 S=1 --split tp=16 --network infiniband"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --split dp=2": "h100-sxm llama-3.1-70b B=64 S=1 --split dp=2",
    "h100-sxm llama-3.1-70b B=1 S=1 --split ep=2,tp=2": (
        "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --phase decod": (
        "h100-sxm llama-3.1-70b B=1 S=1 --phase decode"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --routing al": "h100-sxm llama-3.1-70b B=1 S=1 --routing all",
    "h100-sxm llama-3.1-70b B=1 S=1 --cache-split x": (
        "h100-sxm llama-3.1-70b B=1 S=1 --cache-split batch"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --network nvlik": (
        "h100-sxm llama-3.1-70b B=1 S=1 --network nvlink"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --memory l9": "h100-sxm llama-3.1-70b B=1 S=1 --memory hbm",
    "h100-sxm llama-3.1-70b B=1 S=9 T=3 --phase prefill": (
        "h100-sxm llama-3.1-70b B=1 S=9 --phase prefill"
    ),
    "h100-sxm llama-3.1-70b B=1 S=1 --shards 2 --unit vector": (
        "h100-sxm llama-3.1-70b B=1 S=1 --split tp=8"
    ),
    "h100-sxm 1x2x3 bf16 --split tp=8 --cache-split heads": "h100-sxm 1x2x8 bf16 --split tp=8",
    "h100-sxm gemm 128x8192x8192 bf16": "h100-sxm 128x8192x8192 bf16",
    "h100-sxm nope.json B=1 S=1": "h100-sxm config.json B=1 S=1",
}
"""What a reader of each message types next."""


@pytest.mark.parametrize("words", WRONG, ids=WRONG)
def test_the_fix_that_is_offered_works_when_typed(words, tmp_path, monkeypatch, capsys):
    entry = model_entries()["llama-3.1-8b"].model_dump(exclude_none=True)
    (tmp_path / "config.json").write_text(json.dumps(config_of(entry)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    message = refused(capsys, "explain", *words.split()) + "config.json"
    assert offered(message, words.split(), FIXED[words].split())
    said(capsys, "explain", *FIXED[words].split())


@pytest.mark.parametrize(("words", "message"), WRONG.items(), ids=WRONG)
def test_a_mistake_gives_one_message(words, message, capsys):
    assert run(["explain", *words.split()]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    first, *rest = printed.err.splitlines()
    assert message[0] in first
    assert message[1] in "\n".join(rest)
    assert rest[-1].startswith("  fix: ")
    assert not CONFIG_FORM.search(rest[-1].removeprefix("  fix:"))
    assert not any(word in printed.err for word in ("Traceback", "sweeps", "grid", "[0]", "Usage"))


@pytest.mark.parametrize(
    "words",
    [
        "h100-sxm llama-3.1-70b B=64 S=8192 --split tp=16",
        "h100-sxm deepseek-v3 B=64 S=8192 --split tp=16,ep=16",
        "tpu-v5e llama-3.1-70b B=64 S=8192 --split tp=32",
        "mi300x 128x8192x8192 bf16 --shards 16 --sharding batch",
    ],
)
def test_networks_that_are_offered_join_the_chips(words, capsys):
    assert run(["explain", *words.split()]) == 2
    offered = capsys.readouterr().err.partition("choose the network ")[2].strip(".\n")
    assert offered
    for network in offered.split(" or "):
        assert run(["explain", *words.split(), "--network", network]) == 0


def test_several_mistakes_are_listed_together(capsys):
    words = "h100-sxm llama-3.1-70b B=0 S=1.5 --split tp"
    assert run(["explain", *words.split()]) == 2
    assert capsys.readouterr().err.count("fix:") == 3


def test_a_wrong_question_from_python_is_a_rooflines_error():
    for wrong in (
        {"B": "x"},
        {"S": None},
        {"T": 9000},
        {"dtypes": 16},
        {"dtypes": {"weights": "fp8"}},
        {"split": 8},
        {"split": {"tp": 0}},
        {"phase": "training"},
        {"network": 3},
        {"memory": "l9"},
    ):
        with pytest.raises(rooflines.RooflinesError):
            rooflines.explain_model("h100-sxm", "llama-3.1-70b", **{"B": 1, "S": 64, **wrong})  # type: ignore[arg-type]
    with pytest.raises(rooflines.RooflinesError, match=r"close to it: llama-3\.1-8b"):
        rooflines.explain_model("h100-sxm", "llama-3-8b", B=1, S=64)
    with pytest.raises(rooflines.RooflinesError, match="model is 'None'"):
        rooflines.explain_model("h100-sxm", None, B=1, S=64)  # type: ignore[arg-type]
    with pytest.raises(rooflines.RooflinesError, match="chip is null"):
        rooflines.explain_model(None, "llama-3.1-8b", B=1, S=64)  # type: ignore[arg-type]
