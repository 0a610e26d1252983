"""The first view of a site from disk: `python -m benchmarks.first_view [results/bundle]`.

Chromium opens `index.html` over file:// several times. A view is there with the next frame after
the page says that everything is drawn; times count from the start of the navigation.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

TIMES = 9
"""Visits, each in a context of its own; the median counts [1]."""

MOST_SECONDS, MOST_BYTES = 0.5, 400_000
"""Goals: of the first view [s], and of the page with its data and scripts [byte]."""

DRAWN = """() => new Promise((resolve) => {
  const told = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  const seen = () => document.body?.dataset.drawn !== undefined;
  new MutationObserver((_, watch) => { if (seen()) { watch.disconnect(); told(); } })
    .observe(document, { attributes: true, childList: true, subtree: true });
  if (seen()) told();
})"""
"""The time at which a view is there [ms]."""


def first_view(site: Path) -> dict[str, float]:
    """The median time of the first view, and the least and the largest [s].

    Args:
        site: The folder of the site.
    """
    seconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(TIMES):
            with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
                page = context.new_page()
                page.add_init_script(f"window.drawn = ({DRAWN})();")
                page.goto((site / "index.html").resolve().as_uri())
                seconds.append(page.evaluate("window.drawn") / 1000)
        browser.close()
    return {"median_s": median(seconds), "least_s": min(seconds), "most_s": max(seconds)}


def loaded_bytes(site: Path) -> int:
    """Bytes of the page, its scripts and styles, and the data that it reads at once."""
    text = (site / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="((?:assets|data)/[^"]+\.(?:js|css|svg))"', text)
    files = {"index.html", "data/explorer.js", "data/steps.js", *named}
    return sum((site / name).stat().st_size for name in files)


def main() -> None:
    """Print the times and bytes beside the goals."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_view", description=__doc__)
    parser.add_argument("site", nargs="?", type=Path, default=Path("results/bundle"))
    site = parser.parse_args().site
    found, size = first_view(site), loaded_bytes(site)
    every = [path for path in site.rglob("*") if path.is_file()]
    print(f"first view: {found['median_s']:.3f} s, {found['least_s']:.3f} to {found['most_s']:.3f}")
    print(f"goal: {MOST_SECONDS} s; page with data and scripts: {size:,} of {MOST_BYTES:,} bytes")
    print(f"site: {sum(path.stat().st_size for path in every):,} bytes in {len(every)} files")


if __name__ == "__main__":
    main()
