"""Rows reused after an edit to a chip equal those from a fresh run, to the last digit."""

import copy
import json

import polars as pl
import pytest
from case_files import case
from polars.testing import assert_frame_equal

import rooflines
from rooflines.evaluation.row_frames import KernelTable, table_of
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entries import Chip
from rooflines.results.records import RECORDS_FOLDER, record_file
from rooflines.results.tables import metadata_of
from rooflines.run.jobs import write_part
from rooflines.run.lock import STATE
from rooflines.run.plan import plan
from rooflines.run.reused_rows import of_chips, rows_kept
from rooflines.run.threshold_job import write_thresholds
from rooflines.site import explorer
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.recipes import recipe_of, sweep_of

CONFIG, EDITS = case("configs/kept"), case("kept-edits")
CHIP, _, MORE, *_ = EDITS


def edited(edit, config=CONFIG):
    changed = copy.deepcopy(config)
    for path, value in EDITS[edit].items():
        *steps, last = path.split(".")
        place = changed
        for step in steps:
            place = place[step]
        place[last] = value
    return changed


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """A folder of results, and the folder that a run works in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / RECORDS_FOLDER).mkdir()


@pytest.mark.parametrize("name", ["thresholds.parquet", "model-thresholds.parquet"])
@pytest.mark.parametrize("edit", EDITS)
def test_after_an_edit_thresholds_are_those_of_a_run_from_nothing(edit, name, tmp_path):
    before, after = (plan(rooflines.load_config(each)) for each in (CONFIG, edited(edit)))
    path = tmp_path / name
    write_thresholds(before.spec(name), path)
    write_thresholds(after.spec(name), path)
    write_thresholds(after.spec(name), tmp_path / "alone.parquet")
    alone = pl.read_parquet(tmp_path / "alone.parquet")
    assert_frame_equal(pl.read_parquet(path), alone, check_exact=True)
    assert metadata_of(path) == metadata_of(tmp_path / "alone.parquet")


@pytest.mark.parametrize("damage", ["changed", "record lost", "of other code"])
def test_only_the_edited_chip_is_solved_for_and_nothing_damaged_is_kept(damage, tmp_path):
    before, after = (plan(rooflines.load_config(each)) for each in (CONFIG, edited(CHIP)))
    name, path = "thresholds.parquet", tmp_path / "thresholds.parquet"
    write_thresholds(before.spec(name), path)
    log = write_thresholds(after.spec(name), path)
    assert log == "split: made for own\ndot: made for own"
    (kept,) = STATE.rglob("*.parquet")
    spec = before.spec(name)
    if damage == "changed":
        kept.write_bytes(kept.read_bytes()[:-1] + b"2")
    elif damage == "record lost":
        record_file(tmp_path, path).unlink()
    else:
        spec = spec.replace('"code":"', '"code":"x')
    assert write_thresholds(spec, path) == ""
    assert_frame_equal(pl.read_parquet(path), rooflines.thresholds(rooflines.load_config(CONFIG)))


@pytest.mark.parametrize(
    ("edit", "rows_per_part", "folders"),
    [
        *((edit, 1000, ("models", "layers")) for edit in EDITS),
        *((edit, 40, ("models",)) for edit in (CHIP, MORE)),  # parts end between rows of a chip
    ],
)
def test_after_an_edit_parts_of_models_are_those_of_a_run_from_nothing(
    edit, rows_per_part, folders, tmp_path
):
    first = copy.deepcopy(CONFIG)
    for sweep in first["model-sweeps"].values():
        sweep["rows_per_part"] = rows_per_part
    before, after = (
        plan(rooflines.load_config(config)).parts_in(*folders)
        for config in (first, edited(edit, first))
    )
    for part in before:
        assert rows_kept(part, tmp_path) == 0
        write_part(part.spec, tmp_path / part.path)
    kept = []
    for part in after:
        kept.append(rows_kept(part, tmp_path))
        one_made = ": made for own\n" in write_part(part.spec, tmp_path / part.path)
        write_part(part.spec, tmp_path / "alone.parquet")
        made, alone = map(pl.read_parquet, (tmp_path / part.path, tmp_path / "alone.parquet"))
        assert_frame_equal(made, alone, check_exact=True)
        others = made.filter(pl.col("chip").cast(pl.String) != "own").height
        assert kept[-1] == (others if one_made else 0)
    assert any(kept) == (edit == CHIP)


def test_rows_follow_the_chip_that_computes_their_prompts(tmp_path):
    def parts_of(config):
        sweep = {**CONFIG["model-sweeps"]["serve"], "phase": ["decode"], "thresholds": []}
        sweep |= {"grid": {"B": [1, 64]}, "requests": [{"input": 512, "output": 64}]}
        sweep |= {"chips": ["h100-sxm", "own"], "pools": {"prefill": {"chip": "own"}}}
        changed = {**config, "sweeps": {}, "model-sweeps": {"serve": sweep}}
        return plan(rooflines.load_config(changed)).parts_in("models")

    for config in (CONFIG, edited(CHIP)):
        (part,) = parts_of(config)
        write_part(part.spec, tmp_path / part.path)
        write_part(part.spec, tmp_path / "alone.parquet")
        made, alone = map(pl.read_parquet, (tmp_path / part.path, tmp_path / "alone.parquet"))
        assert_frame_equal(made, alone, check_exact=True)


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


@pytest.mark.parametrize("edit", ["calibrations", "dtypes", "models", "formats"])
def test_kept_steps_of_the_page_depend_on_all_that_they_are_made_of(edit, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer, "MODELS", ("gpt-oss-20b",))
    monkeypatch.setattr(explorer, "SERVING", ("h100-sxm",))
    monkeypatch.setattr(explorer, "DEFAULT_CHIPS", ("h100-sxm",))
    chips = {"h100-sxm": chip_entries()["h100-sxm"]}

    def made(kept):
        return json.dumps(dict(explorer.explorer_files(chips, [], kept)))

    before, entries = made(tmp_path / "kept.json"), dtype_entries()
    fits = shipped_calibrations()
    wide = {**entries.formats, "fp8": entries.formats["int8"].model_copy(update={"bits": 9})}
    name, value = {
        "calibrations": ("shipped_calibrations", lambda: fits.model_copy(update={"steps": {}})),
        "dtypes": ("dtype_entries", lambda: entries.model_copy(update={"formats": wide})),
        "models": ("MODELS", ("llama-3.1-8b",)),
        "formats": ("FORMATS", {name: explorer.FORMATS[name] for name in explorer.TRAINED}),
    }[edit]
    monkeypatch.setattr(explorer, name, value)
    assert before != made(tmp_path / "kept.json") == made(None)


@pytest.mark.parametrize("name", ["models", "layers", "thresholds"])
def test_rows_of_a_chip_have_the_same_last_digit_with_other_chips_beside_it(name):
    serving = rooflines.load_config().sweep("serving")

    def rows(chips):
        recipe = recipe_of(serving, models=["llama-3.1-70b", "deepseek-v3.2"], chips=chips)
        sweep = sweep_of(of_chips(recipe, chips))
        if name == "thresholds":
            return sweep_thresholds(sweep)
        return (KernelTable if name == "layers" else table_of)(sweep).frame()

    every = rows(serving.config.chips).lazy().collect()
    for chip in ("h100-sxm", "b200", "tpu-v6e"):
        own = every.filter(pl.col("chip").cast(pl.String) == chip)
        alone = rows([chip]).lazy().collect()
        assert_frame_equal(alone, own, check_exact=True, categorical_as_str=True)
