"""Values in the pages of the site: numbers as text, escaping."""

import re
from pathlib import Path

import polars as pl
import pytest

from rooflines.site import pages
from rooflines.site.data_page import MOST_ROWS, threshold_data
from rooflines.site.pages import PAGES, TEMPLATES
from rooflines.site.text import quantity


def test_a_table_that_is_too_long_for_the_page_is_cut():
    long = pl.DataFrame(
        {
            "sweep": "s",
            "axis": "B",
            "chip": "c",
            "shape": "w",
            "critical": range(MOST_ROWS + 7),
            "critical_memory": 1,
            "critical_network": 1,
        }
    )
    data = threshold_data(long, [])
    assert data["counts"] == [MOST_ROWS, MOST_ROWS + 7, MOST_ROWS + 7]
    assert data["lists"]["critical"] == list(range(MOST_ROWS))
    assert data["lists"].keys() == {"chip", "shape", "critical"}
    rates = long.head(1).with_columns(axis=pl.lit("peak"), critical_exact=pl.lit(0.5))
    assert threshold_data(rates, [])["lists"].keys() == {"chip", "shape", "critical_exact"}


# ---------------------------------------------------------------- text and templates


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (9.89e14, "FLOP/s", "989 TFLOP/s"),
        (1.979e15, "FLOP/s", "1.979 PFLOP/s"),
        (8.19e11, "B/s", "819 GB/s"),
        (34_603_008.0, "B", "34.6 MB"),
        (999.96e9, "B/s", "1 TB/s"),
        (1.0, "s", "1 s"),
        (3e-6, "s", "3 µs"),
        (0.0, "s", "0 s"),
        (16.0, "", "16"),
    ],
)
def test_numbers_are_written_with_prefix_and_unit(value, unit, text):
    assert quantity(value, unit) == text


def test_only_addresses_of_the_web_become_links():
    render = TEMPLATES.from_string(
        '{% from "macros.html" import link %}{{ link(url, text) }}'
    ).render
    assert render(url="javascript:alert(1)", text="x<y") == "x&lt;y"
    assert render(url=None, text="x") == "x"
    assert (
        render(url='https://a/"onclick=', text="x")
        == '<a href="https://a/&#34;onclick=" rel="noopener noreferrer">x</a>'
    )
    assert TEMPLATES.from_string("{{ value }}").render(value=None) == ""


@pytest.mark.parametrize("page", [*PAGES, "layout.html", "macros.html"])
def test_no_template_turns_escaping_off(page):
    source = (Path(pages.__file__).parent / "templates" / page).read_text()
    assert not re.search(r"safe|autoescape|Markup", source)
    assert TEMPLATES.autoescape is True


def test_every_template_is_tested():
    assert set(TEMPLATES.list_templates()) == {*PAGES, "layout.html", "macros.html"}
