"""One check of every page: a random state, by its address, shows what Python has.

A face is a page, or a part of one. The explorer's are in `explorer`.
"""

import csv
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import explorer
import polars as pl
from bundles import CHARTS
from playwright.sync_api import expect
from shown import rounds_to

import rooflines
from rooflines.site.data_page import HEADS
from rooflines.site.explorer import DEFAULT_CHIPS
from rooflines.site.opening import run_chips
from rooflines.theory.operation import MATRIX

State = dict[str, Any]


class Face(NamedTuple):
    """Content of a page in a state, and the same from Python.

    Attributes:
        page: Its file.
        drawn: Draws a state at random, by the site.
        expected: The numbers and texts from Python; None: there is no answer.
        wrong: What the page shows otherwise.
        address: What the address says of the state.
    """

    page: str
    drawn: Callable[[Path], State]
    expected: Callable[[Path, State], Any]
    wrong: Callable[[Any, Any], Any]
    address: Callable[[State], State] = dict


def show(page, state):
    """Show a state on a page that has its address in `data-drawn`: of explorer and tables."""
    change = "(text) => { location.hash = text; return location.hash; }"
    drawn = page.evaluate(change, urlencode(state))
    expect(page.locator("[data-drawn]")).to_have_attribute("data-drawn", drawn)


def check(visit, site, face):
    """Check a random state of a page; returns what Python has of it."""
    state = face.drawn(site)
    asked = {name: value for name, value in face.address(state).items() if value is not None}
    if face.page != "charts.html" and visit.page.url.startswith(f"{visit.base}/{face.page}"):
        show(visit.page, asked)
    else:
        visit.open(f"{face.page}#{urlencode(asked)}")
    expected = face.expected(site, state)
    assert not (wrong := face.wrong(visit.page, expected)), (state, wrong)
    return expected


@cache
def config_of(site):
    """The config of the site, loaded where its timings are."""
    return rooflines.load_config(site.parents[1] / "my.yaml")


# ------------------------------------------------------------------- tables

ROWS = """() => {
  const texts = (cells) => [...cells].map((cell) => cell.textContent);
  const heads = texts(document.querySelectorAll("#head th"));
  return [...document.querySelectorAll("#body tr:not(.apart, .details)")].map((row) =>
    Object.fromEntries(texts(row.cells).map((text, i) => [heads[i], text])));
}"""
"""The rows that a table shows, each with its texts by the head of the column."""


def wrong_cells(page, expected):
    """The cells of a table that are not those of the rows expected, or two numbers of rows."""
    shown = page.evaluate(ROWS)
    if len(shown) != len(expected):
        return len(shown), len(expected)
    wrong = []
    for cells, row in zip(shown, expected, strict=True):
        for head, text in cells.items():
            name, _, unit = head.partition(", ")
            value = row[column_of(name) if name not in row else name]
            if isinstance(value, int | float):
                same = rounds_to(f"{text} {unit}".strip(), value, digits=4)
            else:
                same = text == (value or "–")
            wrong += [] if same else [(name, text, value)]
    return wrong


def column_of(head):
    """Column of thresholds under a head in words."""
    columns = {text: name for name, text in HEADS.items()}
    return columns.get(head, head.replace(" ", "_"))


def as_asked(rows, state):
    """Rows with what menus and words ask for, in the order that is asked for; none comes last."""
    menus = state.keys() - {"find", "sort"}
    words = (state["find"] or "").lower().split()
    found = [
        row
        for row in rows
        if all(state[name] in (None, f"{row[name]}") for name in menus)
        and all(any(word in f"{text}".lower() for text in row.values()) for word in words)
    ]
    name = (state["sort"] or "").removeprefix("-")
    if not name:
        return found
    number = any(isinstance(row[name], int | float) for row in rows)
    with_value = [row for row in found if isinstance(row[name], int | float) or not number]
    with_value.sort(key=lambda row: row[name], reverse=state["sort"].startswith("-"))
    return with_value + [row for row in found if row not in with_value]


def random_thresholds(_):
    return {
        "dtypes": random.choice([None, None, "bf16", "fp8"]),
        "share": random.choice([None, "1", "0.9"]),
        "find": random.choice([None, "small", "INT8", "never small", "<script> bf16", "nothing"]),
        "sort": random.choice([None, "critical", "-critical", "-rule_of_thumb", "dtypes", "-D"]),
    }


def thresholds(site, state):
    """Thresholds along B of the first sweep, with the outcome for an answer that is no number."""
    every = rooflines.thresholds(config_of(site)).filter(sweep="shapes", axis="B")
    order = run_chips(every["chip"].cast(pl.String).unique(maintain_order=True), DEFAULT_CHIPS)
    place = pl.col("chip").cast(pl.String).replace_strict(order, range(len(order)))
    rows = (
        every.sort(place, maintain_order=True)
        .with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        .to_dicts()
    )
    for row in rows:
        row["share"] = int(row["share"]) if row["share"] == 1 else row["share"]
        row["critical"] = row["outcome"] if row["critical"] is None else row["critical"]
    return as_asked(rows, state)


def random_chips(_):
    return {
        "vendor": random.choice([None, None, "NVIDIA", "Google"]),
        "find": random.choice([None, None, "hgx", "2023", "h100 nvidia", "<script>"]),
        "sort": random.choice([None, "ridge", "-ridge", "capacity", "-bandwidth", "chip"]),
    }


CHIPS = ("tpu-v5e", "h100-sxm", "h200-sxm", "b200", "mine")
"""Chips of the site, variants last."""


def chips(site, state):
    """The numbers of the catalogue and of the config, in SI units; newest first, variants last."""
    rows = []
    for chip in CHIPS:
        plain = config_of(site).chips[chip].plain
        hbm, link = plain["memory"]["hbm"], next(iter(plain["networks"].values()))
        peak = plain["units"][MATRIX]["bf16"]["flops_per_s"]
        summary = {
            "chip": chip,
            "name": plain["name"],
            "vendor": plain["vendor"],
            "year": f"{plain['year']}",
            "bf16 peak": peak,
            "bandwidth": hbm["bytes_per_s"],
            "capacity": hbm["capacity_bytes"],
            "label": hbm.get("label"),
            "ridge": peak / hbm["bytes_per_s"],
            "network": link["bytes_per_s"] * link.get("links", 1),
            "variant of": "tpu-v5e" if chip == "mine" else None,
        }
        rows.append(summary)
    rows.sort(key=lambda row: row["year"], reverse=True)
    found = as_asked(rows, state)
    return sorted(found, key=lambda row: row["variant of"] is not None)


# ------------------------------------------------------------------- charts


def views(site, chart):
    """The views of a chart, as Python wrote them, by what their menus say."""
    (path,) = (site.parent / "charts").glob(f"*/{chart}-views.json")
    read = json.loads(path.read_text())
    return {
        tuple((menu, f"{value}") for menu, value in view["values"].items()): view
        for view in read["views"]
    }


def random_view(site):
    chart = random.choice(CHARTS)
    return {"chart": chart, **dict(random.choice([*views(site, chart)]))}


def view_of(site, state):
    """The view that has what the state says."""
    chart, *chosen = state.items()
    return views(site, chart[1])[tuple(chosen)]


def wrong_view(page, view):
    """Differences: the title, or rows of the marks as the page saves them."""
    with page.expect_download() as download:
        page.locator("#view-csv").click()
    title = page.locator("#title").inner_text()
    rows = max(view["datasets"].values(), key=len)
    saved = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    if title != view["title"] or len(saved) != len(rows):
        return title, len(saved)
    return [
        (name, cell, row[name])
        for cells, row in zip(saved, rows, strict=True)
        for name, cell in cells.items()
        if not same_cell(cell, row[name])
    ]


def same_cell(cell, value):
    """True if a cell of a CSV file is a value of JSON."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(cell) == value
    return cell == (
        "" if value is None else str(value).lower() if value in (True, False) else value
    )


def of_explorer(drawn):
    """A face of the first page, by what draws its states."""
    return Face(
        "index.html",
        lambda _: drawn(),
        lambda _, state: explorer.explained(state),
        explorer.wrong_answer,
        explorer.address_of,
    )


FACES = {
    "matmul": of_explorer(explorer.random_matmul),
    "step": of_explorer(explorer.random_step),
    "training": of_explorer(explorer.random_training),
    "data": Face("data.html", random_thresholds, thresholds, wrong_cells),
    "chips": Face("chips.html", random_chips, chips, wrong_cells),
    "charts": Face("charts.html", random_view, view_of, wrong_view),
}
