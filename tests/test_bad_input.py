"""Any config or catalogue gives a table or a message, in 20 s and 2 GiB; it writes nowhere else."""

import os
import re
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import effort
import fuzzing
import mutations
import pytest
import valid_files
from case_files import case
from hypothesis import given, seed, settings
from messages import assert_form
from test_wrong_input import FILE, message_of, refused
from valid_files import ONE_SWEEP, PLAIN

import rooflines
from rooflines.basics.json_text import plain_json
from rooflines.basics.yaml_file import MAX_YAML_BYTES
from rooflines.basics.yaml_loader import plain_data
from rooflines.evaluation.row_frames import OperationTable
from rooflines.run.plan import plan

YAML = case("yaml")


@pytest.fixture(autouse=True)
def _own_catalogue():
    with fuzzing.real_catalogues():
        yield


@pytest.mark.parametrize("batch", range(20 if effort.THOROUGH else 1))
def test_whatever_is_read_ends_in_a_valid_table_or_in_one_message(batch):
    """No other exception, no hang, at most 2 GiB of memory, no file outside the results."""
    ends: Counter[str] = Counter()

    @seed(f"{os.environ['ROOFLINES_SEED']} {batch}")
    @settings(max_examples=effort.cases(200))
    @given(case=mutations.cases())
    def draw(case):
        with tempfile.TemporaryDirectory() as folder:
            ends[fuzzing.outcome(case, Path(folder))] += 1

    with fuzzing.little_memory():
        draw()
    assert set(ends) <= {"table", "message"}
    assert not effort.THOROUGH or min(ends["table"], ends["message"]) >= 20


@pytest.mark.parametrize("config", valid_files.CONFIGS)
def test_what_is_mutated_is_valid(config, tmp_path):
    assert fuzzing.outcome(mutations.Case(config.encode()), tmp_path) == "table"


@pytest.mark.parametrize("wrong", ["7: Nobody", "kind: [book]", "kind: 7"])
def test_a_document_of_the_catalogue_has_texts_alone(wrong, tmp_path):
    chips = valid_files.CHIPS.replace("kind: book", wrong)
    given = mutations.Case(ONE_SWEEP.encode(), chips=chips.encode())
    assert fuzzing.outcome(given, tmp_path) == "message"


def test_a_file_outside_a_hang_and_a_bomb_are_noticed(tmp_path):
    def trespass():
        with fuzzing.watched(tmp_path / "results"):
            (tmp_path / "outside").write_text("not fine", encoding="utf-8")

    with pytest.raises(AssertionError, match="open"):
        trespass()
    with pytest.raises(TimeoutError), fuzzing.within(0.5):
        any(number < 0 for number in count())
    with pytest.raises(MemoryError), fuzzing.little_memory(2**28):
        bytearray(2**30)


CLIMBING = ["../x", "..", "/etc/x", "a\\b", ".hidden", "-x", "x\0", "x\n", "~", "x" * 101, "", "é"]


@pytest.mark.parametrize("place", ["sweep", "chip", "memory", "network", "chart"])
def test_a_name_cannot_climb_out_of_its_folder(place):
    sweep = PLAIN["sweeps"]["mlp"]
    for name in CLIMBING:
        changes: dict[str, dict[str, Any]] = {
            "sweep": {"sweeps": {name: sweep}},
            "chip": {"chips": {**PLAIN["chips"], name: {"base": "h100-sxm", "source": "me"}}},
            "memory": {"sweeps": {"mlp": {**sweep, "memory": name}}},
            "network": {"sweeps": {"mlp": {**sweep, "network": name}}},
            "chart": {"charts": [{"chart": "roofline", "sweep": "mlp", "id": name}]},
        }
        message = str(refused({**PLAIN, **changes[place]}))
        assert re.search("which is no name|nothing is split", message), message


@pytest.mark.parametrize("value", YAML["refused"])
def test_yaml_builds_plain_data_alone(value, tmp_path):
    message = message_of(ONE_SWEEP.replace("D: 512", f"D: {value}"), tmp_path)
    assert_form(message, FILE)
    assert f"{FILE}:6:" in message or f"{FILE}: line 6" in message


@pytest.mark.parametrize("text", YAML["ambiguous"])
def test_what_yaml_reads_as_another_number_is_text(text, tmp_path):
    message = message_of(ONE_SWEEP.replace("D: 512", f"D: {text}"), tmp_path)
    assert f"{FILE}:6: sweeps.mlp.grid.D is {text!r}, which is no number." in message
    (tmp_path / FILE).write_text(ONE_SWEEP.replace("name: My chip", f"name: {text}"))
    assert rooflines.load_config(tmp_path / FILE).chips["mine"].name == text


LAUGHS = "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else '1'}]\n" for n in range(12)
)
MANY = "[1, 2, 4]", "{from: 1, to: 1000000, step: 1}"
BOMBS = {
    "brackets": "sweeps: " + "[" * 500_000,
    "indentation": "".join(" " * depth + "a:\n" for depth in range(1_400)),
    "dashes": "- " * 100_000,
    "closed": "sweeps: " + "{'a': " * 50_000 + "1" + "}" * 50_000,
    "a billion laughs": LAUGHS + "sweeps: *a11\n",
    "laughs in a merge": "x: &x {a: 1}\n"
    + "".join(f"y{n}: &y{n} {{<<: [{', '.join(['*x'] * 200)}]}}\n" for n in range(200)),
    "a number without end": ONE_SWEEP.replace("512", "1" * 1_000_000),
    "hexadecimal without end": ONE_SWEEP.replace("512", "0x" + "f" * 1_000_000),
    "a key without end": ONE_SWEEP.replace("charts:", f"{'a' * 1_000_000}:"),
    "a fine range": ONE_SWEEP.replace(
        MANY[0], "{from: 1, to: 9007199254740992, factor: 1.0000000000000002}"
    ),
    "a quintillion rows": ONE_SWEEP.replace(MANY[0], "{from: 1, to: 1.0e+9, step: 1}").replace(
        "D: 512", "D: {from: 1, to: 1.0e+9, step: 1}"
    ),
    "parts without end": ONE_SWEEP.replace(*MANY).replace("unit: matrix", "rows_per_part: 9"),
    "thresholds without end": ONE_SWEEP.replace("D: 512", f"D: {MANY[1]}").replace(
        "[bf16]", "[bf16, w8a16, w4a16, int8-out-bf16, w-mxfp4-x-bf16, w-nvfp4-x-bf16]"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_goes_off(name, tmp_path):
    with fuzzing.little_memory(2**28), fuzzing.within(fuzzing.SECONDS):
        message = message_of(BOMBS[name], tmp_path)
    assert_form(message, FILE, mistakes=None)
    assert len(message) < 6000


def test_nesting_without_end_is_refused_in_python_too():
    deep = 1
    for _ in range(50_000):
        deep = [deep]  # type: ignore[assignment]
    grid = {"B": 1, "D": deep}
    error = refused({**PLAIN, "sweeps": {"mlp": {**PLAIN["sweeps"]["mlp"], "grid": grid}}})
    assert "sweeps.mlp.grid.D" in str(error)


def test_a_config_may_have_a_mebibyte(tmp_path):
    path, most = tmp_path / FILE, "more than 1,048,576 bytes"
    path.write_text(ONE_SWEEP.ljust(MAX_YAML_BYTES, "#"), encoding="utf-8")
    assert list(rooflines.load_config(path).sweeps) == ["mlp"]
    with path.open("ab") as file:
        file.truncate(100 * 2**20)
    with fuzzing.little_memory(2**25):
        assert most in str(refused(path))
        assert most in str(refused("/dev/zero"))


def test_a_sweep_as_long_as_it_may_be_stays_within_the_memory():
    """The longest axis, a million sizes, is planned, and its ends computed, in 512 MiB."""
    longest = {"from": 1, "to": 2**20, "step": 1}
    sweep = PLAIN["sweeps"]["mlp"] | {"grid": {"B": longest, "D": longest, "F": 8}}
    sweep |= {"thresholds": [], "rows_per_part": 2**31}
    with fuzzing.little_memory(2**29), fuzzing.within(fuzzing.SECONDS):
        config = rooflines.load_config({**PLAIN, "sweeps": {"long": sweep}})
        assert len(plan(config).parts) == 2**9
        for end in (2**32, 2**32 + 2**20, 2**40):
            last = OperationTable(config.sweep("long")).frame(end - 3, end).collect()
            assert last["D"].to_list() == [2**20 - 2, 2**20 - 1, 2**20]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -2.5, 1e5, 1E-3, true, null, "1e5"], "b": {"<<": {}, "yes": "no"}}',
        '{"a": "\\/ \\t\\n é", "2024-01-01": "~"}\n',
        "{}",
    ],
)
def test_json_is_read_as_yaml_reads_it(text):
    assert plain_json(text) == plain_data(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": "\\ud83d\\ude00"}',
        '{"a": "\x7f"}',
        "{a: 1}",
        "[1]",
        '{"a": ' * 60 + "1" + "}" * 60,
        '{"a": 1',
        f'{{"a": [{"0, " * 300_000}0]}}',
    ],
)
def test_what_json_and_yaml_read_apart_is_left_to_yaml(text):
    assert plain_json(text) is None


def test_a_mistake_in_json_of_one_line_is_in_line_one(tmp_path):
    path = tmp_path / "one.json"
    path.write_text('{"swepes": {"a": 1}}', encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError, match=r"one\.json:1: swepes"):
        rooflines.load_config(path)
