"""Charts of every chip and dtypes of a sweep, in the site: over random states, against Python."""

from collections.abc import Iterator
from pathlib import Path

import effort
import pytest
from axe_playwright_python.sync_playwright import Axe
from offered import CAUGHT, Run, check_page, check_titles, listed, loaded
from playwright.sync_api import Browser, expect
from visits import Visit

from rooflines.charts.chart import Chart, MeasuredChart
from rooflines.charts.needs import chips_for, dtypes_for
from rooflines.charts.registry import charts as all_charts

SEED = 18
STATES = effort.cases(2)
"""Random states of each chart."""


@pytest.fixture(scope="module")
def run(default_results: Path) -> Run:
    """The results of the default config."""
    return Run(None, default_results, SEED)


def test_these_charts_have_every_chip_and_dtypes_of_their_sweep() -> None:
    """Those that have the numbers that the chart compares."""
    config = loaded(None)
    charts = [chart for chart in config.charts if chart.has_more]
    for chart in charts:
        kind = all_charts()[chart.chart]
        if isinstance(kind, Chart):
            sweeps = [config.sweeps[name] for name in (chart.sweep, *chart.others)]
            able = {chip for sweep in sweeps for chip in chips_for(kind, sweep)}
            assert {*chart.all_chips} == {*chart.chips} | able
            assert {*chart.all_dtypes} == {
                name for sweep in sweeps for name in dtypes_for(kind, sweep)
            }
        else:
            of_models = config.model_sweeps[chart.sweep]
            assert {*chart.all_chips} == {*of_models.config.chips}
            assert {*chart.all_dtypes} == {*of_models.combinations}
            assert chart.all_models == tuple(of_models.models)
            assert chart.all_sizes == of_models.contexts
    assert {chart.chart for chart in charts} == {
        name for name, chart in all_charts().items() if not isinstance(chart, MeasuredChart)
    }


def test_titles_of_every_chip_are_true(run: Run) -> None:
    """They are those of a picture of that chip; claims are worked out from the tables."""
    check_titles(run, STATES)


@pytest.fixture(scope="module")
def visit(browser: Browser, default_results: Path) -> Iterator[Visit]:
    """The site of the default config, without errors or requests to other hosts."""
    with browser.new_context(reduced_motion="reduce") as context:
        context.add_init_script(CAUGHT)
        one = Visit(context, (default_results / "bundle").as_uri())
        one.open("index.html")
        yield one
        assert one.faults == []


def test_the_page_shows_the_numbers_of_python(visit: Visit, run: Run) -> None:
    """Over random states: title, setting, picture, and the data behind the view."""
    assert listed(run)
    check_page(visit.page, run, STATES)


def test_a_chip_is_searched_and_a_link_brings_it_back(visit: Visit) -> None:
    """By a part of its name or id; the keyboard is enough."""
    page = visit.open("index.html#chart=roofline-model-shapes")
    field = page.get_by_label("Chip")
    assert field.input_value() == "TPU v5e"
    field.focus()
    page.keyboard.type("mi355")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("The HBM ridge of MI355X is 312 FLOP per byte")
    assert "chip=mi355x" in page.url
    field = page.get_by_label("Chip")
    expect(field).to_be_focused()
    page.keyboard.type("no such chip")
    page.keyboard.press("Tab")
    assert field.input_value() == "MI355X"
    expect(page.get_by_label("Data types")).to_be_focused()
    page.keyboard.type("mxfp4")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("The HBM ridge of MI355X is 1,250 FLOP per byte")
    violations = Axe().run(page, "#controls", {"preload": False}).response["violations"]
    assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
    visit.open(page.url.rpartition("/")[2])
    assert page.locator("#title").inner_text() == "The HBM ridge of MI355X is 1,250 FLOP per byte"
