"""Any config or catalogue gives a valid table or one message; bombs are refused at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import fuzzing
import mutations
import pytest
import valid_files
from hypothesis import HealthCheck, given, settings
from test_wrong_input import FILE, VALID, assert_form, message_of

import rooflines
from rooflines.basics.yaml_file import LARGEST_FILE
from rooflines.run import plan as parts
from rooflines.run.plan import plan
from rooflines.run.workflow import check_configfiles
from rooflines.sweep.rows import OperationTable

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _own_catalogue():
    with fuzzing.real_catalogues():
        yield


@settings(
    max_examples=60,  # `make verify` draws 20,000
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(case=mutations.cases())
def test_whatever_is_read_ends_in_a_valid_table_or_in_one_message(case):
    """No other exception, no hang, at most 2 GiB of memory, no file outside the results."""
    with tempfile.TemporaryDirectory() as folder, fuzzing.little_memory():
        assert fuzzing.outcome(case, Path(folder)) in ("table", "message")


@pytest.mark.parametrize("config", valid_files.CONFIGS)
def test_what_is_mutated_is_valid(config, tmp_path):
    assert fuzzing.outcome(mutations.Case(config.encode()), tmp_path) == "table"


@pytest.mark.parametrize("event", ["open", "mkdir", "Popen"])
def test_a_file_outside_and_a_program_are_noticed(event, tmp_path):
    (tmp_path / "results").mkdir()

    def trespass():
        with fuzzing.watched(tmp_path / "results"):
            (tmp_path / "results" / "inside").write_text("fine", encoding="utf-8")
            if event == "open":
                (tmp_path / "outside").write_text("not fine", encoding="utf-8")
            elif event == "mkdir":
                (tmp_path / "outside").mkdir()
            else:
                subprocess.run([sys.executable, "-c", ""], check=True)

    with pytest.raises(AssertionError, match=event):
        trespass()


def test_a_hang_and_a_bomb_are_noticed():
    with pytest.raises(TimeoutError), fuzzing.within(0.1):
        time.sleep(5)
    with pytest.raises(TimeoutError), fuzzing.within(0.5):
        any(number < 0 for number in count())
    with pytest.raises(MemoryError), fuzzing.little_memory(2**28):
        bytearray(2**30)


# ---------------------------------------------------------------- names and YAML


@pytest.mark.parametrize(
    "name",
    ["../x", "..", "/etc/x", "a/b", "a\\b", ".hidden", "-x", "x\0", "x\n", "~", "x" * 101, "", "é"],
)
@pytest.mark.parametrize("place", ["sweep", "chip", "memory", "network", "chart"])
def test_a_name_cannot_climb_out_of_its_folder(place, name):
    sweep: dict[str, Any] = {
        "operation": "matmul",
        "grid": {"B": 1, "D": 1, "F": 1},
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
    }
    config: dict[str, Any] = {"sweeps": {"fine": sweep}, "charts": []}
    if place == "sweep":
        config["sweeps"] = {name: sweep}
    elif place == "chip":
        config["chips"] = {name: {"base": "h100-sxm", "source": "me"}}
    elif place == "memory":
        sweep["memory"] = name
    elif place == "network":
        sweep["network"] = name
    else:
        config["charts"] = [{"chart": "roofline", "sweep": "fine", "id": name}]
    with pytest.raises(rooflines.RooflinesError, match=r"which is no name|nothing is split"):
        rooflines.load_config(config)


TAGS = (
    *(
        "!!python/object/apply:os.getcwd []",
        "!!python/object/new:os.system [id]",
        "!!python/name:os.system ''",
        "!!python/module:os ''",
    ),
    *(
        "!!binary aGk=",
        "!!set {a, b}",
        "!!omap [a: 1]",
        "!!pairs [a: 1]",
        "!own 5",
        "!<tag:elsewhere,2000:x> 5",
    ),
)


MISFITS = (
    *(
        "!!int",
        "!!int ''",
        "!!int _",
        "!!int many",
        "!!float",
        "!!float _",
        "!!bool",
        "!!bool maybe",
        "!!timestamp",
        "!!timestamp today",
    ),
    *(
        "2001-13-45",
        "!!map [1]",
        "!!map x",
        "!!seq {a: 1}",
        "!!seq x",
        "!!str [a]",
        "!!null {a: 1}",
    ),
)


@pytest.mark.parametrize("value", [*TAGS, *MISFITS])
def test_yaml_builds_plain_data_alone(value, tmp_path):
    message = message_of(VALID.replace("D: 512", f"D: {value}"), tmp_path)
    assert_form(message, FILE)
    assert "line 6" in message


ENDLESS = "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else '1'}]\n" for n in range(12)
)
DEEP = {
    "brackets": "sweeps: " + "[" * 100_000,
    "braces": "sweeps: " + "{a: " * 100_000,
    "indentation": "".join(" " * depth + "a:\n" for depth in range(2_000)),
    "dashes": "- " * 100_000,
    "questions": "? " * 100_000,
    "closed": "sweeps: " + "[" * 50_000 + "]" * 50_000,
    "quoted": "sweeps: " + "{'a': " * 50_000 + "1" + "}" * 50_000,
}
BOMBS = {
    **DEEP,
    "a billion laughs": ENDLESS + "sweeps: *a11\n",
    "laughs in a merge": "x: &x {a: 1}\n"
    + "".join(f"y{n}: &y{n} {{<<: [{', '.join(['*x'] * 200)}]}}\n" for n in range(200)),
    "a list without end": "sweeps: [" + "a," * 1_000_000 + "]",
    "a number without end": VALID.replace("512", "1" * 1_000_000),
    "a number without end as text": VALID.replace("512", f"'{'1' * 1_000_000}'"),
    "a tile without end": VALID.replace("unit: matrix", f"tile: {{B: '{'1' * 5_000}'}}"),
    "hexadecimal without end": VALID.replace("512", "0x" + "f" * 1_000_000),
    "minutes without end": VALID.replace("512", ":".join(["59"] * 10_000)),
    "a key without end": VALID.replace("charts:", f"{'a' * 1_000_000}:"),
    "a fine range": VALID.replace(
        "[1, 2, 4]", "{from: 1, to: 9007199254740992, factor: 1.0000000000000002}"
    ),
    "a fine step": VALID.replace("[1, 2, 4]", "{from: 1, to: 9007199254740992, step: 1.0e-300}"),
    "a quintillion rows": VALID.replace("[1, 2, 4]", "{from: 1, to: 1.0e+9, step: 1}").replace(
        "D: 512", "D: {from: 1, to: 1.0e+9, step: 1}"
    ),
    "parts without end": VALID.replace("[1, 2, 4]", "{from: 1, to: 1000000, step: 1}").replace(
        "unit: matrix", "rows_per_part: 9"
    ),
    "thresholds without end": VALID.replace("D: 512", "D: {from: 1, to: 1000000, step: 1}").replace(
        "dtypes: [bf16]",
        "dtypes: [bf16, w8a16, w4a16, {x: bf16, w: fp8, out: bf16, compute: bf16}, "
        "w-mxfp4-x-bf16, w-nvfp4-x-bf16]",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_goes_off(name, tmp_path):
    """One message within 5 s and 256 MiB."""
    start = time.perf_counter()
    with fuzzing.little_memory(2**28):
        message = message_of(BOMBS[name], tmp_path)
    assert time.perf_counter() - start < 5
    assert_form(message, FILE, mistakes=None)
    assert len(message) < 5000


def test_a_config_of_100_megabytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / FILE
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with (
        pytest.raises(rooflines.RooflinesError, match="more than 1,048,576 bytes"),
        fuzzing.little_memory(2**25),
    ):
        rooflines.load_config(path)


def test_a_config_may_have_a_mebibyte(tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID.ljust(LARGEST_FILE, "#"), encoding="utf-8")
    assert list(rooflines.load_config(path).sweeps) == ["mlp"]
    path.write_text(VALID.ljust(LARGEST_FILE + 1, "#"), encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError, match="more than 1,048,576 bytes"):
        rooflines.load_config(path)


def test_a_device_without_end_is_refused():
    with (
        pytest.raises(rooflines.RooflinesError, match="/dev/zero has more than 1,048,576 bytes"),
        fuzzing.little_memory(2**25),
    ):
        rooflines.load_config("/dev/zero")


@pytest.mark.parametrize("command", [["cat", FILE], ["yes"]], ids=["a config", "without end"])
def test_a_pipe_is_a_config_if_it_ends(command, tmp_path):
    (tmp_path / FILE).write_text(VALID, encoding="utf-8")
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as writer:
        assert writer.stdout
        source = f"/dev/fd/{writer.stdout.fileno()}"
        if command == ["yes"]:
            with pytest.raises(rooflines.RooflinesError, match="more than 1,048,576 bytes"):
                rooflines.load_config(source)
        else:
            assert list(rooflines.load_config(source).sweeps) == ["mlp"]


@pytest.mark.parametrize("source", ["pipe", "/dev/zero"])
def test_a_run_refuses_a_config_that_can_be_read_once_only(source, tmp_path):
    if source == "pipe":
        source = str(tmp_path / source)
        os.mkfifo(source)
    with pytest.raises(SystemExit) as checked:
        check_configfiles(["--cores", "1", "--configfile", source])
    assert_form(str(checked.value), source)
    assert "is a pipe or a device" in str(checked.value)


AMBIGUOUS = dict(
    pair.split("=")
    for pair in (
        *(
            "1:30=90",
            "1:30.5=90.5",
            "12:30:00=45000",
            "017=15",
            "-017=-15",
            "00=0",
            "007.5=7.5",
            "0_7=7",
        ),
        *("1__0=10", "1_=1", "1__0e3=10000.0", "1_.5=1.5", "0x_1f=31"),
    )
)
"""Text that YAML 1.1 reads as an unexpected number, and that number."""


@pytest.mark.parametrize("text", AMBIGUOUS)
@pytest.mark.parametrize("place", ["D: 512", "name: My chip", "  mlp:"])
def test_a_number_that_yaml_reads_as_another_one_is_refused(text, place, tmp_path):
    found = f"  {text}:" if place == "  mlp:" else f"{place.partition(':')[0]}: {text}"
    message = message_of(VALID.replace(place, found, 1), tmp_path)
    assert_form(message, FILE)
    column = VALID.split(place)[0].rpartition("\n")[2] + found
    line = VALID.split(place)[0].count("\n") + 1
    assert (
        f"line {line}, column {column.rindex(text) + 1} has {text}, "
        f"which YAML reads as {AMBIGUOUS[text]}." in message
    )


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_text_in_the_form_of_such_a_number_is_text_in_quotes(text, tmp_path):
    (tmp_path / FILE).write_text(VALID.replace("My chip", f"'{text}'"), encoding="utf-8")
    assert rooflines.load_config(tmp_path / FILE).chips["mine"].name == text
    (tmp_path / FILE).unlink()
    message = message_of(VALID.replace("D: 512", f"D: '{text}'"), tmp_path)
    assert f"sweeps.mlp.grid.D is '{text}', which is no number." in message


@pytest.mark.parametrize(
    ("text", "size"),
    [("0x10", 16), ("0b11", 3), ("+512", 512), ("5_1_2", 512), ("5.12e02", 512), ("'1_000'", 1000)],
)
def test_a_number_that_can_be_read_in_one_way_is_read(text, size, tmp_path):
    (tmp_path / FILE).write_text(VALID.replace("D: 512", f"D: {text}"), encoding="utf-8")
    assert rooflines.rows(rooflines.load_config(tmp_path / FILE), "mlp").collect()[
        "D"
    ].unique().to_list() == [size]


def test_the_description_of_parts_is_bounded(tmp_path, monkeypatch):
    assert parts.MOST_CHARACTERS <= fuzzing.MEMORY / 8
    monkeypatch.setattr(parts, "MOST_CHARACTERS", 10**6)
    shapes = ", ".join(f"{{name: s{number}, F: {number + 1}}}" for number in range(500))
    text = VALID.replace("      F: D\n", f"    shapes: [{shapes}]\n")
    message = message_of(text.replace("unit: matrix", "rows_per_part: 3"), tmp_path)
    assert "sweeps.mlp.rows_per_part" in message
    assert_form(message, FILE)
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    assert len(plan(rooflines.load_config(tmp_path / FILE)).parts) == 1


def test_a_sweep_as_long_as_it_may_be_stays_within_the_memory():
    """The longest axis, a million sizes, is planned, and its ends computed, in 512 MiB."""
    longest = {"from": 1, "to": 2**20, "step": 1}
    sweep = {
        "operation": "matmul",
        "grid": {"B": longest, "D": longest, "F": 8},
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
        "thresholds": [],
    }
    with fuzzing.little_memory(2**29), fuzzing.within(fuzzing.SECONDS):
        config = rooflines.load_config(
            {"sweeps": {"long": {**sweep, "rows_per_part": 2**31}}, "charts": []}
        )
        assert len(plan(config).parts) == 2**9
        last = OperationTable(config.sweep("long")).frame(2**40 - 3, 2**40).collect()
    assert last["D"].to_list() == [2**20 - 2, 2**20 - 1, 2**20]
    assert last["B"].to_list() == [2**20] * 3
