"""The site in a browser: opened from its folder, and served with a strict security policy."""

# All visits share one site and one page: long, but one thing.

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from bundles import CHARTS, CONFIG, HOSTILE, filtered_chart, made_bundle
from conftest import IN_BOTH, Once
from playwright.sync_api import Browser, expect
from polars.testing import assert_frame_equal
from visits import Visit, drawn, line, point_at, serving

from rooflines import load_config, thresholds
from rooflines.site.pages import PAGES

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1360, "height": 900}


@pytest.fixture(scope="module")
def site(once: Once) -> Path:
    """A site, not to be changed."""
    return once("small-site", made_bundle) / "bundle"


@pytest.fixture(scope="module")
def page_of_all(browser: Browser, site: Path) -> Iterator[Visit]:
    """The page that all visits share: a new one takes longer than to load it again."""
    context = browser.new_context(accept_downloads=True, reduced_motion="reduce")
    yield Visit(context, site.as_uri())
    context.close()


Visits = Callable[..., Visit]


@pytest.fixture
def visit(page_of_all: Visit) -> Iterator[Visits]:
    """Start a visit; at the end no visit may have an error or a request to another host."""
    page_of_all.faults.clear()

    def start(viewport: dict[str, int] = DESK, theme: str = "light") -> Visit:
        page_of_all.page.set_viewport_size(viewport)  # type: ignore[arg-type]
        page_of_all.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page_of_all.page.mouse.move(0, 0)
        return page_of_all

    yield start
    assert page_of_all.faults == []


@IN_BOTH
def test_a_visit_notices_errors_and_requests(browser: Browser, tmp_path: Path) -> None:
    """Of a page that has them: a message of the console, an exception, a picture from elsewhere."""
    (tmp_path / "faulty.html").write_text(
        "<script>console.error('said')</script><script>throw new Error('thrown')</script>"
        "<img src='https://example.invalid/picture.png'>"
    )
    with browser.new_context() as context:
        one = Visit(context, tmp_path.as_uri())
        one.open("faulty.html")
    faults = " ".join(one.faults)
    assert "said" in faults
    assert "thrown" in faults
    assert "request to https://example.invalid/picture.png" in faults


# ---------------------------------------------------------------- charts


@IN_BOTH
def test_every_chart_is_drawn(visit: Visits) -> None:
    """Each with marks and text, its finding as title and its setting below, and all its files."""
    one = visit()
    for chart in CHARTS:
        page = one.open(f"index.html#chart={chart}")
        drawn(page, chart)
        assert page.locator("#plot svg path").count() > 3
        assert page.locator("#plot svg text").count() > 3
        assert page.locator("#title").inner_text()
        assert page.locator("#setting").inner_text()
        assert page.locator("#files a").count() == 6
        assert page.locator(f"#charts a[data-chart={chart}][aria-current=true]").count() == 1


def test_the_first_chart_is_shown_without_a_state(visit: Visits) -> None:
    """The list has all charts, and their pictures are loaded."""
    page = visit().open("index.html")
    drawn(page, CHARTS[0])
    assert page.locator("#charts a").count() == len(CHARTS)
    assert page.evaluate(
        "[...document.images].every((image) => image.complete && image.naturalWidth > 0)"
    )


@IN_BOTH
def test_the_menus_filter_the_chart(visit: Visits) -> None:
    """Another chip draws another line, and the finding says so."""
    page = visit().open(f"index.html#chart={CHARTS[0]}")
    first = line(page)
    page.get_by_label("Chip").select_option("h100-sxm")
    expect(page.locator("#title")).to_have_text(re.compile("^h100-sxm in bf16"))
    assert line(page) != first
    assert page.locator("#title").inner_text() == "h100-sxm in bf16 has its ridge at 295"
    page.get_by_label("Data types").select_option("fp8")
    expect(page.locator("#title")).to_have_text(re.compile("^h100-sxm in fp8"))
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#title")).to_have_text(re.compile("^tpu-v5e in bf16"))
    assert line(page) == first


def test_what_a_chip_lacks_cannot_be_chosen(visit: Visits) -> None:
    """Missing formats are disabled; a chip without the chosen one falls back with a note."""
    page = visit().open(f"index.html#chart={CHARTS[0]}&chip=h100-sxm&dtypes=fp8")
    assert page.locator("[data-param=dtypes] option[disabled]").all_inner_texts() == ["int8"]
    page.get_by_label("Chip").select_option("tpu-v5e")
    expect(page.locator("#title")).to_have_text(re.compile("^tpu-v5e in bf16"))
    assert "fp8 is not in this chart" in page.locator("#note").inner_text()


def test_the_choice_goes_along_to_the_next_chart(visit: Visits) -> None:
    """One pair of menus drives all charts."""
    page = visit().open(f"index.html#chart={CHARTS[0]}&chip=h100-sxm")
    page.get_by_role("button", name="Next chart").click()
    drawn(page, CHARTS[1])
    assert page.locator("#title").inner_text().startswith("h100-sxm in bf16")
    page.get_by_role("button", name="Next chart").click()
    drawn(page, CHARTS[2])
    assert page.get_by_label("Chip").is_disabled()
    assert "chip=h100-sxm" in page.url


@IN_BOTH
def test_a_link_brings_the_state_back(visit: Visits) -> None:
    """Chart, chip, format and theme; and the history goes back to the chart before."""
    page = visit().open(f"index.html#chart={CHARTS[1]}&chip=h100-sxm&dtypes=fp8&theme=dark")
    drawn(page, CHARTS[1], "dark")
    assert page.get_by_label("Chip").input_value() == "h100-sxm"
    assert page.locator("#title").inner_text().startswith("h100-sxm in fp8")
    page.locator(f"#charts a[data-chart={CHARTS[3]}]").click()
    drawn(page, CHARTS[3], "dark")
    page.go_back()
    drawn(page, CHARTS[1], "dark")
    assert page.locator("#title").inner_text().startswith("h100-sxm in fp8")


@pytest.mark.parametrize(
    "state",
    [
        "chart=none&chip=none&dtypes=none&theme=none",
        "&&=&chart",
        "chart=%3Cscript%3E&chip=__proto__",
        "%",
    ],
)
def test_a_state_that_makes_no_sense_shows_the_first_chart(visit: Visits, state: str) -> None:
    """A link from an older site does not break the page."""
    drawn(visit().open(f"index.html#{state}"), CHARTS[0])


@IN_BOTH
def test_tooltips_have_text_and_no_markup(visit: Visits) -> None:
    """A hostile name is shown as text."""
    page = visit().open("index.html")
    point_at(page, 1)
    assert "FLOP/s" in page.locator("#vg-tooltip-element").inner_text()
    assert HOSTILE[:30] in page.locator("#vg-tooltip-element").inner_text()
    assert page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0


@IN_BOTH
def test_a_tooltip_stays_in_a_narrow_window(visit: Visits) -> None:
    """Wherever the pointer is."""
    page = visit(PHONE).open("index.html")
    for number in range(page.locator("#plot .mark-symbol path").count()):
        point_at(page, number)
        box = page.locator("#vg-tooltip-element").bounding_box()
        assert box
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]


@IN_BOTH
def test_the_chart_fills_the_room_it_has(visit: Visits) -> None:
    """A wide window draws it larger, a narrow one in its narrow layout."""
    one = visit()
    page = one.open("index.html")
    wide = page.locator("#plot svg").bounding_box()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#plot svg")).to_have_attribute("width", re.compile(r"^[34]\d\d(\.|$)"))
    narrow = page.locator("#plot svg").bounding_box()
    assert wide
    assert narrow
    assert wide["width"] > 850
    assert narrow["width"] <= 390


def test_the_rows_behind_a_chart_are_shown_as_a_table(visit: Visits) -> None:
    """For readers who cannot see the picture."""
    page = visit().open("index.html")
    page.locator("#behind summary").click()
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(3)
    assert HOSTILE in page.locator("#rows").inner_text()
    page.get_by_label("Chip").select_option("h100-sxm")
    expect(rows.nth(2)).to_contain_text("h100-sxm")
    assert rows.count() == 3


@IN_BOTH
def test_the_view_can_be_saved_as_it_is(visit: Visits, tmp_path: Path) -> None:
    """With its title and setting, as PNG, SVG, CSV and specification; the name has the choices."""
    page = visit().open("index.html#chip=h100-sxm")
    saved = {}
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg"), ("csv", b"chip,"), ("json", b'{"')):
        with page.expect_download() as download:
            page.locator(f"#view-{kind}").click()
        assert download.value.suggested_filename.startswith(f"{CHARTS[0]}-h100-sxm-bf16.")
        download.value.save_as(tmp_path / kind)
        saved[kind] = (tmp_path / kind).read_bytes()
        assert saved[kind].startswith(start)
    params = json.loads(saved["json"])["params"]
    assert {"chip": "h100-sxm"}.items() <= {one["name"]: one.get("value") for one in params}.items()
    drawn_text = html.unescape(saved["svg"].decode())
    name = f"{page.locator('#title').inner_text()}. {page.locator('#setting').inner_text()}"
    assert f'role="img" aria-label="{html.escape(name, quote=False)}"' in saved["svg"].decode()[
        :2000
    ].replace("&quot;", '"')
    assert page.locator("#title").inner_text() in drawn_text
    assert HOSTILE in drawn_text
    frame = pl.read_csv(saved["csv"])
    assert_frame_equal(frame, filtered_chart()[1].filter(chip="h100-sxm", dtypes="bf16"))


# ---------------------------------------------------------------- the theme


def test_the_theme_follows_the_system_until_one_is_chosen(visit: Visits) -> None:
    """The button switches it, the address keeps it, other pages, charts and pictures follow it."""
    page = visit(theme="dark").open("index.html")
    drawn(page, CHARTS[0], "dark")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (page.locator("#charts img").first.get_attribute("src") or "").endswith(
        "-dark-small.png"
    )
    page.emulate_media(color_scheme="light")
    drawn(page, CHARTS[0], "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    page.get_by_role("button", name="Use the dark theme").click()
    drawn(page, CHARTS[0], "dark")
    assert "theme=dark" in page.url
    page.get_by_role("link", name="Method").click()
    page.wait_for_url(re.compile("model.html#theme=dark"))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize(
    "viewport",
    [
        PHONE,
        {"width": 320, "height": 640},
        {"width": 820, "height": 1180},
        {"width": 700, "height": 450},
        {"width": 195, "height": 422},
    ],
    ids=["phone", "small", "tablet", "desk-at-200-percent", "phone-at-200-percent"],
)
def test_no_page_is_wider_than_the_window(
    visit: Visits, address: str, viewport: dict[str, int]
) -> None:
    """Only tables and charts scroll sideways, on their own."""
    page = visit(viewport).open(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


STATES = [
    f"index.html#chart={CHARTS[2]}",
    "chips.html#chip=h100-sxm",
    "what-if.html#sharding=batch&shards=4&b.dtypes=fp8&unknown=1",
    "models.html#sweep=asked&basis=calibrated",
]


@pytest.mark.parametrize(
    ("browser", "address", "theme"),
    [
        *(("chromium", page, theme) for page in PAGES for theme in ("light", "dark")),
        *(("chromium", state, theme) for state in STATES for theme in ("light", "dark")),
        *(("firefox", page, "dark") for page in PAGES),
    ],
    indirect=["browser"],
)
def test_axe_finds_nothing_serious(visit: Visits, address: str, theme: str) -> None:
    """Names, roles, contrast and order: each page in both themes.

    A chart is one image. In its SVG Vega gives marks without items a role and no name, as here.
    """
    page = visit(theme=theme).open(address)
    for drawing in page.locator("#plot svg").all():
        drawing.evaluate(
            """(svg) => {
                const mark = svg.querySelector("path").cloneNode();
                mark.removeAttribute("aria-label");
                mark.removeAttribute("aria-hidden");
                mark.setAttribute("role", "graphics-symbol");
                svg.append(mark);
            }"""
        )
    for details in page.locator("details:not([hidden])").all()[:3]:
        details.evaluate("(element) => { element.open = true; }")
    violations = Axe().run(page, options={"preload": False}).response["violations"]
    assert [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ] == []


# ---------------------------------------------------------------- the keyboard


@IN_BOTH
def test_the_skip_link_comes_first_and_leads_to_the_content(visit: Visits) -> None:
    """And leaves the state alone."""
    page = visit().open(f"index.html#chart={CHARTS[1]}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert f"chart={CHARTS[1]}" in page.url


@IN_BOTH
def test_arrow_keys_go_through_the_charts(visit: Visits) -> None:
    """Right and left anywhere, up and down in the list; in a menu they are the menu's."""
    page = visit().open("index.html")
    page.keyboard.press("ArrowRight")
    drawn(page, CHARTS[1])
    page.keyboard.press("ArrowLeft")
    drawn(page, CHARTS[0])
    page.locator("#charts a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.chart") == CHARTS[2]
    page.keyboard.press("Enter")
    drawn(page, CHARTS[2])
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.dataset.chart") == CHARTS[0]
    page.keyboard.press("Enter")
    drawn(page, CHARTS[0])
    page.get_by_label("Chip").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#title")).to_have_text(re.compile("^h100-sxm"))
    assert page.evaluate("document.activeElement.closest('[data-param]').dataset.param") == "chip"


@IN_BOTH
def test_the_focus_goes_through_the_page_in_reading_order(visit: Visits) -> None:
    """Top, list, pager, menus, chart, files."""
    page = visit().open("index.html")
    areas = ".skip, .top, #charts, .pager, #controls, #plot, .files, .behind, footer"
    area = f"document.activeElement.closest('{areas}') ?? document.body"
    name = f"(({{ id, classList, localName }}) => id || classList[0] || localName)({area})"
    order: list[str] = []
    while len(order) < 40 and "footer" not in order:  # after the page comes the browser itself
        page.keyboard.press("Tab")
        order.append(page.evaluate(name))
    seen = list(dict.fromkeys(area for area in order if area != "body"))
    assert " ".join(seen) == "skip top charts pager controls plot files behind footer"


@pytest.mark.parametrize("address", PAGES)
def test_what_has_the_focus_is_seen(visit: Visits, address: str) -> None:
    """It has an outline and a name, and is neither outside the window nor below the bar at top."""
    page = visit().open(address)
    hidden, steps = [], 0
    while steps < 45:
        page.keyboard.press("Tab")
        one = page.evaluate(FOCUSED)
        if one is None:  # after the page comes the browser itself
            break
        steps += 1
        hidden += [] if all(one[1:]) else [one]
    assert steps > 10
    assert hidden == []


FOCUSED = """() => {
    const one = document.activeElement;
    if (one === document.body) return null;
    const [box, style] = [one.getBoundingClientRect(), getComputedStyle(one)];
    const within = (place, most) => Math.min(Math.max(place, 0), most - 1);
    const x = within(box.left + box.width / 2, innerWidth);
    const y = within(box.top + Math.min(box.height / 2, 20), innerHeight);
    const above = document.elementFromPoint(x, y);
    return [
        one.outerHTML.slice(0, 90),
        style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
        Boolean(one.ariaLabel || one.labels?.length || one.textContent.trim()),
        box.width > 0 && box.height > 0 && box.top < innerHeight && box.bottom > 0,
        Boolean(one.closest(".top")) || !above?.closest(".top"),
    ];
}"""
"""Of what has the focus: its outline, its name, whether it is in the window, and not covered."""


def test_colours_that_mean_something_stay_in_forced_colours(browser: Browser, site: Path) -> None:
    """Bars and pictures keep theirs; the page in the list of pages is underlined."""
    with browser.new_context(forced_colors="active", reduced_motion="reduce") as context:
        one = Visit(context, site.as_uri())
        page = one.open("what-if.html")
        kept = "(one) => getComputedStyle(one).forcedColorAdjust"
        for name in (".bar", ".track", ".mark", ".card"):
            assert page.locator(name).first.evaluate(kept) == "none"
        colours = "(all) => all.map((one) => getComputedStyle(one).backgroundColor)"
        assert len(set(page.locator(".bar, .track").evaluate_all(colours))) > 1
        line = "(one) => getComputedStyle(one).textDecorationLine"
        assert page.locator(".top nav a[aria-current]").evaluate(line) == "underline"
        assert one.faults == []


# ---------------------------------------------------------------- thresholds and chips


@IN_BOTH
def test_the_table_is_sorted_filtered_and_paged(visit: Visits) -> None:
    """Fifty rows a page; a click sorts a column ascending, a second one descending."""
    page = visit().open("thresholds.html#table=long.B")
    assert page.locator("#count").inner_text() == "3,000 of 3,000 rows."
    assert page.locator("#body tr").count() == 50
    assert page.locator("#page").inner_text() == "Page 1 of 60"
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#page")).to_have_text("Page 2 of 60")

    def answers() -> list[int]:
        column = page.locator("#head th").all_inner_texts().index("critical")
        return [
            int(text.replace(",", ""))
            for text in page.locator(f"#body td:nth-child({column + 1})").all_inner_texts()
        ]

    page.get_by_role("button", name="critical", exact=True).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    smallest = answers()
    assert smallest == sorted(smallest)
    page.get_by_role("button", name="critical", exact=True).click()
    page.wait_for_selector("th[aria-sort=descending]")
    largest = answers()
    assert largest == sorted(largest, reverse=True)
    assert largest[0] > smallest[0]
    page.get_by_label("Find").fill("1050 1100")
    expect(page.locator("#count")).to_have_text(re.compile("^1 of"))
    page.get_by_label("Find").fill("nothing like it")
    page.wait_for_selector("#empty:visible")


@IN_BOTH
def test_one_shape_is_shown_on_all_chips(visit: Visits) -> None:
    """A table with a file for each chip: sorted over all, and found as sizes are printed."""
    page = visit().open("thresholds.html#table=long.B&find=1,050 1,030&sort=critical.down")
    page.get_by_label("Chip").select_option("all")
    expect(page.locator("#count")).to_have_text("4 of 4 rows.")
    names = page.locator("#head th").all_inner_texts()
    cells = page.locator("#body tr td").all_inner_texts()
    rows = [
        dict(zip(names, cells[at : at + len(names)], strict=True))
        for at in range(0, len(cells), len(names))
    ]
    solved = thresholds(load_config(CONFIG), "long").filter(
        (pl.col("D") == 1050) & (pl.col("F") == 1030)
        | (pl.col("D") == 1030) & (pl.col("F") == 1050)
    )
    expected = solved.sort("critical", descending=True)
    assert [row["chip"] for row in rows] == ["h100-sxm", "h100-sxm", "tpu-v5e", "tpu-v5e"]
    assert [row["critical"] for row in rows] == [str(size) for size in expected["critical"]]
    page.get_by_label("Find").fill("")
    expect(page.locator("#count")).to_have_text("6,000 of 6,000 rows.")


@pytest.mark.parametrize(
    ("address", "lost"),
    [
        ("index.html#chart=none", f"chart none: unknown; shown is {CHARTS[0]}"),
        ("index.html#dtypes=bf61", "dtypes bf61: in no chart of this site"),
        ("thresholds.html#sort=price.up", "sort price: no column of this table"),
        ("thresholds.html#table=long.B&page=61", "page 61: no page of this table; shown is 60"),
        ("chips.html#sort=9.up", "sort 9.up: no column of this table"),
        ("chips.html#sort=length.up", "sort length.up: no column of this table"),
        ("chips.html#sort=1.sideways", "sort 1.sideways: neither up nor down; shown is up"),
        ("thresholds.html#table=none", "table none: not in this site; shown is "),
        ("thresholds.html#table=long.B&chip=mine", "chip mine: not in this table; shown is "),
        ("thresholds.html#table=long.B&sort=no.up", "sort no: no column of this table"),
        ("thresholds.html#shape=mine", "shape mine: no choice of this page"),
        ("chips.html#shape=mine", "shape mine: no choice of this page"),
        ("chips.html#chip=none", "chip none: unknown"),
        ("chips.html#chip=b300", "chip b300: in the catalogue, but not among the chips of this"),
        ("chips.html#source=none", "source none: unknown"),
        ("chips.html#left=__proto__", "chip __proto__: not in the catalogue"),
    ],
)
def test_a_link_to_what_is_not_there_says_so(visit: Visits, address: str, lost: str) -> None:
    """And a valid one says nothing."""
    one = visit()
    assert lost in one.open(address).locator("#unknown").inner_text()
    assert one.open(address.partition("#")[0]).locator("#unknown").is_hidden()


@pytest.mark.parametrize("address", [page for page in PAGES if page != "model.html"])
def test_what_no_page_uses_is_reported_by_every_page(visit: Visits, address: str) -> None:
    """Unknown names, a second value, an empty one, another theme, bad encoding, a long address."""
    one = visit()
    state = "chp=h100&chip=h100-sxm&chip=b200&dtypes=&theme=blue&%zz=%ff&=&%3Cb%3E=" + 70 * "x"
    page = one.open(f"{address}#{state}")
    assert page.locator("#unknown li").all_inner_texts()[:7] == [
        "chp h100: no choice of this page",
        "chip b200: given twice; the first is used",
        "dtypes: empty",
        "theme blue: neither light nor dark",
        "%zz \ufffd: no choice of this page",
        "=: no choice of this page",
        f"<b> {60 * 'x'}…: no choice of this page",
    ]
    page = one.open(f"{address}#{'&'.join(f'q{n}=1' for n in range(20))}")
    lines = page.locator("#unknown li").all_inner_texts()
    assert lines[-2:] == ["q11 1: no choice of this page", "and 8 more"]
    page = one.open(f"{address}#chip={10**6 * '1'}")
    long = "1,000,006 characters: too long; none of it is used"
    assert page.locator("#unknown li").all_inner_texts() == [long]


@IN_BOTH
def test_two_chips_are_side_by_side(visit: Visits) -> None:
    """Any two of the catalogue: shared numbers with their ratio first, capacities as printed."""
    page = visit().open("chips.html")
    for label, chip in (("A chip of the catalogue", "b200"), ("Another one", "tpu-v5p")):
        page.get_by_label(label).fill(chip)
        page.keyboard.press("Enter")
    page.wait_for_selector("#compared:visible")
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.locator("#compared tbody tr").all()
    }
    assert rows["matrix unit, bf16: dense peak"] == ["2.25 PFLOP/s", "459 TFLOP/s", "0.204"]
    assert rows["memory hbm: capacity"][1] == "95 GiB"
    assert rows["matrix unit, fp64: dense peak"][1:] == ["–", "–"]
    lacking = [texts[2] == "–" for texts in rows.values()]
    assert lacking == sorted(lacking)
    page.get_by_role("link", name="Both on one operation").click()
    page.wait_for_selector(".what-if[data-drawn]")
    assert page.locator("#side-b h2 .name").inner_text() == "Cloud TPU v5p"


def test_never_is_said_and_names_are_text(visit: Visits) -> None:
    """A small matrix is never compute-bound; it comes last however the table is sorted."""
    page = visit().open(
        "thresholds.html#table=shapes.B&chip=tpu-v5e&dtypes=bf16&sort=critical.down"
    )
    assert page.locator("#body .answer").all_inner_texts() == ["273", "never"]
    assert HOSTILE in page.locator("#body").inner_text()


def test_an_answer_that_is_no_number_is_the_outcome(visit: Visits) -> None:
    """All 16 chips that a TPU v5e joins; of a chip whose domain is not published it is unknown."""
    page = visit().open("thresholds.html#table=split.shards")
    assert page.locator("#body .answer").all_inner_texts() == ["16", "domain-unknown"]


def test_a_share_of_peak_is_chosen_and_a_factor_is_an_answer(visit: Visits) -> None:
    """The page opens at all of the peak; of a rate it shows the factor."""
    address = "thresholds.html#table={}&chip=tpu-v5e&dtypes=bf16&sort=shape.down"
    page = visit().open(address.format("shapes.B"))
    assert page.get_by_label("Share of peak").locator("option").all_inner_texts() == [
        "100 %",
        "90 %",
    ]
    answers = page.locator("#body .answer")
    assert sorted(answers.all_inner_texts()) == ["273", "never"]
    heads = page.locator("#head th").all_inner_texts()
    at = heads.index("critical at 90 %")
    assert at == heads.index("critical") + 1
    cells = page.locator(f"#body td:nth-child({at + 1})")
    assert sorted(cells.all_inner_texts()) == ["243", "never"]
    page.get_by_label("Share of peak").select_option("0.9")
    expect(cells.filter(has_text=re.compile("^273$"))).to_have_count(1)
    expect(answers.filter(has_text=re.compile("^243$"))).to_have_count(1)
    page = visit().open(address.format("shapes.memory_rate"))
    solved = thresholds(load_config(CONFIG)).filter(
        pl.col("chip") == "tpu-v5e",
        pl.col("dtypes") == "bf16",
        pl.col("axis") == "memory_rate",
        pl.col("share") == 1,
    )
    shown = [float(text) for text in page.locator("#body .answer").all_inner_texts()]
    assert sorted(shown) == pytest.approx(sorted(solved["critical_exact"]), rel=1e-5)


def test_the_chip_of_the_charts_is_the_chip_of_the_table(visit: Visits) -> None:
    """The state goes from page to page."""
    page = visit().open("index.html#chip=h100-sxm")
    page.get_by_role("link", name="Thresholds").click()
    page.wait_for_selector("#table[data-drawn]")
    assert page.get_by_label("Chip").input_value() == "h100-sxm"


@IN_BOTH
def test_chips_are_found_sorted_and_opened(visit: Visits) -> None:
    """A link leads to the chip's numbers, a source's to the document."""
    page = visit().open("chips.html")
    page.get_by_label("Find").fill("nvidia")
    expect(page.locator("#count")).to_have_text("3 of 5 chips")
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="Ridge").click()
    page.wait_for_selector("th[aria-sort=ascending]")
    ridges = [
        int(text) for text in page.locator("#summary tbody td:nth-child(7)").all_inner_texts()
    ]
    assert ridges == sorted(ridges)
    page.locator("#summary a[href='#chip=h100-sxm']").click()
    page.wait_for_selector("details[data-chip=h100-sxm][open]")
    page.locator("details[open] a[href='#source=nv-h100-page']").first.click()
    expect(page.locator("[data-source=nv-h100-page]")).to_be_focused()


# ---------------------------------------------------------------- security


@pytest.fixture
def served(browser: Browser, site: Path) -> Iterator[Visit]:
    """A visit to a web server with a strict policy that serves the site."""
    with serving(site) as address, browser.new_context(reduced_motion="reduce") as context:
        yield Visit(context, address)


@IN_BOTH
def test_a_strict_policy_of_a_web_server_holds(served: Visit) -> None:
    """Everything is drawn, filtered and sorted without eval, inline scripts or inline styles."""
    for chart in CHARTS:
        drawn(served.open(f"index.html#chart={chart}"), chart)
    page = served.open("index.html")
    page.get_by_label("Chip").select_option("h100-sxm")
    expect(page.locator("#title")).to_have_text(re.compile("^h100-sxm"))
    point_at(page, 1)
    assert served.open("thresholds.html").locator("#body tr").count()
    served.open("chips.html")
    served.open("models.html#sweep=asked")
    served.open("model.html")
    assert served.faults == []


@IN_BOTH
def test_names_of_a_config_run_nowhere(visit: Visits) -> None:
    """Not in a page, a chart, a table or a title."""
    one = visit()
    for address in [
        *(f"index.html#chart={chart}" for chart in CHARTS),
        "thresholds.html#table=shapes.B",
        "chips.html#chip=mine",
        "what-if.html#chip=mine",
        "models.html#chip=mine&split=tp1",
        "how-far-off.html#region=every",
        "model.html",
    ]:
        page = one.open(address)
        assert page.title() != "ran"
        assert page.locator("img[src=x]").count() == 0
        assert "<script>" in page.locator("main").inner_text() or "model" in address
