"""Charts of every chip and dtypes of a sweep, in the site: over random states, against Python."""

import base64
import html
import json
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import effort
import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from claimed import holds, unclaimed
from claims import false
from playwright.sync_api import Browser, Page, expect
from polars.testing import assert_frame_equal
from site_data import inflated
from titled import Case, said_by
from visits import Visit, drawn

import rooflines
from rooflines import charts
from rooflines.charts.chart import Chart, MeasuredChart, Spec
from rooflines.charts.comparing import EVERY
from rooflines.charts.every_chip import EVERY_CHIP
from rooflines.charts.families import draw, unchecked
from rooflines.charts.kit.render import spec_of
from rooflines.charts.needs import chips_for, dtypes_for
from rooflines.charts.registry import charts as all_charts

SEED = 18
STATES = effort.cases(2)
"""Random states of each chart."""

EMPTY = base64.b64encode(zlib.compress(b'{"params": {}}')).decode()
"""The part of chips or dtypes that have no more findings."""

TOGETHER = {
    *("chips", "critical-estimate", "layers", "pareto", "per-dollar", "per-watt", "ridges"),
    "shards",
}
"""Charts that show chips together; any other chip is added to them, but not to `pareto`."""

CAUGHT = """
let content = null;
const address = URL.createObjectURL;
URL.createObjectURL = (blob) => { content = blob; return address.call(URL, blob); };
HTMLAnchorElement.prototype.click = async function () {
  window.caught([this.download, await content.text()]);
};
"""
"""Catches saved files: a browser refuses downloads that come long after a click."""

IN_FRAME = {"size": "B"}
"""Choices whose column in the frame has another name."""


class Drawn(NamedTuple):
    """A chart of a chip in one dtype combination, or of it beside others, as a picture would be.

    Attributes:
        frame: What it shows.
        cases: What it says, for each of the reader's choices.
        together: Whether it shows chips together.
    """

    frame: pl.DataFrame
    cases: dict[str, Case]
    together: bool


@cache
def loaded() -> rooflines.Config:
    """The default config."""
    return rooflines.load_config()


@cache
def on_disk(results: Path) -> charts.Results:
    """The tables and thresholds of the run."""
    return charts.on_disk(results)


def listed() -> list[Spec]:
    """The charts of the default config with more chips or dtypes than their pictures."""
    return [chart for chart in loaded().charts if chart.more_chips or chart.more_dtypes]


def parts_of(results: Path, chart: Spec) -> dict[str, Any]:
    """The chart of all chips, as it was written for the site."""
    path = results / "charts" / chart.family / f"{chart.id}{EVERY_CHIP}"
    parts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return parts


def keys_of(parts: dict[str, Any]) -> list[str]:
    """All choices that have a finding."""
    return [f"{chip}{rest}" for chips, rests in parts["cases"] for chip in chips for rest in rests]


def choice_of(parts: dict[str, Any], key: str) -> dict[str, str]:
    """The values of a chart's menus."""
    return dict(zip([menu["name"] for menu in parts["params"]], key.split("|"), strict=True))


@cache
def drawn_of(results: Path, chart: Spec, chip: str, dtypes: str) -> Drawn:
    """The chart of a choice, drawn from the tables and thresholds of a run."""
    together = chart.chart in TOGETHER
    added = all_charts()[chart.chart].every_chip
    beside = () if chip in (EVERY, *chart.chips) else (chip,)
    one = replace(
        chart,
        id=f"{chart.id} {chip} {dtypes}",
        chips=(*chart.chips, *beside) if together else (chip,),
        dtypes=chart.all_dtypes if together and added else (dtypes,),
        more_chips=(),
        more_dtypes=(),
    )
    with unchecked():
        frame, picture = draw(on_disk(results), one)
        spec = spec_of(picture, one.id)
    return Drawn(frame, dict(said_by(loaded(), on_disk(results), one, spec)), together)


def asked(results: Path, chart: Spec) -> Iterator[tuple[str, Case, Drawn]]:
    """Random choices, mostly of chips or dtypes that the picture lacks; what is said and shown."""
    generator = random.Random(f"{SEED} {chart.id}")  # noqa: S311, no secret
    parts = parts_of(results, chart)
    keys = sorted(keys_of(parts))
    for key in generator.sample(keys, min(STATES, len(keys))):
        choice = choice_of(parts, key)
        one = drawn_of(results, chart, choice.get("chip", EVERY), choice.get("dtypes", ""))
        # Without a calibration there is no menu of bases; most charts say the same of every chip.
        same = (key, key.rpartition("|")[0], "|".join([EVERY, *key.split("|")[1:]]))
        yield key, next(one.cases[each] for each in same if each in one.cases), one


def test_these_charts_have_every_chip_and_dtypes_of_their_sweep() -> None:
    """Those that have the numbers that the chart compares."""
    for chart in listed():
        kind = all_charts()[chart.chart]
        if isinstance(kind, Chart):
            sweeps = [loaded().sweeps[name] for name in (chart.sweep, *chart.others)]
            able = {chip for sweep in sweeps for chip in chips_for(kind, sweep)}
            assert {*chart.all_chips} == {*chart.chips} | able
            assert {*chart.all_dtypes} == {
                name for sweep in sweeps for name in dtypes_for(kind, sweep)
            }
        else:
            of_models = loaded().model_sweeps[chart.sweep]
            if kind.every_chip:
                assert {*chart.all_chips} == {*of_models.config.chips}
            assert {*chart.all_dtypes} == {*of_models.combinations}
    assert {chart.chart for chart in listed()} == {
        name for name, chart in all_charts().items() if chart.every_chip or chart.every_dtypes
    }


def test_the_config_names_the_charts_without_every_chip(repository: Path) -> None:
    """Those of timings are apart: they have no sweep."""
    text = (repository / "config" / "README.md").read_text(encoding="utf-8")
    (listed_there,) = re.findall(r"The exception is (.+?):", text)
    assert {*re.findall(r"`(.+?)`", listed_there)} == {
        name
        for name, chart in all_charts().items()
        if not chart.every_chip and not isinstance(chart, MeasuredChart)
    }


def in_any_order(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim, the rows that it speaks of sorted: an added chip is the last one."""
    over = {name: sorted(map(str, values)) for name, values in claim.get("over", {}).items()}
    return claim | {"over": over}


def test_titles_of_every_chip_are_true(default_results: Path) -> None:
    """They are those of a picture of that chip; claims are worked out from the tables."""
    for chart in listed():
        parts = parts_of(default_results, chart)
        findings = next(p["value"] for p in parts["spec"]["params"] if p["name"] == "findings")
        for key, case, _ in asked(default_results, chart):
            chosen = choice_of(parts, key).get(parts["by"], "")
            part = inflated(parts["parts"].get(chosen, EMPTY))
            said = (findings | part["params"].get("findings", {}))[key]
            assert (said["title"], " ".join(said["subtitle"])) == (case.title, case.subtitle), key
            assert in_any_order(parts["claims"].get(key, {})) == in_any_order(case.claim)
            assert not false(case), (key, case.title)
            assert holds(case) if case.claim else not unclaimed(case), (key, case.claim)
            case.known.clear()  # hundreds of megabytes


@pytest.fixture(scope="module")
def visit(browser: Browser, default_results: Path) -> Iterator[Visit]:
    """The site of the default config, without errors or requests to other hosts."""
    with browser.new_context(reduced_motion="reduce") as context:
        context.add_init_script(CAUGHT)
        one = Visit(context, (default_results / "bundle").as_uri())
        one.open("index.html")
        yield one
        assert one.faults == []


def saved(page: Page, kind: str) -> tuple[str, str]:
    """The name and the content of a file of the view."""
    name, content = page.evaluate(
        "(id) => new Promise((resolve) => {"
        " window.caught = resolve; document.getElementById(id).click(); })",
        f"view-{kind}",
    )
    return name, content


def test_the_page_shows_the_numbers_of_python(visit: Visit, default_results: Path) -> None:
    """Over random states: title, setting, picture, and the data behind the view."""
    page = visit.page
    for chart in listed():
        for key, case, one in asked(default_results, chart):
            choice = choice_of(parts_of(default_results, chart), key)
            page.evaluate(
                "(text) => { location.hash = text; }", urlencode({"chart": chart.id, **choice})
            )
            expect(page.locator("#setting")).to_have_text(case.subtitle)
            drawn(page, chart.id)
            assert page.locator("#title").inner_text() == case.title
            stem = re.sub(r"[^\w.]+", "-", f"{chart.id}-{key}")
            name, picture = saved(page, "svg")
            assert name == f"{stem}.svg"
            assert case.title in html.unescape(picture)
            name, text = saved(page, "csv")
            assert name == f"{stem}.csv"
            kept = {IN_FRAME.get(each, each): value for each, value in choice.items()}
            if one.together:
                kept.pop("chip", None)
            behind = one.frame
            for column in {*kept} & {*behind.columns}:
                chosen = pl.col(column).cast(pl.String) == kept[column]
                behind = behind.filter(pl.col(column).is_null() | chosen)
            floats = pl.selectors.float()  # JSON has no infinity: the level of the border of never
            behind = behind.with_columns(
                pl.when(floats.is_finite()).then(floats), pl.col(pl.String).replace("", None)
            )
            shown = pl.read_csv(text.encode(), schema=behind.schema)
            if chart.chart == "critical-map":
                above = behind.filter(pl.col("F") > pl.col("bottom"))
                lines = above.filter(pl.col("kind").is_in(["level", "share"]))
                drawn_lines = picture.count('aria-roledescription="line mark"')
                assert drawn_lines == lines.unique(["kind", "level"]).height > 0
            # The rows of a chip that was added come last.
            in_order = not one.together
            assert_frame_equal(shown, behind, check_row_order=in_order, rel_tol=1e-12)


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
