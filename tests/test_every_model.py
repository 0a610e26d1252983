"""Charts of every chip, model and context of a sweep of whole models, in the site."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import effort
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from offered import CAUGHT, Run, asked, check_page, check_titles, choice_of, listed, parts_of
from random_sweeps import check
from scenes import chosen, outside, overlaps, texts
from site_data import inflated, part_of, put
from visits import Visit

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts import room
from rooflines.charts.comparing import EVERY
from rooflines.charts.families import draw, of_every_chip, unchecked
from rooflines.charts.job import write_charts
from rooflines.charts.kit.render import spec_of
from rooflines.charts.kit.text import chip_label
from rooflines.results.folders import MODEL_THRESHOLDS
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.run.solving import write_model_thresholds, write_thresholds
from rooflines.site.site import write_bundle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conftest import Once
    from playwright.sync_api import Browser

    from rooflines.charts.chart import Spec


SEED = 5
STATES = effort.cases(32)
"""Random states of each chart."""

CHIPS = (
    *("tpu-v5e", "tpu-v6e", "h100-sxm", "h200-sxm", "mi300x", "a100-sxm-80gb", "l40s"),
    *("b200", "mi355x", "t4"),
)
"""Seven that are compared, then the fastest, one without a calibration, and a slow one."""

CONFIG: dict[str, Any] = {
    "model-sweeps": {
        "served": {
            "models": [
                *("llama-3.1-8b", "gpt-oss-120b", "llama-3.1-70b", "gemma-3-27b", "qwen3-32b"),
                *("deepseek-v3", "kimi-k2", "mixtral-8x22b"),
            ],
            "grid": {"B": {"from": 1, "to": 1024, "factor": 8}, "S": [8192, 1024, 32768]},
            "splits": [{"tp": 1}, {"tp": 8}],
            "dtypes": ["bf16", "fp8", "int8"],
            "chips": list(CHIPS),
            "calibration": ["trtllm", "nccl"],
        }
    }
}
"""More chips, models, contexts and dtypes than pictures show."""


def make(folder: Path) -> None:
    """Write the config, its results and its site."""
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    planned = plan(rooflines.load_config(folder / "config.yaml"))
    tables = [folder / part.path for part in planned.parts_in("models")]
    for part, table in zip(planned.parts_in("models"), tables, strict=True):
        table.parent.mkdir(parents=True, exist_ok=True)
        write_part(part.spec, table)
    thresholds = folder / "thresholds.parquet"
    write_thresholds(planned.spec("thresholds.parquet"), thresholds)
    of_models = [folder / MODEL_THRESHOLDS]
    write_model_thresholds(planned.spec("model-thresholds.parquet"), *of_models)
    write_charts(planned.charts_spec(), folder, folder / "charts", folder / "drawn")
    families = [index.parent for index in sorted((folder / "charts").glob("*/index.json"))]
    parquet = [path for path in of_models if path.suffix == ".parquet"]
    write_bundle(
        folder / "bundle", families, thresholds, [*parquet, *tables], spec=planned.spec("bundle")
    )


@pytest.fixture(scope="module")
def run(once: Once) -> Run:
    """The results of the config."""
    folder = once("every-model", make)
    return Run(folder / "config.yaml", folder, SEED)


def test_all_of_the_sweep_is_offered(run: Run) -> None:
    """By both charts, which show seven or five chips, six models and two contexts themselves."""
    sweep = CONFIG["model-sweeps"]["served"]
    assert {chart.chart for chart in listed(run)} == {"pareto", "capacity"}
    for chart in listed(run):
        assert (len(chart.models), chart.sizes) == (6, (8192, 1024))
        options = {menu["name"]: menu["options"] for menu in parts_of(run, chart)["params"]}
        assert {*options["chip"]} - {"all"} == {*CHIPS}
        assert options["model"] == sweep["models"]
        assert options["S"] == sweep["grid"]["S"]
        assert {*options["dtypes"]} == {*sweep["dtypes"]}


def test_random_states_have_all_that_pictures_lack(run: Run) -> None:
    """An added chip, and further models, contexts and dtypes."""
    for chart in listed(run):
        keys = [key for key, *_ in asked(run, chart, STATES)]
        chosen = [choice_of(parts_of(run, chart), key) for key in keys]
        assert {one["chip"] for one in chosen} & {*chart.more_chips}
        assert {one["model"] for one in chosen} & {*chart.more_models}
        assert {one["S"] for one in chosen} & {*map(str, chart.more_sizes)}
        assert {one["dtypes"] for one in chosen} & {*chart.more_dtypes}


def test_titles_of_every_chip_and_model_are_true(run: Run) -> None:
    """They are those of a picture of these chips; claims are worked out from the tables."""
    check_titles(run, STATES)


def test_the_page_shows_the_numbers_of_python(browser: Browser, run: Run) -> None:
    """Over random states: title, setting, picture, and the data behind the view."""
    with browser.new_context(reduced_motion="reduce") as context:
        context.add_init_script(CAUGHT)
        visit = Visit(context, (run.results / "bundle").as_uri())
        check_page(visit.open("index.html"), run, STATES)
        assert visit.faults == []


ADDED = ("b200", "mi355x", "t4")
DTYPES = ("bf16", "int8")
"""The B200 is fastest in bf16; no chip compared lacks int8, and T4 has no bf16."""


def pareto_of(run: Run, added: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The chart of one model at one context, with chips to add."""
    (chart,) = (chart for chart in listed(run) if chart.chart == "pareto")
    one = replace(
        chart,
        chips=(*chart.chips, *added),
        dtypes=DTYPES,
        models=("llama-3.1-70b",),
        sizes=(8192,),
        added=added,
    )
    with unchecked():
        frame, drawn = draw(charts.on_disk(run.results), one)
    return frame, spec_of(drawn, "pareto")


def value(spec: dict[str, Any], name: str) -> Any:  # noqa: ANN401, any value of JSON
    """The value of a parameter."""
    return next(each["value"] for each in spec["params"] if each["name"] == name)


def test_the_first_view_stays_as_it_was(run: Run) -> None:
    """Every text in its place, whichever chip is highlighted."""
    (_, alone), (_, more) = pareto_of(run, ()), pareto_of(run, ADDED)
    for choice in ({}, {"chip": "mi300x", "dtypes": "int8"}, {"basis": "calibrated"}):
        for size in ("web", "paper"):
            assert texts(chosen(more, choice), size) == texts(chosen(alone, choice), size)


def test_names_keep_apart_beside_an_added_chip(run: Run) -> None:
    """In the layout with least room; the added chip is named once where something of it fits."""
    frame, spec = pareto_of(run, ADDED)
    for chip in ADDED:
        for dtypes in DTYPES:
            fits = frame.filter("fits", chip=chip, dtypes=dtypes).height > 0
            one = chosen(spec, {"chip": chip, "dtypes": dtypes})
            said = [each.text for each in texts(one, "paper")]
            assert sum(text.startswith(f"{chip_label(chip)} ·") for text in said) == fits, said
            assert (overlaps(one, "paper"), outside(one, "paper")) == ([], [])


def test_the_axes_hold_the_added_chip(run: Run) -> None:
    """Throughputs of all its points and times of all that fit; those compared as without it."""
    frame, spec = pareto_of(run, ADDED)
    (chart,) = (chart for chart in listed(run) if chart.chart == "pareto")
    edges, wider = value(spec, "edges"), 0
    for key, span in edges.items():
        chip, _, dtypes, _, basis = key.split("|")
        tail = "" if basis == "nominal" else "_estimate"
        time, rate = ("t_lower_s", "t_estimate_s")[bool(tail)], f"tokens_per_s_per_chip{tail}"
        rows = frame.filter(pl.col("chip").is_in([*chart.chips, chip]), dtypes=dtypes)
        points = rows.drop_nulls(time).select(time, rate, "fits").rows()
        assert all(span["y"][0] < rate < span["y"][1] for _, rate, _ in points)
        assert all(span["x"][0] < 1e3 * time < span["x"][1] for time, _, fits in points if fits)
        own = edges[f"{EVERY}|{key.partition('|')[2]}"]
        assert span["x"][0] <= own["x"][0]
        assert span["x"][1] >= own["x"][1]
        wider += span["x"] != own["x"] or span["y"] != own["y"]
    assert wider > 1
    assert {key.partition("|")[0] for key in edges} == {EVERY, *ADDED}


def test_titles_speak_of_the_chips_shown_together(run: Run) -> None:
    """MI300X is ahead of those compared; a chip that is added can be, or not be."""
    _, spec = pareto_of(run, ADDED)
    said = {key: each["title"] for key, each in value(spec, "findings").items()}
    rest = "llama-3.1-70b|bf16|8192|nominal"
    assert said[f"{EVERY}|{rest}"] == "MI300X gives most tokens per chip within 20 ms a token"
    assert said[f"h100-sxm|{rest}"] == said[f"{EVERY}|{rest}"]
    assert said[f"b200|{rest}"] == "B200 gives most tokens per chip within 20 ms a token"
    over = spec["usermeta"]["claims"][f"b200|{rest}"]["over"]["chip"]
    assert {*over} == {*CHIPS[:7], "b200"}
    assert over[-1] == "b200"


def pareto_with_room(run: Run, most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Spec, Spec]:
    """The chart, and what the site offers of it if it has room for `most` cases."""
    (chart,) = (chart for chart in listed(run) if chart.chart == "pareto")
    monkeypatch.setattr(room, "MOST_OFFERED", most)
    return chart, room.with_room(charts.on_disk(run.results), chart)


def test_what_the_site_has_no_room_for_is_reported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The longest list is halved; the caption says how many are left, the log names the rest."""
    chart, offered = pareto_with_room(run, 10**9, monkeypatch)
    assert offered == chart
    chart, offered = pareto_with_room(run, 4_000, monkeypatch)
    assert offered.more_chips == ("b200",)
    assert (offered.more_models, offered.more_sizes) == (chart.more_models, chart.more_sizes)
    planned = plan(replace(rooflines.load_config(run.source), charts=(chart,)))
    write_charts(planned.charts_spec(), run.results, tmp_path / "charts", tmp_path / "drawn")
    line = "charts: the menus of pareto-served have no room for mi355x, t4"
    assert line in capsys.readouterr().out.splitlines()
    thresholds = run.results / "thresholds.parquet"
    write_bundle(tmp_path / "bundle", [tmp_path / "charts" / "models"], thresholds)
    _, data = put((tmp_path / "bundle" / "assets" / "charts-data.js").read_text(encoding="utf-8"))
    (shown,) = data["charts"]
    assert shown["caption"].endswith(" The menus have 8 of 10 chips.")
    (chips,) = (menu["options"] for menu in shown["params"] if menu["name"] == "chip")
    assert {*chips} == {EVERY, *CHIPS[:8]}


def test_the_documentation_has_the_most_cases(repository: Path) -> None:
    """Of those that a page offers."""
    text = (repository / "config" / "README.md").read_text(encoding="utf-8")
    assert f"up to {room.MOST_OFFERED:,} cases" in text


def test_what_pictures_show_is_always_offered(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the site has room for nothing else."""
    chart, offered = pareto_with_room(run, 1, monkeypatch)
    assert (offered.has_more, offered.chips) == (False, chart.chips)
    assert (offered.more_chips, offered.more_models, offered.more_sizes) == ((), (), ())
    assert offered.models == chart.models
    assert room.left_out_of(offered, chart)[-1] == "S = 32,768"


def some(values: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """Some of a list, in any order."""
    return st.lists(st.sampled_from(values), min_size=1, max_size=4, unique_by=str)


SERVED = CONFIG["model-sweeps"]["served"]
SWEEPS = st.fixed_dictionaries(
    {
        "models": some(SERVED["models"]),
        "grid": st.fixed_dictionaries({"B": st.just([1, 4096]), "S": some([1, 4096, 10**7])}),
        "splits": some([{"tp": 1}, {"tp": 8}, {"tp": 2, "dp": 4}, {"dp": 8, "ep": 8}]),
        "dtypes": some(SERVED["dtypes"]),
        "chips": some([*CHIPS, "gaudi3"]),
        "calibration": some(["trtllm", "nccl"]),
        "on_unsupported": st.just("skip"),
    }
)


@check(40)
@given(SWEEPS)
def test_parts_have_every_row_and_title_once(sweep: dict[str, Any]) -> None:
    """Of random sweeps, of which pictures show the first of everything; a page finds each title."""
    try:
        loaded = rooflines.load_config({"model-sweeps": {"served": sweep}})
    except RooflinesError:  # no chip has any of the dtypes, or no model any of the splits
        return
    results = charts.of_config(loaded)
    for spec in loaded.charts:
        one = replace(
            spec,
            chips=spec.all_chips[:1],
            more_chips=spec.all_chips[1:],
            dtypes=spec.all_dtypes[:1],
            more_dtypes=spec.all_dtypes[1:],
            models=spec.all_models[:1],
            more_models=spec.all_models[1:],
            sizes=spec.all_sizes[:1],
            more_sizes=spec.all_sizes[1:],
        )
        parts = of_every_chip(results, one)
        whole = replace(
            spec, chips=spec.all_chips, dtypes=spec.all_dtypes, added=one.more_chips, auto=False
        )
        with unchecked():
            frame, drawn = draw(results, replace(whole, models=one.all_models, sizes=one.all_sizes))
            findings = value(drawn.to_dict(validate=False), "findings")
        names = list(frame.columns)
        found = [row for part in parts["parts"].values() for row in rows_in(inflated(part), names)]
        found += rows_in({"rows": inflated(parts["rows"])}, names)
        assert sorted(found, key=str) == sorted(frame.rows(), key=str)
        first = value(parts["spec"], "findings")
        for key, said in findings.items():
            of_part = part_of(parts, choice_of(parts, key))["params"].get("findings", {})
            assert [each[key] for each in (first, of_part) if key in each] == [said]


def rows_in(part: dict[str, Any], names: list[str]) -> list[tuple[Any, ...]]:
    """The rows behind the views of a part."""
    columns = part.get("rows", {})
    return list(zip(*(columns[name] for name in names), strict=True)) if columns else []
