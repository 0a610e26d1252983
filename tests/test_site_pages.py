"""The documentation site: it builds without warnings, has every name, and requests nothing."""

import re
from html.parser import HTMLParser

import pytest
from documents import ROOT, config_schema
from processes import python
from site_pages import stage
from visits import Plain, Visit, serving

import rooflines
from rooflines import charts, models
from rooflines.cli.main import every_command

CONFIG = ROOT / "mkdocs.yml"

LOADED = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}
"""Elements whose address a browser loads."""


@pytest.fixture(scope="module")
def site(once):
    def build(folder):
        stage(folder / "pages")
        config = CONFIG.read_text(encoding="utf-8").replace("docs_dir: .pages", "docs_dir: pages")
        (folder / "mkdocs.yml").write_text(config, encoding="utf-8")
        python("-m", "zensical", "build", "--strict", cwd=folder)

    return once("documentation", build) / "site"


class Loaded(HTMLParser):
    """The addresses that a page loads."""

    def __init__(self, page):
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value or "" for name, value in attrs if name == LOADED.get(tag)]


def text_of(site, page):
    return (site / page).read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation(tmp_path):
    stage(tmp_path)
    pages = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    listed = re.findall(r"[\w/-]+\.md", CONFIG.read_text(encoding="utf-8").partition("\nnav:")[2])
    assert sorted(listed) == sorted(pages)


def test_every_page_is_built_and_loads_only_files_of_the_site(site, repository):
    names = {path.stem for path in (repository / "docs").glob("*.md")}
    pages = sorted(site.rglob("*.html"))
    assert names <= {path.stem for path in pages}
    for page in pages:
        loaded = Loaded(page.read_text(encoding="utf-8")).found
        assert len(loaded) > 3
        for address in loaded:
            target = address.partition("?")[0]
            assert (page.parent / target).resolve().exists() or page.name == "404.html", address
    assert "pictures/explorer-dark.webp" in text_of(site, "index.html")


def test_the_reference_has_every_key_command_and_name(site):
    keys, schema = text_of(site, "keys.html"), config_schema()
    for form in (schema, *schema["$defs"].values()):
        assert [
            key for key in form.get("properties", ()) if f"<code>{key}</code>" not in keys
        ] == []
    help_texts = text_of(site, "cli.html")
    names = [" ".join(path) for path in every_command()]
    assert [name for name in names if f"Usage: rooflines {name} " not in help_texts] == []
    api = text_of(site, "python.html")
    for module in (rooflines, models, charts):
        names = [
            name
            for name in module.__all__
            if not name.startswith("_") and name not in rooflines.HOMES
        ]
        assert len(names) >= 5
        assert [name for name in names if f'id="{module.__name__}.{name}"' not in api] == []


def test_pages_fit_a_phone(site, browser):
    """Without scripts, which take most of the time."""
    phone = {"width": 390, "height": 844}
    with browser.new_context(viewport=phone, java_script_enabled=False) as context:
        page = context.new_page()
        for path in sorted(site.rglob("*.html")):
            page.goto(path.as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path


def test_the_search_finds_a_question_and_nothing_is_requested_from_elsewhere(site, browser):
    with browser.new_context(color_scheme="dark") as context, serving(site, Plain) as base:
        visit = Visit(context, base)
        visit.page.goto(f"{base}/book.html")
        visit.page.locator(".md-search__button").click()
        visit.page.locator("input[type=text]").fill("quantization")
        visit.page.get_by_text("Does quantization make it faster?").wait_for()
        assert visit.faults == []
