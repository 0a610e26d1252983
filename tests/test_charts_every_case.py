"""Charts of timings on the site: every chip, software and dtypes, each on axes of its own."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import timed
from playwright.sync_api import expect
from scenes import MODERN
from site_data import inflated
from visits import Visit

import rooflines
from rooflines import charts
from rooflines.charts.families import fitted, of_every_chip, unchecked
from rooflines.charts.job import write_charts
from rooflines.charts.kit.drawing import ticks_between
from rooflines.charts.measured import FEWEST_DOTS
from rooflines.run.measured_jobs import write_measured
from rooflines.run.plan import plan
from rooflines.run.solving import write_thresholds
from rooflines.site.site import write_bundle

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from rooflines.charts.chart import Spec

CHIPS = [
    *("tpu-v4", "h100-sxm", "b200", "tpu-v5e", "mi300x", "a100-sxm-80gb", "tpu-v6e", "h200-sxm"),
    *("l4", "gb200", "b300", "mi355x"),
]
SOFTWARE = ["mine", "theirs"]
TIMINGS = 60


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with timings of 120 cases."""
    timed.of_many(CHIPS, SOFTWARE, TIMINGS).write_csv(tmp_path / "timed.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(**keys: Any) -> rooflines.Config:  # noqa: ANN401, any key of a config
    """A config with the timings."""
    return rooflines.load_config({"measurements": {"timed": {"file": "timed.csv"}}, **keys})


def drawn(chosen: rooflines.Config, spec: Spec) -> dict[str, Any]:
    """The values of the parameters of a picture."""
    with unchecked():
        _, found = fitted(charts.of_config(chosen), spec)
    return {each["name"]: each.get("value") for each in found["params"]}


def test_every_case_of_a_picture_has_dots_enough() -> None:
    """1,800 dots are 45 cases of 40: of seven chips with six each; that with most timings first."""
    chosen = loaded()
    for spec in chosen.charts:
        assert (spec.chips[0], spec.dtypes[0]) == ("tpu-v4", "bf16-out-fp32")
        assert (len(spec.chips), len(spec.dtypes)) == (7, 3)
        assert sorted(spec.all_chips) == sorted(CHIPS)
        assert sorted(spec.all_dtypes) == sorted(timed.FORMATS)
    first = drawn(chosen, chosen.charts[1])
    assert [first[name] for name in ("chip", "software", "dtypes")] == [
        *("tpu-v4", "mine", "bf16-out-fp32")
    ]
    assert len(first["findings"]) == 7 * 3 * 2


@pytest.mark.parametrize("kind", ["measured-roofline", "measured-ratio", "measured-errors"])
def test_the_site_has_every_case_of_a_set(kind: str) -> None:
    """Each with the title of a picture of its own, and its number of dots."""
    listed = {"chips": ["l4"], "dtypes": ["bf16"]}
    every, alone = (
        loaded(charts=[{"chart": kind, "measurements": "timed", **keys}]) for keys in ({}, listed)
    )
    parts = of_every_chip(charts.of_config(every), every.charts[0])
    found = [f"{chip}{rest}" for chips, rests in parts["cases"] for chip in chips for rest in rests]
    cases = {tuple(key.split("|")[:3]) for key in found}
    assert cases == {*product(CHIPS, SOFTWARE, timed.FORMATS)}
    part = inflated(parts["parts"]["l4"])
    for key, said in drawn(alone, alone.charts[0])["findings"].items():
        assert part["params"]["findings"][key]["title"] == said["title"]
    rows = pl.DataFrame(part["rows"]).filter(software="theirs", dtypes="bf16", kind="timing")
    if kind != "measured-errors":
        assert 1 < rows.height <= FEWEST_DOTS
        subtitle = " ".join(part["params"]["findings"]["l4|theirs|bf16"]["subtitle"])
        assert f"Dots: {rows.height} of {TIMINGS} timings" in subtitle


def test_axes_fit_the_case_shown() -> None:
    """Timings of the last chip take up to 3.75 times those of the first."""
    chosen = loaded(charts=[{"chart": "measured-roofline", "measurements": "timed"}])
    parts = of_every_chip(charts.of_config(chosen), chosen.charts[0])
    own = {each["name"]: each.get("value") for each in parts["spec"]["params"]}["edges"]
    further = inflated(parts["parts"]["mi355x"])["params"]["edges"]
    for place, edges in ((0, own["tpu-v4|mine|bf16"]), (11, further["mi355x|mine|bf16"])):
        least = 2 * 64 * 4096**2 / timed.seconds_at(64, place)
        assert edges["y"][0] == pytest.approx(least / 1.6)
        assert all(edges["y"][0] <= tick <= edges["y"][1] for tick in edges["up"])
        assert len(edges["up"]) > 2
    assert own["tpu-v4|mine|bf16"]["y"][1] == pytest.approx(275e12 * 1.6)


def test_a_config_that_lists_chips_or_dtypes_keeps_these() -> None:
    """Of what it does not list, the site has all that there are timings of."""
    entry = {"chart": "measured-ratio", "measurements": "timed"}
    listed = [
        {**entry, "id": "chips", "chips": ["l4", "b200"]},
        {**entry, "id": "dtypes", "dtypes": ["w8a16"]},
    ]
    of_chips, of_dtypes = loaded(charts=listed).charts
    assert (of_chips.chips, of_chips.more_chips) == (("l4", "b200"), ())
    assert len(of_chips.dtypes) == 3
    assert sorted(of_chips.all_dtypes) == sorted(timed.FORMATS)
    assert (of_dtypes.dtypes, of_dtypes.more_dtypes) == (("w8a16",), ())
    assert (len(of_dtypes.chips), len(of_dtypes.more_chips)) == (9, 3)


@pytest.mark.parametrize(
    ("span", "ticks"),
    [
        ((2e-6, 8e-5), [2e-6, 5e-6, 1e-5, 2e-5, 5e-5]),
        ((3e-8, 5e-6), [5e-8, 1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6]),
        ((1e3, 1e5), [1e3, 1e4, 1e5]),
    ],
)
def test_a_short_axis_has_ticks_at_any_size(span: tuple[float, float], ticks: list[float]) -> None:
    """Also one of times."""
    low, high = span
    assert ticks_between(low * 0.99, high * 1.01) == pytest.approx(ticks)


def test_a_case_is_searched_on_the_site(folder: Path, browser: Browser) -> None:
    """A chip that the picture lacks, by a part of its name."""
    more = {chip for chip in MODERN if chip.startswith("tpu")} - {*CHIPS}
    timed.of_many([*CHIPS, *sorted(more)], SOFTWARE, 3).write_csv(folder / "timed.csv")
    planned = plan(loaded())
    table = folder / "measured" / "timed.parquet"
    (folder / ".made").mkdir()
    write_measured(planned.spec("measured/timed.parquet"), table)
    thresholds = folder / "thresholds.parquet"
    write_thresholds(planned.spec("thresholds.parquet"), thresholds)
    write_charts(planned.charts_spec(), folder, folder / "charts", folder / "drawn")
    families = [folder / "charts" / "measured"]
    write_bundle(folder / "bundle", families, thresholds, [], spec=planned.spec("bundle"))
    with browser.new_context(reduced_motion="reduce") as context:
        visit = Visit(context, (folder / "bundle").as_uri())
        page = visit.open("index.html#chart=measured-ratio-timed")
        assert page.get_by_label("Chip").input_value() == "TPU v4"
        page.get_by_label("Chip").focus()
        page.keyboard.type("mi355")
        page.keyboard.press("Enter")
        page.get_by_label("Software").select_option("theirs")
        page.get_by_label("Data types").select_option("bf16")
        expect(page.locator("#setting")).to_contain_text("bf16 on MI355X, theirs.")
        assert page.locator("#plot .mark-symbol path").count() > 1
        assert visit.faults == []
