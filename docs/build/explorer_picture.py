"""Pictures of the explorer: the first page of the default run, in Chromium."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from documents import ROOT
from PIL import Image
from playwright.sync_api import sync_playwright

NAME = "explorer"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
QUESTION = "subject=model&model=llama-3.1-70b&basis=calibrated"
"""A decode step by its estimate, as the part of the address that names it."""

WIDTH, HEIGHT = 1280, 1180
"""Size of the window [px]."""

COLOURS = 256
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def draw(folder: Path) -> None:
    """Draw the pictures; without Chromium those there stay, and a line says so.

    Args:
        folder: Where they are written.
    """
    browser = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if browser is None:
        print("No Chromium: the pictures of the explorer stay as they are", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as run:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
        subprocess.run([*command, "--directory", run, "--cores", "4", "--quiet"], check=True)  # noqa: S603
        for theme, picture in pictures(Path(run) / "results" / "bundle", browser).items():
            picture.save(folder / f"{NAME}-{theme}.webp", lossless=True, method=6)


def pictures(bundle: Path, browser: str) -> dict[str, Image.Image]:
    """The explorer of a run, by theme.

    Args:
        bundle: The site of the run.
        browser: The program of Chromium.
    """
    address = f"{(bundle / 'index.html').absolute().as_uri()}#{QUESTION}"
    taken = {}
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for theme in THEMES:
            page = started.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
            page.goto(address)
            page.wait_for_selector("body[data-drawn]", state="attached")
            pixels = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            taken[str(theme)] = pixels.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
        started.close()
    return taken
