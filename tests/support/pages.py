"""The pages for users: README, docs and others, their code, and the files that it names."""

import json
import re
import shlex
import shutil
from typing import NamedTuple

from documents import DOCS, README, ROOT
from example_trace import write_examples
from hf_configs import config_of
from timed import timings

PAGES = (
    *(README, ROOT / "CONTRIBUTING.md", ROOT / "config" / "README.md"),
    *sorted(DOCS.glob("*.md")),
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of code: its language and text."""

INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


class Block(NamedTuple):
    """A block of code: its language, `shell` where it is indented, and its text."""

    language: str
    text: str


def text_of(name):
    """The text of a page in docs."""
    return (DOCS / name).read_text(encoding="utf-8")


def words_of(name):
    """The text of a page in docs on one line, without the markers of computed values."""
    return " ".join(re.sub(r"<!--/?\w*-->", "", text_of(name)).split())


def code(page):
    """Every block of code of a page, fenced or indented."""
    text = page.read_text(encoding="utf-8")
    fenced = [Block(*found) for found in FENCED.findall(text)]
    indented = [
        Block("shell", re.sub(r"^    ", "", found, flags=re.MULTILINE))
        for found in INDENTED.findall(FENCED.sub("", text))
    ]
    return fenced + indented


def blocks(page, language):
    """The blocks of code of a page in a language, without their fences."""
    return [block.text for block in code(page) if block.language == language]


def every_command(page):
    """Every command of a page without its comment: indented lines, and those after `$`."""
    lines = [
        line if block.language == "shell" else line.removeprefix("$ ")
        for block in code(page)
        for line in block.text.splitlines()
        if block.language == "shell" or line.startswith("$ ")
    ]
    return [re.sub(r"\s+# .*", "", line) for line in lines]


def commands(page, program):
    """The commands of a page that start a program."""
    return [command for command in every_command(page) if f"{command} ".startswith(f"{program} ")]


def example(folder, repository):
    """Write the config into a folder; the arguments of the command, without its cores.

    Args:
        folder: Where the command is run.
        repository: The checkout whose workflow it names.
    """
    text = text_of("write-a-config.md")
    (config,) = re.findall(r"^```yaml\n(sweeps:.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (folder / "my.yaml").write_text(config, encoding="utf-8")
    (command,) = re.findall(
        r"^    (snakemake .*--configfile my\.yaml.*)$", text, flags=re.MULTILINE
    )
    arguments = shlex.split(command.replace("path/to/rooflines", str(repository)))[1:]
    return [argument for argument in arguments if argument not in ("--cores", "4")]


TIMINGS = timings({"math": 0.72, "memory": 0.86, "overhead_s": 4e-6})

LONG = "rooflines measured measure"
"""A command of minutes, left to tests/verify/test_measure.py."""


def prepare(folder):
    """Write the files that pages name: a model, its config.json, timings, a profile, traces."""
    TIMINGS.write_csv(folder / "timings.csv")
    own_model = blocks(DOCS / "write-a-config.md", "yaml")[-1]
    (folder / "own-model.yaml").write_text(own_model, encoding="utf-8")
    (folder / "path/to").mkdir(parents=True)
    (folder / "path/to/config.json").write_text(
        json.dumps(config_of("llama-3.1-8b")), encoding="utf-8"
    )
    shutil.copy(ROOT / "tests/cases/nsight/h200.csv", folder / "kernels.csv")
    shutil.copy(ROOT / "tests/cases/foreign/vllm-serve.json", folder / "result.json")
    write_examples(folder)


def arguments(page):
    """The commands of a page, in order: the words after `rooflines`."""
    return [shlex.split(command)[1:] for command in commands(page, "rooflines") if command != LONG]


HOW_TO = [page for page in PAGES if arguments(page)]
"""The pages with commands of `rooflines`."""
