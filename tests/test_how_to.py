"""Commands on all pages run, in the order of the page, or are listed with a reason."""

import json
import re
import shlex
import subprocess
import sys

import click
import polars as pl
import pytest
import yaml
from documents import DOCS, ROOT
from pages import (
    FENCED,
    HOW_TO,
    LONG,
    PAGES,
    TIMINGS,
    arguments,
    blocks,
    code,
    every_command,
    prepare,
)
from transcripts import COMMAND

from benchmarks.first_steps import CLONE, PAGE, steps
from rooflines.cli.main import COMMANDS, GROUPS, commands, run

IN_TEST_README = ("snakemake --cores 4 --configfile my.yaml ",)
"""Commands that tests/test_readme.py runs begin with one of these."""

NEEDS_MORE = {
    LONG: "minutes: tests/verify/test_measure.py",
    "counters": "a variable of the shell, for ncu",
    "ncu": "a GPU and Nsight Compute",
    "snakemake --profile profiles/": "a cluster: tests/engines run these profiles",
    "snakemake --cores 4 --profile profiles/s3 ": "object storage: tests/engines run this profile",
    ". .venv": "an environment that make sets up",
    "export SNAKEMAKE_STORAGE_S3_": "addresses and keys of the reader",
    "pip install ": "the network",
    "python -m http.server ": "serves until it is stopped",
    "cp -r results/bundle ": "the folder of a web server",
    "aws s3 sync ": "a bucket",
    "jupyter execute ": "what pip installs: tests/verify/test_notebooks.py runs the notebooks",
}
"""Beginnings of the commands that no test runs as they are, and why."""

LANGUAGES = {"python", "yaml", "shell", "console", "text", "dockerfile", "snakemake"}
"""Python runs in tests/test_readme.py; the other ones here."""


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch, default_results, capsys):
    """Commands after `$` print the lines below them; `...` stands for lines left out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(default_results)
    slower_results(default_results, tmp_path / "results-before")
    prepare(tmp_path)
    found = [each for block in code(page) for each in COMMAND.findall(block.text)]
    shown = {typed: output for typed, output, _ in found}
    for words in arguments(page):
        assert status(words) == 0, words
        printed = capsys.readouterr().out
        lines = shown.pop(shlex.join(words), "")
        assert all(part in printed for part in re.split(r"^\.\.\.\n", lines, flags=re.MULTILINE))
    assert shown == {}


def slower_results(results, folder):
    """A sweep of the results in a folder, with twice the times."""
    table = min((results / "models").iterdir(), key=lambda path: len([*path.iterdir()]))
    (folder / "models" / table.name).mkdir(parents=True)
    for part in table.iterdir():
        times = pl.col("^t_.*_s$") * 2
        slower = pl.read_parquet(part).with_columns(times)
        slower.write_parquet(folder / "models" / table.name / part.name)


def status(words):
    """The exit status of a command; a run is a process of its own, as its event loop is."""
    if words[0] != "run":
        return run(words)
    return subprocess.call([sys.executable, "-m", "rooflines", *words, "--dry-run"])


def test_no_command_is_left_out():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    reasons = set()
    for page in PAGES:
        for command in every_command(page):
            target = re.fullmatch(r"make ([a-z-]+)", command)
            found = [start for start in NEEDS_MORE if command.startswith(start)]
            reasons |= {*found}
            assert (
                found
                or command.startswith(("rooflines ", *IN_TEST_README))
                or (target and re.search(rf"^{target[1]}:.*##", makefile, re.MULTILINE))
            ), f"{page}: {command}"
    assert reasons == {*NEEDS_MORE}


def test_commands_within_a_sentence_exist_with_their_options():
    inline = re.compile(r"`(rooflines (?!\[)[^`]+)`")
    found = [
        shlex.split(command)[1:]
        for page in PAGES
        for command in inline.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    ]
    assert len(found) > 30
    for name, *words in found:
        if name in ("-h", "COMMAND"):
            continue
        assert name in COMMANDS, name
        command = commands.get_command(click.Context(commands), name)
        if name in GROUPS and words:
            assert isinstance(command, click.Group)
            assert words[0] in GROUPS[name]
            command = command.get_command(click.Context(command), words[0])
            assert command is not None
        assert command is not None
        options = {option for parameter in command.params for option in parameter.opts}
        named = {word.strip("[]") for word in words if word.strip("[]").startswith("--")} - {"--"}
        assert named <= options | {"--help"}, (name, named - options)


def test_every_block_has_a_language_that_is_tested():
    for page in PAGES:
        for block in code(page):
            assert block.language in LANGUAGES, f"{page}: {block}"
            if block.language == "text":
                first = block.text.split()[0]
                assert first not in ("rooflines", "make", "snakemake", "python", "pip"), page


def test_every_config_of_the_reference_is_valid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    (tmp_path / "models/mine").mkdir(parents=True)
    (tmp_path / "measured").mkdir()
    (tmp_path / "path/to/config.json").rename(tmp_path / "models/mine/config.json")
    TIMINGS.write_csv(tmp_path / "measured/theirs.csv")
    TIMINGS.with_columns(software=TIMINGS["software"].replace("mine", "trtllm")).write_parquet(
        tmp_path / "measured/grid.parquet"
    )
    config: dict[str, object] = {}
    for block in blocks(ROOT / "config/README.md", "yaml"):
        for key, value in yaml.safe_load(block).items():
            known = config.get(key)
            config[key] = known | value if isinstance(known, dict) else value
    assert {*config} == {
        *("sweeps", "model-sweeps", "scenarios", "charts", "chips", "measurements")
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    assert run(["check", "config.yaml"]) == 0


def test_the_module_of_another_workflow_is_that_of_the_tests():
    (snippet,) = (text for page in PAGES for text in blocks(page, "snakemake"))
    tested = (ROOT / "tests/test_workflow.py").read_text(encoding="utf-8")
    statements = ("module rooflines:", "snakefile:", "config:", "use rule * from rooflines as")
    assert all(statement in snippet and statement in tested for statement in statements)


def test_every_step_of_the_first_ones_is_timed():
    """The table has the clone and each section with commands, and it adds up."""
    page = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| ([\d.]+) s \| ([\d.]+) s \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == [CLONE, *steps(page)]
    past = 0.0
    for _, seconds, end in rows:
        assert float(seconds) > 0
        assert float(end) - past == pytest.approx(float(seconds), abs=0.11)
        past = float(end)


CONFIGS = [
    pytest.param(text, id=f"{page.stem} {number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, text in enumerate(blocks(page, "yaml"))
    if re.search(r"^(model-)?sweeps:", text, re.MULTILINE)
]


@pytest.mark.parametrize("text", CONFIGS)
def test_every_config_of_a_page_is_valid(text, tmp_path):
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    assert run(["check", str(tmp_path / "config.yaml")]) == 0
