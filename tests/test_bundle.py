"""The files of the site: their content, and that they are reproducible."""

import hashlib
import json
import re
from pathlib import Path

import polars as pl
import pytest
from bundles import CHARTS, CONFIG, HOSTILE, made_bundle, write_family
from html_page import Page
from polars.testing import assert_frame_equal
from site_data import put

import rooflines
from rooflines import RooflinesError, load_config
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.site.pages import PAGES, POLICY
from rooflines.site.site import FILES, write_bundle

FOREIGN = {
    "http://www.w3.org/": "names of XML vocabularies, never fetched",
    "https://vega.github.io/schema/": "names of the specifications' formats, never fetched",
    "https://vega.github.io/editor/": "Vega's editor, which is turned off",
    "https://github.com/vega/": "a reference in one of Vega's messages",
}
"""Addresses that may occur in scripts and charts."""


def test_a_chart_has_all_its_files_under_the_names_that_its_page_links(site):
    charts = put((site / "assets" / "charts-data.js").read_text())[1]["charts"]
    assert [chart["id"] for chart in charts] == CHARTS
    for chart in charts:
        assert [text for text, _ in chart["files"]] == list(FILES)
        source = site.parent / "charts" / chart["family"]
        for ending, (_, file) in zip(FILES.values(), chart["files"], strict=True):
            assert (site / file).read_bytes() == (source / f"{chart['id']}{ending}").read_bytes()
        name, spec = put((site / chart["spec"]).read_text())
        assert name == f"chart/{chart['id']}"
        views = json.loads((source / f"{chart['id']}-views.json").read_text())
        assert {key: spec[key] for key in views} == views
        drawn = json.loads((source / f"{chart['id']}.vl.json").read_text())
        assert {**drawn, **spec["spec"]} == drawn
        assert not {"config", "datasets", "layer"} & {*spec["spec"]}


def test_every_file_that_a_page_names_is_there(site):
    for name in PAGES:
        for _, attributes in Page(site / name).elements:
            for key in ("href", "src"):
                address = attributes.get(key) or ""
                if address and not address.startswith(("#", "https://", "http://")):
                    assert (site / address).is_file(), f"{name}: {address}"


def test_two_bundles_are_the_same_byte_for_byte(site, tmp_path):
    other = made_bundle(tmp_path)
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(other).as_posix() for path in other.rglob("*") if path.is_file()
    )
    assert [
        name for name in files if (site / name).read_bytes() != (other / name).read_bytes()
    ] == []
    sums = json.loads((site / "manifest.json").read_text())["sha256"]
    assert sums == {
        n: hashlib.sha256((site / n).read_bytes()).hexdigest()
        for n in files
        if n != "manifest.json" and not n.endswith(".pdf")
    }


def test_what_was_in_the_folder_before_is_gone(tmp_path):
    site = made_bundle(tmp_path)
    write_bundle(site, [tmp_path / "charts" / "roofline"], tmp_path / "thresholds.parquet")
    assert {path.name.split("-")[0] for path in (site / "charts").iterdir()} == {"roofline"}


def test_a_bundle_without_charts_has_its_other_pages(tmp_path):
    made_bundle(tmp_path)
    write_bundle(tmp_path / "none", [], tmp_path / "thresholds.parquet")
    assert [page for page in PAGES if not (tmp_path / "none" / page).is_file()] == []


def test_it_says_what_the_config_says_of_it(site):
    for name in PAGES:
        page = Page(site / name)
        for text in (HOSTILE, "Jane Doe", "2026-11-22", 'https://example.org/"onclick="x'):
            assert text in page.text
        assert ("meta", {"name": "author", "content": "Jane Doe"}) in page.elements
        assert all("onclick" not in attributes for _, attributes in page.elements)


def test_it_lists_the_tables_that_are_published(site, tmp_path):
    page = Page(site / "method.html")
    config = load_config(CONFIG)
    parts = plan(config).parts_in("tables")
    assert [part.sweep for part in parts] == list(config.sweeps)
    for part in parts:
        path = tmp_path / part.path
        path.parent.mkdir(parents=True)
        write_part(part.spec, path)
        height, width = pl.read_parquet(path).shape
        address = f"https://example.org/{part.path}"
        assert ("a", {"href": address, "rel": "noopener noreferrer"}) in page.elements
        cells = rf"{part.sweep}\s*{height:,}\s*{width}\s*{Path(part.path).stem}\.parquet\s"
        assert re.search(cells, page.text)
    snippet = re.search(r"import polars as pl\s+(pl\.scan_parquet.*)", page.text)
    assert snippet
    read = eval(snippet[1].replace("https://example.org", str(tmp_path)), {"pl": pl})  # noqa: S307, the page's own
    assert_frame_equal(read, rooflines.rows(config, parts[0].sweep).head(5).collect())


def test_it_has_the_config(site):
    written = load_config(site / "data" / "config.yaml")
    config = load_config(CONFIG)
    assert written.plain == config.plain
    assert written.chips["mine"] == config.chips["mine"]
    assert written.site == config.site
    assert "data/config.yaml" in (site / "method.html").read_text()


@pytest.mark.parametrize("url", ["example.org", "javascript:x", 7])
def test_an_address_of_the_site_is_one_of_the_web(url):
    with pytest.raises(RooflinesError, match=r"(?s)site\.url.*https://"):
        load_config({**CONFIG, "site": {"url": url}})


def test_it_has_the_licences_of_others(site):
    text = (site / "assets" / "LICENSES.txt").read_text()
    for name in (
        "vega 6",
        "vega-lite 6",
        "vega-embed 7",
        "d3-array",
        "BSD-3-Clause",
        "ISC",
        "SIL OPEN FONT LICENSE",
        "Inter",
    ):
        assert name in text, name


def test_it_is_small_but_for_the_charts(site):
    """Scripts, styles and the font take 1.2 MB."""
    assert sum(path.stat().st_size for path in (site / "assets").iterdir()) < 1.3e6


def test_no_file_loads_from_another_site(site):
    for path in site.rglob("*"):
        described = path.name == "datapackage.json"  # it has the licence's and the site's address
        if path.suffix in (".js", ".css", ".json", ".svg") and path.is_file() and not described:
            for address in re.findall(r"https?://[^\s\"'`)]*", path.read_text()):
                assert address.startswith(tuple(FOREIGN)), f"{path.name}: {address}"
    for name in PAGES:
        for tag, attributes in Page(site / name).elements:
            for key, value in attributes.items():
                foreign = (
                    re.match(r"[a-z]+:|//", value or "")
                    if key in ("src", "href", "srcset", "action")
                    else None
                )
                assert not foreign or (
                    tag == "a" and (value or "").startswith(("https://", "http://"))
                ), f"{name}: {tag} {key}={value}"


def test_links_to_other_sites_tell_them_nothing(site):
    elements = [element for name in PAGES for element in Page(site / name).elements]
    foreign = [
        attributes
        for tag, attributes in elements
        if tag == "a" and (attributes.get("href") or "").startswith("http")
    ]
    assert foreign
    assert all(attributes["rel"] == "noopener noreferrer" for attributes in foreign)


def test_pages_ask_for_a_strict_policy_and_have_no_script_or_style_of_their_own(site):
    assert "unsafe" not in POLICY
    for name in PAGES:
        elements = Page(site / name).elements
        policies = [
            a["content"]
            for tag, a in elements
            if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policies == [POLICY]
        assert all(attributes.get("src") for tag, attributes in elements if tag == "script")
        assert not [
            tag
            for tag, attributes in elements
            if tag == "style" or any(key == "style" or key.startswith("on") for key in attributes)
        ]


def test_hostile_names_are_text_in_every_page(site):
    for name in PAGES:
        page = Page(site / name)
        assert {a.get("src") for tag, a in page.elements if tag == "img"} <= {
            "assets/icon.svg",
            *(f"charts/{chart}-small.png" for chart in CHARTS),
        }
        assert "<script>document" not in (site / name).read_text()
    assert HOSTILE in Page(site / "charts.html").text
    names = put((site / "data" / "chips.js").read_text())[1]["lists"]["name"]
    assert any(HOSTILE in name for name in names)


def test_hostile_names_cannot_end_a_script(site):
    for path in [
        *(site / "charts").glob("*.js"),
        *(site / "data").glob("*.js"),
        site / "assets" / "charts-data.js",
    ]:
        assert "<" not in path.read_text(), path.name


def test_a_chart_whose_id_is_no_file_name_is_refused(tmp_path):
    made_bundle(tmp_path)
    index = tmp_path / "charts" / "roofline" / "index.json"
    charts = json.loads(index.read_text())
    for wrong in ("../../etc", HOSTILE, ""):
        charts[0]["id"] = wrong
        index.write_text(json.dumps(charts))
        with pytest.raises(RooflinesError, match="no name of a file"):
            write_bundle(tmp_path / "bundle", [index.parent], tmp_path / "thresholds.parquet")


def test_an_id_that_is_there_twice_is_refused(tmp_path):
    made_bundle(tmp_path)
    write_family(tmp_path / "again" / "roofline")
    families = [tmp_path / folder / "roofline" for folder in ("charts", "again")]
    with pytest.raises(RooflinesError, match="twice"):
        write_bundle(tmp_path / "bundle", families, tmp_path / "thresholds.parquet")
