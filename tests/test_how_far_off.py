"""The page "How far off?" against Python: its numbers, its picture, its address and its links."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
import pytest
from bundles import RUNS, made_bundle, matmul_timings
from conftest import IN_BOTH, Once
from playwright.sync_api import Browser, Page, expect
from visits import Visit, serving, visiting

from rooflines.fits.entries import shipped_calibrations
from rooflines.measured.summary import summaries
from rooflines.site.far_page import SHOWN, WHOLES
from rooflines.site.site import write_bundle

Row = dict[str, Any]

OF_PAGE = 20
RATIOS = {"bound": "ratio_lower", "estimate": "ratio_estimate"}


@pytest.fixture(scope="module")
def made(once: Once) -> Path:
    """A site, and what it was made from, not to be changed."""
    return once("small-site", made_bundle)


@pytest.fixture(scope="module")
def rows(made: Path) -> list[Row]:
    """The errors at the timings, computed again from the timings joined with the model."""
    sets = [
        (
            name,
            pl.read_parquet(made / "measured" / f"{name}.parquet"),
            False,
            shipped_calibrations(),
        )
        for name in ("grid", "nccl", "served")
    ]
    return summaries(sets).to_dicts()


@pytest.fixture(scope="module")
def visit(browser: Browser, made: Path) -> Iterator[Visit]:
    """The page, without errors or requests to other hosts."""
    with visiting(
        browser, (made / "bundle").as_uri(), "how-far-off.html", {"width": 1400, "height": 900}
    ) as one:
        yield one


def go(page: Page, /, **state: object) -> None:
    """Show a state, by its address."""
    text = urlencode(state)
    address = page.evaluate("(text) => { location.hash = text; return location.hash; }", text)
    expect(page.locator(".far")).to_have_attribute("data-drawn", address)


def numbers_on(page: Page) -> list[dict[str, str]]:
    """The numbers of the rows of the table, by column."""
    found: list[dict[str, str]] = page.evaluate(
        "[...document.querySelectorAll('#body tr')].map((row) => Object.fromEntries("
        "[...row.querySelectorAll('[data-column]')].map((one) => "
        "[one.dataset.column, one.textContent])))"
    )
    return found


def said(name: str, value: float | None) -> str:
    """A number as the page writes it: three digits, of a share and a percentage with the sign."""
    if value is None:
        return "–"
    form = SHOWN.get(name, ("", "times"))[1]
    if form == "count":
        return f"{value:,}"
    scaled = 100 * value if form == "share" else value
    digits = 0 if scaled == 0 else 2 - math.floor(math.log10(float(f"{abs(scaled):.3g}")))
    text = f"{round(scaled, digits):,.{max(digits, 0)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {'×' if form == 'times' else '%'}"


STATES: list[Row] = [
    {},
    {"page": 2},
    {"chip": "h100-sxm", "region": "compute-bound"},
    {"software": "trtllm", "region": "every", "sort": "estimate_median.down"},
    {"set": "nccl"},
    {"dtypes": "bf16", "split": "sites", "sort": "ratio_lower_median.up"},
    {"collective": "none", "region": "memory-bound", "sort": "n.down"},
    {"model": "llama-3.1-8b", "region": "every"},
    {"shards": 8},
    {"shards": "every", "set": "served", "sort": "n_estimate.up"},
]


def written(row: Row, key: str) -> str:
    """The value of a column as its menu has it."""
    return str(row[key] or ("all" if key == "shards" else "none"))


def shown_in(rows: list[Row], state: Row) -> list[Row]:
    """The rows that a state shows, in order."""
    wholes = {key: state.get(key, "all") for key in WHOLES}
    wanted = {k: v for k, v in ({**state, **wholes}).items() if k not in ("page", "sort")}
    wanted = {key: str(value) for key, value in wanted.items() if value != "every"}
    kept = [r for r in rows if all(written(r, key) == value for key, value in wanted.items())]
    if "sort" in state:
        by, way = state["sort"].split(".")
        known = [row for row in kept if row[by] is not None]
        known.sort(key=lambda row: row[by], reverse=way == "down")
        kept = known + [row for row in kept if row[by] is None]
    start = OF_PAGE * (state.get("page", 1) - 1)
    return kept[start : start + OF_PAGE]


@IN_BOTH
@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_number_of_the_table_is_that_of_python(
    visit: Visit, rows: list[Row], state: Row
) -> None:
    """Filtered, sorted and cut into pages; columns without any number are left out."""
    go(visit.page, **state)
    expected, seen = shown_in(rows, state), numbers_on(visit.page)
    assert len(seen) == len(expected) > 0
    for row, cells in zip(expected, seen, strict=True):
        assert {"n", "bare_median", "ratio_lower_median"} <= cells.keys()
        assert cells == {name: said(name, row[name]) for name in cells}


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_picture_has_the_spread_of_the_rows(visit: Visit, rows: list[Row], state: Row) -> None:
    """From p10 to p90 with the median between, on one logarithmic axis, and as text."""
    go(visit.page, **state)
    strips = visit.page.evaluate(
        "[...document.querySelectorAll('#spread .strip')].map((one) => {"
        " const line = one.querySelector('line'), mark = one.querySelector('circle');"
        " const x = (name) => Number(line.getAttribute(name));"
        " const box = one.querySelector('rect'), title = one.querySelector('title').textContent;"
        " const middle = Number(mark ? mark.getAttribute('cx') : box.getAttribute('x'))"
        "  + (mark ? 0 : 5);"
        " return [Number(one.dataset.row), one.dataset.over, x('x1'), middle, x('x2'), title]; })"
    )
    expected = {
        (place, over): [row[f"{ratio}_{of}"] for of in ("p10", "median", "p90")]
        for place, row in enumerate(shown_in(rows, state))
        for over, ratio in RATIOS.items()
        if row[f"{ratio}_p10"] is not None
    }
    assert [(place, over) for place, over, *_ in strips] == list(expected)
    points: list[tuple[float, float]] = []
    for place, over, *ends, title in strips:
        values = expected[place, over]
        points += zip(map(math.log, values), ends, strict=True)
        texts = [said("", value) for value in values]
        assert title.endswith(f"over {over}: p10 {texts[0]}, median {texts[1]}, p90 {texts[2]}")
    (low, left), (high, right) = min(points), max(points)
    scale = (right - left) / (high - low) if high > low else 0
    assert all(x == pytest.approx(left + (log - low) * scale, abs=1e-6) for log, x in points)


def test_the_page_says_how_many_timings_there_are(visit: Visit, rows: list[Row]) -> None:
    """Those with a row, those without, and those of the filter."""
    whole = [row for row in rows if (row["shards"], row["region"]) == (None, "all")]
    every = sum(row["n"] for row in whole)
    bare = every - sum(row["n_estimate"] for row in whole)
    without = matmul_timings().filter(compute="int4").height
    text = visit.page.locator(".setting").inner_text()
    assert every == matmul_timings().height - without + 1 + RUNS
    assert f"{every:,} timings beside the model." in text
    assert f"{without} more have no row of the model." in text
    assert f"Without an estimate: {bare}." in text
    assert f"With an estimate by the calibration of other software: {RUNS}." in text
    go(visit.page, chip="b200")
    kept = [row for row in whole if row["chip"] == "b200"]
    expect(visit.page.locator("#count")).to_have_text(
        f"{len(kept)} of {len(rows)} rows, {sum(row['n'] for row in kept)} timings."
    )


def test_the_head_has_the_spread_of_every_set(visit: Visit, made: Path) -> None:
    """The median, p10 and p90 of both ratios, and the timings below the bound."""
    kinds = {"grid": "matmuls", "nccl": "collective", "served": "served runs"}
    lines = visit.page.locator("#sets tbody tr").all_inner_texts()
    for line, (name, kind) in zip(lines, kinds.items(), strict=True):
        frame = pl.read_parquet(made / "measured" / f"{name}.parquet")
        assert f"{name}\n{frame.height} {kind}" in line
        for ratio in RATIOS.values():
            quantiles = [frame[ratio].quantile(share, "linear") for share in (0.5, 0.1, 0.9)]
            middle, low, high = (said("", value).removesuffix(" ×") for value in quantiles)
            assert f"{middle} ×" + (f"\n{low} to {high} ×" if low != high else "") in line
            assert ("to" in line) == (frame.height > 1)
        below = frame.drop_nulls("reason")
        unexplained = below.filter(reason="unexplained").height
        text = f"{below.height} below the bound, {unexplained} unexplained"
        assert (text in line) == (below.height > 0)


def test_the_menu_of_chips_is_in_order(visit: Visit) -> None:
    """All timings first, then by number, then every row."""
    options = visit.page.locator("[data-param=shards] option").all_inner_texts()
    assert options == ["all", "1", "8", "every"]


def test_a_link_to_what_is_not_there_says_so(visit: Visit) -> None:
    """Each unknown choice with what is shown in its place; a valid link says nothing."""
    go(visit.page, chip="tpu-v5e", region="B 7", sort="price.up", x="<b>", split="fit")
    text = visit.page.locator("#unknown").inner_text()
    for line in (
        "chip tpu-v5e: not among these timings; shown is all",
        "region B 7: not among these timings; shown is all",
        "sort price: no column of this table",
        "x <b>: no choice of this page",
    ):
        assert line in text
    assert "split" not in text
    go(visit.page, chip="h100-sxm", region="every", theme="dark")
    assert visit.page.locator("#unknown").is_hidden()


@IN_BOTH
def test_the_keyboard_chooses_sorts_and_turns_pages(visit: Visit) -> None:
    """The focus stays on the control; the address has the state."""
    page = visit.open("how-far-off.html")
    page.locator("[data-param=chip] select").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#fixed")).to_contain_text("chip b200")
    assert "chip=b200" in page.url
    focused = "document.activeElement.closest('[data-param]').dataset.param"
    assert page.evaluate(focused) == "chip"
    head = page.get_by_role("button", name="time / bound, median")
    head.focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    assert "sort=ratio_lower_median.down" in page.url
    assert page.evaluate("document.activeElement.dataset.sort") == "ratio_lower_median"
    page = visit.open("how-far-off.html")
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#page")).to_have_text("Page 2 of 2")


def test_the_page_works_under_a_strict_policy(browser: Browser, made: Path) -> None:
    """Served by a web server, on a phone."""
    phone = {"width": 390, "height": 844}
    with serving(made / "bundle") as address, browser.new_context(viewport=phone) as context:  # type: ignore[arg-type]
        one = Visit(context, address)
        page = one.open("how-far-off.html")
        assert page.locator("#spread .strip").count() > OF_PAGE
        assert one.faults == []


def test_a_site_without_timings_has_no_such_page(made: Path, tmp_path: Path) -> None:
    """Nor a link to it."""
    write_bundle(tmp_path / "site", [], made / "thresholds.parquet")
    assert not (tmp_path / "site" / "how-far-off.html").exists()
    pages = [path.read_text() for path in (tmp_path / "site").glob("*.html")]
    assert len(pages) > 3
    assert not any(re.search("how-far-off", page) for page in pages)
