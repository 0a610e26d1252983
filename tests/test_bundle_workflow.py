"""The site of a workflow run with a hostile name: every chart in a browser, in every state."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundles import HOSTILE
from conftest import Snakemake
from playwright.sync_api import Browser, Page
from visits import CHROMIUM, Visit, chromium

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser: apt-get install chromium")

CONFIG: dict[str, Any] = {
    "sweeps": {
        "decode": {
            "operation": "matmul",
            "grid": {"B": {"from": 1, "to": 4096, "factor": 2}},
            "shapes": [
                {"name": HOSTILE, "D": 4096, "F": 14336},
                {"name": "llama-3-8b-down", "D": 14336, "F": 4096},
            ],
            "dtypes": ["bf16", "fp8"],
            "chips": ["h100-sxm", "tpu-v5e"],
            "sharding": ["none", "column/gather-x"],
            "shards": [1, 2, 4, 8],
            "thresholds": ["B", "shards"],
        },
        "sizes": {
            "operation": "matmul",
            "grid": {
                "B": {"from": 1, "to": 4096, "factor": 2},
                "D": [256, 1024, 4096],
                "F": [256, 1024, 4096],
            },
            "dtypes": ["bf16"],
            "chips": ["h100-sxm", "tpu-v5e"],
        },
    },
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, repository: Path, snakemake: Snakemake) -> Path:
    """The folder that a run of the workflow publishes."""
    folder = tmp_path_factory.mktemp("workflow")
    (folder / "my.yaml").write_text(yaml.safe_dump(CONFIG))
    done = snakemake("--snakefile", repository / "Snakefile", "--configfile", "my.yaml", cwd=folder)
    assert done.returncode == 0, done.stdout
    return folder / "results" / "bundle"


@pytest.fixture(scope="module")
def charts(site: Path) -> list[dict[str, Any]]:
    """The charts that the page lists."""
    text = re.fullmatch(
        r'ROOFLINES\.put\("charts",(.*)\);\n',
        (site / "assets" / "charts-data.js").read_text(),
        re.DOTALL,
    )
    assert text
    listed: list[dict[str, Any]] = json.loads(text[1])["charts"]
    return listed


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with chromium() as started:
        yield started


def choices(page: Page) -> list[tuple[str, str]]:
    """The enabled options of a chart's menus: parameter and value."""
    options: list[tuple[str, str]] = page.evaluate(
        "[...document.querySelectorAll('[data-param] option:enabled')]"
        ".map((option) => [option.closest('[data-param]').dataset.param, option.value])"
    )
    return options


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", 1360), ("dark", 1360), ("light", 390)],
    ids=["light", "dark", "phone"],
)
def test_every_chart_is_drawn_for_every_choice(
    browser: Browser, site: Path, charts: list[dict[str, Any]], theme: str, width: int
) -> None:
    """Marks, text, a title; no error, request or executed name; no page wider than its window."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    visit = Visit(context, site.as_uri())
    assert {chart["family"] for chart in charts} >= {"roofline", "chips", "critical", "compared"}
    for chart in charts:
        page = visit.open(f"index.html#chart={chart['id']}")
        for name, value in [("chart", chart["id"]), *(choices(page) if theme == "light" else [])]:
            page.evaluate("([name, value]) => ROOFLINES.go({ [name]: value })", [name, value])
            page.wait_for_selector(f"#stage[data-drawn='{chart['id']} {theme}']:not([aria-busy])")
            assert page.locator("#plot svg text").count() > 1, f"{chart['id']} {name} {value}"
            assert page.locator("#title").inner_text()
            assert not page.locator("#title").inner_text().startswith("No numbers"), (
                f"{chart['id']} {name} {value}"
            )
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.title() != "ran"
        assert page.locator("img[src=x]").count() == 0
    assert visit.faults == []


def test_a_click_highlights_a_chip_and_another_resets_it(browser: Browser, site: Path) -> None:
    """On the dot of its ridge; the address keeps it."""
    page = Visit(browser.new_context(), site.as_uri()).open("index.html#chart=chips-decode")
    dot = page.locator("#plot .mark-symbol path[aria-label*='tpu-v5e']").first
    dot.click()
    page.wait_for_function("location.hash.includes('chip=tpu-v5e')")
    assert page.locator("[data-param=chip] select").input_value() == "tpu-v5e"
    dot.click()
    page.wait_for_function("!location.hash.includes('chip=')")


def test_specifications_are_strict_json(site: Path) -> None:
    """No NaN and no infinity, which other programs cannot read."""
    for path in (site / "charts").glob("*.vl.json"):
        assert not re.findall(r"[:,\[](?:NaN|-?Infinity)", path.read_text()), path.name


def test_the_manifest_lists_every_file(site: Path) -> None:
    """A copy of the folder can be checked."""
    named = set(json.loads((site / "manifest.json").read_text())["sha256"])
    files = {
        path.relative_to(site).as_posix()
        for path in site.rglob("*")
        if path.is_file() and path.suffix not in (".pdf", "")
    }
    assert named == files - {"manifest.json"}
