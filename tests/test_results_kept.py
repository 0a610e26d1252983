"""`rooflines run` replaces another config's results only on request; Snakemake replaces them."""

import io
import sys
from pathlib import Path

import pytest
from processes import python

from rooflines.cli import main as cli
from rooflines.cli.run import results_of
from rooflines.results.folders import config_of_results, record_config
from rooflines.results.records import RECORDS_FOLDER

SMALL = """
sweeps:
  a: {operation: matmul, grid: {B: [1, 64], D: 1024, F: D}, dtypes: [bf16], chips: [tpu-v5e]}
charts: []
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SMALL)
    (tmp_path / "other.yaml").write_text(SMALL.replace("64", "32"))
    return tmp_path


def made(folder, config):
    """A folder of results that are recorded as those of a config."""
    (folder / "tables").mkdir(parents=True)
    (folder / RECORDS_FOLDER).mkdir()
    record_config(folder, config)
    return folder


@pytest.mark.slow
def test_a_run_of_another_config_needs_replace(here):
    def run(config, *words, status=0):
        command = ("-m", "rooflines", "run", config, *words, "--cores", "1", "--", "summary")
        return python(*command, status=status).stderr

    results = made(here / "results", here / "my.yaml")
    assert run("other.yaml", status=2) == (
        "results are those of my.yaml, and this run would replace them.\n"
        "  fix: add --replace, or put results elsewhere (`pathvars: {results: FOLDER}` in the "
        "config).\n"
    )
    assert config_of_results(results) == here / "my.yaml"
    said = run("other.yaml", "--replace")
    assert said.startswith("replacing the results of my.yaml in results\n")
    assert config_of_results(results) == here / "other.yaml"
    assert cli.run(["run", "my.yaml"]) == 2


class Terminal(io.StringIO):
    """Standard input that a person types."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "replaced"), [("y", True), ("n", False), ("", False)])
def test_a_terminal_is_asked(here, monkeypatch, capsys, answer, replaced):
    results = made(here / "results", here / "my.yaml")
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    assert cli.run(["run", "other.yaml", "--cores", "1", "--", "--version"]) == 2 * (not replaced)
    said = capsys.readouterr().err
    assert f"{results.name} has the results of my.yaml. Replace them? [y/N]" in said
    assert ("would replace them" in said) != replaced


def test_results_keep_their_config_when_both_are_moved(here):
    (here / "one").mkdir()
    made(here / "one/results", here / "one/my.yaml")
    (here / "one").rename(here / "two")
    assert config_of_results(here / "two/results") == here / "two/my.yaml"


def test_a_damaged_record_needs_replace_too(here):
    results = made(here / "results", here / "my.yaml")
    (results / RECORDS_FOLDER / "config").write_bytes(b"\xff\x00")
    assert cli.run(["run", "my.yaml"]) == 2


def test_results_without_a_config_may_be_replaced(here):
    results = made(here / "results", None)
    assert config_of_results(results) is None
    record_config(results, here / "my.yaml")
    assert config_of_results(results) == here / "my.yaml"
    (results / "tables").rmdir()
    assert config_of_results(results) is None
    record_config(results, None)
    record_config(results, None)


def test_results_are_where_the_config_and_snakemake_put_them(here):
    assert results_of(None, []) == Path("results")
    assert results_of("my.yaml", ["--directory", "there"]) == Path("there/results")
    (here / "put.yaml").write_text(f"{SMALL}pathvars: {{results: elsewhere}}\n")
    assert results_of("put.yaml", ["summary"]) == Path("elsewhere")
