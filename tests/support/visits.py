"""Looking at a bundle in a browser: from its folder or from a web server, noting whatever goes wrong."""

from __future__ import annotations

import http.server
import re
import shutil
from typing import TYPE_CHECKING

from rooflines.site.pages import POLICY

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
"""The browser that is there, if any."""

LAUNCH = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
"""What it is started with: as root, without a screen, and without calling home."""

STRICT = POLICY + "; connect-src 'none'; frame-ancestors 'none'"
"""A policy as careful web servers have it."""


class Visit:
    """A page that is looked at, and what went wrong meanwhile.

    Args:
        context: Where it is opened.
        base: The address of the folder.
    """

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base, self.page = base, context.new_page()
        self.faults: list[str] = []
        self.page.on(
            "console",
            lambda message: (
                self.faults.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        context.route(re.compile(r"^(?!file:|data:|blob:)"), self._foreign)

    def _foreign(self, route: Route) -> None:
        if route.request.url.startswith(self.base):
            route.continue_()
        else:
            self.faults.append(f"request to {route.request.url}")
            route.abort()

    def open(self, address: str) -> Page:
        """Go to a page, and wait until what it draws is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.base}/{address}")
        if address.startswith("index"):
            self.page.wait_for_selector("#stage[data-drawn]:not([aria-busy])")
        if address.startswith("thresholds"):
            self.page.wait_for_selector("#table[data-drawn]")
        return self.page


class Strict(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, each with a policy that allows nothing but them."""

    def end_headers(self) -> None:
        """Add the policy."""
        self.send_header("Content-Security-Policy", STRICT)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
