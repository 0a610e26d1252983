"""Thresholds, chips and models of the site in a browser: tables, links, hostile names."""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from bundles import CHARTS, CONFIG, HOSTILE
from conftest import IN_BOTH
from playwright.sync_api import Browser, Page, expect
from visits import Visit, Visits, drawn, point_at, serving

from rooflines import load_config, thresholds
from rooflines.site.pages import PAGES


@IN_BOTH
def test_the_table_is_sorted_filtered_and_paged(visit: Visits) -> None:
    """Fifty rows a page; a click sorts a column ascending, a second one descending."""
    page = visit().open("thresholds.html#table=long.B")
    assert page.locator("#count").inner_text() == "3,000 of 3,000 rows."
    assert page.locator("#body tr").count() == 50
    assert page.locator("#page").inner_text() == "Page 1 of 60"
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#page")).to_have_text("Page 2 of 60")

    def answers() -> list[int]:
        column = page.locator("#head th").all_inner_texts().index("critical")
        return [
            int(text.replace(",", ""))
            for text in page.locator(f"#body td:nth-child({column + 1})").all_inner_texts()
        ]

    page.get_by_role("button", name="critical", exact=True).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    smallest = answers()
    assert smallest == sorted(smallest)
    page.get_by_role("button", name="critical", exact=True).click()
    page.wait_for_selector("th[aria-sort=descending]")
    largest = answers()
    assert largest == sorted(largest, reverse=True)
    assert largest[0] > smallest[0]
    page.get_by_label("Find").fill("1050 1100")
    expect(page.locator("#count")).to_have_text(re.compile("^1 of"))
    page.get_by_label("Find").fill("nothing like it")
    page.wait_for_selector("#empty:visible")


@IN_BOTH
def test_one_shape_is_shown_on_all_chips(visit: Visits) -> None:
    """A table with a file for each chip: sorted over all, and found as sizes are printed."""
    page = visit().open("thresholds.html#table=long.B&find=1,050 1,030&sort=critical.down")
    page.get_by_label("Chip").select_option("all")
    expect(page.locator("#count")).to_have_text("4 of 4 rows.")
    names = page.locator("#head th").all_inner_texts()
    cells = page.locator("#body tr td").all_inner_texts()
    rows = [
        dict(zip(names, cells[at : at + len(names)], strict=True))
        for at in range(0, len(cells), len(names))
    ]
    solved = thresholds(load_config(CONFIG), "long").filter(
        (pl.col("D") == 1050) & (pl.col("F") == 1030)
        | (pl.col("D") == 1030) & (pl.col("F") == 1050)
    )
    expected = solved.sort("critical", descending=True)
    assert [row["chip"] for row in rows] == ["h100-sxm", "h100-sxm", "tpu-v5e", "tpu-v5e"]
    assert [row["critical"] for row in rows] == [str(size) for size in expected["critical"]]
    page.get_by_label("Find").fill("")
    expect(page.locator("#count")).to_have_text("6,000 of 6,000 rows.")


@pytest.mark.parametrize(
    ("address", "lost"),
    [
        ("index.html#chart=none", f"chart none: unknown; shown is {CHARTS[0]}"),
        ("index.html#dtypes=bf61", "dtypes bf61: in no chart of this site"),
        ("thresholds.html#sort=price.up", "sort price: no column of this table"),
        ("thresholds.html#table=long.B&page=61", "page 61: no page of this table; shown is 60"),
        ("chips.html#sort=9.up", "sort 9.up: no column of this table"),
        ("chips.html#sort=length.up", "sort length.up: no column of this table"),
        ("chips.html#sort=1.sideways", "sort 1.sideways: neither up nor down; shown is up"),
        ("thresholds.html#table=none", "table none: not in this site; shown is "),
        ("thresholds.html#table=long.B&chip=mine", "chip mine: not in this table; shown is "),
        ("thresholds.html#table=long.B&sort=no.up", "sort no: no column of this table"),
        ("thresholds.html#shape=mine", "shape mine: no choice of this page"),
        ("chips.html#shape=mine", "shape mine: no choice of this page"),
        ("chips.html#chip=none", "chip none: unknown"),
        ("chips.html#chip=b300", "chip b300: in the catalogue, but not among the chips of this"),
        ("chips.html#source=none", "source none: unknown"),
        ("chips.html#left=__proto__", "chip __proto__: not in the catalogue"),
    ],
)
def test_a_link_to_what_is_not_there_says_so(visit: Visits, address: str, lost: str) -> None:
    """And a valid one says nothing."""
    one = visit()
    assert lost in one.open(address).locator("#unknown").inner_text()
    assert one.open(address.partition("#")[0]).locator("#unknown").is_hidden()


@pytest.mark.parametrize("address", [page for page in PAGES if page != "model.html"])
def test_what_no_page_uses_is_reported_by_every_page(visit: Visits, address: str) -> None:
    """Unknown names, a second value, an empty one, another theme, bad encoding, a long address."""
    one = visit()
    state = "chp=h100&chip=h100-sxm&chip=b200&dtypes=&theme=blue&%zz=%ff&=&%3Cb%3E=" + 70 * "x"
    page = one.open(f"{address}#{state}")
    assert page.locator("#unknown li").all_inner_texts()[:7] == [
        "chp h100: no choice of this page",
        "chip b200: given twice; the first is used",
        "dtypes: empty",
        "theme blue: neither light nor dark",
        "%zz \ufffd: no choice of this page",
        "=: no choice of this page",
        f"<b> {60 * 'x'}…: no choice of this page",
    ]
    page = one.open(f"{address}#{'&'.join(f'q{n}=1' for n in range(20))}")
    lines = page.locator("#unknown li").all_inner_texts()
    assert lines[-2:] == ["q11 1: no choice of this page", "and 8 more"]
    page = one.open(f"{address}#chip={10**5 * '1'}")
    long = "100,006 characters: too long; none of it is used"
    assert page.locator("#unknown li").all_inner_texts() == [long]


@IN_BOTH
def test_two_chips_are_side_by_side(visit: Visits) -> None:
    """Any two of the catalogue: shared numbers with their ratio first, capacities as printed."""
    page = visit().open("chips.html")
    for label, chip in (("A chip of the catalogue", "b200"), ("Another one", "tpu-v5p")):
        page.get_by_label(label).fill(chip)
        page.keyboard.press("Enter")
    page.wait_for_selector("#compared:visible")
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.locator("#compared tbody tr").all()
    }
    assert rows["matrix unit, bf16: dense peak"] == ["2.25 PFLOP/s", "459 TFLOP/s", "0.204"]
    assert rows["memory hbm: capacity"][1] == "95 GiB"
    assert rows["matrix unit, fp64: dense peak"][1:] == ["–", "–"]
    lacking = [texts[2] == "–" for texts in rows.values()]
    assert lacking == sorted(lacking)
    page.get_by_role("link", name="Both on one operation").click()
    page.wait_for_selector(".what-if[data-drawn]")
    assert page.locator("#side-b h2 .name").inner_text() == "Cloud TPU v5p"


def test_never_is_said_and_names_are_text(visit: Visits) -> None:
    """A small matrix is never compute-bound; it comes last however the table is sorted."""
    page = visit().open(
        "thresholds.html#table=shapes.B&chip=tpu-v5e&dtypes=bf16&sort=critical.down"
    )
    assert page.locator("#body .answer").all_inner_texts() == ["273", "never"]
    assert HOSTILE in page.locator("#body").inner_text()


def test_an_answer_that_is_no_number_is_the_outcome(visit: Visits) -> None:
    """All 16 chips that a TPU v5e joins; of a chip whose domain is not published it is unknown."""
    page = visit().open("thresholds.html#table=split.shards")
    assert page.locator("#body .answer").all_inner_texts() == ["16", "domain-unknown"]


def test_a_share_of_peak_is_chosen_and_a_factor_is_an_answer(visit: Visits) -> None:
    """The page opens at all of the peak; of a rate it shows the factor."""
    address = "thresholds.html#table={}&chip=tpu-v5e&dtypes=bf16&sort=shape.down"
    page = visit().open(address.format("shapes.B"))
    assert page.get_by_label("Share of peak").locator("option").all_inner_texts() == [
        "100 %",
        "90 %",
    ]
    answers = page.locator("#body .answer")
    assert sorted(answers.all_inner_texts()) == ["273", "never"]
    heads = page.locator("#head th").all_inner_texts()
    at = heads.index("critical at 90 %")
    assert at == heads.index("critical") + 1
    cells = page.locator(f"#body td:nth-child({at + 1})")
    assert sorted(cells.all_inner_texts()) == ["243", "never"]
    page.get_by_label("Share of peak").select_option("0.9")
    expect(cells.filter(has_text=re.compile("^273$"))).to_have_count(1)
    expect(answers.filter(has_text=re.compile("^243$"))).to_have_count(1)
    page = visit().open(address.format("shapes.memory_rate"))
    solved = thresholds(load_config(CONFIG)).filter(
        pl.col("chip") == "tpu-v5e",
        pl.col("dtypes") == "bf16",
        pl.col("axis") == "memory_rate",
        pl.col("share") == 1,
    )
    shown = [float(text) for text in page.locator("#body .answer").all_inner_texts()]
    assert sorted(shown) == pytest.approx(sorted(solved["critical_exact"]), rel=1e-5)


def test_the_chip_of_the_charts_is_the_chip_of_the_table(visit: Visits) -> None:
    """The state goes from page to page."""
    page = visit().open("index.html#chip=h100-sxm")
    page.get_by_role("link", name="Thresholds").click()
    page.wait_for_selector("#table[data-drawn]")
    assert page.get_by_label("Chip").input_value() == "h100-sxm"


@IN_BOTH
def test_chips_are_found_sorted_and_opened(visit: Visits) -> None:
    """A link leads to the chip's numbers, a source's to the document."""
    page = visit().open("chips.html")
    page.get_by_label("Find").fill("nvidia")
    expect(page.locator("#count")).to_have_text("3 of 5 chips")
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="Ridge").click()
    page.wait_for_selector("th[aria-sort=ascending]")
    ridges = [
        int(text) for text in page.locator("#summary tbody td:nth-child(7)").all_inner_texts()
    ]
    assert ridges == sorted(ridges)
    page.locator("#summary a[href='#chip=h100-sxm']").click()
    page.wait_for_selector("details[data-chip=h100-sxm][open]")
    page.locator("details[open] a[href='#source=nv-h100-page']").first.click()
    expect(page.locator("[data-source=nv-h100-page]")).to_be_focused()


@pytest.fixture
def served(browser: Browser, site: Path) -> Iterator[Visit]:
    """A visit to a web server with a strict policy that serves the site."""
    with serving(site) as address, browser.new_context(reduced_motion="reduce") as context:
        yield Visit(context, address)


@IN_BOTH
def test_a_strict_policy_of_a_web_server_holds(served: Visit) -> None:
    """Everything is drawn, filtered and sorted without eval, inline scripts or inline styles."""
    page = served.open("index.html")
    for chart in CHARTS:
        page.evaluate("(chart) => { location.hash = `chart=${chart}`; }", chart)
        drawn(page, chart)
    page = served.open("index.html")
    page.get_by_label("Chip").select_option("h100-sxm")
    expect(page.locator("#title")).to_have_text(re.compile("^h100-sxm"))
    point_at(page, 1)
    assert served.open("thresholds.html").locator("#body tr").count()
    served.open("chips.html")
    served.open("models.html#sweep=asked")
    served.open("model.html")
    assert served.faults == []


def not_run(page: Page) -> None:
    """Neither a script nor a picture of a name is there."""
    assert page.title() != "ran"
    assert page.locator("img[src=x]").count() == 0


@IN_BOTH
def test_names_of_a_config_run_nowhere(visit: Visits) -> None:
    """Not in a page, a chart, a table or a title."""
    one = visit()
    page = one.open("index.html")
    for chart in CHARTS:
        page.evaluate("(chart) => { location.hash = `chart=${chart}`; }", chart)
        drawn(page, chart)
        not_run(page)
        assert "<script>" in page.locator("main").inner_text()
    for address in [
        "thresholds.html#table=shapes.B",
        "chips.html#chip=mine",
        "what-if.html#chip=mine",
        "models.html#chip=mine&split=tp1",
        "how-far-off.html#region=every",
        "model.html",
    ]:
        not_run(one.open(address))
        assert "<script>" in page.locator("main").inner_text() or "model" in address
