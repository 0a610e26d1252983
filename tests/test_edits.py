"""Edits of a config: what is made again, and that rows do not depend on their part."""

import copy
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from case_files import case
from polars.testing import assert_frame_equal
from threshold_files import write_threshold_files

import rooflines
from rooflines.evaluation import row_frames
from rooflines.evaluation.row_frames import KernelTable, table_of
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entries import Chip
from rooflines.results.folders import FOLDERS, THRESHOLDS_FOLDER
from rooflines.results.tables import metadata_of
from rooflines.run import table_parts
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.site import explorer
from rooflines.solvers.threshold_frames import all_thresholds, sweep_thresholds
from rooflines.sweep.recipes import recipe_of, sweep_of

CONFIG, EDITS = case("configs/edited"), case("edits")
CHIP, *_ = EDITS


def edited(edit, config=CONFIG):
    changed = copy.deepcopy(config)
    for path, value in EDITS[edit].items():
        *steps, last = path.split(".")
        place = changed
        for step in steps:
            place = place[step]
        place[last] = value
    return changed


def together(monkeypatch, rows):
    for limit in ("TOGETHER", "STEPS_TOGETHER", "THRESHOLDS_TOGETHER"):
        monkeypatch.setattr(table_parts, limit, rows)


def specs(config, *folders):
    return {part.path: json.loads(part.spec) for part in planned_parts(config, *folders)}


def planned_parts(config, *folders):
    among = folders or (*FOLDERS, THRESHOLDS_FOLDER)
    made = plan(rooflines.load_config(config))
    return [output for output in made.outputs if output.folder in among]


def test_an_edit_of_a_chip_leaves_the_parts_of_others(monkeypatch):
    together(monkeypatch, 1)
    before, after = specs(CONFIG), specs(edited(CHIP))
    assert before.keys() == after.keys()
    folders = {path.partition("/")[0] for path in before}
    assert folders == {"tables", "models", "layers", "thresholds"}
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {path for path, spec in before.items() if "own" in spec["chips"]}
    assert {path.partition("/")[0] for path in changed} == folders
    assert all(spec["config"]["chips"] == [*spec["chips"]] for spec in before.values())


@pytest.mark.parametrize("config", [CONFIG, case("configs/every-key")])
def test_a_spec_has_the_digest_of_every_input_and_no_other(config):
    made, several = plan(rooflines.load_config(config)), 0
    for output in made.outputs:
        inputs = [each for group in output.inputs.values() for each in group]
        assert json.loads(output.spec).get("inputs", {}) == {
            each.path: made.by_path[each.path].digest for each in inputs
        }
        several += len([group for group in output.inputs.values() if group]) > 1
    assert several


def test_parts_of_other_sweeps_stay(monkeypatch):
    together(monkeypatch, 1)
    before, after = specs(CONFIG), specs(edited("another size"))
    assert {path.split("/")[1] for path in before if before[path] != after[path]} == {
        "split",
        "serve",
        "train",
    }


@pytest.fixture(scope="module")
def whole_thresholds():
    config = rooflines.load_config(CONFIG)
    return {
        name: (sweeps, all_thresholds(sweeps, models="model" in name))
        for name, kind in (
            ("thresholds.parquet", "sweeps"),
            ("model-thresholds.parquet", "model-sweeps"),
        )
        for sweeps in [[config.sweep(each) for each in CONFIG[kind]]]
    }


@pytest.mark.parametrize("rows", [1, 60])
def test_thresholds_are_the_same_in_any_parts(rows, whole_thresholds, monkeypatch, tmp_path):
    together(monkeypatch, rows)
    made = plan(rooflines.load_config(CONFIG))
    for name, (sweeps, whole) in whole_thresholds.items():
        write_threshold_files(made, name, tmp_path)
        frame = pl.read_parquet(tmp_path / name)
        assert_frame_equal(frame, whole, categorical_as_str=True)
        for sweep in sweeps:
            chips = frame.filter(sweep=sweep.name)["chip"].unique(maintain_order=True)
            assert chips.cast(pl.String).to_list() == [*sweep.rows_by_chip()]
    columns = [column["name"] for column in metadata_of(tmp_path / "thresholds.parquet")["columns"]]
    assert {"B", "D", "F"} < {*columns}


def test_without_thresholds_files_have_the_columns_alone(tmp_path):
    bare = copy.deepcopy(CONFIG)
    for sweep in (*bare["sweeps"].values(), *bare["model-sweeps"].values()):
        sweep["thresholds"] = []
    assert planned_parts(bare, "thresholds") == []
    made = plan(rooflines.load_config(bare))
    for name in ("thresholds.parquet", "model-thresholds.parquet"):
        write_threshold_files(made, name, tmp_path)
        frame = pl.read_parquet(tmp_path / name)
        assert frame.height == 0
        assert {"chip", "critical"} < {*frame.columns}
        assert ("B" in frame.columns) == ("T" not in frame.columns)


@pytest.fixture(scope="module")
def whole_tables():
    sweeps = map(rooflines.load_config(CONFIG).sweep, CONFIG["model-sweeps"])
    tables = {
        (sweep.name, folder): table
        for sweep in sweeps
        for folder, table in (("models", table_of(sweep)), ("layers", KernelTable(sweep)))
    }
    return {key: (table.sweep, table.stored_frame().collect()) for key, table in tables.items()}


@pytest.mark.parametrize(
    ("rows", "rows_per_part"),
    [
        (1, {"models": 1000, "layers": 1000}),
        (700, {"models": 1000, "layers": 1000}),
        (10**6, {"models": 10, "layers": 170}),  # parts end between rows of a chip
    ],
)
def test_tables_are_the_same_in_any_parts(rows, rows_per_part, whole_tables, monkeypatch, tmp_path):
    together(monkeypatch, rows)
    for (name, folder), (sweep, whole) in whole_tables.items():
        config = copy.deepcopy(CONFIG)
        config["model-sweeps"][name]["rows_per_part"] = rows_per_part[folder]
        parts = [part for part in planned_parts(config, folder) if part.sweep == name]
        for part in parts:
            write_part(part.spec, tmp_path / part.path)
        frame = pl.read_parquet([tmp_path / part.path for part in parts])
        assert_frame_equal(frame, whole, check_exact=True, categorical_as_str=True)
        chips = whole["chip"].cast(pl.String)
        by_chip = sweep.rows_by_chip(kernels=folder == "layers")
        assert dict(chips.value_counts().iter_rows()) == by_chip
        assert chips.rle().len() == chips.n_unique(), "rows of a chip are neighbours"
        assert (len(parts) > len(by_chip)) == (rows_per_part[folder] < max(by_chip.values()))


def test_slices_of_several_chips_are_those_of_the_table(monkeypatch):
    sweep = rooflines.load_config(CONFIG).sweep("serve")
    table = table_of(sweep)
    whole = table.frame().collect()
    for start, stop in [(0, 5), (3, 17), (7, whole.height)]:
        part = table.frame(start, stop).collect()
        assert_frame_equal(part, whole[start:stop], check_exact=True, categorical_as_str=True)
    monkeypatch.setattr(row_frames, "STEPS_TOGETHER", 1)
    assert_frame_equal(table.frame().collect(), whole, check_exact=True, categorical_as_str=True)


def test_rows_of_operations_are_the_same_with_any_chips_beside_them(monkeypatch):
    chips = ["h100-sxm", "tpu-v5e", "a100-sxm-80gb", "h200-sxm"]
    sweep: dict[str, Any] = {
        "operation": "matmul",
        "chips": chips,
        "dtypes": ["bf16", "w8a16"],
        "thresholds": [],
    }
    sweep |= {"grid": {"B": [1, 64, 777], "D": [100, 4096], "F": [3, 5000]}}
    sweep |= {"sharding": ["none", "contracting/all-reduce"], "shards": [1, 8]}
    several = rooflines.rows(rooflines.load_config({"sweeps": {"m": sweep}}), "m").collect()
    single = [{"sweeps": {"m": {**sweep, "chips": [chip]}}} for chip in chips]
    alone = pl.concat(rooflines.rows(rooflines.load_config(one), "m").collect() for one in single)
    assert_frame_equal(several, alone, check_exact=True, categorical_as_str=True)
    monkeypatch.setattr(row_frames, "BLOCK_ROWS", 150)
    table = table_of(rooflines.load_config({"sweeps": {"m": sweep}}).sweep("m"))
    assert 1 < len(table.groups()) < len(chips)
    for start, stop in [(0, 5), (70, 170), (0, several.height)]:
        part = table.frame(start, stop, several.columns).collect()
        assert_frame_equal(part, several[start:stop], check_exact=True, categorical_as_str=True)


def test_an_edit_of_the_chip_that_computes_prompts_changes_every_part(monkeypatch):
    def parts_of(config):
        sweep = {**CONFIG["model-sweeps"]["serve"], "phase": ["decode"], "thresholds": []}
        sweep |= {"grid": {"B": [1, 64]}, "requests": [{"input": 512, "output": 64}]}
        sweep |= {"chips": ["h100-sxm", "own"], "pools": {"prefill": {"chip": "own"}}}
        changed = {**config, "sweeps": {}, "model-sweeps": {"serve": sweep}}
        return plan(rooflines.load_config(changed)).parts_in("models")

    together(monkeypatch, 1)
    before, after = parts_of(CONFIG), parts_of(edited(CHIP))
    assert [json.loads(part.spec)["config"]["chips"] for part in before] == [["h100-sxm"], ["own"]]
    assert all(one.spec != other.spec for one, other in zip(before, after, strict=True))


def test_the_page_has_the_steps_of_a_run_from_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(explorer, "MODELS", ("llama-3.1-8b", "gpt-oss-20b"))
    monkeypatch.setattr(explorer, "SERVING", ("h100-sxm", "b200", "mi300x"))
    monkeypatch.setattr(explorer, "DEFAULT_CHIPS", ("b200",))
    chips = {name: chip_entries()[name] for name in ("h100-sxm", "b200", "mi300x")}
    plain = copy.deepcopy(chips["b200"].plain)
    plain["memory"]["hbm"]["bytes_per_s"] *= 1.01
    without_fp8 = {"bf16": plain["units"]["matrix"]["bf16"]}
    edits = [plain, {**plain, "units": {"matrix": without_fp8}}, chips["b200"].plain]
    every = []
    for edit in edits:
        changed = {**chips, "b200": Chip.model_validate(edit)}
        found, alone = (
            json.dumps(dict(explorer.explorer_files(changed, [], kept)))
            for kept in (tmp_path / "kept.json", None)
        )
        assert found == alone
        every.append(found)
    assert every[0] != every[1] != every[2] != every[0]


def offer_one_of_each(monkeypatch):
    """Offer one model on one chip."""
    monkeypatch.setattr(explorer, "MODELS", ("gpt-oss-20b",))
    monkeypatch.setattr(explorer, "SERVING", ("h100-sxm",))
    monkeypatch.setattr(explorer, "DEFAULT_CHIPS", ("h100-sxm",))


def page_data(kept):
    """Data of a page with one chip; steps are read from a file, or kept in it."""
    chips = {"h100-sxm": chip_entries()["h100-sxm"]}
    return json.dumps(dict(explorer.explorer_files(chips, [], kept)))


@pytest.fixture(scope="module")
def first_page(tmp_path_factory):
    """Data of the page before an edit, and the file with its steps."""
    kept = tmp_path_factory.mktemp("page") / "kept.json"
    with pytest.MonkeyPatch.context() as monkeypatch:
        offer_one_of_each(monkeypatch)
        return page_data(kept), kept


@pytest.mark.parametrize("edit", ["calibrations", "dtypes", "models", "formats"])
def test_kept_steps_of_the_page_depend_on_all_that_they_are_made_of(
    edit, first_page, tmp_path, monkeypatch
):
    (before, first), entries, fits = first_page, dtype_entries(), shipped_calibrations()
    kept = Path(shutil.copy(first, tmp_path))
    offer_one_of_each(monkeypatch)
    wide = {**entries.formats, "fp8": entries.formats["int8"].model_copy(update={"bits": 9})}
    name, value = {
        "calibrations": ("shipped_calibrations", lambda: fits.model_copy(update={"steps": {}})),
        "dtypes": ("dtype_entries", lambda: entries.model_copy(update={"formats": wide})),
        "models": ("MODELS", ("llama-3.1-8b",)),
        "formats": ("FORMATS", {name: explorer.FORMATS[name] for name in explorer.TRAINED}),
    }[edit]
    monkeypatch.setattr(explorer, name, value)
    assert before != page_data(kept) == page_data(None)


@pytest.fixture(scope="module")
def sweep_on():
    """Sweep of two models on some chips, one for all tables: its cases are timed once."""
    serving = rooflines.load_config().sweep("serving")

    @cache
    def on(*chips):
        several = chips or serving.config.chips
        recipe = recipe_of(serving, models=["llama-3.1-70b", "deepseek-v3.2"], chips=several)
        return sweep_of(recipe)

    return on


@pytest.mark.parametrize("name", ["models", "layers", "thresholds"])
def test_rows_of_a_chip_have_the_same_last_digit_with_other_chips_beside_it(name, sweep_on):
    def rows(*chips):
        sweep = sweep_on(*chips)
        if name == "thresholds":
            return sweep_thresholds(sweep)
        return (KernelTable if name == "layers" else table_of)(sweep).frame()

    every = rows().lazy().collect()
    for chip in ("h100-sxm", "b200", "tpu-v6e"):
        own = every.filter(pl.col("chip").cast(pl.String) == chip)
        alone = rows(chip).lazy().collect()
        assert_frame_equal(alone, own, check_exact=True, categorical_as_str=True)
