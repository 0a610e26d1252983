"""Excerpts of screens, the lines that a page explains, and what pages say of the explorer."""

import re
from statistics import median

import pytest
from documents import README, ROOT
from excerpts import GAP, MAX_ROWS, excerpt, with_excerpts
from held_out import with_held_out_errors
from pages import blocks, text_of

from rooflines.fits.calibration_files import shipped_calibrations

SCREEN = """\
chip · matmul
memory-bound: at least
  compute   1 s  ##
▸ memory    2 s  ####
  time      2 s with full overlap, 3 s
            without

Compute-bound from:
  B         319  crossover
  D × 80    never
or with this:
  memory bandwidth  × 2
"""


def test_an_excerpt_has_the_title_and_the_lines_that_are_explained():
    found = excerpt(SCREEN, ["memory", "time", "D"])
    assert found == (
        f"chip · matmul\nmemory-bound: at least\n{GAP}▸ memory    2 s  ####\n"
        "  time      2 s with full overlap, 3 s\n            without\n\n"
        f"Compute-bound from:\n{GAP}  D × 80    never\n{GAP}"
    )


def test_a_screen_with_every_line_explained_is_whole():
    assert excerpt(SCREEN, ["compute", "memory", "time", "B", "D", "memory bandwidth"]) == SCREEN


def test_an_excerpt_without_explanation_is_the_first_paragraph():
    assert excerpt(SCREEN, []) == SCREEN.partition("\n\n")[0] + f"\n{GAP}"
    assert excerpt("one\n", []) == "one\n"


def test_an_excerpt_of_a_table_has_its_first_rows():
    rows = [f"h100  {batch}  memory\n" for batch in range(MAX_ROWS + 1)]
    table = "".join(["matmul\n\n", "chip  B  of peak\n", *rows])
    assert excerpt(table, ["B", "of peak"]) == table.replace(rows[-1], GAP)


def test_a_label_that_no_line_has_is_an_error():
    with pytest.raises(ValueError, match="no line or column 'network', which the table"):
        excerpt(SCREEN, ["memory", "network"])
    page = (
        "```console\n$ rooflines list dtypes\n```\n\n| column | it is |\n|---|---|\n| `no` | x |\n"
    )
    with pytest.raises(ValueError, match="no line or column 'no'"):
        with_excerpts(page)


def test_the_first_screen_of_the_tutorial_is_whole():
    assert GAP not in blocks(ROOT / "docs" / "tutorial.md", "console")[0]


# ------------------------------------------------------------------ sentences


def test_held_out_errors_are_those_of_the_calibrations():
    shipped = shipped_calibrations()
    fits = [fit for by_dtype in shipped.calibrations.values() for fit in by_dtype.values()]
    error = median(fit.held_out.median for fit in fits if fit.held_out)
    assert f"<!--matmul-->{100 * error:.2g} %<!--/-->" in README.read_text(encoding="utf-8")
    assert with_held_out_errors("a <!--chips-->0<!--/-->") == "a <!--chips-->65<!--/-->"


def test_chips_with_a_training_calibration_are_those_named():
    (sentence,) = re.findall(r"- Calibrations exist for (.*?);", text_of("limitations.md"))
    ids = {key.split("/")[0] for key in shipped_calibrations().training}
    chips = {
        f"TPU {name.removeprefix('tpu-')}"
        if name.startswith("tpu-")
        else name.split("-")[0].upper()
        for name in ids
    }
    assert {*re.split(r", | and ", sentence)} == chips


def test_words_quoted_from_the_explorer_are_on_it():
    page = ROOT.joinpath("rooflines/site/templates/index.html").read_text(encoding="utf-8")
    script = ROOT.joinpath("rooflines/site/assets/explorer.js").read_text(encoding="utf-8")
    quoted = re.findall(r'"([^"]+)"', text_of("explorer.md"))
    assert len(quoted) > 10
    assert [words for words in quoted if words not in page + script] == []
