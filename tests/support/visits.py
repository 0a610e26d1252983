"""Visits to a site in a browser, from a folder or a web server; errors are collected."""

import functools
import http.server
import re
import shutil
import threading
from contextlib import contextmanager

from rooflines.site.pages import POLICY

NAMES = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
}
"""Names of the browsers' programs."""

LAUNCH = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
"""Options of Chromium: for root, without a screen, without requests of its own."""

PREFS: dict[str, str | float | bool] = {"browser.download.alwaysOpenPanel": False}
"""Preferences of Firefox: its list of downloads does not take the focus from the page."""

DRAWN = {
    "index": "body[data-drawn]",
    "charts": "#stage[data-drawn]:not([aria-busy])",
    "data": "#table[data-drawn]",
    "chips": "#table[data-drawn]",
}
"""Signs of a drawn page."""

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1360, "height": 900}
"""Windows [px]."""

STRICT = POLICY + "; connect-src 'none'; frame-ancestors 'none'"
"""The content security policy of a careful web server."""


class Visit:
    """A page of a site in a browser, and its errors, warnings, dialogs and foreign requests."""

    def __init__(self, context, base):
        self.base, self.page = base, context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        context.route(re.compile(r"^(?!file:|data:|blob:)"), self._foreign)

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def _foreign(self, route):
        if route.request.url.startswith(self.base):
            route.continue_()
        else:
            self.faults.append(f"request to {route.request.url}")
            route.abort()

    def open(self, address):
        """Go to a page, and wait until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.base}/{address}")
        for start, drawn in DRAWN.items():
            if address.startswith(start):
                self.page.wait_for_selector(drawn, state="attached")
        return self.page


def installed(name):
    """The path of a browser's program, if there is one."""
    return next((path for each in NAMES[name] if (path := shutil.which(each))), None)


def launched(playwright, name):
    """Start an installed browser; Firefox, no build of Playwright's own, by WebDriver BiDi."""
    if name == "firefox":
        return playwright.firefox.launch(
            executable_path=installed(name), channel="moz-firefox", firefox_user_prefs=PREFS
        )
    return playwright.chromium.launch(executable_path=installed(name), args=list(LAUNCH))


class Visits:
    """Visits that share one page: a new one takes longer than to load it again."""

    def __init__(self, browser, base):
        context = browser.new_context(accept_downloads=True, reduced_motion="reduce")
        self.page = Visit(context, base)

    def __call__(self, viewport=DESK, theme="light"):
        """Start a visit in a window and a theme, with the pointer in a corner."""
        self.page.page.set_viewport_size(viewport)
        self.page.page.emulate_media(color_scheme=theme)
        self.page.page.mouse.move(0, 0)
        return self.page


@contextmanager
def visiting(browser, base, page, viewport=None):
    """A visit that begins at a page, and has no errors and no requests to other hosts."""
    with browser.new_context(reduced_motion="reduce", viewport=viewport) as context:
        one = Visit(context, base)
        one.open(page)
        yield one
        assert one.faults == []


def drawn(page, chart, theme="light"):
    """Wait until a chart is drawn in a theme."""
    page.wait_for_selector(f"#stage[data-drawn='{chart} {theme}']:not([aria-busy])")


def point_at(page, number):
    """Move the pointer onto a symbol of the chart, as a hand does: in more than one step."""
    mark = page.locator("#plot .mark-symbol path").nth(number)
    mark.hover(force=True)
    box = mark.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2)
    page.wait_for_selector("#vg-tooltip-element.visible")


def line(page):
    """The path of the line that is drawn."""
    return page.locator("#plot .mark-line path").first.get_attribute("d") or ""


class Plain(http.server.SimpleHTTPRequestHandler):
    """A file server that logs nothing."""

    def log_message(self, *_):
        pass


class Strict(Plain):
    """A file server with a strict content security policy."""

    def end_headers(self):
        self.send_header("Content-Security-Policy", STRICT)
        super().end_headers()


@contextmanager
def serving(folder, server=Strict):
    """Serve a folder on loopback, by default with a strict policy; yields its address."""
    handler = functools.partial(server, directory=str(folder))
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    thread.join()
    listening.server_close()
