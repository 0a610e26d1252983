"""The workflow as a user runs it: an edit remakes what depends on it, nothing else."""

import hashlib
import json
import re
import shutil
from collections import defaultdict

import polars as pl
import pytest
import yaml
from case_files import case
from damage import unfinished
from hf_configs import small
from polars.testing import assert_frame_equal
from run_folder import SNAKEFILE, RunFolder
from timed_sets import COLLECTIVES, TIMINGS, write_timings

import rooflines
from rooflines.dictionary.columns import MEASURED, MEASURED_SKIPPED, measured_columns
from rooflines.fits.calibration_files import Calibrations, calibrations_yaml, shipped_calibrations
from rooflines.run.plan import plan

CONFIG = case("configs/workflow")

PARTS = (*(f"catalogue/part-{number:05d}" for number in range(4)), "own/part-00000")
TABLES = {f"tables/{part}.parquet" for part in PARTS}
OWN = "tables/own/part-00000.parquet"
APART = [f"models/apart/part-{number:05d}.parquet" for number in range(4)]
"""Of a chip and a model each, in this order."""

WHOLE = {f"{folder}/whole/part-00000.parquet" for folder in ("models", "layers")}
GRID, NCCL = "measured/grid.parquet", "measured/nccl.parquet"
LISTS = {"measured.csv", "measured-skipped.csv"}
CHIPS, ROOFLINE, SITE = "charts/chips", "charts/roofline", "bundle"
OF_ALL = {"parts.csv", "skipped.csv", "summary.csv", "rooflines.xlsx"}
OF_OPERATIONS, OF_MODELS = {"thresholds.parquet", *OF_ALL}, {"model-thresholds.parquet", *OF_ALL}
EVERY = {*TABLES, *APART, *WHOLE, GRID, NCCL, *LISTS, CHIPS, ROOFLINE, SITE}
SOLVED = {
    name: f"thresholds/{name}/part-00000.parquet" for name in ("catalogue", "own", "apart", "whole")
}
EVERY |= {*SOLVED.values()} | {*OF_OPERATIONS, *OF_MODELS, "model-shapes.csv"}


class Folder(RunFolder):
    """A folder of outputs of every kind; a folder of charts is as new as its newest file."""

    def targets(self):
        """Requested outputs except the site, which takes longest."""
        return {*plan(rooflines.load_config(self.write())).paths()} - {SITE}

    def times(self):
        """The time of each output [ns], lists of charts aside."""
        found: defaultdict[str, int] = defaultdict(int)
        for name, path in self.published():
            within = [each for each in (CHIPS, ROOFLINE, SITE) if name.startswith(f"{each}/")]
            output = within[0] if within else name
            if name.rpartition("/")[2] != "index.json":
                found[output] = max(found[output], path.stat().st_mtime_ns)
        return dict(found)


@pytest.fixture(scope="session")
def first(once):
    def make(path):
        (path / "config.json").write_text(json.dumps(small("llama")))
        write_timings(path)
        Folder(path, CONFIG).finish("--", "all")

    return Folder(once("workflow", make), CONFIG)


@pytest.fixture
def made(first, tmp_path):
    return first.copied(tmp_path)


@pytest.fixture(scope="module")
def config(first):
    return rooflines.load_config(first.write())


def test_a_run_makes_every_published_file_and_nothing_else(first):
    assert set(first.times()) == EVERY


def test_the_list_of_tables_names_each_part_with_its_rows(first):
    index = pl.read_csv(first.results / "parts.csv")
    assert index.columns == ["sweep", "part", "rows", "path"]
    assert {*index["path"]} == {*TABLES, *APART, *WHOLE}
    rows = [pl.read_parquet(first.results / path).height for path in index["path"]]
    assert index["rows"].to_list() == rows


def test_every_job_leaves_a_log(first):
    logs = {path: path.read_text() for path in (first.results / "logs").rglob("*.log")}
    names = {path.relative_to(first.results / "logs").as_posix() for path in logs}
    assert names > {f"sweep_table/{part}.log" for part in PARTS}
    assert names > {f"{job}.log" for job in ("parts", "thresholds", "summary", "bundle")}
    assert all(re.search(r"^done in \d+\.\d\d s$", log, re.MULTILINE) for log in logs.values())


def test_tables_are_those_of_the_python_interface(first, config):
    for sweep in ("own", "apart", "whole"):
        expected = rooflines.rows(config, sweep).collect()
        assert rooflines.scan(first.results, sweep).collect().rows() == expected.rows()
    layers = rooflines.scan(first.results, "whole", layers=True).collect()
    expected = rooflines.model_layers(config, "whole").collect()
    assert layers.sort(layers.columns).rows() == expected.sort(expected.columns).rows()
    thresholds = rooflines.thresholds(config, "apart")
    stored = pl.read_parquet(first.results / "model-thresholds.parquet").filter(sweep="apart")
    assert stored.select(thresholds.columns).rows() == thresholds.rows()
    with pytest.raises(rooflines.RooflinesError, match="has no table 'apart'") as refused:
        rooflines.scan(first.results, "apart", layers=True)
    assert refused.value.fix == "use one of whole"


def test_tables_of_timings_are_those_of_the_python_interface(first, config):
    for name in ("grid", "nccl"):
        table = pl.read_parquet(first.results / f"measured/{name}.parquet")
        assert_frame_equal(rooflines.measurements(config, name), table)
        columns = measured_columns(table.columns)
        assert [column.name for column in columns] == table.columns
        assert [c.name for c in columns if table[c.name].has_nulls() and not c.null] == []
    written = pl.read_csv(first.results / "measured.csv")
    found = rooflines.measured_summary(config)
    assert found.select("set", "region", "n").rows() == written.select("set", "region", "n").rows()
    explained = rooflines.columns().filter(file="measured")["column"].to_list()
    assert explained == [column.name for column in MEASURED]
    skipped = pl.read_csv(first.results / "measured-skipped.csv")
    assert skipped.columns == [column.name for column in MEASURED_SKIPPED]
    assert skipped.select("set", "chip", "lacks", "reason", "timings").rows() == [
        ("grid", "mine", "row", "no nvfp4 peak of its matrix unit", 1),
        ("grid", "mine", "estimate", "no calibration", 1),
        ("grid", None, "row", "have B = 0", 1),
    ]
    with pytest.raises(rooflines.RooflinesError, match="has no 'gird'"):
        rooflines.measurements(config, "gird")


def test_an_output_says_which_timings_made_it(first, tmp_path):
    copied = shutil.copy(first.results / GRID, tmp_path / "copy.parquet")
    for path in (first.results / GRID, first.results / "measured.csv", copied):
        found = rooflines.origin(path)
        assert found.whole == (path != copied)
        grid = found.measurements["grid"]
        assert grid["sha256"] == hashlib.sha256(TIMINGS.encode()).hexdigest()
        assert grid["about"] == {"licence": "MIT", "timer": "graph"}
        assert set(grid["chips"]) == {"h100-sxm", "mine"}
        assert found.sources()
        assert "timer: graph" in found.text()


def test_a_second_run_does_nothing_and_says_so(made):
    before = made.times()
    assert "Nothing to be done" in made.finish("--", "all")
    assert made.times() == before


# What an edit or a deletion changes, and which outputs are made again; the others stay. That each
# edit alone changes the spec of a part is tested in `test_parts`.


def test_what_is_deleted_comes_back_and_a_retitled_chart_is_drawn_with_the_site(made):
    """A table that is made again unchanged redraws nothing."""
    for name in (OWN, "skipped.csv"):
        (made.results / name).unlink()
    made.config["charts"][1]["title"] = "Two chips"
    again = {OWN, "skipped.csv", "parts.csv", "summary.csv", ROOFLINE, SITE}
    assert made.remade("--", "all") == again
    assert "Two chips" in (made.results / ROOFLINE / "roofline-catalogue.vl.json").read_text()


def test_an_edited_chip_or_sweep_remakes_only_what_has_it(made):
    before = pl.read_parquet(made.results / OWN)
    made.config["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.05e11
    made.config["sweeps"]["own"]["grid"]["B"] = [128, 512]
    again = {OWN, *APART[2:], SOLVED["own"], SOLVED["apart"], GRID, CHIPS}
    assert made.remade() == again | OF_OPERATIONS | OF_MODELS | LISTS
    after = pl.read_parquet(made.results / OWN)
    assert after["B"].unique(maintain_order=True).to_list() == [128, 512]
    memory_s = [frame.filter(B=128, chip="mine")["t_memory_s"] for frame in (before, after)]
    assert (memory_s[1] / memory_s[0]).to_list() == [2.0]
    assert "405000000000.0" in (made.results / CHIPS / "chips-own.csv").read_text()


def test_an_edited_file_remakes_only_what_is_read_from_it(made):
    (made.path / "config.json").write_text(json.dumps(small("llama", intermediate_size=192)))
    (made.results / "layers/whole/part-00000.parquet").unlink()
    more = f"{COLLECTIVES}h100-sxm,all-gather,8,2147483648,9e-3\n"
    (made.path / "timed/nccl.csv").write_text(more, encoding="utf-8")
    again = {*APART, SOLVED["apart"], "layers/whole/part-00000.parquet", NCCL}
    assert made.remade() == again | OF_MODELS | LISTS


def test_estimates_are_by_the_calibrations_of_the_config(made):
    before = pl.read_parquet(made.results / GRID)
    fit = shipped_calibrations().calibrations["h100-sxm/trtllm"]["bf16"]
    own = fit.model_copy(update={"overhead_s": fit.overhead_s + 1e-3})
    text = calibrations_yaml(Calibrations(calibrations={"h100-sxm/trtllm": {"bf16": own}}))
    (made.path / "own.yaml").write_text(text, encoding="utf-8")
    made.config["calibrations"] = ["own.yaml"]
    assert made.remade() == {GRID} | LISTS
    longer = (
        pl.read_parquet(made.results / GRID)["t_estimate_s"] - before["t_estimate_s"]
    ).to_list()
    assert longer == [pytest.approx(1e-3), pytest.approx(1e-3), None]


def test_outputs_that_are_no_longer_asked_for_go_and_foreign_files_stay(made):
    foreign = {"tables/own/part-00007.parquet", "measured/own.parquet"}
    for name in foreign:
        pl.DataFrame({"x": [1]}).write_parquet(made.results / name)
    sweep = made.config["sweeps"].pop("catalogue")
    made.config["sweeps"]["renamed"] = {**sweep, "chips": ["tpu-v5e"]}
    made.config |= {"measurements": {}, "charts": []}
    made.config["model-sweeps"]["whole"]["layers"] = False
    del made.config["model-sweeps"]["apart"]
    again = {f"tables/renamed/part-0000{number}.parquet" for number in range(2)}
    again |= {"thresholds/renamed/part-00000.parquet", SOLVED["whole"]}
    again |= {"models/whole/part-00000.parquet", *OF_OPERATIONS, *OF_MODELS}
    assert made.remade() == again
    assert set(made.times()) == again | {OWN, SOLVED["own"], "model-shapes.csv", SITE} | foreign
    assert not (made.results / "tables/catalogue").exists()
    records = made.results / ".made"
    gone = [*records.glob("layers/whole/*"), *records.glob("models/apart/*")]
    assert [*gone, *records.glob("measured/*.json")] == []


def test_charts_that_are_asked_for_are_drawn_after_a_table_that_is_made_again(made):
    shutil.rmtree(made.results / ROOFLINE)
    unfinished(made.path, "results/tables/catalogue/part-00000.parquet")
    made.finish("--", f"results/{ROOFLINE}")
    assert (made.results / ROOFLINE / "roofline-catalogue.vl.json").is_file()


OF_OWN = {"sweeps": {"own": CONFIG["sweeps"]["own"]}, "chips": CONFIG["chips"], "charts": []}


def test_config_and_results_may_be_anywhere(tmp_path, snakemake):
    started, there = tmp_path / "started", tmp_path / "there"
    started.mkdir()
    config = OF_OWN | {"pathvars": {"results": "out/put"}}
    (started / "my.yaml").write_text(yaml.safe_dump(config))
    table = f"out/put/{OWN}"
    options = (*SNAKEFILE, "--configfile", "my.yaml", "--directory", there)
    done = snakemake(table, *options, cwd=started)
    assert done.returncode == 0, done.stdout
    assert (there / table).exists()
    assert {path.name for path in started.iterdir()} == {"my.yaml"}


def test_the_default_config_is_taken_where_none_is_given(repository, default_results):
    config = yaml.safe_load((repository / "config" / "config.yaml").read_text())
    sweeps = pl.read_csv(default_results / "parts.csv")["sweep"]
    assert {*sweeps} == {*config["sweeps"], *config["model-sweeps"]}


def test_another_workflow_imports_this_one_as_a_module(tmp_path, repository, snakemake):
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump({"question": 42, "rooflines": OF_OWN}))
    (tmp_path / "Snakefile").write_text(
        f"""
configfile: "theirs.yaml"

module rooflines:
    snakefile: {str(repository / "workflow" / "Snakefile")!r}
    config: config["rooflines"]
    pathvars:
        results="theirs/rooflines"

use rule * from rooflines as rooflines_*

rule report:
    input: "theirs/rooflines/thresholds.parquet", "theirs/rooflines/parts.csv"
    output: "theirs/report.txt"
    shell: "wc -l {{input[0]}} > {{output}}"
"""
    )
    done = snakemake("theirs/report.txt", "--force-use-threads", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "theirs/report.txt").exists()
    assert (tmp_path / "theirs/rooflines" / OWN).exists()
    assert "Finished jobid" in done.stdout, "their own screen is left as it is"


def test_the_workflow_is_clean_by_snakemakes_own_standard(repository, snakemake):
    done = snakemake("--lint", cwd=repository)
    assert done.returncode == 0, done.stdout
