"""The project around the package: lock files, the wheel, and files that have to agree."""

import re
import tomllib
from itertools import combinations

import pytest

from rooflines.cli.run import SNAKEMAKE

COMMANDS_NEED = ("workflow", "measure", "calibrate")
"""The extras that commands need."""

LOCKS = ("build", "run", "dev", "engines", "engines-dev")


def locked(repository, *names):
    """The versions in lock files, by package."""
    text = "\n".join((repository / "requirements" / f"{name}.lock").read_text() for name in names)
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_a_hash_for_every_package_and_no_address(repository, name):
    text = (repository / "requirements" / f"{name}.lock").read_text()
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert all(
        re.match(r"[a-z0-9-]+==\S+", requirement) and "--hash=sha256:" in requirement
        for requirement in requirements
    )
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=)", text, re.MULTILINE), "an option"


def test_the_locks_agree(repository):
    for first, second in combinations([locked(repository, name) for name in LOCKS], 2):
        assert {name: first[name] for name in first.keys() & second} == {
            name: second[name] for name in first.keys() & second
        }


def project(repository):
    """The project table of pyproject.toml."""
    table: dict[str, list[str]] = tomllib.loads((repository / "pyproject.toml").read_text())[
        "project"
    ]
    return table


def test_the_setup_has_what_every_command_needs(repository):
    table = project(repository)
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    needed = [*table["dependencies"], *(n for e in COMMANDS_NEED for n in extras[e])]
    names = {re.split("[<>=]", each)[0].lower() for each in needed}
    assert names <= locked(repository, "run").keys()
    assert all(
        f"--extra {extra} " in (repository / "Makefile").read_text() for extra in COMMANDS_NEED
    )
    assert SNAKEMAKE in extras["workflow"]


def test_nothing_installs_a_package_of_this_name(repository):
    files = [*repository.glob("rooflines/**/*.py"), *repository.glob("docs/**/*.md")]
    assert [
        path.name
        for path in [*files, repository / "README.md"]
        if re.search(r"pip install ['\"]?rooflines", path.read_text(encoding="utf-8"))
    ] == []


def test_every_dependency_says_what_it_is_for(repository):
    lines = [
        line
        for line in (repository / "pyproject.toml").read_text().splitlines()
        if re.match(r'    "[A-Za-z-]+[<>=]', line)
    ]
    assert len(lines) > len(project(repository)["dependencies"])
    assert all("# " in line for line in lines)


def test_guarantees_name_tests_that_there_are(repository):
    named = set(
        re.findall(r"`((?:tests)/[^`]+\.py)`", (repository / "docs" / "guarantees.md").read_text())
    )
    assert len(named) >= 4
    assert [name for name in sorted(named) if not (repository / name).is_file()] == []
