"""Length and language of the pages: words that somebody wrote and a reader has to read."""

import re

import pytest
from case_files import case
from documents import DOCS, ROOT
from pages import FENCED, INDENTED, PAGES

LIMITS = case("prose")
"""Words of all pages, how far the limit may lie above them, and 'of' in 100 words of a page."""

GENERATED = re.compile(r"^<!-- (?!end)[^>]* -->$.*?^<!-- end -->$", re.DOTALL | re.MULTILINE)
MARKUP = re.compile(r"<!--.*?-->|<[a-z/][^>]*>|(?<=\])\([^)]*\)", re.DOTALL)
TABLE = re.compile(r"^\|.*\n", re.MULTILINE)


def prose(page):
    """The text of a page without code, generated blocks, markup, and the glossary's tables."""
    text = page.read_text(encoding="utf-8")
    for pattern in (FENCED, INDENTED, GENERATED, MARKUP):
        text = pattern.sub("", text)
    return TABLE.sub("", text) if page.name == "glossary.md" else text


def words(text):
    """Runs of characters with a letter or digit; cells of a table are separate."""
    return re.findall(r"[^\s|]*\w[^\s|]*", text)


COUNTS = {page: len(words(prose(page))) for page in PAGES}


def test_pages_have_no_more_words_than_their_limit():
    by_page = {str(page.relative_to(ROOT)): count for page, count in COUNTS.items()}
    assert sum(by_page.values()) <= LIMITS["words"], f"say what is said twice once: {by_page}"


def test_the_limit_only_falls():
    count = sum(COUNTS.values())
    assert LIMITS["words"] <= count + LIMITS["slack"], f"lower the limit to {count}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_the_noun_first(page):
    """An 'of' often stands for a noun: memory time, not the time of the memory."""
    found = re.findall(r"[a-z']+", prose(page).lower())
    assert 100 * found.count("of") / len(found) <= LIMITS["of"]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent == DOCS], ids=lambda page: page.stem
)
def test_a_page_begins_with_the_question_that_it_answers(page):
    _, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert "?" in first


def test_code_tables_and_generated_blocks_are_no_prose(tmp_path):
    page = tmp_path / "glossary.md"
    page.write_text(
        "# One\n\nTwo <!--n-->3<!--/--> [four](five.md).\n\n    six\n\n| seven |\n\n"
        "<!-- a -->\n\neight\n\n<!-- end -->\n\n```text\nnine\n```\n",
        encoding="utf-8",
    )
    assert words(prose(page)) == ["One", "Two", "3", "[four]."]
    other = page.rename(tmp_path / "other.md")
    assert words(prose(other))[-1] == "seven"
