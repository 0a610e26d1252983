"""All mistakes of a config's form come in one message; once these are mended, all others in one.

A mistake that only follows from another is not reported.
"""

import re

import pytest
import yaml

import rooflines
from rooflines.run.workflow import plan_or_exit

MIXED = """\
sweeps:
  first:
    operation: matmull              # ? sweeps.first.operation
    grid:
      B: [1, 0]                     # ! sweeps.first.grid.B[1]
      D: {from: 1, to: many, factor: 2}  # ! sweeps.first.grid.D.to
    dtypes: [bf61, bf16]            # ? sweeps.first.dtypes[0]
    chips:
      - h100-sxm
      - h100                        # ? sweeps.first.chips[1]
    tile: {B: large}                # ? sweeps.first.tile.B
    flopps: exact                   # ! sweeps.first.flopps
  second:
    operation: matmul
    grid:
      B: 1
      D: 2
      F: G                          # ? sweeps.second.grid.F
      E: 7                          # ? sweeps.second.grid.E
    dtypes: [bf16]
    chips: [mine, variant, h100-sxm]
    sharding: [colunm]              # ? sweeps.second.sharding[0]
    shards: [1, 1.5]                # ! sweeps.second.shards[1]
    thresholds: [B, Z]              # ? sweeps.second.thresholds[1]
    columns: [bound, flopss]        # ! sweeps.second.columns[1]
    efficiency: {math: 2}           # ! sweeps.second.efficiency.math
  Third:                            # ! sweeps.Third
    operation: matmul
    grid: {B: 1, D: 2, F: D}
    dtypes: [bf16]
    chips: [h100-sxm]
    memory: [hbm, l9]
    compression: gzip               # ! sweeps.Third.compression
    on_unsupported: error           # ? sweeps.Third.on_unsupported
chips:
  mine:
    units:
      matrix:
        bf61: {flops_per_s: 1.0e14} # ! chips.mine.units.matrix.bf61
    memory:
      hbm: {bytes_per_s: fast}      # ! chips.mine.memory.hbm.bytes_per_s
  variant:
    base: mine
  other:
    base: h100-sxm
    memory.hbm.bytes_per_sec: 1.0e12  # ! chips.other.memory.hbm.bytes_per_sec
    colour: blue                    # ! chips.other.colour
charts:
  - {chart: roofline, sweep: first, chips: [nothing]}
  - {chart: rooflin, sweep: second} # ? charts[1].chart
"""
"""Every line with a mistake ends in its key path: # ! of its form, # ? of another kind."""

MEANT = (
    MIXED.replace("[1, 0]", "[1, 2]")
    .replace("many", "64")
    .replace("flopps", "flops")
    .replace("1.5", "2")
    .replace("flopss", "flops")
    .replace("math: 2", "math: 1")
    .replace("Third", "third")
    .replace("gzip", "zstd")
    .replace("bf61: {f", "bf16: {f")
    .replace("fast", "1e12")
    .replace("bytes_per_sec:", "bytes_per_s:")
    .replace("    colour: blue", "    source: a guess")
    .replace("  mine:", "  mine:\n    source: a guess")
    .replace("    base: mine", "    base: mine")
)
"""The same without mistakes of its form."""


def expected(text, mark):
    """Line and key path of every line with a mark."""
    lines = enumerate(text.splitlines(), 1)
    return [(line, words.split(mark)[1]) for line, words in lines if mark in words]


def refused(source):
    """The error that a config raises."""
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(source)
    return caught.value


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(MIXED, encoding="utf-8")
    return path


def test_all_mistakes_are_found_in_one_run_in_the_order_of_their_lines(path):
    errors = refused(path).errors
    assert len(errors) == 12
    assert [(error.line, error.where) for error in errors] == expected(MIXED, "# ! ")
    assert all(
        error.errors == (error,) and error.file == str(path) and error.fix for error in errors
    )


def test_what_agrees_with_nothing_is_reported_once_every_key_has_its_form(path):
    path.write_text(MEANT, encoding="utf-8")
    found = [(error.line, error.where) for error in refused(path).errors]
    assert found == expected(MEANT, "# ? ")
    assert len(found) == 10


def test_a_message_has_twenty_mistakes_and_the_number_of_the_others(path):
    path.write_text("".join(f"k{number}: 1\n" for number in range(21)) + MIXED, encoding="utf-8")
    error = refused(path)
    *lines, last = str(error).splitlines()
    assert last == "and 13 more mistakes."
    assert "\n".join(lines) == "\n".join(map(str, error.errors[:20]))
    assert lines[0].startswith(f"{path}:1: k0 is no key here; known are sweeps, ")


def test_a_mapping_has_the_same_mistakes_without_lines(path):
    of_mapping, of_file = refused(yaml.safe_load(MIXED)), refused(path)
    parts = [
        {(error.where, error.problem, error.fix, error.close) for error in errors.errors}
        for errors in (of_mapping, of_file)
    ]
    assert parts[0] == parts[1]
    assert {(error.file, error.line) for error in of_mapping.errors} == {("config", None)}


def test_the_workflow_ends_with_the_same_message(path):
    with pytest.raises(SystemExit) as caught:
        plan_or_exit(yaml.safe_load(MIXED), [path])
    assert str(caught.value) == str(refused(path))


def test_the_mistakes_of_many_lines_are_counted_up_to_a_thousand(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(
        "sweeps: {a: 1}\n" + "".join(f"k{number}: 1\n" for number in range(50_000)),
        encoding="utf-8",
    )
    error = refused(path)
    assert len(error.errors) == 1000
    assert str(error).endswith("\nand at least 980 more mistakes.")


SWEEP = """\
sweeps:
  one: &one
    operation: matmul
    grid: {B: 1, D: 2, F: D}
    dtypes: [bf16]
    chips: [h100-sxm]
    shards: [1]
charts: []
"""

FOLLOWING = {
    "a sweep of a chip that is refused": (
        SWEEP.replace("[h100-sxm]", "[mine, variant]")
        + "chips:\n  mine: {base: h100}\n  variant: {base: mine}\n",
        {(10, "chips.mine.base")},
    ),
    "a sweep of chips that are no mapping": (
        SWEEP.replace("[h100-sxm]", "[mine]") + "chips: 7\n",
        {(9, "chips")},
    ),
    "a chart of a sweep that is refused": (
        SWEEP.replace("matmul", "matmull").replace(
            "[]", "[{chart: attained, sweep: one, chips: [x]}]"
        ),
        {(3, "sweeps.one.operation")},
    ),
    "charts of a sweep whose name is refused": (
        SWEEP.replace("one: &one", "One:").replace("[]", "auto"),
        {(2, "sweeps.One")},
    ),
    "charts of a sweep with a key that is refused": (
        SWEEP.replace("[]", "[{chart: roofline, sweep: one, chips: [h200]}]\n").replace(
            "shards: [1]", "compression: gzip"
        ),
        {(7, "sweeps.one.compression")},
    ),
    "charts of sweeps that are refused": (
        SWEEP.replace("matmul", "matmull").replace("[]", "auto"),
        {(3, "sweeps.one.operation")},
    ),
    "shards of a sharding that is refused": (
        SWEEP.replace("shards: [1]", "shards: [2]\n    thresholds: [shards]\n    sharding: colunm"),
        {(9, "sweeps.one.sharding[0]")},
    ),
    "shards of a sharding whose key is misspelt": (
        SWEEP.replace("shards: [1]", "shards: [2]\n    thresholds: [shards]\n    shardin: column"),
        {(9, "sweeps.one.shardin")},
    ),
    "dtypes whose key is misspelt": (SWEEP.replace("dtypes", "dtype"), {(5, "sweeps.one.dtype")}),
    "a dimension without sizes whose name is misspelt": (
        SWEEP.replace("D: 2, F: D", "d: [0], F: 4"),
        {(4, "sweeps.one.grid.d[0]")},
    ),
    "sizes that repeat sizes that are refused": (
        SWEEP.replace("D: 2", "D: two"),
        {(4, "sweeps.one.grid.D")},
    ),
    "dimensions that repeat each other": (
        SWEEP.replace("D: 2", "D: F"),
        {(4, "sweeps.one.grid.D")},
    ),
    "bases that name each other": (
        SWEEP + "chips:\n  a: {base: c}\n  b: {base: a}\n  c: {base: b}\n  d: {base: c}\n",
        {(10, "chips.a.base")},
    ),
    "two sweeps of one mapping": (
        SWEEP.replace("charts", "  two: *one\ncharts").replace("B: 1", "B: 0"),
        {(4, "sweeps.one.grid.B"), (4, "sweeps.two.grid.B")},
    ),
    "a sweep that merges another": (
        SWEEP.replace("charts", "  two: {<<: *one, shards: 0}\ncharts").replace("B: 1", "B: 0"),
        {(4, "sweeps.one.grid.B"), (4, "sweeps.two.grid.B"), (8, "sweeps.two.shards")},
    ),
    "a chart whose id is refused": (
        SWEEP.replace(
            "[]", "\n- {chart: roofline, sweep: one}\n- {chart: roofline, sweep: one, id: My id}"
        ),
        {(10, "charts[1].id")},
    ),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_what_follows_from_a_mistake_is_none(name, tmp_path):
    text, expected = FOLLOWING[name]
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    assert {(error.line, error.where) for error in refused(path).errors} == expected


def test_every_mistake_of_a_chart_is_found():
    config = yaml.safe_load(SWEEP)
    config["charts"] = [
        {
            "chart": "roofline",
            "sweep": "one",
            "chips": ["h200"],
            "dtypes": ["fp8"],
            "view": {"shape": "x"},
            "titel": "T",
        }
    ]
    assert [error.where for error in refused(config).errors] == ["charts[0].titel"]
    del config["charts"][0]["titel"]
    wheres = {error.where for error in refused(config).errors}
    assert wheres == {"charts[0].chips[0]", "charts[0].dtypes[0]"}
    del config["charts"][0]["chips"], config["charts"][0]["dtypes"]
    assert [error.where for error in refused(config).errors] == ["charts[0].view.shape"]


def test_a_mistake_alone_is_said_as_it_is(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(SWEEP.replace("h100-sxm", "h100"), encoding="utf-8")
    first, close, fix = str(refused(path)).splitlines()
    assert first == f"{path}:6: sweeps.one.chips[0] is 'h100', which is no chip in the catalogue."
    assert re.match(r"  close to it: h100-sxm, ", close)
    assert fix.startswith("  fix: ")


NAMES_FILES = """\
calibrations:
  - fits.yaml
  - folder
sweeps:
  mlp: {operation: matmul, grid: {B: 1, D: 2, F: 4}, dtypes: [bf16], chips: [h100-sxm]}
model-sweeps:
  serve:
    models:
      - {name: one, hf: one.json}
      - {name: two, hf: folder}
    grid: {B: 1, S: 2}
    dtypes: [bf16]
    chips: [h100-sxm]
measurements:
  mine:
    file: timings.csv
"""


def test_a_missing_file_is_a_mistake_of_the_key_that_names_it(tmp_path):
    (tmp_path / "folder").mkdir()
    file = tmp_path / "my.yaml"
    file.write_text(NAMES_FILES)
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(file)
    fix = f"  fix: correct the path; a relative one starts at {tmp_path}."
    found = [
        (2, "calibrations[0]", "fits.yaml", "does not exist"),
        (3, "calibrations[1]", "folder", "is a directory"),
        (9, "model-sweeps.serve.models[0].hf", "one.json", "does not exist"),
        (10, "model-sweeps.serve.models[1].hf", "folder/config.json", "does not exist"),
        (16, "measurements.mine.file", "timings.csv", "does not exist"),
    ]
    assert str(caught.value).splitlines() == [
        text
        for line, key, name, problem in found
        for text in (f"{file}:{line}: {key} names {tmp_path / name}, which {problem}.", fix)
    ]


def test_a_missing_file_of_a_config_as_a_mapping_has_its_key():
    config = yaml.safe_load(NAMES_FILES) | {"calibrations": ["nofit.yaml", "n" * 5000]}
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(config)
    text = str(caught.value)
    assert text.startswith("config: calibrations[0] names nofit.yaml, which does not exist.\n")
    assert "which cannot be read: File name too long." in text
    assert "config: measurements.mine.file names timings.csv, which does not exist." in text
