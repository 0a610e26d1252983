"""The files of the bundle: what is in them, and that they are the same every time."""

import gzip
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bundles import CHIPS, CONFIG, HOSTILE, made_bundle, write_family
from polars.testing import assert_frame_equal

from rooflines import RooflinesError, load_config, thresholds
from rooflines.site import site as site_module
from rooflines.site.packing import packed, packed_rows
from rooflines.site.pages import PAGES, POLICY, TEMPLATES
from rooflines.site.site import FILES, write_bundle
from rooflines.site.text import as_json, quantity
from rooflines.site.threshold_data import MOST_ROWS, tables

CHARTS = [f"{family}-{number}" for family in ("roofline", "compared") for number in range(2)]

FOREIGN = {
    "http://www.w3.org/": "names of XML vocabularies, which nobody fetches",
    "https://vega.github.io/schema/": "the names of the specifications' formats, which nobody fetches",
    "https://vega.github.io/editor/": "Vega's editor, which is turned off",
    "https://github.com/vega/": "a reference in one of Vega's messages",
}
"""Addresses that may stand in scripts and charts."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, not to be changed."""
    return made_bundle(tmp_path_factory.mktemp("bundle"))


def put(path: Path) -> tuple[str, Any]:
    """What a data file hands over: a name and data."""
    text = re.fullmatch(r"ROOFLINES\.put\((.*)\);\n", path.read_text(), re.DOTALL)
    assert text
    name, data = json.loads(f"[{text[1]}]")
    return name, data


class Page(HTMLParser):
    """The elements of a page, and the text a reader sees."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


# ---------------------------------------------------------------- the folder


def test_a_chart_has_all_its_files_under_the_names_that_its_page_links(site: Path) -> None:
    """Pictures in both looks, SVG, PDF, specification and data, as the chart's job wrote them."""
    charts = put(site / "assets" / "charts-data.js")[1]["charts"]
    assert [chart["id"] for chart in charts] == CHARTS
    for chart in charts:
        assert [text for text, _ in chart["files"]] == list(FILES)
        source = site.parent / "charts" / chart["family"]
        for ending, (_, file) in zip(FILES.values(), chart["files"], strict=True):
            assert (site / file).read_bytes() == (source / f"{chart['id']}{ending}").read_bytes()
        name, spec = put(site / chart["spec"])
        assert name == f"chart/{chart['id']}"
        columns = {
            data: {key: unpacked(form) for key, form in forms.items()}
            for data, forms in spec["columns"].items()
        }
        rows = {data: pl.DataFrame(lists).to_dicts() for data, lists in columns.items()}
        shown = {**spec["spec"], "datasets": {**spec["spec"]["datasets"], **rows}}
        assert shown == {"datasets": {}, **json.loads((source / f"{chart['id']}.json").read_text())}


def test_every_file_that_a_page_names_is_there(site: Path) -> None:
    """No link, script, style or picture points at nothing."""
    for name in PAGES:
        for _, attributes in Page(site / name).elements:
            for key in ("href", "src", "data-light", "data-dark"):
                address = attributes.get(key) or ""
                if address and not address.startswith(("#", "https://", "http://")):
                    assert (site / address).is_file(), f"{name}: {address}"


def test_two_bundles_are_the_same_byte_for_byte(site: Path, tmp_path: Path) -> None:
    """But for PDF, which no one here writes; and the manifest has the sums of all files."""
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


def test_what_was_in_the_folder_before_is_gone(tmp_path: Path) -> None:
    """A chart that is no longer made does not stay published."""
    site = made_bundle(tmp_path)
    write_bundle(site, [tmp_path / "charts" / "roofline"], tmp_path / "thresholds.parquet")
    assert {path.name.split("-")[0] for path in (site / "charts").iterdir()} == {"roofline"}


def test_a_bundle_without_charts_has_its_other_pages(tmp_path: Path) -> None:
    """`charts: []` is a wish like any other."""
    made_bundle(tmp_path)
    write_bundle(tmp_path / "none", [], tmp_path / "thresholds.parquet")
    assert all((tmp_path / "none" / page).is_file() for page in PAGES)


def test_it_says_what_others_made(site: Path) -> None:
    """The licences of Vega and all it contains, and of the font."""
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


def test_it_is_small_but_for_the_charts(site: Path) -> None:
    """Scripts, styles and the font take 1.2 MB."""
    assert sum(path.stat().st_size for path in (site / "assets").iterdir()) < 1.3e6


# ---------------------------------------------------------------- no request leaves the page


def test_no_file_names_another_site_but_as_text(site: Path) -> None:
    """Scripts, styles, charts and data have no address but the names of formats; pages link sources, and load nothing from them."""
    for path in site.rglob("*"):
        if path.suffix in (".js", ".css", ".json", ".svg") and path.is_file():
            for address in re.findall(r"https?://[^\s\"'`)]*", path.read_text()):
                assert address.startswith(tuple(FOREIGN)), f"{path.name}: {address}"
    for name in PAGES:
        for tag, attributes in Page(site / name).elements:
            for key, value in attributes.items():
                foreign = (
                    re.match(r"[a-z]+:|//", value or "")
                    if key in ("src", "href", "data-light", "data-dark", "srcset", "action")
                    else None
                )
                assert not foreign or (
                    tag == "a" and (value or "").startswith(("https://", "http://"))
                ), f"{name}: {tag} {key}={value}"


def test_links_to_other_sites_tell_them_nothing(site: Path) -> None:
    """No referrer, and no handle on the page they were opened from."""
    elements = [element for name in PAGES for element in Page(site / name).elements]
    foreign = [
        attributes
        for tag, attributes in elements
        if tag == "a" and (attributes.get("href") or "").startswith("http")
    ]
    assert foreign
    assert all(attributes["rel"] == "noopener noreferrer" for attributes in foreign)


def test_pages_ask_for_a_strict_policy_and_have_no_script_or_style_of_their_own(site: Path) -> None:
    """Every script is a file of the folder, before anything else is loaded the policy stands; no eval, no inline handlers."""
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


def test_hostile_names_are_text_in_every_page(site: Path) -> None:
    """No element comes from a name of the config; the reader sees the name as it was written."""
    for name in PAGES:
        page = Page(site / name)
        assert {a.get("src") for tag, a in page.elements if tag == "img"} <= {
            "assets/icon.svg",
            *(f"charts/{chart}-light-small.png" for chart in CHARTS),
        }
        assert "<script>document" not in (site / name).read_text()
    assert HOSTILE in Page(site / "index.html").text
    assert HOSTILE in Page(site / "chips.html").text


def test_hostile_names_cannot_end_a_script(site: Path) -> None:
    """Data files have no `<` at all, so they may even stand inside a page."""
    for path in [
        *(site / "charts").glob("*.js"),
        *(site / "data").glob("*.js"),
        site / "assets" / "charts-data.js",
    ]:
        assert "<" not in path.read_text(), path.name


def test_a_chart_whose_id_is_no_file_name_is_refused(tmp_path: Path) -> None:
    """An id goes into paths and addresses."""
    made_bundle(tmp_path)
    index = tmp_path / "charts" / "roofline" / "index.json"
    charts = json.loads(index.read_text())
    for wrong in ("../../etc", HOSTILE, ""):
        charts[0]["id"] = wrong
        index.write_text(json.dumps(charts))
        with pytest.raises(RooflinesError, match="no name of a file"):
            write_bundle(tmp_path / "bundle", [index.parent], tmp_path / "thresholds.parquet")


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """Two charts cannot have one address."""
    made_bundle(tmp_path)
    write_family(tmp_path / "again" / "roofline")
    families = [tmp_path / folder / "roofline" for folder in ("charts", "again")]
    with pytest.raises(RooflinesError, match="twice"):
        write_bundle(tmp_path / "bundle", families, tmp_path / "thresholds.parquet")


# ---------------------------------------------------------------- thresholds and chips


def unpacked(form: dict[str, list[Any]]) -> list[Any]:
    """What the page makes of a packed column."""
    if "values" in form:
        return form["values"]
    if "codes" in form:
        return [form["levels"][code] for code in form["codes"]]
    if "cycle" in form:
        return [
            form["levels"][form["cycle"][row % len(form["cycle"])]]
            for row in range(int(str(form["rows"])))
        ]
    runs = iter(form["runs"])
    return [form["levels"][code] for code in runs for _ in range(next(runs))]


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b"],
        ["a"] * 50,
        ["a", "b"] * 50,
        ["a", "b", "a"] * 9 + ["a"],
        ["a", "b", "c"] * 20 + ["b"],
        [True, False] * 3,
        [],
        [None] * 9,
        [1, None, None, 1],
        [1.5, 2.5, None],
        list(range(100)),
        [HOSTILE, None, HOSTILE],
        [2**53],
    ],
)
def test_a_packed_column_is_what_it_was(values: list[Any]) -> None:
    """Whatever form it takes."""
    assert unpacked(json.loads(as_json(packed(values)))) == values


@pytest.mark.parametrize(
    "rows",
    [[], [{}], [{"a": 1}, {"b": 1}], [{"a": 1}, {"a": "x"}], [{"a": True}, {"a": 1}], [{"a": [1]}]],
)
def test_rows_that_are_no_columns_stay_rows(rows: list[dict[str, object]]) -> None:
    """Other keys or other kinds."""
    assert packed_rows(rows) is None


def test_the_thresholds_of_the_page_are_those_on_disk(site: Path) -> None:
    """Every row of every table, cut by chip where a table is long; whole numbers are whole, real ones have six digits."""
    data = put(site / "data" / "thresholds.js")[1]
    expected = thresholds(load_config(CONFIG)).with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    )
    seen = 0
    for table in data["tables"]:
        of_table = expected.filter(sweep=table["sweep"], axis=table["axis"])
        assert table["rows"] == of_table.height
        for part in table["parts"]:
            rows = of_table if part["chip"] is None else of_table.filter(chip=part["chip"])
            columns = put(site / part["file"])[1]
            assert part["rows"] == part["all"] == rows.height <= MOST_ROWS
            shown = pl.DataFrame(
                {name: unpacked(form) for name, form in columns.items()},
                schema={name: rows.schema[name] for name in columns},
            )
            assert_frame_equal(shown, rows.select(shown.columns), check_exact=False, rel_tol=1e-5)
            assert shown["critical"].to_list() == rows["critical"].to_list()
            seen += rows.height
    assert seen == expected.height
    assert {len(table["parts"]) for table in data["tables"]} == {1, len(CHIPS)}


def test_a_table_that_is_too_long_for_one_file_is_cut_and_says_so() -> None:
    """The download has the rest."""
    long = pl.DataFrame(
        {
            "sweep": "s",
            "axis": "B",
            "chip": "c",
            "critical": range(MOST_ROWS + 7),
            "critical_memory": 1,
            "critical_network": 1,
        }
    )
    [table] = tables(long)
    [part] = table.parts
    assert (part.chip, part.rows, part.all_rows) == ("c", MOST_ROWS, MOST_ROWS + 7)


def test_all_thresholds_can_be_taken_away(site: Path) -> None:
    """As they are on disk, in both forms."""
    assert (site / "data" / "thresholds.parquet").read_bytes() == (
        site.parent / "thresholds.parquet"
    ).read_bytes()
    assert (
        gzip.decompress((site / "data" / "thresholds.csv.gz").read_bytes())
        == (site.parent / "thresholds.csv").read_bytes()
    )


def test_every_number_of_every_chip_is_there_with_its_source(site: Path) -> None:
    """As in the catalogue; the page lists the documents that it names."""
    page = Page(site / "chips.html")
    chips = [attributes["data-chip"] for tag, attributes in page.elements if tag == "details"]
    assert chips == ["tpu-v5e", "h100-sxm", "mine"]
    for text in (
        "197 TFLOP/s",
        "819 GB/s",
        "810 GB/s",
        "1.979 PFLOP/s",
        "450 GB/s",
        "estimate",
        "printed with sparsity",
    ):
        assert text in page.text, text
    named = {
        a["href"].removeprefix("#source=")  # type: ignore[union-attr]
        for tag, a in page.elements
        if tag == "a" and (a.get("href") or "").startswith("#source=")
    }
    listed = {a["data-source"] for _, a in page.elements if "data-source" in a}
    assert named <= listed
    assert "gcp-v5e-old" in named


def test_a_variant_shows_only_what_is_its_own(site: Path) -> None:
    """One number, and the chip it is a variant of."""
    section = (
        (site / "chips.html")
        .read_text()
        .partition('data-chip="mine"')[2]
        .partition("</details>")[0]
    )
    assert section.count("<tr>") == 2
    assert "A variant of" in section


def test_the_model_page_lists_the_sweeps(site: Path) -> None:
    """What it ignores stands there, and what was computed."""
    text = Page(site / "model.html").text
    assert "What it ignores" in text
    assert all(sweep in text for sweep in CONFIG["sweeps"])


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (9.89e14, "FLOP/s", "989 TFLOP/s"),
        (1.979e15, "FLOP/s", "1.979 PFLOP/s"),
        (8.19e11, "B/s", "819 GB/s"),
        (34_603_008.0, "B", "34.6 MB"),
        (999.96e9, "B/s", "1 TB/s"),
        (1.0, "s", "1 s"),
        (3e-6, "s", "0.000003 s"),
        (0.0, "s", "0 s"),
        (16.0, "", "16"),
    ],
)
def test_numbers_are_written_with_prefix_and_unit(value: float, unit: str, text: str) -> None:
    """At most four digits."""
    assert quantity(value, unit) == text


def test_only_addresses_of_the_web_become_links() -> None:
    """Any text may be the address of a source."""
    render = TEMPLATES.from_string(
        '{% from "macros.html" import link %}{{ link(url, text) }}'
    ).render
    assert render(url="javascript:alert(1)", text="x<y") == "x&lt;y"
    assert render(url=None, text="x") == "x"
    assert (
        render(url='https://a/"onclick=', text="x")
        == '<a href="https://a/&#34;onclick=" rel="noopener noreferrer">x</a>'
    )
    assert TEMPLATES.from_string("{{ value }}").render(value=None) == ""


@pytest.mark.parametrize("page", [*PAGES, "layout.html", "macros.html"])
def test_no_template_turns_escaping_off(page: str) -> None:
    """Every value in every page is escaped: templates have no `safe` filter and no `autoescape` block."""
    source = (Path(site_module.__file__).parent / "templates" / page).read_text()
    assert not re.search(r"safe|autoescape|Markup", source)
    assert TEMPLATES.autoescape is True


def test_every_template_is_tested() -> None:
    """Pages, their layout and macros."""
    assert set(TEMPLATES.list_templates()) == {*PAGES, "layout.html", "macros.html"}


INTERRUPTED = """
import threading
from rooflines.site import site

start = threading.Thread.start

def interrupted(thread):
    start(thread)
    raise KeyboardInterrupt

threading.Thread.start = interrupted
site._vega = bytes
list(site.site_files([], "none"))
"""
"""Ctrl-C at the worst moment: a thread has begun, and the one that began it does not know yet."""


def test_an_interrupted_bundle_ends() -> None:
    """No thread that nobody ends keeps its process alive."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
