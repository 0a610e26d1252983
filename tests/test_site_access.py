"""Every page of the site for all readers: narrow windows, keys, focus, screen readers, colours."""

from itertools import product

import pytest
from axe_playwright_python.sync_playwright import Axe
from bundles import CHARTS
from conftest import IN_BOTH
from visits import PHONE, Visit

from rooflines.site.pages import PAGES

WINDOWS = {
    "phone": PHONE,
    "small": {"width": 320, "height": 640},
    "tablet": {"width": 820, "height": 1180},
    "desk at 200 percent": {"width": 700, "height": 450},
    "phone at 200 percent": {"width": 195, "height": 422},
}


@pytest.mark.parametrize("address", PAGES)
def test_no_page_is_wider_than_the_window(visit, address):
    page = None
    for name, window in WINDOWS.items():
        one = visit(window)
        if page is None or address in ("index.html", "charts.html"):
            page = one.open(address)  # a resize redraws its chart asynchronously
        assert page.evaluate("document.documentElement.scrollWidth") <= window["width"], name


STATES = [
    f"charts.html#chart={CHARTS[2]}",
    "chips.html#chip=h100-sxm",
    "index.html#sharding=batch/gather-w&shards=4&basis=calibrated&unknown=1&tab=bottlenecks",
    "index.html#subject=model&model=gpt-oss-120b&tab=kernels&rows=all",
    "index.html#subject=experts&tab=amounts",
]


@pytest.mark.parametrize(
    ("address", "theme"),
    [*((page, "light") for page in PAGES), *product(STATES, ("light", "dark"))],
)
def test_axe_finds_nothing_serious(visit, address, theme):
    """Names, roles, contrast and order; of a long table the first rows, which others are like.

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
    page.evaluate("document.querySelectorAll('tr:nth-child(n+12)').forEach((row) => row.remove())")
    violations = Axe().run(page, options={"preload": False}).response["violations"]
    assert [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ] == []


@IN_BOTH
def test_the_skip_link_comes_first_and_leads_to_the_content(visit):
    page = visit().open(f"charts.html#chart={CHARTS[1]}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert f"chart={CHARTS[1]}" in page.url


@IN_BOTH
def test_the_focus_goes_through_the_page_in_reading_order(visit):
    page = visit().open("charts.html")
    areas = ".skip, .top, #charts, #controls, #plot, .files, footer"
    area = f"document.activeElement.closest('{areas}') ?? document.body"
    name = f"(({{ id, classList, localName }}) => id || classList[0] || localName)({area})"
    order: list[str] = []
    while len(order) < 40 and "footer" not in order:  # after the page comes the browser itself
        page.keyboard.press("Tab")
        order.append(page.evaluate(name))
    seen = list(dict.fromkeys(area for area in order if area != "body"))
    assert " ".join(seen) == "skip top charts controls plot files footer"


def test_the_first_menus_of_the_explorer_are_among_the_first_ten_stops(visit):
    page = visit().open("index.html")
    stops = []
    for _ in range(10):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
    assert stops[:7] == [
        *("Skip to the content", "Explorer", "Charts", "Chips", "Data", "Method"),
        "Skip the findings",
    ]
    page.get_by_role("link", name="Skip the findings").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") in {"subject", "question"}


@pytest.mark.parametrize("address", PAGES)
def test_what_has_the_focus_is_seen(visit, address):
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


def test_colours_that_mean_something_stay_in_forced_colours(browser, site):
    with browser.new_context(forced_colors="active", reduced_motion="reduce") as context:
        one = Visit(context, site.as_uri())
        page = one.open("index.html#tab=binds")
        kept = "(one) => getComputedStyle(one).forcedColorAdjust"
        for name in (".swatch", ".plot", ".cells td"):
            assert page.locator(name).first.evaluate(kept) == "none"
        colours = "(all) => all.map((one) => getComputedStyle(one).backgroundColor)"
        assert len(set(page.locator(".cells td").evaluate_all(colours))) > 1
        line = "(one) => getComputedStyle(one).textDecorationLine"
        assert page.locator(".top nav a[aria-current]").evaluate(line) == "underline"
        assert one.faults == []
