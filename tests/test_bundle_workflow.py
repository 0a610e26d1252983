"""The sites of workflow runs, of the default config and with a hostile name, in a browser."""

import re

import pytest
from site_data import put
from visits import Visit, serving

from rooflines.charts.registry import kinds
from rooflines.site.pages import PAGES


@pytest.fixture(scope="module")
def default(default_results):
    return default_results / "bundle"


def charts(site):
    return put(site / "assets" / "charts-data.js")[1]["charts"]


def choices(page):
    """Parameter and value of the enabled options of menus."""
    return page.evaluate(
        "[...document.querySelectorAll('select[data-key]')].flatMap((menu) =>"
        " [...menu.querySelectorAll('option:enabled')].map((option) => [menu.dataset.key,"
        " option.value]))"
    )


def check_every_chart(browser, site, theme, width, *, chosen):
    """Check that a site draws each chart, and each of a reader's choices if `chosen`.

    Marks, text, a title; no error, request or executed name; no page wider than its window.
    """
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    visit = Visit(context, site.as_uri())
    page = visit.open("charts.html")
    for chart in charts(site):
        drawn = f"#stage[data-drawn='{chart['id']} {theme}']:not([aria-busy])"
        page.evaluate("(chart) => ROOFLINES.navigate({ chart })", chart["id"])
        page.wait_for_selector(drawn)
        assert page.locator("#files a").count() >= 4
        assert page.locator(f"#charts a[data-chart={chart['id']}][aria-current=true]").count() == 1
        for name, value in [("chart", chart["id"]), *(choices(page) if chosen else [])]:
            page.evaluate("([name, value]) => ROOFLINES.navigate({ [name]: value })", [name, value])
            page.wait_for_selector(drawn)
            assert page.locator("#plot svg path").count() > 3, f"{chart['id']} {name} {value}"
            assert page.locator("#plot svg text").count() > 1, f"{chart['id']} {name} {value}"
            title = page.locator("#title").inner_text()
            assert title, f"{chart['id']} {name} {value}"
            assert not title.startswith("No numbers"), f"{chart['id']} {name} {value}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.title() != "ran"
        assert page.locator("img[src=x]").count() == 0
    context.close()
    assert visit.faults == []


LOOKS = pytest.mark.parametrize(
    ("browser", "theme", "width"),
    [("chromium", "light", 1400), ("chromium", "dark", 390), ("firefox", "light", 390)],
    indirect=["browser"],
)
"""Each theme, width and browser; Firefox takes no theme from its driver."""


NOT_IN_DEFAULT = {"kernel", "levers", "plans", "requests"}
"""Kinds of charts of sweeps that the default config lacks: kernels, levers, training, engines."""


@LOOKS
def test_every_chart_of_the_default_config_is_drawn(browser, default, theme, width):
    families = {name for name, kind in kinds().items() if kind.source != "measurements"}
    families -= NOT_IN_DEFAULT
    assert {chart["family"] for chart in charts(default)} == families
    check_every_chart(browser, default, theme, width, chosen=(theme, width) == ("light", 1400))


@LOOKS
def test_every_page_of_the_default_config_is_shown_and_loads_little(browser, default, theme, width):
    """3 MB, with its scripts, its data and its pictures."""
    look = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
    with serving(default) as base, browser.new_context(**look) as context:
        visit, loaded = Visit(context, base), set[str]()
        visit.page.on("requestfinished", lambda request: loaded.add(request.url))
        for name in PAGES:
            loaded.clear()
            page = visit.open(name)
            assert page.locator("main h1").count() == 1, name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            here = page.locator(".top nav a[aria-current]").bounding_box()
            assert here, name
            assert here["x"] + here["width"] <= width, name
            files = [default / url.removeprefix(f"{base}/") for url in loaded]
            assert default / name in files
            assert sum(file.stat().st_size for file in files if file.is_file()) < 3e6, name
        assert visit.faults == []


def test_a_hostile_name_is_drawn_as_text(browser, site):
    check_every_chart(browser, site, "dark", 390, chosen=True)


def test_a_run_with_timings_has_their_table(site):
    for name in ("measured.csv", "measured-skipped.csv"):
        assert (site / "data" / name).read_bytes() == (site.parent / name).read_bytes()


def test_specifications_are_strict_json(default):
    for path in (default.parent / "charts").rglob("*.json"):
        assert not re.findall(r"[:,\[](?:NaN|-?Infinity)", path.read_text()), path.name


def test_the_site_is_small(default):
    assert sum(path.stat().st_size for path in default.rglob("*") if path.is_file()) < 20e6
