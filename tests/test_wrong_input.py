"""Wrong input gets one message: file, key, what was found, what it is, how to fix it.

Nothing else happens. Every case is a valid config with one line changed, so that only the change
can be what is refused.
"""

# One list of wrong configs, each with its message: long, but one thing.

from __future__ import annotations

import copy
import datetime as dt
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import rooflines
from rooflines.run.plan import plan

ROOT = Path(__file__).resolve().parent.parent
FILE = "wrong.yaml"
VALID = """\
sweeps:
  mlp:
    operation: matmul
    grid:
      B: [1, 2, 4]
      D: 512
      F: D
    dtypes: [bf16]
    chips: [mine]
    sharding: none
    shards: [1]
    memory: hbm
    unit: matrix
    thresholds: [B]
chips:
  mine:
    name: My chip
    vendor: Myself
    source: my own notes
    units:
      matrix:
        bf16: {flops_per_s: 1.97e14}
    memory:
      hbm: {bytes_per_s: 8.2e11, capacity_bytes: 1.6e10}
    networks:
      ici: {bytes_per_s: 4.5e10, links: 4, topology: torus, ring_multiple: 16, domain: 64}
  mine-fast:
    base: mine
    memory.hbm.bytes_per_s: 9.0e11
    source: my own notes
charts: []
"""


ONE_LINE = yaml.safe_load((ROOT / "tests/cases/wrong.yaml").read_text(encoding="utf-8"))
"""Mistakes in one piece of the valid config, with what the message must say."""

SPLIT = "sharding: none\n    shards: [1]"

NOT_THE_USERS_WORDS = (
    "literal[",
    "validation",
    "NoneType",
    "datetime",
    "Dictionary",
    "dict",
    "union",
)
WHOLE_FILES = [
    ("no mapping but a list", "- sweeps\n", ("['sweeps']", "mapping")),
    ("no mapping but a word", "sweeps\n", ("sweeps",)),
    ("an empty file", "", ("sweeps",)),
    ("sweeps missing", "charts: []\n", ("sweeps",)),
    ("sweeps that are null", "sweeps:\ncharts: []\n", ("sweeps",)),
    ("sweeps that are empty", "sweeps: {}\n", ("sweeps",)),
    ("sweeps that are a list", "sweeps: [mlp]\n", ("sweeps",)),
    (
        "chips that are a list",
        VALID[: VALID.index("chips:\n  mine:")] + "chips: [mine]\n",
        ("chips",),
    ),
    ("a sweep that is null", "sweeps:\n  mlp:\n", ("sweeps.mlp",)),
    (
        "a bracket that is not closed",
        "sweeps:\n  mlp:\n    dtypes: [bf16\n    chips: 1\n",
        ("line 4", "column"),
    ),
    ("a tab for indentation", "sweeps:\n\tmlp: 1\n", ("line 2", "column 1")),
    (
        "a key twice",
        VALID.replace("    unit: matrix\n", "    unit: matrix\n    unit: vector\n"),
        ("line 14", "unit", "twice"),
    ),
    (
        "a sweep twice",
        VALID.replace("chips:\n  mine:", "  mlp: {}\nchips:\n  mine:"),
        ("line 15", "mlp", "twice"),
    ),
    ("an alias of nothing", VALID.replace("D: 512", "D: *size"), ("line 6", "alias")),
    ("an alias of itself", VALID.replace("[1, 2, 4]", "&b [*b]"), ("sweeps.mlp.grid.B",)),
    (
        "aliases that multiply without end",
        "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 30)),
        ("line",),
    ),
    (
        "Python in YAML",
        VALID.replace("D: 512", "D: !!python/object/apply:os.getcwd []"),
        ("line 6",),
    ),
    ("two documents", VALID + "---\n" + VALID, ("line",)),
    (
        "bases in a circle",
        VALID.replace("base: mine\n", "base: mine-slow\n").replace(
            "charts: []",
            "  mine-slow:\n    base: mine-fast\n    memory.hbm.bytes_per_s: 8.0e11\n"
            "    source: notes\ncharts: []",
        ),
        ("chips.mine", "base", "mine-slow", "mine-fast"),
    ),
    (
        "a role that no dimension has",
        VALID.replace("operation: matmul", "operation: dot")
        .replace("      B: [1, 2, 4]\n", "")
        .replace("      F: D\n", "")
        .replace("[B]", "[D]")
        .replace("sharding: none", "sharding: column"),
        ("sweeps.mlp.sharding", "'column'"),
    ),
    (
        "a role that two dimensions have",
        VALID.replace("operation: matmul", "operation: sequence-matmul")
        .replace("      F: D\n", "      F: D\n      S: 4\n")
        .replace("sharding: none", "sharding: batch"),
        ("sweeps.mlp.sharding", "'batch'", "B", "S", "split"),
    ),
]


def message_of(text, folder):
    """The message for a wrong config; checks that no file was written."""
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError) as caught:
        plan(rooflines.load_config(path))
    assert [entry.name for entry in folder.iterdir()] == [FILE]
    return str(caught.value)


def assert_form(message, file, mistakes=1):
    """Check the form of a message.

    For each mistake: file, place and problem, then indented lines, one of which says how to fix it.
    """
    parts = re.split(r"\n(?! )", message)
    if parts[-1].startswith("and "):
        assert re.fullmatch(r"and (at least )?\d+ more mistakes?\.", parts.pop()), message
    assert len(parts) == mistakes or mistakes is None, message
    for part in parts:
        first, *rest = part.splitlines()
        assert re.match(rf"\S*{re.escape(file)}(:\d+)?(: | )\S.*\.$", first), message
        assert rest, message
        assert all(line.startswith("  ") for line in rest), message
        assert sum(line.startswith("  fix: ") for line in rest) == 1, message
    assert "Traceback" not in message


def test_the_config_that_every_case_starts_from_is_valid(tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID, encoding="utf-8")
    config = rooflines.load_config(path)
    assert rooflines.rows(config, "mlp").collect().height == 3
    assert [part.rows for part in plan(config).parts] == [3]


FABRICS = """\
    networks:
      fabric: {bytes_per_s: 4.5e11, topology: switch, domain: 8}
      unknown: {bytes_per_s: 4.5e10, topology: switch}
      mesh: {bytes_per_s: 4.5e10, links: 7, topology: mesh}
"""

UNJOINED = [
    ("4x4", "fabric", "no axes on fabric: 4x4 needs one torus"),
    ("2x2", "mesh", "no axes on mesh: 2x2 needs one torus"),
    ("2x2x2", "ici", "4 links on ici, two for an axis: too few for 2x2x2"),
    ("65", "ici", "64 chips at most on one ici"),
    ("9", "mesh", "8 chips at most on one mesh"),
    ("3", "unknown", "no published number of chips that unknown joins"),
    ("12", "[fabric, ici]", "groups of 8 chips on fabric, of which 12 is no multiple"),
    ("2x8", "[fabric, ici]", "no axes on fabric and ici: 2x8 needs one torus"),
    ("2", "[ici, fabric]", "a torus, ici, which cannot be the inner of two networks"),
    ("2", "[fabric, cable]", "no interconnect cable"),
]
"""Shards and networks that a chip does not have, and the reason in skipped.csv."""


@pytest.mark.parametrize(("shards", "network", "reason"), UNJOINED)
def test_chips_that_no_network_joins_are_skipped_with_the_reason(shards, network, reason):
    text = VALID.replace("    networks:\n", FABRICS).replace(
        SPLIT, f"sharding: column\n    shards: [1, {shards}]\n    network: {network}"
    )
    config = rooflines.load_config(yaml.safe_load(text))
    assert rooflines.rows(config, "mlp").collect()["shards"].to_list() == [1, 1, 1]
    (row,) = rooflines.skipped(config).to_dicts()
    assert (row["axes"], row["rows"], row["reason"]) == (shards, 3, reason)


def test_shards_over_two_networks_with_an_outer_torus_are_refused():
    text = VALID.replace("    networks:\n", FABRICS).replace(
        SPLIT, "sharding: column\n    shards: [1]\n    network: [fabric, ici]"
    )
    with pytest.raises(rooflines.RooflinesError, match=r"ici of mine, is a torus") as caught:
        plan(rooflines.load_config(yaml.safe_load(text.replace("[B]", "[shards]"))))
    assert_form(str(caught.value), "config")


@pytest.mark.parametrize("wrong", ONE_LINE, ids=lambda wrong: wrong["name"])
def test_a_wrong_line_is_refused_with_its_place_and_a_fix(wrong, tmp_path):
    assert VALID.count(wrong["old"]) == 1
    message = message_of(VALID.replace(wrong["old"], wrong["new"]), tmp_path)
    assert_form(message, FILE, wrong.get("mistakes", 1))
    assert not [word for word in NOT_THE_USERS_WORDS if word in message], message
    missing = [piece for piece in wrong["says"] if piece not in message]
    assert not missing, f"{missing} not in:\n{message}"
    if close := set(wrong.get("close", ())):
        (offered,) = [line for line in message.splitlines() if line.startswith("  close to it: ")]
        assert close <= set(re.split(r"[ ,]+", offered)), message


@pytest.mark.parametrize(
    ("text", "says"), [case[1:] for case in WHOLE_FILES], ids=[case[0] for case in WHOLE_FILES]
)
def test_a_wrong_file_is_refused_with_its_place_and_a_fix(text, says, tmp_path):
    message = message_of(text, tmp_path)
    assert_form(message, FILE)
    assert not [word for word in NOT_THE_USERS_WORDS if word in message], message
    missing = [piece for piece in says if piece not in message]
    assert not missing, f"{missing} not in:\n{message}"


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(tmp_path / "nowhere.yaml")
    assert_form(str(caught.value), "nowhere.yaml")


def test_a_folder_is_no_config(tmp_path):
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(tmp_path)
    assert_form(str(caught.value), tmp_path.name)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / FILE
    path.write_bytes(b"sweeps: \xff\xfe\x00\n")
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(path)
    assert_form(str(caught.value), FILE)


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        (
            {
                "B": "{from: 1, to: 1000000, step: 1}",
                "D": "{from: 1, to: 1000000, step: 1}",
                "F": "{from: 1, to: 1000000, step: 1}",
            },
            10**18,
        ),
        (
            {
                "B": "{from: 1, to: 9007199254740992, step: 1}",
                "D": "{from: 1, to: 1000, step: 1}",
                "F": "1",
            },
            2**53 * 1000,
        ),
        (
            {
                "B": "{from: 1, to: 9007199254740992, step: 1}",
                "D": "{from: 1, to: 9007199254740992, step: 1}",
                "F": "D",
            },
            2**106,
        ),
    ],
    ids=["a quintillion rows", "one endless range", "2^106 rows"],
)
def test_a_grid_beyond_a_table_is_refused_at_once_with_its_number_of_rows(sizes, rows, tmp_path):
    text = (
        VALID.replace("[1, 2, 4]", sizes["B"])
        .replace("D: 512", f"D: {sizes['D']}")
        .replace("      F: D", f"      F: {sizes['F']}")
    )
    start = time.perf_counter()
    message = message_of(text, tmp_path)
    assert time.perf_counter() - start < 5
    assert_form(message, FILE, 1 + (rows == 2**106))
    assert "sweeps.mlp" in message
    assert str(rows) in re.sub(r"(?<=\d)[,_ ](?=\d)", "", message), message


def test_a_fine_range_does_not_take_the_memory(tmp_path):
    start = time.perf_counter()
    message = message_of(
        VALID.replace("[1, 2, 4]", "{from: 1, to: 1000000000000, factor: 1.000000001}"), tmp_path
    )
    assert time.perf_counter() - start < 5
    assert_form(message, FILE)
    assert "sweeps.mlp.grid.B" in message


@pytest.mark.parametrize(
    "text",
    [
        "1.97e14",
        "'1.97e14'",
        "1.97e+14",
        "197000000000000",
        "197_000_000_000_000",
        "'197000000000000'",
    ],
)
def test_a_number_in_any_spelling_is_that_number(text, tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID.replace("1.97e14", text), encoding="utf-8")
    row = rooflines.rows(rooflines.load_config(path), "mlp").collect().row(0, named=True)
    assert row["t_math_s"] == pytest.approx(row["flops"] / 1.97e14, rel=1e-15)


@pytest.mark.parametrize("text", ["4096", "'4096'", "4.096e3", "4096.0", "4_096"])
def test_a_size_in_any_spelling_is_that_size(text, tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID.replace("D: 512", f"D: {text}"), encoding="utf-8")
    assert rooflines.rows(rooflines.load_config(path), "mlp").collect()["D"].unique().to_list() == [
        4096
    ]


def test_an_alias_is_the_value_it_stands_for(tmp_path):
    path = tmp_path / FILE
    path.write_text(
        VALID.replace("  mlp:\n", "  mlp: &mlp\n").replace(
            "chips:\n  mine:", "  again:\n    <<: *mlp\n    dtypes: [w8a16]\nchips:\n  mine:"
        ),
        encoding="utf-8",
    )
    config = rooflines.load_config(path)
    assert rooflines.rows(config, "mlp").collect()["dtypes"].unique().to_list() == ["bf16"]
    assert rooflines.rows(config, "again").collect()["dtypes"].unique().to_list() == ["w8a16"]


def test_a_mapping_that_merges_itself_is_refused(tmp_path):
    message = message_of("sweeps:\n  mlp: &mlp\n    <<: *mlp\n    operation: 7\n", tmp_path)
    assert_form(message, FILE, mistakes=2)
    assert "wrong.yaml:4: sweeps.mlp.operation is 7" in message


def test_a_mapping_is_refused_in_the_same_words():
    grid = {"B": 1, "D": 512, "F": "D"}
    sweep = {"operation": "matmull", "grid": grid, "dtypes": ["bf16"], "chips": ["h100-sxm"]}
    with pytest.raises(rooflines.RooflinesError) as caught:
        plan(rooflines.load_config({"sweeps": {"mlp": sweep}}))
    message = str(caught.value)
    assert "sweeps.mlp.operation" in message
    assert "'matmull'" in message
    assert "\n  fix: " in message


def test_a_sweep_that_is_not_in_the_config_is_refused(tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID, encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.rows(rooflines.load_config(path), "mpl")
    assert "'mpl'" in str(caught.value)
    assert "mlp" in str(caught.value).replace("'mpl'", "")


def places(node, path=()):
    """The path of every value in JSON, and of one missing key in every mapping."""
    found = [path] if path else []
    if isinstance(node, dict):
        found += [(*path, "unheard-of")]
        found += [place for key, value in node.items() for place in places(value, (*path, key))]
    if isinstance(node, list):
        found += [
            place for number, value in enumerate(node) for place in places(value, (*path, number))
        ]
    return found


FULL = yaml.safe_load(
    VALID.replace("sharding: none", "sharding: [column, {split: D, then: all-reduce}]")
    .replace("shards: [1]", "shards: [1, 2]")
    .replace(
        "    unit: matrix\n",
        "    shapes: [{name: up, F: 512}]\n    unit: matrix\n"
        "    flops: leading\n    network: ici\n",
    )
    .replace("      F: D\n", "")
    .replace("B: [1, 2, 4]", "B: {from: 1, to: 8, factor: 2}")
    .replace(
        "    thresholds: [B]\n",
        "    thresholds: [B, shards]\n    tile: {B: 128}\n"
        "    efficiency: {math: 0.9}\n    columns: [bound]\n",
    )
    .replace("[bf16]", "[bf16, {x: bf16, w: int8, out: bf16, compute: bf16}]")
)
ODD: list[object] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        1.5,
        2**70,
        -(2**70),
        1e308,
        float("nan"),
        float("inf"),
        dt.date(2026, 11, 21),
    ),
    *(
        "",
        " ",
        "many",
        "1.97e14",
        "0x10",
        "nan",
        "all",
        "none",
        "B",
        "mine",
        "..",
        "a" * 1000,
        "\n",
        "\0",
        "é",
        "1/3",
        "1e999999",
    ),
    *(
        [],
        [[]],
        [None],
        [1, 1],
        ["B", 2],
        {},
        {"a": 1},
        {1: 2},
        {None: None},
        {"from": 1, "to": 2**60, "step": 1},
        (1, 2),
        {1},
        b"x",
    ),
]


@settings(max_examples=300, deadline=None, print_blob=True, database=None)
@given(place=st.sampled_from(places(FULL)), value=st.sampled_from(ODD))
def test_any_value_in_any_place_is_accepted_or_refused_in_words(place, value):
    config = copy.deepcopy(FULL)
    *path, last = place
    node = config
    for step in path:
        node = node[step]
    node[last] = value
    try:
        plan(rooflines.load_config(config))
    except rooflines.RooflinesError as error:
        assert_form(str(error), "config", mistakes=None)


def test_the_config_whose_every_value_is_replaced_is_valid():
    assert [part.rows for part in plan(rooflines.load_config(FULL)).parts] == [4 * 2 * 2 * 2]


COMMAND_LINE = [
    (
        "an unknown chip",
        VALID.replace("[mine]", "[h100]"),
        ("sweeps.mlp.chips[0]", "'h100'", "h100-sxm"),
    ),
    ("no YAML", "sweeps:\n\tmlp: 1\n", ("line 2", "column 1")),
    (
        "a grid beyond a table",
        VALID.replace("[1, 2, 4]", "{from: 1, to: 1e18, step: 1}"),
        ("sweeps.mlp.grid.B",),
    ),
    (
        "an unsupported dtype as an error",
        VALID.replace("[bf16]", "[int8]\n    on_unsupported: error"),
        ("sweeps.mlp", "int8"),
    ),
]


@pytest.mark.parametrize(
    ("text", "says"), [case[1:] for case in COMMAND_LINE], ids=[case[0] for case in COMMAND_LINE]
)
def test_snakemake_stops_before_any_job_with_that_one_message(text, says, tmp_path):
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    run = snakemake(tmp_path, FILE)
    assert run.returncode != 0
    output = run.stdout + run.stderr
    assert "Traceback" not in output
    assert output.count("  fix: ") == 1, output
    missing = [piece for piece in says if piece not in output]
    assert not missing, f"{missing} not in:\n{output}"
    assert {entry.name for entry in tmp_path.iterdir()} <= {FILE, ".snakemake"}


def test_snakemake_names_a_missing_config(tmp_path):
    run = snakemake(tmp_path, "nowhere.yaml")
    assert run.returncode != 0
    assert "nowhere.yaml" in run.stdout + run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert {entry.name for entry in tmp_path.iterdir()} <= {".snakemake"}


def snakemake(folder, config):
    """Run the workflow in a folder with a config of its own."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "1",
            "--snakefile",
            ROOT / "Snakefile",
            "--configfile",
            config,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
