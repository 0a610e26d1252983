"""The example of docs/write-a-config.md with its charts and its site; pages with a run, in full."""

import subprocess
import sys

import pytest
from pages import HOW_TO, arguments, example, prepare

from rooflines.cli import main as cli
from rooflines.results.provenance import check_results


def test_the_example_config_makes_everything(tmp_path, repository, snakemake):
    run = snakemake(*example(tmp_path, repository), cwd=tmp_path)
    assert run.returncode == 0, run.stdout
    results = tmp_path / "elsewhere" / "results"
    assert (results / "bundle" / "index.html").is_file()
    assert len(list((results / "charts").glob("*/*.svg"))) > 1
    assert [(path, fault) for path, fault in check_results(results) if fault] == []


RUNS = [page for page in HOW_TO if any(words[0] == "run" for words in arguments(page))]


@pytest.mark.parametrize("page", RUNS, ids=lambda page: page.stem)
def test_the_run_of_a_page_makes_a_site(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    for words in arguments(page):
        if words[0] == "run":  # a process of its own, as Snakemake is
            assert subprocess.call([sys.executable, "-m", "rooflines", *words]) == 0, words
        else:
            assert cli.run(words) == 0, words
    assert (tmp_path / "results" / "bundle" / "index.html").is_file()
