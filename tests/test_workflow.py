"""The workflow, run as a user runs it, in temporary folders."""

import re

import polars as pl
import pytest
import yaml
from run_folder import SNAKEFILE, RunFolder
from trials import CONFIG, TABLES

from rooflines.results.folders import FOLDERS

PARTS = (*(f"catalogue/part-{number:05d}" for number in range(4)), "own/part-00000")
PARQUET = {f"tables/{part}.parquet" for part in PARTS}
SUMMARIES = {"thresholds.parquet", *TABLES} - {"tables/index.csv"}
OF_SWEEPS = SUMMARIES - {"model-shapes.csv"}
INDEXES = {f"{folder}/index.csv" for folder in FOLDERS}


@pytest.fixture(scope="session")
def first(undisturbed):
    """A folder whose further runs leave out the site, which takes longest."""
    return RunFolder(undisturbed / "run", CONFIG, *INDEXES, *SUMMARIES)


@pytest.fixture
def made(first, tmp_path):
    return first.copied(tmp_path)


def test_a_run_makes_every_published_file_and_nothing_else(first):
    assert set(first.times()) == PARQUET | SUMMARIES | INDEXES


def test_the_list_of_tables_names_each_part_with_its_rows(first):
    tables = first.results / "tables"
    index = pl.read_csv(tables / "index.csv")
    assert index.columns == ["sweep", "part", "rows", "path"]
    assert index["path"].to_list() == [f"{part}.parquet" for part in PARTS]
    assert index["rows"].to_list() == [
        pl.read_parquet(tables / path).height for path in index["path"]
    ]


def test_every_job_leaves_a_log(first):
    logs = first.results / "logs"
    names = {path.relative_to(logs).as_posix() for path in logs.rglob("*.log")}
    assert names == {f"sweep_table/{part}.log" for part in PARTS} | {
        "table_index.log",
        "thresholds.log",
        "skipped.log",
        "summary.log",
        "model_shapes.log",
        "workbook.log",
        "bundle.log",
    }
    assert all(
        re.search(r"^done in \d+\.\d\d s$", (logs / name).read_text(), re.MULTILINE)
        for name in names
    )


def test_a_second_run_does_nothing_and_says_so(made):
    before = made.times()
    assert "Nothing to be done" in made.finish("--", "all")
    assert made.times() == before


def test_a_deleted_file_comes_back(made):
    gone = {"tables/catalogue/part-00001.parquet", "skipped.csv"}
    for name in gone:
        (made.results / name).unlink()
    assert made.remade("--", "all") == gone | INDEXES | {"summary.csv"}


def test_an_edited_chip_or_sweep_remakes_only_its_own_tables(made):
    """A bandwidth and a grid change the rows of their sweep and the summaries, and no other rows.

    That each of them alone changes the spec of a part is tested in `test_parts`.
    """
    own = made.results / "tables/own/part-00000.parquet"
    before = pl.read_parquet(own)
    made.config["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.05e11
    made.config["sweeps"]["own"]["grid"]["B"] = [128, 512]
    assert made.remade() == {"tables/own/part-00000.parquet"} | INDEXES | OF_SWEEPS
    after = pl.read_parquet(own)
    assert after["B"].unique(maintain_order=True).to_list() == [128, 512]
    slower = after.filter(B=128)["t_memory_s"] / before.filter(B=128)["t_memory_s"]
    assert slower.to_list() == [2.0] * len(slower)


def test_parts_that_are_no_longer_asked_for_go_and_foreign_files_stay(made):
    tables = made.results / "tables"
    foreign = tables / "own" / "part-00007.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(foreign)
    sweep = made.config["sweeps"].pop("catalogue")
    made.config["sweeps"]["renamed"] = {**sweep, "chips": ["tpu-v5e"]}
    renamed = {f"tables/renamed/part-0000{number}.parquet" for number in range(2)}
    assert made.remade() == renamed | INDEXES | OF_SWEEPS
    assert not (tables / "catalogue").exists()
    assert {path.name for path in (tables / "own").iterdir()} == {
        "part-00000.parquet",
        foreign.name,
    }
    assert "removed " in (made.results / "logs" / "table_index.log").read_text()


def test_config_and_results_may_be_anywhere(tmp_path, snakemake):
    started, there = tmp_path / "started", tmp_path / "there"
    started.mkdir()
    sweeps = {"own": CONFIG["sweeps"]["own"]}
    (started / "my.yaml").write_text(
        yaml.safe_dump({**CONFIG, "sweeps": sweeps, "pathvars": {"results": "out/put"}})
    )
    table = "out/put/tables/own/part-00000.parquet"
    options = (*SNAKEFILE, "--configfile", "my.yaml", "--directory", there)
    done = snakemake(table, *options, cwd=started)
    assert done.returncode == 0, done.stdout
    assert (there / table).exists()
    assert {path.name for path in started.iterdir()} == {"my.yaml"}


def test_the_default_config_is_taken_where_none_is_given(repository, default_results):
    config = yaml.safe_load((repository / "config" / "config.yaml").read_text())
    sweeps = [pl.read_csv(default_results / name / "index.csv")["sweep"] for name in FOLDERS]
    assert {*pl.concat(sweeps)} == {*config["sweeps"], *config["model-sweeps"]}


def test_another_workflow_imports_this_one_as_a_module(tmp_path, repository, snakemake):
    config = {**CONFIG, "sweeps": {"own": CONFIG["sweeps"]["own"]}}
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump({"question": 42, "rooflines": config}))
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
    input: "theirs/rooflines/thresholds.parquet", "theirs/rooflines/tables/index.csv"
    output: "theirs/report.txt"
    shell: "wc -l {{input[0]}} > {{output}}"
"""
    )
    done = snakemake("theirs/report.txt", "--force-use-threads", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "theirs/report.txt").exists()
    assert (tmp_path / "theirs/rooflines/tables/own/part-00000.parquet").exists()
    assert "Finished jobid" in done.stdout, "their own screen is left as it is"


def test_the_workflow_is_clean_by_snakemakes_own_standard(repository, snakemake):
    done = snakemake("--lint", cwd=repository)
    assert done.returncode == 0, done.stdout
