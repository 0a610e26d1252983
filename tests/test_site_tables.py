"""Thresholds, chips and models of the site in a browser: tables, links, hostile names."""

import pytest
from bundles import HOSTILE
from case_files import case
from conftest import IN_BOTH
from playwright.sync_api import expect


@IN_BOTH
def test_the_table_is_sorted_filtered_and_found_in(visit):
    page = visit().open("data.html")
    assert page.locator("#count").inner_text() == "12 of 12 rows."
    answers = page.locator("#body .answer")
    page.get_by_role("button", name="critical", exact=True).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    smallest = [int(text.replace(",", "")) for text in answers.all_inner_texts() if text != "never"]
    assert smallest == sorted(smallest)
    page.get_by_role("button", name="critical", exact=True).click()
    page.wait_for_selector("th[aria-sort=descending]")
    assert answers.all_inner_texts()[0] == f"{smallest[-1]:,}"
    assert answers.all_inner_texts()[-1] == "never"
    page.get_by_label("share").select_option("0.9")
    expect(page.locator("#count")).to_have_text("6 of 12 rows.")
    assert "share=0.9" in page.url
    page.get_by_label("Find").fill("small never")
    expect(page.locator("#count")).to_have_text("3 of 12 rows.")
    page.get_by_label("Find").fill("nothing like it")
    page.wait_for_selector("#empty:visible")


@pytest.mark.parametrize(("address", "lost"), case("lost-addresses"))
def test_a_link_to_what_is_not_there_says_so(visit, address, lost):
    one = visit()
    assert lost in one.open(address).locator("#unknown").inner_text()
    assert one.open(address.partition("#")[0]).locator("#unknown").is_hidden()


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
    state = f"chp=h100&{name}=bf16&{name}=fp8&{name}=&%zz=%ff&=&%3Cb%3E=" + 70 * "x"
    page = one.open(f"{address}#{state}")
    assert page.locator("#unknown li").all_inner_texts()[:6] == [
        "chp h100: no choice of this page",
        f"{name} fp8: given twice; the first is used",
        f"{name}: empty",
        "%zz \ufffd: no choice of this page",
        "=: no choice of this page",
        f"<b> {60 * 'x'}…: no choice of this page",
    ]
    page = one.open(f"{address}#{'&'.join(f'q{n}=1' for n in range(20))}")
    lines = page.locator("#unknown li").all_inner_texts()
    assert lines[-2:] == ["q11 1: no choice of this page", "and 8 more"]
    page = one.open(f"{address}#chip={10**5 * '1'}")
    long = "100,006 characters: too long; none of it is used"
    assert page.locator("#unknown li").all_inner_texts() == [long]


def test_never_is_said_and_names_are_text(visit):
    page = visit().open("data.html#share=1.0&sort=-critical")
    assert page.locator("#body .answer").all_inner_texts()[-1] == "never"
    assert HOSTILE in page.locator("#body").inner_text()


@IN_BOTH
def test_chips_are_found_sorted_and_opened(visit):
    page = visit().open("chips.html")
    page.get_by_label("Find").fill("nvidia")
    expect(page.locator("#count")).to_have_text("3 of 5 rows.")
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="ridge").click()
    page.wait_for_selector("th[aria-sort=ascending]")
    column = page.locator("#head th").all_inner_texts().index("ridge, FLOP/B") + 1
    ridges = page.locator(f"#body tr > :nth-child({column})").all_inner_texts()
    *chips, variant = map(float, ridges)
    assert chips == sorted(chips)
    assert page.locator("#body tr.apart ~ tr").all_inner_texts()[0].startswith("mine")
    assert variant < max(chips)
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
        "index.html#is=model&chips=mine&split=tp1",
        "method.html",
    ]:
        page = one.open(address)
        assert page.title() != "ran"
        assert page.locator("img[src=x]").count() == 0
        assert "<script>" in page.locator("body").inner_text()
