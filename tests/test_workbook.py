"""The workbook has the numbers of tables and thresholds; only What-if has formulas."""

import zipfile
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
import random_serving
import random_sweeps
from case_files import case
from hypothesis import given
from key_sets import key_differences
from lots import of
from random_sweeps import check
from sheets import column_widths, read_workbook, table_of
from spreadsheet import METRICS, QUESTIONS, columns_of, computed, same, written
from xlsxwriter.utility import xl_cell_to_rowcol

import rooflines
from rooflines.workbook import steps_sheet, what_if_sheet, workbook
from rooflines.workbook.summary_sheet import HEAD_ROW, MAX_CASES

CONFIG = case("configs/workbook")

MODELS = case("configs/workbook-models")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("workbook") / "results", CONFIG)


@pytest.fixture(scope="module")
def book(path):
    return read_workbook(path)


@pytest.fixture(scope="module")
def parts(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name).decode() for name in file.namelist()}


def test_the_sheets_are_in_order(book):
    assert list(book) == ["What-if", "Summary", "Thresholds", "Columns"]


def lines_of(cells):
    """Critical sizes by chip, of each column by the lines of its head."""
    columns: dict[int, dict[int, str | float]] = {}
    for address, cell in cells.items():
        row, column = xl_cell_to_rowcol(address)
        columns.setdefault(column, {})[row] = cell.plain
    chips = {row: chip for row, chip in columns.pop(0).items() if row > HEAD_ROW}
    return {
        tuple(str(values[HEAD_ROW]).split("\n")): {
            chip: values.get(row) for row, chip in chips.items()
        }
        for values in columns.values()
    }


def assert_critical(values, thresholds, **case):
    """Demand the critical sizes, or outcomes, of a case by chip."""
    expected = thresholds.filter(**case).select("chip", "critical", "outcome").rows()
    assert values == {chip: size or outcome for chip, size, outcome in expected}


def shown_as(value, cell):
    """True if a cell shows a value; a workbook keeps sixteen digits."""
    return same(cell, value, 1e-15)


def test_the_summary_has_the_numbers_of_thresholds(book):
    config = rooflines.load_config(CONFIG)
    critical = rooflines.thresholds(config, "layers").filter(axis="B")
    lines = {key: row for key, row in lines_of(book["Summary"]).items() if key[0] == "layers"}
    cases = [{"shape": shape, "dtypes": dtypes} for _, shape, _, dtypes, *_ in lines]
    asked = product(["up", "thin"], ["bf16", "w8a16"])
    assert key_differences(cases, ["shape", "dtypes"], asked) == ([], [])
    for (_, shape, sizes, dtypes, *others), values in lines.items():
        assert [*values] == ["h100-sxm", "tpu-v5e", "mine"]
        assert_critical(values, critical, shape=shape, dtypes=dtypes)
        assert sizes == {"up": "D=4096 F=14336", "thin": "D=128 F=512"}[str(shape)]
        assert others == ["one chip", "hbm", "critical B"]
    assert "never" in {value for values in lines.values() for value in values.values()}


def test_the_summary_has_at_most_thirty_columns(tmp_path):
    wide = {**CONFIG["sweeps"]["layers"], "grid": {"B": 1, "D": [*range(1, 41)], "F": [64]}}
    del wide["shapes"]
    config = {**CONFIG, "sweeps": {"split": CONFIG["sweeps"]["split"], "wide": wide}}
    cells = read_workbook(written(tmp_path / "results", config))["Summary"]
    lines = lines_of(cells)
    assert len(lines) <= MAX_CASES < 30
    assert [key[0] for key in lines] == sorted((key[0] for key in lines), reverse=True)
    assert {key[0] for key in lines} == {"wide", "split"}
    assert cells["A1"].value == "wide: 15 of 80 cases"
    solved = rooflines.thresholds(rooflines.load_config(config), "wide").filter(axis="B")
    found = [sum(isinstance(value, int) for value in row.values()) for row in lines.values()]
    most = solved.group_by("D", "F", "dtypes").agg(pl.col("critical").count())["critical"]
    assert found[:15] == most.sort(descending=True)[:15].to_list()


def test_what_if_has_a_chart_of_its_shares(parts):
    (chart,) = [text for name, text in parts.items() if name.startswith("xl/charts/chart")]
    assert "<c:barChart>" in chart
    assert "'What-if'!$A$9:$B$" in chart


def test_headers_stay_in_view_and_on_printed_pages(parts):
    assert parts["docProps/core.xml"].count("2000-01-01T00:00:00Z") == 2
    assert f"rooflines {rooflines.__version__}" in parts["docProps/core.xml"]
    texts = [parts[f"xl/worksheets/sheet{number}.xml"] for number in range(1, 5)]
    assert [text.count('state="frozen"') for text in texts] == [1, 1, 1, 1]
    assert texts[1].count("<autoFilter") == 1
    assert ["<autoFilter" in parts[f"xl/tables/table{n}.xml"] for n in (1, 2)] == [True, True]
    assert parts["xl/workbook.xml"].count("_xlnm.Print_Titles") == 4
    assert all('orientation="landscape"' in text for text in texts)


def test_a_split_is_a_line_of_its_own(book):
    lines = [key for key in lines_of(book["Summary"]) if key[0] == "split"]
    assert [key[3] for key in lines] == [
        "one chip",
        "contracting/all-reduce over 4",
        "batch over 4",
    ]
    assert [key[1] for key in lines] == ["D=8192 F=8192"] * 3


def test_whole_models_are_lines_too(tmp_path):
    cells = read_workbook(written(tmp_path / "results", MODELS))
    critical = rooflines.thresholds(rooflines.load_config(MODELS)).filter(axis="B")
    lines = lines_of(cells["Summary"])
    cases = [{"dtypes": dtypes, "split": split} for *_, dtypes, split in [key[:6] for key in lines]]
    asked = product(["bf16", "fp8"], ["tp2", "tp1-dp64"])
    assert key_differences(cases, ["dtypes", "split"], asked) == ([], [])
    for (_, model, phase, sizes, dtypes, split, *_), values in lines.items():
        assert (model, phase, sizes) == ("llama-3.1-8b", "decode", "S=1024")
        assert_critical(values, critical, model=model, dtypes=dtypes, split=split)
    assert cells["What-if"]["A1"].value == "The config has no sweep of operations without tiles."
    assert {row["model"] for row in table_of(cells["Thresholds"], 3)} == {"llama-3.1-8b"}


def test_steps_are_the_rows_of_the_tables_with_estimates_first(tmp_path):
    steps = table_of(read_workbook(written(tmp_path / "results", MODELS))["Steps"], 3)
    rows = rooflines.rows(rooflines.load_config(MODELS), "serve").lazy().collect()
    assert len(steps) == rows.height == 16
    names = list(steps[0])
    assert names.index("t_estimate_s") < names.index("t_serial_s") < names.index("t_lower_s")
    keys = ("chip", "dtypes", "split", "B")
    by_key = {tuple(map(str, map(row.get, keys))): row for row in rows.to_dicts()}
    assert len(by_key) == rows.height
    for step in steps:
        row = by_key[*(str(step[key]) for key in keys[:3]), str(int(step["B"]))]
        for name in ("t_estimate_s", "t_lower_s", "tokens_per_s_per_chip_estimate", "max_B"):
            assert (name not in step) == (row[name] is None)
            assert row[name] is None or shown_as(row[name], step[name]), name


def test_a_large_sweep_has_the_best_batch_that_fits_of_each_case():
    sweep = rooflines.rows(rooflines.load_config(MODELS), "serve").lazy().collect()
    rows, notes = steps_sheet.step_rows({"serve": sweep.lazy()}, room=8)
    assert notes == [
        "serve: of 16 rows the batch with the most tokens/s/chip that fits",
    ]
    assert rows is not None
    assert rows.height == 8
    keys = ["chip", "dtypes", "split"]
    rate = pl.coalesce("tokens_per_s_per_chip_estimate", "tokens_per_s_per_chip_serial")
    for (chip, dtypes, split), best in rows.group_by(keys):
        case_rows = sweep.filter("fits", chip=chip, dtypes=dtypes, split=split)
        batch = case_rows.sort(rate)["B"].last()
        assert best["B"].to_list() == [batch]
    none, (left_out,) = steps_sheet.step_rows({"serve": sweep.lazy()}, room=7)
    assert none is None
    assert left_out == "left out: serve (16 rows)"


def test_large_sweeps_are_left_out_and_named(tmp_path, monkeypatch):
    frame = rooflines.thresholds(rooflines.load_config(CONFIG))
    rows_of = dict(frame["sweep"].cast(pl.String).value_counts().iter_rows())
    monkeypatch.setattr(workbook, "MAX_THRESHOLDS", rows_of["batched"] + rows_of["split"])
    cells = read_workbook(written(tmp_path / "first", CONFIG))
    note = f"Left out: layers ({rows_of['layers']} rows of thresholds.parquet)"
    assert cells["Thresholds"]["A1"].value == note
    found = [row["sweep"] for row in table_of(cells["Thresholds"], 3)]
    assert {name: found.count(name) for name in {*found}} == {
        name: rows for name, rows in rows_of.items() if name != "layers"
    }


def test_a_note_above_a_table_does_not_widen_its_columns(tmp_path, monkeypatch):
    sweeps = {f"sweep-{number}": CONFIG["sweeps"]["batched"] for number in range(9)}
    monkeypatch.setattr(workbook, "MAX_THRESHOLDS", 1)
    path = written(tmp_path / "many", CONFIG | {"sweeps": sweeps})
    assert len(read_workbook(path)["Thresholds"]["A1"].value) > 255
    for name, sizes in column_widths(path).items():
        assert max(sizes) <= 60, name


def test_the_thresholds_are_those_of_the_file(book, path):
    frame = pl.read_parquet(path.with_name("thresholds.parquet"))
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    shown = table_of(book["Thresholds"], 3)
    assert len(shown) == frame.height
    for row, expected in zip(shown, frame.iter_rows(named=True), strict=True):
        for name, value in row.items():
            assert shown_as(expected[name], value)
    empty = {name for name in frame.columns if frame[name].null_count() == frame.height}
    assert {*frame.columns} - empty == {*shown[0]}
    assert any((row["critical"], row["outcome"]) == (None, "never") for row in shown)
    assert any(row["axis"] == "peak" and row["critical"] is None for row in shown)


def test_columns_are_those_of_python(book):
    meanings = [row["meaning"] for row in table_of(book["Columns"], 1)]
    assert meanings == rooflines.columns()["meaning"].to_list()


def test_only_the_sheet_what_if_has_formulas(book, parts):
    for name, cells in book.items():
        assert any(cell.formula for cell in cells.values()) == (name == "What-if")
    assert not [name for name in parts if "vba" in name or "externalLink" in name]


def test_equal_results_are_equal_files(path, tmp_path):
    assert written(tmp_path / "again", CONFIG).read_bytes() == path.read_bytes()


def test_what_if_begins_with_the_numbers_of_the_table(book):
    cells = book["What-if"]
    shown = table_of(cells, 8)
    table = rooflines.rows(rooflines.load_config(CONFIG), "layers").collect()
    rows = table.filter(shape="thin", B=256).to_dicts()
    assert [cells[address].plain for address in ("A5", "B5", "C5")] == [256, 128, 512]
    assert [row["chip"] for row in shown] == [row["chip"] for row in rows]
    for row, expected in zip(shown, rows, strict=True):
        for name in METRICS:
            assert shown_as(expected[name], row[name])
    for address, value in computed(cells, {}).items():
        assert same(value, cells[address].plain)


def test_estimates_lead_in_what_if_until_an_input_is_changed(tmp_path):
    sizes = {"B": 256, "D": 4096, "F": 14336}
    sweep = {"operation": "matmul", "grid": sizes, "dtypes": ["bf16"]}
    sweep["chips"] = ["h100-sxm", "tpu-v5e"]
    config = {"sweeps": {"layers": sweep}, "charts": []}
    cells = read_workbook(written(tmp_path / "results", config))["What-if"]
    fitted, unfitted = table_of(cells, 8)
    row = rooflines.explain("h100-sxm", sizes, "bf16").row
    estimates = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
    assert [*fitted][:6] == ["chip", "dtypes", *estimates, "t_lower_s"]
    assert [fitted[name] for name in estimates] == pytest.approx([row[name] for name in estimates])
    assert [unfitted[name] for name in estimates] == [None, None, None]
    assert "Estimates" in cells["A2"].value
    same_inputs = computed(cells, {})
    assert [same_inputs[f"{column}9"] for column in "CDE"] == [fitted[name] for name in estimates]
    for changed in ({"A5": 512.0}, {f"{columns_of(cells)['peak']}9": 1e15}):
        values = computed(cells, changed)
        assert [values[f"{column}9"] for column in "CDE"] == ["other inputs"] * 3
        assert values["F9"] > 0


def test_what_if_has_every_chip_where_it_has_not_every_dtypes(tmp_path, monkeypatch):
    monkeypatch.setattr(what_if_sheet, "MAX_ROWS", 5)
    cells = read_workbook(written(tmp_path / "results", CONFIG))["What-if"]
    shown = [(row["chip"], row["dtypes"]) for row in table_of(cells, 8)]
    assert shown == [("h100-sxm", "bf16"), ("tpu-v5e", "bf16"), ("mine", "bf16")]
    assert cells["A2"].value.endswith("Shown are 3 of 6 rows: the first dtypes of a chip.")
    for address, value in computed(cells, {}).items():
        assert same(value, cells[address].plain)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.operation)
def test_what_if_computes_other_sizes_and_rates(question, tmp_path):
    cells = read_workbook(written(tmp_path / "results", question.config()))["What-if"]
    values = computed(cells, question.changed(cells))
    assert question.differences(cells, values) == []


@check(30)
@given(of(random_sweeps.configs()))
def test_any_config_has_a_workbook(config):
    with TemporaryDirectory() as folder:
        cells = read_workbook(written(Path(folder) / "results", config))
    for address, value in computed(cells["What-if"], {}).items():
        assert same(value, cells["What-if"][address].plain, 1e-9), address
    loaded = rooflines.load_config(config)
    shown = {key[0] for key in lines_of(cells["Summary"])}
    assert shown == {name for name, sweep in loaded.sweeps.items() if sweep.first_solved}


@check(20)
@given(of(random_serving.configs() | random_serving.request_configs()))
def test_any_config_of_models_has_a_workbook(config):
    with TemporaryDirectory() as folder:
        cells = read_workbook(written(Path(folder) / "results", config))
    shown = {key[0] for key in lines_of(cells["Summary"])}
    along = pl.col("axis").cast(pl.String).is_in(["B", "S"]) & pl.col("target_s").is_null()
    solved = rooflines.thresholds(rooflines.load_config(config)).filter(along)
    assert shown == set(solved["sweep"].cast(pl.String))


def test_sizes_of_the_summary_are_those_of_the_largest_share(tmp_path):
    critical = []
    for name, shares in {"one": [1], "two": [0.5, 1], "half": [0.5]}.items():
        sweeps = {"layers": {**CONFIG["sweeps"]["layers"], "shares": shares}}
        path = written(tmp_path / name, {**CONFIG, "sweeps": sweeps})
        critical.append(lines_of(read_workbook(path)["Summary"]))
    assert critical[0] == critical[1] != critical[2]
