"""Output of `rooflines explain`, as reviewed: on a terminal, in a pipe, as JSON, as a card."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from case_files import case
from command_line import said
from explained import EXAMPLE, FOLDER, MODEL
from hf_configs import config_of
from processes import on_a_terminal, python
from transcripts import asked_in

import rooflines
from rooflines import models
from rooflines.answers.phrases import Part, longest_parts
from rooflines.answers.screen import WIDTH
from rooflines.cli.explain import SHARDINGS
from rooflines.cli.main import run
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import model_entries
from rooflines.theory.operation import NAMED_OPERATIONS
from rooflines.theory.sharding import NAMED_SHARDINGS as SHARDED

CASES = [asked for path in sorted(FOLDER.glob("*.txt")) for asked in asked_in(path)]

WRONG = case("wrong-questions")
"""Changes to a valid question, by its kind."""

MOST_LINES, MOST_MODEL_LINES = 38, 70
"""Lines of a screen: of an operation, and of a model [1]."""


@pytest.mark.parametrize("asked", CASES, ids=lambda asked: asked.path.stem)
def test_an_explanation_is_the_text_that_was_reviewed(asked, capsys, monkeypatch, reviewed):
    monkeypatch.chdir(FOLDER)
    text = said(capsys, *asked.words)
    reviewed(asked, text)
    assert max(map(len, text.splitlines())) <= WIDTH
    most = MOST_MODEL_LINES if asked.path.stem.startswith("model-") else MOST_LINES
    assert len(text.splitlines()) <= most


@pytest.mark.parametrize(
    ("bandwidth", "capacity", "values", "whole"),
    [
        (("measured", True), ("measured", True), ("", ""), " (measured, estimate)"),
        (("measured", False), ("measured", True), (" (measured)", " (measured, estimate)"), ""),
        (("measured", True), (None, True), (" (measured, estimate)", " (estimate)"), ""),
        (("measured", False), ("derived", False), (" (measured)", " (derived)"), ""),
        ((None, False), (None, False), ("", ""), ""),
    ],
)
def test_how_a_number_was_read_is_said_once_or_beside_each(bandwidth, capacity, values, whole):
    found = rooflines.explain(*EXAMPLE.split())
    marks = {"memory.hbm.bytes_per_s": bandwidth, "memory.hbm.capacity_bytes": capacity}
    numbers: list[Any] = [
        {**number, "confidence": confidence, "estimate": estimate, "source": "a", "label": None}
        for number in found.numbers
        if number["path"] in marks
        for confidence, estimate in [marks[number["path"]]]
    ]
    shown = " ".join(str(replace(found, numbers=numbers)).partition("Sources for")[2].split())
    assert f"hbm 3.35 TB/s{values[0]}, 85.02 GB{values[1]}: a{whole}" in shown


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_one_part_more_than_is_named_is_named_too(number):
    parts = [Part(f"part-{n}", float(n), "") for n in range(1, number + 1)]
    labels = [line.label for line in longest_parts(parts, 15, max_parts=2)]
    longest = [f"part-{n}" for n in range(number, 0, -1)]
    most = [*longest[:2], f"{number - 2} others"]
    assert labels == (longest if number <= 3 else most)


@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_shortest_time_has_a_bar_too(ascii_only):
    found = rooflines.explain("h100-sxm", "1x1x1048576", "bf16")
    assert found.row["t_math_s"] < found.row["t_memory_s"] / 500
    (line,) = (
        line
        for line in found.screen().text(ascii_only=ascii_only).splitlines()
        if line.startswith("  compute ")
    )
    assert ("#" if ascii_only else "▏") in line


def test_what_is_offered_makes_it_faster():
    """No lower peak, and no dtypes that are compute-bound because they compute more slowly."""
    for asked in CASES:
        remedies = asked.output.partition("each alone:")[2]
        assert " at most " not in remedies.partition("Sources for")[0]
    found = rooflines.explain("h100-sxm", "256x8192x8192", "bf16-out-fp32")
    slower = [each for each in found.dtypes if each["t_lower_s"] >= found.row["t_lower_s"]]
    offered = str(found).partition("  dtypes ")[2].partition("Sources for")[0]
    assert any(each["bound"] == "compute" for each in slower)
    assert not [each["dtypes"] for each in slower if f" {each['dtypes']} " in offered]


SAME = case("explained/same")


@pytest.mark.parametrize("question", SAME)
def test_a_question_may_be_asked_in_other_words(question, capsys):
    expected = said(capsys, "explain", *question.split())
    for words in SAME[question]:
        assert said(capsys, "explain", *shlex.split(words)) == expected, words


def test_no_word_can_be_two_things():
    aliases = [alias for entry in model_entries().values() for alias in entry.aliases]
    names = [
        *chip_entries(),
        *dtype_entries().combinations,
        *NAMED_OPERATIONS,
        *model_entries(),
        *aliases,
    ]
    assert len(names) == len(set(names))
    assert not [name for name in names if name[0].isdigit() or "=" in name or "->" in name]


def test_names_are_taken_as_people_type_them(capsys):
    for chip, note in (
        ("h100", "h100 is taken as h100-sxm, the usual one; others: h100-pcie, h100-nvl"),
        ("h200", "h200 is taken as h200-sxm, the usual one; others: h200-nvl"),
        ("MI300X", ""),
        ("v5e", "v5e is taken as tpu-v5e"),
        ("4090", "4090 is taken as rtx-4090"),
        ("trillium", "trillium is taken as tpu-v6e"),
        ("A100-SXM4-80GB", ""),
    ):
        assert run(["explain", chip, "128x8192x8192", "bf16"]) == 0
        assert capsys.readouterr().err.strip() == note


def test_a_config_json_is_a_model(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config_of("llama-3.1-8b")), encoding="utf-8")
    model = models.load("llama-3.1-8b")
    expected = rooflines.explain_model("h100-sxm", model, B=8, S=1024).row
    for named in (path, tmp_path):
        shown = said(capsys, "explain", "h100-sxm", str(named), "B=8", "S=1024", "--json")
        row = json.loads(shown)["row"]
        assert row["max_B"] == model.max_batch(85018279936, 1024, "bf16")
        assert row["t_lower_s"] == expected["t_lower_s"]


def test_a_folder_with_the_name_of_a_chip_is_no_model(tmp_path, capsys, monkeypatch):
    for name in ("h100-sxm", "bf16", "128x8192x8192"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    monkeypatch.chdir(tmp_path)
    for words in ("h100-sxm dot 1024 bf16", MODEL):
        assert said(capsys, "explain", *words.split()).startswith("h100-sxm · ")


@pytest.mark.parametrize("wrong", WRONG["model"])
def test_a_wrong_question_about_a_model_is_a_rooflines_error(wrong):
    asked = {"chip": "h100-sxm", "model": "llama-3.1-70b", "B": 1, "S": 64, **wrong}
    with pytest.raises(rooflines.RooflinesError):
        rooflines.explain_model(**asked)


@pytest.mark.parametrize("wrong", WRONG["operation"])
def test_a_wrong_question_is_a_rooflines_error(wrong):
    asked = {"chip": "h100-sxm", "sizes": "1x2x3", "dtypes": "bf16", **wrong}
    with pytest.raises(rooflines.RooflinesError):
        rooflines.explain(**asked)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (EXAMPLE, lambda: rooflines.explain("h100-sxm", "128x8192x8192", "bf16")),
        (
            MODEL,
            lambda: rooflines.explain_model(
                "h100-sxm", "llama-3.1-70b", B=64, S=8192, split={"tp": 8}
            ),
        ),
    ],
)
def test_the_answer_of_python_is_that_of_the_command(words, answer, capsys):
    found = answer()
    assert json.loads(said(capsys, "explain", *words.split(), "--json")) == found.to_dict()
    assert str(found) == said(capsys, "explain", *words.split()).rstrip()
    assert found.screen().text(ascii_only=True).isascii()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (EXAMPLE, rooflines.OperationAnswer),
        (MODEL, rooflines.ServingAnswer),
        (f"{MODEL} --phase train", rooflines.TrainingAnswer),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_json_has_the_numbers_of_its_kind_of_answer(words, kind, capsys):
    found = json.loads(said(capsys, "explain", *words.split(), "--json"))
    names = [field.name for field in dataclasses.fields(kind)]
    assert list(found) == ["kind", *names, "time_s"]
    assert f"{found['kind'].title()}Answer" == kind.__name__


@pytest.mark.parametrize(
    ("words", "unwanted"), [(EXAMPLE, ""), (MODEL, ""), (EXAMPLE, "1")], ids=str
)
def test_a_terminal_has_colour_unless_it_is_unwanted(words, unwanted, capsys, tmp_path):
    asked = ("explain", *words.split())
    status, text = on_a_terminal(tmp_path, *asked, PYTHONUTF8="1", NO_COLOR=unwanted)
    assert status == 0
    assert re.sub(r"\x1b\[\d*m", "", text).endswith(said(capsys, *asked))
    assert ("\x1b[" in text) == (not unwanted)


def test_a_pipe_without_utf8_gets_plain_ascii():
    command = [sys.executable, "-m", "rooflines", "explain", *EXAMPLE.split()]
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    piped = subprocess.run(command, env=env, capture_output=True, check=True)
    answer = rooflines.explain("h100-sxm", "128x8192x8192", "bf16")
    assert piped.stdout.decode("ascii").rstrip() == answer.screen().text(ascii_only=True)
    assert b"###" in piped.stdout
    assert b"\x1b" not in piped.stdout
    early = [*command, "--json"]
    with subprocess.Popen(early, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_help_is_quick_and_shows_examples_that_work(capsys):
    code = (
        "import sys; from rooflines.cli.main import run\n"
        "assert [run([word]) for word in ('-h', '--version')] == [0, 0]\n"
        "assert not {'polars', 'pydantic', 'yaml'} & set(sys.modules)\n"
        "assert run(['explain', '--help']) == 0"
    )
    printed = python("-c", code).stdout
    assert f"rooflines {rooflines.__version__}" in printed
    examples = re.findall(r"^ +rooflines explain (.*)$", printed, flags=re.MULTILINE)
    assert len(examples) >= 4
    for example in examples:
        said(capsys, "explain", *shlex.split(example))
    assert set(SHARDINGS) == set(SHARDED) - {"none"}
    assert all(f"  {name:<27}{meaning}" in printed for name, meaning in SHARDINGS.items())


def test_an_answer_loads_what_it_uses():
    rooms = ("charts", "config.schema", "measured", "serving", "traces")
    rows = ("kind_rows", "pools", "requests")
    unused = ["altair", "msgspec", "pyarrow", "snakemake"]
    unused += [f"rooflines.{name}" for name in rooms]
    unused += [f"rooflines.evaluation.{name}" for name in rows]
    question = "explain", "h100-sxm", "llama-3.1-70b", "bf16", "B=32", "S=8k"
    code = (
        "import sys; from rooflines.cli.main import run\n"
        f"assert run({question}) == 0 and 'rooflines.evaluation.step_rows' in sys.modules\n"
        f"assert not {{*{unused}}} & set(sys.modules)"
    )
    assert "70b decode B=32" in python("-c", code).stdout


def test_ctrl_c_is_one_line(capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflines.answers.explain.answer_of", interrupted)
    assert run(["explain", *EXAMPLE.split()]) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."


def test_the_largest_sizes_still_fit_a_screen():
    sizes = {"A": 2**53, "B": 2**53, "C": 2**53}
    text = str(rooflines.explain("h100-sxm", sizes, "bf16", operation="AB,BC->AC"))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "1.46e+48 FLOP at 989 TFLOP/s" in text
