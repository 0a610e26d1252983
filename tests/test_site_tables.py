"""Thresholds, chips and models of the site in a browser: tables, links, hostile names."""

from collections import defaultdict

import pytest
from case_files import case
from conftest import IN_BOTH
from playwright.sync_api import expect

COLUMN = """(name) => {
    const place = [...document.querySelectorAll("#table th button")].findIndex(
        (button) => button.dataset.key === name);
    return [...document.querySelectorAll("#table tbody tr")].map(
        (row) => row.children[place].textContent);
}"""
"""Texts of a column of the table, from the top down."""


@IN_BOTH
def test_controls_of_the_table_are_in_its_address(visit):
    page = visit().open("data.html")
    for order in ("ascending", "descending"):
        page.get_by_role("button", name="compute-bound from", exact=True).click()
        page.wait_for_selector(f"th[aria-sort={order}]")
        texts = page.evaluate(COLUMN, "critical")
        numbers = [int(text.replace(",", "")) for text in texts if text[:1].isdecimal()]
        assert len({*numbers}) > 1
        assert numbers == sorted(numbers, reverse=order == "descending")
        assert not any(text[:1].isdecimal() for text in texts[len(numbers) :])  # last either way
    page.get_by_label("share").select_option("0.9")
    expect(page.locator("#count")).to_have_text("14 of 28 rows.")
    page.get_by_label("Find").fill("small never")
    expect(page.locator("#count")).to_have_text("7 of 28 rows.")
    assert page.url.endswith("#sort=-critical&share=0.9&find=small+never")
    page.get_by_label("Find").fill("nothing like it")
    page.wait_for_selector("#empty:visible")


def lost_states():
    """States with what each page says about them, and what they lack, by page."""
    states = defaultdict(list)
    for address, lost in case("lost-addresses"):
        page, _, state = address.partition("#")
        states[page].append((state, lost))
    return states


@pytest.mark.parametrize(("name", "states"), lost_states().items())
def test_a_link_to_what_is_not_there_says_so(visit, name, states):
    """The first is followed to the page, the others on the page."""
    (first, lost), *others = states
    page = visit().open(f"{name}#{first}")
    assert lost in page.locator("#unknown").inner_text()
    for state, text in others:
        page.evaluate("(state) => { location.hash = state; }", state)
        expect(page.locator("#unknown")).to_contain_text(text)
        assert page.locator("#unknown li").count() == 1, state


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("index.html", "dtypes"),
        ("charts.html", "dtypes"),
        ("chips.html", "find"),
        ("data.html", "find"),
    ],
)
def test_what_no_page_uses_is_reported_by_every_page(visit, address, name):
    one = visit()
    assert one.open(address).locator("#unknown").is_hidden()
    state = f"chp=h100&{name}=bf16&{name}=fp8&{name}=&%zz=%ff&=&%3Cb%3E=" + 70 * "x"
    page = one.open(f"{address}#{state}")
    assert page.locator("#unknown li").all_inner_texts()[:3] == [
        "chp h100: no choice of this page",
        "%zz \ufffd: no choice of this page",
        f"<b> {60 * 'x'}…: no choice of this page",
    ]
    follow = "(state) => { location.hash = state; }"
    page.evaluate(follow, "&".join(f"q{n}=1" for n in range(20)))
    expect(page.locator("#unknown li").last).to_have_text("and 8 more")
    assert page.locator("#unknown li").all_inner_texts()[-2] == "q11 1: no choice of this page"
    page.evaluate(follow, f"chip={10**5 * '1'}")
    expect(page.locator("#unknown li")).to_have_text([f"#chip={54 * '1'}…: too long"])


@IN_BOTH
def test_a_chip_is_opened_with_its_numbers(visit):
    page = visit().open("chips.html")
    page.get_by_role("button", name="h100-sxm", exact=True).click()
    opened = page.locator("[data-chip=h100-sxm]")
    expect(opened).to_contain_text("989 TFLOP/s")
    assert page.evaluate("document.activeElement.dataset.key") == "h100-sxm"
    assert (opened.locator("a").first.get_attribute("href") or "").startswith("https://")
    page.get_by_role("link", name="Open it in the explorer").click()
    page.wait_for_selector("body[data-drawn]")
    assert page.locator("#chosen li").all_inner_texts() == ["H100 SXM\n×"]


@IN_BOTH
def test_names_of_a_config_run_nowhere(visit):
    one = visit()
    for address in [
        "data.html",
        "chips.html#chip=mine",
        "index.html#chips=mine&rows=all",
        "index.html#subject=model&chips=mine&split=tp1",
        "method.html",
    ]:
        page = one.open(address)
        assert page.title() != "ran"
        assert page.locator("img[src=x]").count() == 0
        assert "<script>" in page.locator("body").inner_text()
