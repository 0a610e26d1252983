"""One basis for prices everywhere: each chip's lowest dated price, with provider and month."""

import json

import pytest
from command_line import said

import rooflines
from rooflines import charts
from rooflines.basics.text import month
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.site.matmuls import matmul_data

CONFIG = """\
chips:
  sold:
    base: h100-sxm
    source: made up
    prices:
      - {usd_per_hour: 5, provider: Latest, date: '2026-09-25', source: made up}
      - {usd_per_hour: 3.125, provider: Older, date: '2025-01', source: made up}
      - {usd_per_hour: 3.125, provider: Newer, date: '2026-02-14', source: made up}
      - {usd_per_hour: 9, provider: Older, date: '2026-10-01', source: made up}
  twice:
    base: h200-sxm
    source: made up
    prices:
      - {usd_per_hour: 8, provider: Latest, date: '2026-09-25', source: made up}
      - {usd_per_hour: 7, provider: Newer, date: '2026', source: made up}
  unsold: {base: h100-sxm, source: made up, prices: null}
  unsold-too: {base: h200-sxm, source: made up, prices: null}
"""
"""Chips with several sellers and dates, and chips without a price."""

SOLD = "$3.125/h, Newer, February 2026"
NOTES = f"Lowest dated prices: sold {SOLD}; twice $7/h, Newer, 2026.\nNo dated price: unsold."
MODEL = ("llama-3.1-8b", "B=8", "S=1k", "bf16")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chips.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def loaded():
    return rooflines.load_config(
        {
            "sweeps": {
                "matmuls": {
                    "operation": "matmul",
                    "grid": {"B": [1, 64], "D": 8192, "F": 8192},
                    "dtypes": ["bf16"],
                    "chips": ["sold", "twice", "unsold"],
                }
            },
            **rooflines.load_config("chips.yaml", needs_sweeps=False).plain,
        }
    )


def explained(capsys, *words):
    return said(capsys, "explain", *words, "--config", "chips.yaml")


@pytest.mark.parametrize(
    ("date", "text"),
    [("2026-08-20", "August 2026"), ("2025-02", "February 2025"), ("2026", "2026")]
    + [(text, text) for text in ("as written", "2026-13", "2026-00-01", "about 2026-08")],
)
def test_a_date_is_said_as_its_month(date, text):
    assert month(date) == text


def test_an_answer_names_the_lowest_price_or_that_there_is_none(capsys):
    text = explained(capsys, "sold", *MODEL)
    assert f"({SOLD})" in " ".join(text.split())
    (row,) = (json.loads(explained(capsys, "sold", *MODEL, "--json"))["row"],)
    dollars = row["usd_per_mtok_serial"] * row["tokens_per_s_serial"] * 3600 / 1e6
    assert dollars == pytest.approx(3.125, rel=1e-12)
    assert "no dated price" in explained(capsys, "unsold", *MODEL)


def test_a_table_of_cases_says_its_prices_once(capsys):
    text = explained(capsys, "sold", "twice", "unsold", *MODEL)
    assert text.rstrip().endswith(NOTES)
    assert text.count("Newer") == 2
    splits = explained(capsys, "sold", *MODEL, "--split", "auto", "--chips", "2")
    assert splits.count(f"Lowest dated prices: sold {SOLD}.") == 1


def test_two_chips_are_compared_at_their_lowest_prices(capsys):
    text = said(capsys, "compare", "sold", "unsold", "--config", "chips.yaml")
    assert f"Lowest dated prices: sold {SOLD}.\nNo dated price: unsold." in text
    assert "prices: {unsold: 2.5}" in text


def test_the_explorer_gets_the_price_that_was_decided(loaded):
    chips = {chip["id"]: chip for chip in matmul_data(loaded.chips, dtype_entries())["chips"]}
    assert chips["sold"]["price"] == {"usd_per_hour": 3.125, "text": SOLD}
    assert chips["twice"]["price"]["text"] == "$7/h, Newer, 2026"
    assert chips["unsold"]["price"] is None


def test_a_chart_by_price_has_the_lowest_of_each_chip_and_says_so(loaded):
    view = charts.view("chips", charts.of_config(loaded), "matmuls", by="dollar")
    prices = {row["chip"]: (row["usd_per_hour"], row["provider"]) for row in view.rows.to_dicts()}
    assert prices == {"sold": (3.125, "Newer"), "twice": (7, "Newer")}
    assert "lowest dated price" in view.title
    assert "Prices: Newer, 2026 and February 2026." in view.subtitle


def test_a_chart_by_price_needs_two_chips_with_one(loaded):
    chips = ["unsold", "unsold-too", "sold"]
    sweep = {**loaded.plain["sweeps"]["matmuls"], "chips": chips}
    config = rooflines.load_config({**loaded.plain, "sweeps": {"matmuls": sweep}})
    assert "dollar" not in charts.menus("chips", charts.of_config(config), "matmuls")[0].options


def test_the_explorer_names_the_price_of_each_chip(visit):
    page = visit().open("index.html#chips=h100-sxm,tpu-v6e")
    price = chip_entries()["h100-sxm"].lowest_price()
    said_of_prices = page.locator("#prices").inner_text()
    assert said_of_prices == f"Lowest dated prices: H100 SXM {price}. No dated price: TPU v6e."
