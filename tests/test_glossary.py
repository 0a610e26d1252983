"""The glossary names what exists: columns, keys and options, with their units, each term once."""

import re

import click
import pytest
from pages import FENCED, PAGES, text_of

import rooflines
from rooflines.cli.keys import every_key
from rooflines.cli.main import commands, every_command

SIZES, *OTHERS = [
    [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()[4:]]
    for section in text_of("glossary.md").split("\n## ")[1:]
]
"""The rows of the table of sizes, and those of each other section."""

TERMS = [row for section in OTHERS for row in section]
BRACKETS = re.compile(r"\[([^\]]+)\]")


@pytest.fixture(scope="module")
def units():
    """The units of every column and key, by name; those without have an empty one."""
    found: dict[str, set[str]] = {}
    for name, unit in rooflines.columns().select("column", "unit").iter_rows():
        found.setdefault(name, set()).add(unit or "")
    for name, meaning in every_key().select("key", "meaning").iter_rows():
        found.setdefault(name, set()).update(BRACKETS.findall(meaning) or [""])
    return found


def options():
    """Every option of every command."""
    for path in every_command():
        command: click.Command = commands
        for name in path:
            assert isinstance(command, click.Group)
            below = command.get_command(click.Context(command), name)
            assert below is not None
            command = below
        yield from (option for parameter in command.params for option in parameter.opts)


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", TERMS, ids=lambda row: row[0])
def test_a_term_names_columns_keys_and_options_with_their_unit(row, units):
    for name in names_in(row[1]):
        if name.startswith("--"):
            assert name in {*options()}
        else:
            assert row[2] in units[name]


def test_a_size_is_a_column(units):
    names = {name for row in SIZES for name in names_in(row[0])}
    assert {"B", "S"} <= names <= units.keys()


SYNONYMS = {
    word.strip().lower(): row[0]
    for row in TERMS
    for also in re.findall(r"also called ([^;.]+)", row[3])
    for word in also.split(",")
}
"""Words that are not used, and the term in place of each."""


def test_a_concept_has_one_term():
    terms = [row[0].lower() for row in TERMS]
    assert len(SYNONYMS) >= 10
    assert sorted({*terms}) == sorted(terms)
    assert SYNONYMS.keys().isdisjoint(terms)


OTHER_PAGES = [page for page in PAGES if page.name != "glossary.md"]


@pytest.mark.parametrize("page", OTHER_PAGES, ids=lambda page: page.stem)
def test_a_page_uses_the_term_and_no_synonym(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8")).lower()
    used = {word: term for word, term in SYNONYMS.items() if re.search(rf"\b{word}s?\b", text)}
    assert used == {}, "words in a page, and the terms that docs/glossary.md has for them"
