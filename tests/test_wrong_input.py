"""Wrong input gets one message: file, key, value, reason and fix.

The mistakes are rows of tests/cases/wrong.yaml, each of them one change of a valid config.
"""

import copy
import json
import re
from typing import Any

import pytest
import yaml
from case_files import case, config
from hf_configs import small
from messages import assert_form
from run_folder import SNAKEFILE
from valid_files import ONE_SWEEP, PLAIN

import rooflines
from rooflines.basics.errors import key_path, quote
from rooflines.config.lists import as_list
from rooflines.run.plan import plan
from rooflines.run.snakemake.workflow import plan_or_exit

FILE = "wrong.yaml"
WRONG, SKIPPED = case("wrong"), case("skipped")

MODELS: dict[str, Any] = {
    "models": ["llama-3.1-8b"],
    "grid": {"B": [1, 8], "S": 1024},
    "dtypes": ["bf16"],
    "chips": ["h100-sxm"],
}
OPERATION: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": 8},
    "dtypes": "bf16",
    "chips": "h100-sxm",
}


def text_of(wrong):
    """The text of a wrong config: a row's own, or a valid one with its changes."""
    if "text" in wrong:
        return wrong["text"]
    for kind, key, sweep in (
        ("models", "model-sweeps", MODELS),
        ("operation", "sweeps", OPERATION),
    ):
        if kind in wrong:
            return yaml.safe_dump({key: {"s": {**sweep, **wrong[kind]}}}, sort_keys=False)
    text = ONE_SWEEP if "old" in wrong else config("shared-sweep")
    for old, new in wrong.get("changes") or [[wrong["old"], wrong["new"]]]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def message_of(text, folder):
    """The message for a wrong config; checks that no file was written."""
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError) as caught:
        plan(rooflines.load_config(path))
    assert [entry.name for entry in folder.iterdir()] == [FILE]
    return str(caught.value)


def refused(source):
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(source)
    return caught.value


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["name"])
def test_a_mistake_is_refused_with_its_place_and_a_fix(wrong, tmp_path):
    message = message_of(text_of(wrong), tmp_path)
    assert_form(message, FILE, wrong.get("mistakes", 1))
    missing = [piece for piece in wrong["says"] if piece not in message]
    assert not missing, f"{missing} not in:\n{message}"
    if close := set(wrong.get("close", ())):
        (offered,) = [line for line in message.splitlines() if line.startswith("  close to it: ")]
        assert close <= set(re.split(r"[ ,]+", offered)), message


FABRICS = {
    "fabric": {"bytes_per_s": 4.5e11, "topology": "switch", "domain": 8},
    "unknown": {"bytes_per_s": 4.5e10, "topology": "switch"},
    "mesh": {"bytes_per_s": 4.5e10, "links": 7, "topology": "mesh"},
}


@pytest.mark.parametrize("row", SKIPPED, ids=lambda row: row["name"])
def test_what_no_chip_can_do_is_skipped_with_the_reason(row):
    form = copy.deepcopy(PLAIN)
    if "operation" in row:
        form["sweeps"]["mlp"] |= row["operation"]
        form["chips"]["mine"]["networks"] |= FABRICS
    else:
        form = {"model-sweeps": {"s": {**MODELS, **row["models"]}}}
    (found,) = rooflines.skipped(rooflines.load_config(form)).to_dicts()
    for key, value in row["row"].items():
        assert found[key].startswith(value) if key == "reason" else found[key] == value


def expected(text, mark):
    """Line and key path of every line with a mark."""
    lines = enumerate(text.splitlines(), 1)
    return [(line, words.split(mark)[1]) for line, words in lines if mark in words]


@pytest.mark.parametrize(("kind", "mark"), [("form", "# ! "), ("meaning", "# ? ")])
def test_all_mistakes_are_found_in_one_run_in_the_order_of_their_lines(kind, mark, tmp_path):
    """Mistakes in meaning, once every key has its form."""
    path, text = tmp_path / "my.yaml", config(f"mistakes-of-{kind}")
    path.write_text(text, encoding="utf-8")
    of_file, of_mapping = refused(path).errors, refused(yaml.safe_load(text)).errors
    assert [(error.line, error.where) for error in of_file] == expected(text, mark)
    assert len(of_file) >= 10
    assert {(e.where, e.problem, e.fix) for e in of_mapping} == {
        (e.where, e.problem, e.fix) for e in of_file
    }
    with pytest.raises(SystemExit) as caught:
        plan_or_exit(yaml.safe_load(text), [path])
    assert str(caught.value) == str(refused(path))


def at(form, path):
    """The value at a path of keys; None where a key is missing."""
    for key in path:
        known = isinstance(form, dict) and key in form
        form = form[key] if known or isinstance(form, list) else None
    return form


@pytest.mark.parametrize("kind", ["form", "meaning"])
def test_a_mistake_has_its_keys_and_its_wrong_value_as_data(kind):
    form = yaml.safe_load(config(f"mistakes-of-{kind}"))
    errors = [error for error in refused(form).errors if error.value is not None]
    assert len(errors) >= 5
    for error in errors:
        assert key_path(error.path) == error.where
        named = (error.value, [error.value])
        assert at(form, error.path) in named or error.path[-1] in named, error.where
        assert quote(error.value) in error.problem


def test_a_mistake_in_a_question_has_the_word_as_its_path():
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.explain_model("h100-sxm", "llama-3.1-8b", B=0, S=-8)
    assert [(error.path, error.value) for error in caught.value.errors] == [
        (("size B",), 0),
        (("size S",), -8),
    ]


@pytest.mark.parametrize(
    ("wrong", "listed", "last"), [(33, 33, "and 13"), (50_000, 1000, "and at least 980")]
)
def test_a_message_has_twenty_mistakes_and_the_number_of_the_others(wrong, listed, last):
    error = refused({f"k{number}": 1 for number in range(wrong)} | PLAIN)
    *lines, end = str(error).splitlines()
    assert end == f"{last} more mistakes."
    assert "\n".join(lines) == "\n".join(map(str, error.errors[:20]))
    assert len(error.errors) == listed


def test_a_missing_file_is_a_mistake_of_the_key_that_names_it(tmp_path):
    (tmp_path / "folder").mkdir()
    file = tmp_path / "my.yaml"
    file.write_text(config("names-files"), encoding="utf-8")
    fix = f"  fix: correct the path; a relative one starts at {tmp_path}."
    found = [
        (2, "calibrations[0]", "fits.yaml", "does not exist"),
        (3, "calibrations[1]", "folder", "is a directory"),
        (9, "model-sweeps.serve.models[0].hf", "one.json", "does not exist"),
        (10, "model-sweeps.serve.models[1].hf", "folder/config.json", "does not exist"),
        (16, "measurements.mine.file", "timings.csv", "does not exist"),
    ]
    assert str(refused(file)).splitlines() == [
        text
        for line, key, name, problem in found
        for text in (f"{file}:{line}: {key} names {tmp_path / name}, which {problem}.", fix)
    ]


@pytest.mark.parametrize("kind", ["missing", "a folder", "binary"])
def test_what_is_no_text_file_is_refused_by_name(kind, tmp_path):
    path = tmp_path / "mine.yaml"
    if kind == "a folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"sweeps: \xff\xfe\x00\n")
    assert_form(str(refused(path)), "mine.yaml")


def test_a_config_json_of_a_sweep_is_refused_by_its_path(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(small("llama", num_layer=3)))
    models = [{"name": "mine", "hf": "config.json"}]
    (tmp_path / FILE).write_text(
        yaml.safe_dump({"model-sweeps": {"s": {**MODELS, "models": models}}})
    )
    with pytest.raises(rooflines.RooflinesError, match=r"config.json.*num_layer is a key"):
        rooflines.load_config(tmp_path / FILE)


@pytest.mark.parametrize(
    ("old", "spellings"),
    [
        ("1.97e14", ("'1.97e14'", "1.97e+14", "197_000_000_000_000", "'197000000000000'")),
        ("D: 512", ("D: '512'", "D: 5.12e2", "D: 512.0", "D: 0x200", "D: +512", "D: 5_1_2")),
        ("thresholds: [B]", ("thresholds: B",)),
    ],
)
def test_a_value_in_any_spelling_is_that_value(old, spellings):
    first = None
    for spelling in (old, *spellings):
        config = rooflines.load_config(yaml.safe_load(ONE_SWEEP.replace(old, spelling)))
        found = rooflines.rows(config, "mlp").collect(), rooflines.thresholds(config, "mlp")
        first = found if first is None else first
        assert all(one.equals(other) for one, other in zip(found, first, strict=True))


def test_an_alias_is_the_value_it_stands_for(tmp_path):
    path, again = tmp_path / FILE, "  again:\n    <<: *mlp\n    dtypes: [w8a16]\nchips:\n  mine:"
    text = ONE_SWEEP.replace("  mlp:\n", "  mlp: &mlp\n").replace("chips:\n  mine:", again)
    path.write_text(text, encoding="utf-8")
    loaded = rooflines.load_config(path)
    assert [set(rooflines.rows(loaded, name).collect()["dtypes"]) for name in ("mlp", "again")] == [
        {"bf16"},
        {"w8a16"},
    ]


def test_a_config_is_left_as_it_was_given():
    given = {**PLAIN, "sweeps": {"mlp": {**PLAIN["sweeps"]["mlp"], "shards": ["1", 1.0][:1]}}}
    rooflines.load_config(given)
    assert given["sweeps"]["mlp"]["shards"] == ["1"]


@pytest.mark.parametrize("value", [b"abc", memoryview(b"abc"), range(1, 4), {1, 2}, object(), 1j])
def test_what_no_file_can_hold_is_refused_in_python(value):
    grid = {**PLAIN["sweeps"]["mlp"]["grid"], "D": value}
    error = refused({**PLAIN, "sweeps": {"mlp": {**PLAIN["sweeps"]["mlp"], "grid": grid}}})
    assert "sweeps.mlp.grid.D" in str(error)


def test_a_list_has_100_000_entries_at_most():
    assert as_list(list(range(100_000))) == list(range(100_000))
    with pytest.raises(rooflines.RooflinesError, match="has 100,001 entries"):
        as_list(list(range(100_001)))


def test_a_sweep_that_is_not_in_the_config_is_refused():
    with pytest.raises(rooflines.RooflinesError, match=r"'mpl'(.|\n)*mlp"):
        rooflines.rows(rooflines.load_config(PLAIN), "mpl")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ONE_SWEEP.replace("[mine]", "[h100]"), "sweeps.mlp.chips[0]"),
        ("sweeps:\n\tmlp: 1\n", "line 2"),
    ],
)
def test_snakemake_stops_before_any_job_with_that_one_message(text, says, tmp_path, snakemake):
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    run = snakemake(*SNAKEFILE, "--configfile", FILE, cwd=tmp_path)
    assert run.returncode != 0
    assert "Traceback" not in run.stdout
    assert run.stdout.count("  fix: ") == 1, run.stdout
    assert says in run.stdout
    assert {entry.name for entry in tmp_path.iterdir()} <= {FILE, ".snakemake"}
