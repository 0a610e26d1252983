"""Served models in the explorer: deployments, fronts and sentences of `rooflines serve`."""

import csv
import json
import re
import shlex
from pathlib import Path

import effort
import explorer_serve
import pytest
from conftest import IN_BOTH
from faces import show
from playwright.sync_api import expect
from visits import visiting

from rooflines.cli.main import run
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.serving.servers import ServerTable

STATES = effort.cases(80)

DENSE = {"subject": "serve", "model": "llama-3.1-70b", "chips": "h100-sxm,b200"}


@pytest.fixture(scope="module")
def visit(browser, site):
    with visiting(browser, site.as_uri(), "index.html") as one:
        yield one
        assert one.faults == []


@pytest.fixture
def page(visit):
    return visit.page


def seen_in(page, state):
    show(page, {name: value for name, value in state.items() if value is not None})
    return page.evaluate(explorer_serve.PLAN)


def test_plans_are_those_of_python(page):
    """Random states: every row, its order, losers and the sentence."""
    plans = 0
    for _ in range(STATES):
        state = explorer_serve.random_served()
        seen = seen_in(page, state)
        if {*state["chips"].split(",")} == {*seen["unsupported"]}:
            assert seen["unable"]
            continue
        plan = explorer_serve.plan_of(state, seen)
        assert explorer_serve.differences(seen, plan) == [], state
        assert seen["lead"] if plan else "o" in seen["unable"], state
        plans += plan is not None
    assert plans > STATES / 6


@pytest.mark.parametrize(
    "state",
    [
        DENSE,
        {**DENSE, "basis": "bound"},
        # links between pairs are slower than of all chips: experts exchange tokens otherwise
        {"subject": "serve", "model": "nemotron-3-super", "chips": "mi355x", "format": "fp8-kv"},
        {"subject": "serve", "model": "gpt-oss-120b", "chips": "b200", "isl": 64, "osl": 100},
        {"subject": "serve", "model": "deepseek-v3.2", "chips": "b300", "format": "fp8"},
        {"subject": "serve", "model": "gemma-3-27b", "chips": "h100-sxm", "isl": 600, "osl": 900},
    ],
    ids=lambda state: "-".join(map(str, state.values())),
)
def test_a_plan_is_that_of_python(page, state):
    whole = {"given": 8, "isl": 8192, "osl": 1024, "tpot": 30, "ttft": 2000, "format": "bf16"}
    seen = seen_in(page, whole | state)
    plan = explorer_serve.plan_of(whole | state, seen)
    assert plan
    assert explorer_serve.differences(seen, plan) == []


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-120b"])
def test_points_of_fronts_are_steps_of_python(page, model):
    state = {"given": 4, "isl": 2048, "osl": 512, "tpot": 20, "ttft": "none", "format": "bf16"}
    state |= {"subject": "serve", "model": model, "chips": "b200"}
    seen = seen_in(page, state)
    plan = explorer_serve.plan_of(state, seen)
    table = ServerTable(plan.sweeps[0], 4, None, 1)
    best = {"mixed": 0.0, "pools": 0.0}
    for _, kind, name, batch, tpot, rate in seen["fronts"]:
        split = name.split("D " if kind == "pools" else "x ")[-1]
        table.evaluate({split: {batch}})
        mixed = kind == "mixed"
        assert tpot == pytest.approx(table.servers[split].tpot("estimate", batch, mixed=mixed))
        if mixed:
            count = int(name.split(" ")[0])
            assert rate == pytest.approx(count * batch / tpot / state["given"])
        best[kind] = max(best[kind], rate)
    for row in plan.rows:  # the front passes above every deployment that keeps the limits
        assert row["output_tokens_per_s_per_chip"] <= best[row["kind"]] * (1 + 1e-6)


@pytest.mark.parametrize(
    "state",
    [
        DENSE,
        {**DENSE, "basis": "bound", "ttft": "none"},
        {"subject": "serve", "chips": "b200,tpu-v6e", "given": 2, "tpot": "12.5"},
    ],
    ids=str,
)
def test_the_command_of_the_page_has_its_best(page, state, capsys):
    seen = seen_in(page, state)
    program, *words = shlex.split(seen["command"])
    assert program == "rooflines"
    assert run([*words, "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["rows"][0]
    assert best["deployment"] == seen["rows"][0]["deployment"]
    assert best["tpot_s"] == pytest.approx(seen["rows"][0]["tpot_s"], rel=1e-6)


def test_limits_are_typed_cleared_and_kept_in_the_address(page):
    show(page, DENSE)
    field = page.get_by_label("TPOT ms, at most")
    field.fill("12.5")
    field.press("Enter")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile(r"tpot=12\.5"))
    assert "TPOT 12" in (page.locator("#left .rule-text").text_content() or "")
    field.fill("")
    field.press("Enter")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile("tpot=none"))
    assert page.locator("#left .rule-text").count() == 0
    field.evaluate("(one) => one.blur()")
    assert field.get_attribute("placeholder") == "none"
    show(page, {**DENSE, "tpot": "soon", "isl": "1.5"})
    told = page.locator("#unknown").inner_text()
    assert "tpot soon: no number of ms above 0; shown is 30" in told
    assert "isl 1.5: no whole number from 1" in told


def test_what_is_not_possible_is_told_with_the_nearest(page):
    show(page, {**DENSE, "chips": "h100-sxm", "tpot": 3})
    told = page.locator("#unable").inner_text()
    assert told.startswith(
        "No deployment keeps TPOT 3 ms by the estimate: the quickest token takes"
    )
    show(page, {**DENSE, "chips": "h100-sxm", "ttft": 50})
    told = page.locator("#unable").inner_text()
    assert told.startswith(
        "No deployment keeps TTFT 50 ms: a prompt of 8,192 tokens alone takes at"
    )
    show(page, {**DENSE, "chips": "h100-sxm", "given": 1})
    assert page.locator("#unable").inner_text() == "Weights and a KV cache do not fit 1 chip."
    assert page.locator("#all-chips").is_hidden()


def test_chips_without_servers_say_why_beside_others(page):
    torus = chip_entries()["tpu-v6e"]
    assert next(iter(torus.networks.values())).exact.topology == "torus"
    show(page, {**DENSE, "chips": "b200,tpu-v6e"})
    row = page.locator("#chips-table tbody tr[data-chip='tpu-v6e']")
    assert "axes of its torus" in row.inner_text()
    assert "B200" in page.locator("#lead").inner_text()
    assert "tpu" not in page.locator("#command").inner_text()


def test_the_table_sorts_shows_all_and_is_saved(page):
    show(page, DENSE)
    rows = page.locator("#chips-table tbody tr")
    few = rows.count()
    page.get_by_role("button", name="All").click()
    expect(page.get_by_role("button", name="The best of each kind")).to_be_visible()
    assert rows.count() > few
    page.get_by_role("button", name="prompt alone").click()
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile("sort=firstToken"))
    seen = page.evaluate(explorer_serve.PLAN)
    least = min(row["ttft_s"] for row in seen["rows"])
    with page.expect_download() as download:
        page.locator("#save-csv").click()
    saved = [*csv.DictReader(Path(download.value.path()).read_text().splitlines())]
    assert len(saved) == len(seen["rows"])
    assert float(saved[0]["ttft_s"]) == pytest.approx(least, rel=1e-12)
    assert {"tpot_p10_s", "tpot_p90_s", "output_tokens_per_s_chip"} <= saved[0].keys()


def test_the_tab_of_servers_has_batches_and_losers(page):
    show(page, DENSE)
    text = page.locator("#panel").inner_text()
    seen = page.evaluate(explorer_serve.PLAN)
    mixed = {row["deployment"]: row for row in seen["rows"] if row["chip"] == "b200"}
    assert f"{mixed['2 x tp4']['batch']} · " in text
    cell = page.locator("#panel td.never").first
    assert cell.inner_text() == "full"
    assert cell.get_attribute("title") == "weights and the KV cache of a request do not fit"


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_nothing_but_the_table_is_wider_than_the_window(browser, site, width):
    with visiting(browser, site.as_uri(), "index.html#subject=serve") as one:
        one.page.set_viewport_size({"width": width, "height": 900})
        expect(one.page.locator("#lead")).to_contain_text("Best by the estimate")
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
        plots = [one.page.locator(name).is_visible() for name in ("#left", "#right")]
        assert plots == [True, width > 700]


@IN_BOTH
def test_sliders_and_menus_answer_to_the_keyboard(visit):
    page = visit.open("index.html#subject=serve&model=llama-3.1-8b&chips=b200")
    expect(page.locator("#lead")).to_contain_text("Best by the estimate")
    slider = page.get_by_label("TPOT, slider")
    assert slider.get_attribute("aria-valuetext") == "30 ms"
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile("tpot=27"))
    page.get_by_label("ISL, slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile(r"isl=9742"))
    page.locator("#given").select_option("2")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile("given=2"))
    page.locator("#subject").select_option("model")
    expect(page.locator("#lead")).to_contain_text("a token (TPOT) of Llama 3.1 8B")
