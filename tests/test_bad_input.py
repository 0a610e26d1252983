"""Any config or catalogue gives a valid table or one message; bombs are refused at once."""

# All kinds of hostile input share fixtures that replace the catalogues: long, but one thing.

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import reduce
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fuzzing
import mutations
import polars as pl
import predicates
import pytest
from hostile import hostile_config, run_hostile
from hypothesis import HealthCheck, given, settings
from test_wrong_input import FILE, FULL, VALID, assert_form, message_of

import rooflines
from rooflines.basics.spreadsheet import is_formula
from rooflines.basics.yaml_file import LARGEST_FILE
from rooflines.catalogue import chips as catalogue
from rooflines.catalogue.entries import Level, Network, Peak, Power
from rooflines.catalogue.forms import numbers_of
from rooflines.catalogue.parts import source_in
from rooflines.results.table_index import write_index
from rooflines.results.tables import csv_text, write_csv
from rooflines.run import plan as parts
from rooflines.run.plan import plan
from rooflines.run.workflow import check_configfiles
from rooflines.sweep.rows import sweep_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Once, Snakemake

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _own_catalogue() -> Iterator[None]:
    """Restore the real catalogues afterwards."""
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
def test_whatever_is_read_ends_in_a_valid_table_or_in_one_message(case: mutations.Case) -> None:
    """No other exception, no hang, at most 2 GiB of memory, no file outside the results."""
    with tempfile.TemporaryDirectory() as folder, fuzzing.little_memory():
        assert fuzzing.outcome(case, Path(folder)) in ("table", "message")


@pytest.mark.parametrize("config", mutations.CONFIGS)
def test_what_is_mutated_is_valid(config: str, tmp_path: Path) -> None:
    """The configs and catalogues that are mutated give tables."""
    assert fuzzing.outcome(mutations.Case(config.encode()), tmp_path) == "table"


@pytest.mark.parametrize("event", ["open", "mkdir", "Popen"])
def test_a_file_outside_and_a_program_are_noticed(event: str, tmp_path: Path) -> None:
    """The audit hook notices files and programs."""
    (tmp_path / "results").mkdir()

    def trespass() -> None:
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


def test_a_hang_and_a_bomb_are_noticed() -> None:
    """The bounds on time and memory hold."""
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
def test_a_name_cannot_climb_out_of_its_folder(place: str, name: str) -> None:
    """Names in paths and columns consist of lower-case letters, digits and hyphens."""
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
def test_yaml_builds_plain_data_alone(value: str, tmp_path: Path) -> None:
    """Tags of objects, sets or bytes, and tags that do not fit their value, are refused."""
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
    "keys without end": "sweeps: {" + "a," * 1_000_000 + "}",
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
def test_a_bomb_is_refused_before_it_goes_off(name: str, tmp_path: Path) -> None:
    """One message within 5 s and 256 MiB."""
    start = time.perf_counter()
    with fuzzing.little_memory(2**28):
        message = message_of(BOMBS[name], tmp_path)
    assert time.perf_counter() - start < 5
    assert_form(message, FILE, mistakes=None)
    assert len(message) < 5000


def test_a_config_of_100_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """At most the size of the largest config is read."""
    path = tmp_path / FILE
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with (
        pytest.raises(rooflines.RooflinesError, match="more than 2,097,152 bytes"),
        fuzzing.little_memory(2**25),
    ):
        rooflines.load_config(path)


def test_a_config_may_have_two_mebibytes(tmp_path: Path) -> None:
    """The last allowed byte is read, the next one is not."""
    path = tmp_path / FILE
    path.write_text(VALID.ljust(LARGEST_FILE, "#"), encoding="utf-8")
    assert list(rooflines.load_config(path).sweeps) == ["mlp"]
    path.write_text(VALID.ljust(LARGEST_FILE + 1, "#"), encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError, match="more than 2,097,152 bytes"):
        rooflines.load_config(path)


def test_a_device_without_end_is_refused() -> None:
    """Its size is unknown; it is read up to the size of the largest config."""
    with (
        pytest.raises(rooflines.RooflinesError, match="/dev/zero has more than 2,097,152 bytes"),
        fuzzing.little_memory(2**25),
    ):
        rooflines.load_config("/dev/zero")


@pytest.mark.parametrize("command", [["cat", FILE], ["yes"]], ids=["a config", "without end"])
def test_a_pipe_is_a_config_if_it_ends(command: list[str], tmp_path: Path) -> None:
    """As in `python analysis.py <(make-config)`: read like a file, and refused if it has no end."""
    (tmp_path / FILE).write_text(VALID, encoding="utf-8")
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as writer:
        assert writer.stdout
        source = f"/dev/fd/{writer.stdout.fileno()}"
        if command == ["yes"]:
            with pytest.raises(rooflines.RooflinesError, match="more than 2,097,152 bytes"):
                rooflines.load_config(source)
        else:
            assert list(rooflines.load_config(source).sweeps) == ["mlp"]


@pytest.mark.parametrize("source", ["pipe", "/dev/zero"])
def test_a_run_refuses_a_config_that_can_be_read_once_only(source: str, tmp_path: Path) -> None:
    """Snakemake and its jobs read the config again after the check."""
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
def test_a_number_that_yaml_reads_as_another_one_is_refused(
    text: str, place: str, tmp_path: Path
) -> None:
    """In a size, a name or a key: the message has line, column and the number YAML reads."""
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
def test_text_in_the_form_of_such_a_number_is_text_in_quotes(text: str, tmp_path: Path) -> None:
    """Quoted, it is a valid name, and an invalid number."""
    (tmp_path / FILE).write_text(VALID.replace("My chip", f"'{text}'"), encoding="utf-8")
    assert rooflines.load_config(tmp_path / FILE).chips["mine"].name == text
    (tmp_path / FILE).unlink()
    message = message_of(VALID.replace("D: 512", f"D: '{text}'"), tmp_path)
    assert f"sweeps.mlp.grid.D is '{text}', which is no number." in message


@pytest.mark.parametrize(
    ("text", "size"),
    [("0x10", 16), ("0b11", 3), ("+512", 512), ("5_1_2", 512), ("5.12e02", 512), ("'1_000'", 1000)],
)
def test_a_number_that_can_be_read_in_one_way_is_read(text: str, size: int, tmp_path: Path) -> None:
    """Hexadecimal and binary numbers and single underscores between digits are unambiguous."""
    (tmp_path / FILE).write_text(VALID.replace("D: 512", f"D: {text}"), encoding="utf-8")
    assert rooflines.rows(rooflines.load_config(tmp_path / FILE), "mlp").collect()[
        "D"
    ].unique().to_list() == [size]


def test_the_description_of_parts_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part has the description of its sweep; too many shapes times parts are refused."""
    assert parts.MOST_CHARACTERS <= fuzzing.MEMORY / 8
    monkeypatch.setattr(parts, "MOST_CHARACTERS", 10**6)
    shapes = ", ".join(f"{{name: s{number}, F: {number + 1}}}" for number in range(500))
    text = VALID.replace("      F: D\n", f"    shapes: [{shapes}]\n")
    message = message_of(text.replace("unit: matrix", "rows_per_part: 3"), tmp_path)
    assert "sweeps.mlp.rows_per_part" in message
    assert_form(message, FILE)
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    assert len(plan(rooflines.load_config(tmp_path / FILE)).parts) == 1


# ---------------------------------------------------------------- through Snakemake


@pytest.fixture(scope="module")
def hostile(once: Once) -> Path:
    """A run of a config whose texts are special in Snakemake and HTML; do not modify."""
    return once("hostile", run_hostile)


def test_names_notes_and_sources_pass_through_snakemake_unchanged(hostile: Path) -> None:
    """Special characters and tags stay text in tables, records and titles."""
    config = hostile_config()
    names = {shape["name"] for shape in config["sweeps"]["texts"]["shapes"]}
    results = hostile / "results"
    for name in ("tables/texts/part-00000.parquet", "thresholds.parquet"):
        assert set(pl.read_parquet(results / name)["shape"]) >= names
        found = rooflines.origin(results / name).sweeps["texts"]["chips"]["own"]
        assert (found["name"], found["note"]) == (
            config["chips"]["own"]["name"],
            config["chips"]["own"]["note"],
        )
    (drawn,) = json.loads((results / "charts/chips/index.json").read_text())
    assert drawn["title"][:40] == config["charts"][0]["title"][:40]


def test_a_report_runs_no_script_of_a_config(
    hostile: Path, tmp_path: Path, snakemake: Snakemake
) -> None:
    """The report has the title of the chart, with every `<` escaped."""
    done = snakemake(
        "--snakefile",
        ROOT / "Snakefile",
        "--configfile",
        "my.yaml",
        "--report",
        tmp_path / "report.zip",
        cwd=hostile,
    )
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(tmp_path / "report.zip") as packed:
        pages = {
            name: packed.read(name).decode() for name in packed.namelist() if name.endswith(".html")
        }
    (report,) = (text for name, text in pages.items() if name.endswith("report.html"))
    assert "alert(1)" in report
    assert [
        (name, tag)
        for name, text in pages.items()
        for tag in fuzzing.TEXTS
        if tag.startswith("<") and tag in text
    ] == []


# ---------------------------------------------------------------- mappings from Python


def test_a_config_is_left_as_it_was_given() -> None:
    """Loading a mapping does not modify it."""
    given = {**FULL, "sweeps": {"mlp": {**FULL["sweeps"]["mlp"], "shards": ["1", 2.0]}}}
    rooflines.load_config(given)
    assert given["sweeps"]["mlp"]["shards"] == ["1", 2.0]
    assert isinstance(given["sweeps"]["mlp"]["shards"][1], float)


@pytest.mark.parametrize(
    "value", [b"abc", bytearray(b"abc"), memoryview(b"abc"), range(1, 4), {1, 2}, object(), 1 + 2j]
)
def test_sizes_are_no_bytes(value: object) -> None:
    """Only a list is a list of sizes, not any other sequence."""
    grid = {**FULL["sweeps"]["mlp"]["grid"], "D": value}
    with pytest.raises(rooflines.RooflinesError, match=r"sweeps\.mlp\.grid\.D"):
        rooflines.load_config({**FULL, "sweeps": {"mlp": {**FULL["sweeps"]["mlp"], "grid": grid}}})


def test_nesting_without_end_is_refused_in_python_too() -> None:
    """A mapping from Python can nest deeper than any file."""
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(rooflines.RooflinesError, match=r"sweeps\.mlp\.grid\.D"):
        rooflines.load_config(
            {**FULL, "sweeps": {"mlp": {**FULL["sweeps"]["mlp"], "grid": {"B": 1, "D": deep}}}}
        )


@pytest.mark.parametrize("value", [{"from": 1}, ["roofline"], {1}, None, 7])
def test_a_chart_that_is_no_name_is_refused(value: object) -> None:
    """A mapping or a list in place of a name gives the usual message."""
    with pytest.raises(
        rooflines.RooflinesError, match=r"charts\[0\]\.chart is .*, which is no chart"
    ):
        rooflines.load_config({**FULL, "charts": [{"chart": value, "sweep": "mlp"}]})


def test_the_numbers_of_a_chip_whose_sources_stand_apart_are_listed() -> None:
    """A chip can name sources for some of its numbers; the others have none."""
    peaks = {"matrix": {"bf16": {"flops_per_s": 1e14}}}
    mine = {
        "source": {"bytes_per_s": "notes"},
        "units": peaks,
        "memory": {"hbm": {"bytes_per_s": 1e12}},
    }
    config = rooflines.load_config({**FULL, "chips": {**FULL["chips"], "apart": mine}})
    found = rooflines.chips(config).filter(chip="apart").select("path", "source").rows()
    assert found == [("units.matrix.bf16.flops_per_s", None), ("memory.hbm.bytes_per_s", "notes")]


BARE = {
    "source": "data sheet",
    "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
    "memory": {"hbm": {"bytes_per_s": 1e12}},
    "networks": {"ici": {"bytes_per_s": 1e10, "topology": "torus"}},
}
"""A chip with required numbers only."""

SETTABLE: dict[str, float] = {
    "units.matrix.bf16.flops_per_s": 2e14,
    "units.matrix.bf16.printed_with_sparsity": 4e14,
    "units.matrix.int8.flops_per_s": 3e14,
    "units.vector.fp32.flops_per_s": 3e13,
    "memory.hbm.bytes_per_s": 2e12,
    "memory.hbm.capacity_bytes": 1e10,
    "networks.ici.bytes_per_s": 2e10,
    "networks.ici.links": 4,
    "networks.ici.domain": 64,
    "networks.ici.ring_multiple": 16,
    "networks.ici.hop_latency_s": 1e-6,
    "networks.ici.typical_hop_latency_s": 2e-6,
    "power.watts": 300,
}


@pytest.mark.parametrize("path", SETTABLE)
def test_a_variant_may_set_a_number_that_its_base_lacks(path: str) -> None:
    """The number gets the source of the variant; the others keep theirs."""
    variant = {"base": "bare", "source": "measured", path: SETTABLE[path]}
    config = rooflines.load_config(
        {**FULL, "chips": {**FULL["chips"], "bare": BARE, "variant": variant}}
    )
    *steps, last = path.split(".")
    place: Any = reduce(lambda inside, step: inside[step], steps, config.chips["variant"].plain)
    assert (place[last], source_in(place["source"], last)) == (SETTABLE[path], "measured")
    numbers = [
        set(
            rooflines.chips(config)
            .filter(pl.col("chip") == chip, pl.col("path") != path)
            .select("path", "value")
            .rows()
        )
        for chip in ("bare", "variant")
    ]
    assert numbers[0] == numbers[1]


def test_every_number_of_a_part_can_be_set() -> None:
    """The list above has all optional numbers of the entry types."""
    assert {path.rpartition(".")[2] for path in SETTABLE} == {
        name for part in (Peak, Level, Network, Power) for name in numbers_of(part)
    }


def test_a_variant_may_say_that_a_hop_takes_no_time() -> None:
    """Zero is a valid value, and nothing else changes."""
    config = rooflines.load_config(
        {
            **FULL,
            "chips": {
                **FULL["chips"],
                "v": {"base": "h100-sxm", "networks.nvlink.hop_latency_s": 0},
            },
        }
    )
    ours, base = (
        config.chips["v"].networks["nvlink"],
        config.chips["h100-sxm"].networks["nvlink"],
    )
    assert ours.hop_latency_s == 0
    assert base.hop_latency_s > 0
    same = {"source": None, "hop_latency_s": 0}
    assert ours.model_copy(update=same) == base.model_copy(update=same)


def test_a_variant_may_have_parts_that_its_base_lacks() -> None:
    """A new memory level or network is complete, with the variant's source or its own."""
    parts = {
        "memory.l3": {"bytes_per_s": 1e13},
        "memory.l3.capacity_bytes": 1e9,
        "networks.net": {"bytes_per_s": 1e9, "topology": "switch", "source": "a quote"},
    }
    chips = {
        **FULL["chips"],
        "bare": BARE,
        "variant": {"base": "bare", "source": "measured", **parts},
    }
    sweep = {
        **FULL["sweeps"]["mlp"],
        "chips": ["variant"],
        "memory": "l3",
        "network": "net",
        "sharding": "column",
        "thresholds": [],
    }
    config = rooflines.load_config({**FULL, "chips": chips, "sweeps": {"mlp": sweep}})
    assert rooflines.rows(config, "mlp").collect()["memory"].unique().to_list() == ["l3"]
    sources = dict(rooflines.chips(config).filter(chip="variant").select("path", "source").rows())
    assert sources["memory.l3.bytes_per_s"] == sources["memory.l3.capacity_bytes"] == "measured"
    assert sources["networks.net.bytes_per_s"] == "a quote"
    assert list(config.chips["variant"].networks) == ["ici", "net"]


def test_what_a_variant_says_of_sparsity_is_kept() -> None:
    """A new peak drops the printed figures of the base's peak, but keeps the variant's own."""
    base = {
        **BARE,
        "units": {
            "matrix": {"bf16": {"flops_per_s": 1e14, "printed_with_sparsity": 2e14, "halved": True}}
        },
    }
    own = {"units.matrix.bf16.printed_with_sparsity": 6e14, "units.matrix.bf16.flops_per_s": 3e14}
    chips = {
        **FULL["chips"],
        "bare": base,
        "plain": {"base": "bare", "units.matrix.bf16.flops_per_s": 3e14},
        "both": {"base": "bare", **own},
    }
    resolved = rooflines.load_config({**FULL, "chips": chips}).chips
    assert resolved["plain"].plain["units"]["matrix"]["bf16"].keys() == {"flops_per_s", "source"}
    assert resolved["both"].units["matrix"]["bf16"].printed_with_sparsity == 6e14


def test_a_mistake_in_a_catalogue_is_placed_in_that_file(tmp_path: Path) -> None:
    """Dtypes are read during the check of a chip; their mistakes name the dtypes file."""
    (tmp_path / "dtypes.yaml").write_text(
        mutations.DTYPES.replace("{bits: 16", "{bits: many"), encoding="utf-8"
    )
    fuzzing.use_catalogues(catalogue.CHIPS_FILE, tmp_path / "dtypes.yaml")
    with pytest.raises(
        rooflines.RooflinesError, match=r"dtypes\.yaml:3: formats\.bf16\.bits is 'many'"
    ):
        rooflines.load_config(FULL)


@pytest.mark.parametrize("bits", ["1.0e+30", "1.0e-30", "0"])
def test_an_element_has_a_sensible_number_of_bits(bits: str, tmp_path: Path) -> None:
    """Other numbers would overflow floats for realistic sizes and rates."""
    (tmp_path / "dtypes.yaml").write_text(
        mutations.DTYPES.replace("bits: 16", f"bits: {bits}"), encoding="utf-8"
    )
    fuzzing.use_catalogues(catalogue.CHIPS_FILE, tmp_path / "dtypes.yaml")
    with pytest.raises(
        rooflines.RooflinesError,
        match=r"dtypes\.yaml:3: formats\.bf16\.bits is .*, which no element takes",
    ):
        rooflines.load_config(FULL)


# ---------------------------------------------------------------- spreadsheets

FORMULAS = [
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\uff1d1+1",
    "a;=1",
    "a; +1",
    '=cmd|" /C calc"!A0',
]
HARMLESS = ["a=1", "1-2", "llama-3-8b", "a+b", "me@there", "", "x;y", "7b"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_csv_file_starts_a_formula(text: str) -> None:
    """Formulas get an apostrophe in every type of column, and are read back as text."""
    assert is_formula(text)
    for dtype in (pl.String, pl.Categorical, pl.Enum([text, "x"])):
        written = csv_text(
            pl.DataFrame({"a": pl.Series([text, "x", None], dtype=dtype), "b": [-1.5, -2e300, 0.0]})
        )
        predicates.check_csv(written)
        back = pl.read_csv(io.StringIO(written))
        assert back["b"].to_list() == [-1.5, -2e300, 0.0]
        assert back["a"].to_list()[1:] == ["x", None]
        assert back["a"][0].replace("'", "", 1) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stands_in_a_csv_file_as_it_is(text: str) -> None:
    """A hyphen or a plus inside a name changes nothing."""
    assert not is_formula(text)
    assert pl.read_csv(io.StringIO(csv_text(pl.DataFrame({"a": [text], "b": [1]}))))[
        "a"
    ].to_list() == [text]


@pytest.mark.parametrize("text", [text for text in FORMULAS if text.isprintable()])
def test_a_shape_that_is_a_formula_is_refused(text: str) -> None:
    """The name of a shape can be any text but a formula."""
    sweep = {**FULL["sweeps"]["mlp"], "shapes": [{"name": text, "F": 512}]}
    with pytest.raises(rooflines.RooflinesError, match="spreadsheet would run"):
        rooflines.load_config({**FULL, "sweeps": {"mlp": sweep}})


def test_csv_files_are_written_in_one_place() -> None:
    """One function writes all CSV files, and it escapes formulas."""
    package = ROOT / "rooflines"
    writers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(
            r"\.write_csv\(|sink_csv|csv\.(Dict)?[wW]riter|to_csv",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    }
    assert writers == {"results/tables.py"}


def test_the_list_of_tables_is_safe(tmp_path: Path) -> None:
    """Even for a list that no config can produce."""
    write_index('[{"sweep": "=1", "part": -1, "rows": 3, "path": "@x"}]', tmp_path / "index.csv")
    assert (tmp_path / "index.csv").read_text(
        encoding="utf-8"
    ) == "sweep,part,rows,path\n'=1,-1,3,'@x\n"


def test_a_csv_file_appears_whole(tmp_path: Path) -> None:
    """The value of a number is that of its text."""
    frame = pl.DataFrame({"a": ["x", "-y"], "b": [1, -2]})
    write_csv(frame, tmp_path / "new" / "file.csv")
    assert (tmp_path / "new" / "file.csv").read_text(encoding="utf-8") == "a,b\nx,1\n'-y,-2\n"


def test_a_sweep_as_long_as_it_may_be_stays_within_the_memory() -> None:
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
        last = sweep_rows(config.sweep("long"), 2**40 - 3, 2**40).collect()
    assert last["D"].to_list() == [2**20 - 2, 2**20 - 1, 2**20]
    assert last["B"].to_list() == [2**20] * 3
