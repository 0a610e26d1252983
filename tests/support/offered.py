"""Charts of every chip on a site: random states, and what Python draws and says of each."""

from __future__ import annotations

import html
import json
import random
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import polars as pl
from claimed import holds, unclaimed
from claims import false
from playwright.sync_api import expect
from polars.testing import assert_frame_equal
from site_data import part_of
from titled import said_by
from visits import drawn

import rooflines
from rooflines import charts
from rooflines.charts.comparing import EVERY
from rooflines.charts.every_chip import EVERY_CHIP
from rooflines.charts.families import draw, unchecked
from rooflines.charts.kit.render import spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page
    from titled import Case

    from rooflines.charts.chart import Spec

TOGETHER = {
    *("chips", "critical-estimate", "layers", "pareto", "per-dollar", "per-watt", "ridges"),
    "shards",
}
"""Charts that show chips together; any other chip is added to them."""

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


class Run(NamedTuple):
    """The results of a config.

    Attributes:
        source: Its file; None for the default config.
        results: The folder with the results.
        seed: What random states depend on.
    """

    source: Path | None
    results: Path
    seed: int


@cache
def loaded(source: Path | None) -> rooflines.Config:
    """A config."""
    return rooflines.load_config(source)


def listed(run: Run) -> list[Spec]:
    """The charts of a config that the site has more of than their pictures."""
    return [chart for chart in loaded(run.source).charts if chart.has_more]


def parts_of(run: Run, chart: Spec) -> dict[str, Any]:
    """The chart of all chips, as it was written for the site."""
    path = run.results / "charts" / chart.family / f"{chart.id}{EVERY_CHIP}"
    parts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return parts


def keys_of(parts: dict[str, Any]) -> list[str]:
    """All choices that have a finding."""
    return [f"{chip}{rest}" for chips, rests in parts["cases"] for chip in chips for rest in rests]


def choice_of(parts: dict[str, Any], key: str) -> dict[str, str]:
    """The values of a chart's menus."""
    return dict(zip([menu["name"] for menu in parts["params"]], key.split("|"), strict=True))


def picture_of(run: Run, chart: Spec, choice: dict[str, str]) -> Drawn:
    """The chart of a choice, drawn from the tables and thresholds of a run."""
    chip, dtypes = choice.get("chip", EVERY), choice.get("dtypes", "")
    together = chart.chart in TOGETHER
    beside = () if chip in (EVERY, *chart.chips) else (chip,)
    one = replace(
        chart,
        id=f"{chart.id} {chip} {dtypes}",
        chips=(*chart.chips, *beside) if together else (chip,),
        dtypes=chart.all_dtypes if together else (dtypes,),
        more_chips=(),
        more_dtypes=(),
    )
    if chart.models:
        one = replace(one, models=(choice["model"],), sizes=(int(choice["S"]),))
    return _drawn_of(run, one, together=together)


@cache
def _drawn_of(run: Run, one: Spec, *, together: bool) -> Drawn:
    on_disk = charts.on_disk(run.results)
    with unchecked():
        frame, picture = draw(on_disk, one)
        spec = spec_of(picture, one.id)
    return Drawn(frame, dict(said_by(loaded(run.source), on_disk, one, spec)), together)


def asked(run: Run, chart: Spec, states: int) -> Iterator[tuple[str, Case, Drawn]]:
    """Random choices, mostly of chips or dtypes that the picture lacks; what is said and shown."""
    generator = random.Random(f"{run.seed} {chart.id}")  # noqa: S311, no secret
    parts = parts_of(run, chart)
    keys = sorted(keys_of(parts))
    for key in generator.sample(keys, min(states, len(keys))):
        one = picture_of(run, chart, choice_of(parts, key))
        # Without a calibration there is no menu of bases; most charts say the same of every chip.
        same = (key, key.rpartition("|")[0], "|".join([EVERY, *key.split("|")[1:]]))
        yield key, next(one.cases[each] for each in same if each in one.cases), one


def check_titles(run: Run, states: int) -> None:
    """Titles of random states are those of a picture, and their claims hold in the tables."""
    for chart in listed(run):
        parts = parts_of(run, chart)
        findings = next(p["value"] for p in parts["spec"]["params"] if p["name"] == "findings")
        for key, case, _ in asked(run, chart, states):
            part = part_of(parts, choice_of(parts, key))
            said = (findings | part["params"].get("findings", {}))[key]
            assert (said["title"], " ".join(said["subtitle"])) == (case.title, case.subtitle), key
            assert _in_any_order(parts["claims"].get(key, {})) == _in_any_order(case.claim)
            assert not false(case), (key, case.title)
            assert holds(case) if case.claim else not unclaimed(case), (key, case.claim)
            case.known.clear()  # hundreds of megabytes


def _in_any_order(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim, the rows that it speaks of sorted: an added chip is the last one."""
    over = {name: sorted(map(str, values)) for name, values in claim.get("over", {}).items()}
    return claim | {"over": over}


def saved(page: Page, kind: str) -> tuple[str, str]:
    """The name and the content of a file of the view."""
    name, content = page.evaluate(
        "(id) => new Promise((resolve) => {"
        " window.caught = resolve; document.getElementById(id).click(); })",
        f"view-{kind}",
    )
    return name, content


def check_page(page: Page, run: Run, states: int) -> None:
    """Over random states, the page has title, setting, picture and data of Python."""
    for chart in listed(run):
        for key, case, one in asked(run, chart, states):
            choice = choice_of(parts_of(run, chart), key)
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
