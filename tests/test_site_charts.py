"""The page of charts in a browser: drawn, filtered, saved, and shown as a link says."""

import html
import json
import re
from urllib.parse import parse_qsl

import pytest
from bundles import CHARTS, HOSTILE
from conftest import IN_BOTH
from playwright.sync_api import expect
from visits import PHONE, drawn, line, point_at

from rooflines.site.site import _explorer_address


def test_the_first_chart_is_shown_without_a_state(visit):
    page = visit().open("charts.html")
    drawn(page, CHARTS[0])
    assert page.locator("#charts a").count() == len(CHARTS)
    assert page.evaluate(
        "[...document.images].every((image) => image.complete && image.naturalWidth > 0)"
    )


@IN_BOTH
def test_the_menus_filter_the_chart(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}")
    first = line(page)
    page.get_by_label("Chip").select_option("h100-sxm")
    expect(page.locator("#title")).to_have_text(re.compile("^H100 SXM, bf16"))
    assert line(page) != first
    assert (
        page.locator("#title").inner_text() == "H100 SXM, bf16 matrix unit: HBM ridge 295 FLOP/byte"
    )
    page.get_by_label("Data types").select_option("fp8")
    expect(page.locator("#title")).to_have_text(re.compile("^H100 SXM, fp8"))


def test_no_label_of_a_view_reaches_beyond_its_picture(visit):
    for state in ("", "&by=roof"):
        page = visit().open(f"charts.html#chart={CHARTS[3]}{state}")
        drawn(page, CHARTS[3])
        right = page.locator("#plot svg").bounding_box()
        labels = page.locator("#plot svg .mark-text text").all()
        assert right
        assert labels
        for label in labels:
            box = label.bounding_box()
            assert box
            assert box["x"] + box["width"] <= right["x"] + right["width"], label.inner_text()


def test_a_chart_in_a_frame_has_its_menus_and_data_alone(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=h100-sxm&frame=yes")
    drawn(page, CHARTS[0])
    for hidden in ("#charts", "header", "footer", "#files", "#copy-embed", "#unknown"):
        expect(page.locator(hidden)).to_be_hidden()
    for visible in ("#plot svg", "#view-csv", "#to-page"):
        expect(page.locator(visible)).to_be_visible()
    page.get_by_label("Data types").select_option("fp8")
    expect(page.locator("#title")).to_have_text(re.compile("^H100 SXM, fp8"))
    expect(page.locator("#charts")).to_be_hidden()
    address = page.locator("#to-page").get_attribute("href")
    assert "frame" not in address
    assert {"chart": CHARTS[0], "chip": "h100-sxm", "dtypes": "fp8"}.items() <= dict(
        parse_qsl(address.partition("#")[2])
    ).items()


def test_the_frame_for_another_page_is_copied_with_its_title(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=h100-sxm")
    drawn(page, CHARTS[0])
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => {"
        " window.copied = text; }}})"
    )
    page.locator("#copy-embed").click()
    code = page.evaluate("window.copied")
    assert re.match(r'<iframe src="[^"]+charts.html#chart=', code)
    assert "frame=yes" in html.unescape(code)
    assert f'title="{page.locator("#title").inner_text()}"' in html.unescape(code)


def test_what_a_chip_lacks_cannot_be_chosen(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=h100-sxm&dtypes=fp8")
    assert page.locator("[data-key=dtypes] option[disabled]").count() == 0
    page.get_by_label("Chip").select_option("tpu-v5e")
    expect(page.locator("#title")).to_have_text(re.compile("^TPU v5e, bf16"))
    assert page.locator("[data-key=dtypes] option[disabled]").all_inner_texts() == ["fp8"]
    assert "dtypes fp8: not here; shown is bf16" in page.locator("#unknown").inner_text()


def test_a_chart_keeps_the_earlier_of_two_menus_that_do_not_go_together(visit):
    """Of chips without fp8: neither the first one listed nor the one that has it."""
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=mine&dtypes=fp8")
    assert page.get_by_label("Chip").input_value() == "mine"
    assert "dtypes fp8: not here; shown is bf16" in page.locator("#unknown").inner_text()


def test_the_choice_goes_along_to_the_next_chart(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=h100-sxm")
    page.locator(f"#charts a[data-chart={CHARTS[1]}]").click()
    drawn(page, CHARTS[1])
    assert page.locator("#title").inner_text().startswith("H100 SXM needs")
    page.locator(f"#charts a[data-chart={CHARTS[2]}]").click()
    drawn(page, CHARTS[2])
    assert page.locator("[data-key=chip]").count() == 0
    assert "chip=h100-sxm" in page.url


@IN_BOTH
def test_a_link_brings_the_state_back(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=h100-sxm&dtypes=fp8")
    drawn(page, CHARTS[0])
    assert page.get_by_label("Chip").input_value() == "h100-sxm"
    assert page.locator("#title").inner_text().startswith("H100 SXM, fp8")
    page.locator(f"#charts a[data-chart={CHARTS[3]}]").click()
    drawn(page, CHARTS[3])
    page.go_back()
    drawn(page, CHARTS[0])
    assert page.locator("#title").inner_text().startswith("H100 SXM, fp8")


@pytest.mark.parametrize(
    "state",
    ["chart=none&chip=none&dtypes=none", "&&=&chart", "chart=%3Cscript%3E&chip=__proto__", "%"],
)
def test_a_state_that_makes_no_sense_shows_the_first_chart(visit, state):
    drawn(visit().open(f"charts.html#{state}"), CHARTS[0])


@IN_BOTH
def test_tooltips_have_text_and_no_markup(visit):
    page = visit().open("charts.html")
    point_at(page, 0)
    assert "FLOP/s" in page.locator("#vg-tooltip-element").inner_text()
    assert HOSTILE[:30] in page.locator("#vg-tooltip-element").inner_text()
    assert page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0


@IN_BOTH
def test_a_tooltip_stays_in_a_narrow_window(visit):
    page = visit(PHONE).open(f"charts.html#chart={CHARTS[3]}")
    dots = page.locator("#plot .mark-symbol path").count()
    assert dots > 10
    for number in (0, dots // 2, dots - 1):
        point_at(page, number)
        box = page.locator("#vg-tooltip-element").bounding_box()
        assert box
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]


@IN_BOTH
def test_the_chart_fills_the_room_it_has(visit):
    one = visit()
    page = one.open("charts.html")
    wide = page.locator("#plot svg").bounding_box()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#plot svg")).to_have_attribute("width", re.compile(r"^460"))
    narrow = page.locator("#plot svg").bounding_box()
    assert wide
    assert narrow
    assert wide["width"] > 850
    assert narrow["width"] <= 390


def test_the_explorer_opens_with_what_a_chart_shows(visit):
    page = visit().open(f"charts.html#chart={CHARTS[0]}&chip=h100-sxm&dtypes=fp8")
    drawn(page, CHARTS[0])
    page.get_by_role("link", name="Open in the explorer").click()
    page.wait_for_selector("body[data-drawn]")
    assert page.locator("#chosen li").all_inner_texts() == ["H100 SXM\n×"]
    assert page.locator("#dtypes").input_value() == "fp8"
    assert page.locator("#size-D").input_value() == "4096"
    assert page.locator("#unknown").is_hidden()


def test_a_choice_of_all_chips_opens_the_explorer_with_those_it_offers():
    sizes = {"up": {"D": 4096, "F": 14336}}
    address = _explorer_address({"chip": "all", "dtypes": "fp8", "shape": "up"}, sizes)
    asked = dict(parse_qsl(address.partition("#")[2]))
    assert asked == {"subject": "matmul", "dtypes": "fp8", "D": "4096", "F": "14336"}


def test_a_view_of_a_step_opens_the_step():
    choice = {"by": "kernel", "chip": "b200", "dtypes": "fp8", "split": "tp4", "S": 1024}
    address = _explorer_address({**choice, "model": "llama-3.1-8b", "basis": "nominal"}, {})
    asked = dict(parse_qsl(address.partition("#")[2]))
    model = {"subject": "model", "model": "llama-3.1-8b", "format": "fp8"}
    assert asked == {**model, "chips": "b200", "split": "tp4", "S": "1024", "basis": "bound"}


@IN_BOTH
def test_the_view_can_be_saved_as_it_is(visit, tmp_path):
    page = visit().open("charts.html#chip=h100-sxm")
    saved = {}
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg"), ("csv", b""), ("json", b'{"')):
        with page.expect_download() as download:
            page.locator(f"#view-{kind}").click()
        assert download.value.suggested_filename.startswith(f"{CHARTS[0]}-h100-sxm-bf16-")
        download.value.save_as(tmp_path / kind)
        saved[kind] = (tmp_path / kind).read_bytes()
        assert saved[kind].startswith(start)
    assert json.loads(saved["json"])["description"].startswith("H100 SXM, bf16")
    drawn_text = html.unescape(saved["svg"].decode())
    assert page.locator("#title").inner_text() in drawn_text


def test_the_theme_is_that_of_the_system(visit):
    page = visit(theme="dark").open("charts.html")
    drawn(page, CHARTS[0], "dark")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    drawn(page, CHARTS[0], "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
