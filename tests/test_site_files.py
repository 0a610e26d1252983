"""The files of the site: numbers are those of tables, names are text, no other site is asked."""

import hashlib
import json
import re
import shutil
from itertools import product
from pathlib import Path

import polars as pl
import pytest
import yaml
from bundles import CHARTS, CONFIG, HOSTILE
from key_sets import key_differences
from PIL import Image
from polars.testing import assert_frame_equal
from site_data import Page, put

import rooflines
from rooflines import RooflinesError, load_config
from rooflines.basics.text import significant
from rooflines.hardware.chip_catalogue import base_chips, chip_entries
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.site import data_page, pages
from rooflines.site.card import CARD, card_address, card_chart
from rooflines.site.data_page import MAX_ROWS, run_views, threshold_data
from rooflines.site.explorer import SERVING
from rooflines.site.pages import PAGES, POLICY, TEMPLATES
from rooflines.site.site import FILES, write_site

FOREIGN = {
    "http://www.w3.org/": "names of XML vocabularies, never fetched",
    "https://vega.github.io/schema/": "names of the specifications' formats, never fetched",
    "https://vega.github.io/editor/": "Vega's editor, which is turned off",
    "https://github.com/vega/": "a reference in one of Vega's messages",
}
"""Addresses that may occur in scripts and charts."""

WEB = ("https://", "http://")


@pytest.fixture(scope="module")
def config(site):
    return load_config(site.parents[1] / "my.yaml")


@pytest.fixture(scope="module")
def shown(site):
    return {name: Page(site / name) for name in PAGES}


def elements(shown):
    return [(name, tag, of) for name, page in shown.items() for tag, of in page.elements]


def test_a_chart_has_all_its_files_under_the_names_that_its_page_links(site):
    charts = put(site / "assets" / "charts-data.js")[1]["charts"]
    assert [chart["id"] for chart in charts] == CHARTS
    for chart in charts:
        source = site.parent / "charts" / chart["family"] / chart["id"]
        made = {text for text, ending in FILES.items() if Path(f"{source}{ending}").exists()}
        assert {file["text"] for file in chart["files"]} == made | {"Vega-Lite data"}
        assert made >= {"SVG", "Parquet", "Vega-Lite"}
        for file in chart["files"]:
            if file["text"] not in ("Vega-Lite", "Vega-Lite data"):
                source_file = Path(f"{source}{FILES[file['text']]}")
                assert (site / file["path"]).read_bytes() == source_file.read_bytes()
        name, spec = put(site / chart["spec"])
        assert name == f"chart/{chart['id']}"
        views = json.loads(Path(f"{source}-views.json").read_text())
        for view, shown in zip(views["views"], spec["views"], strict=True):
            view["explorer"] = shown["explorer"]
        assert {key: spec[key] for key in views} == views
        drawn = json.loads(Path(f"{source}.vl.json").read_text())
        drawn["params"] = {param["name"]: param["value"] for param in drawn["params"]}
        assert {**drawn, **spec["spec"]} == drawn
        assert not {"config", "datasets", "layer"} & {*spec["spec"]}


def test_a_specification_reads_its_rows_from_the_file_beside_it(site):
    for chart in CHARTS:
        spec = json.loads((site / f"charts/{chart}.vl.json").read_text())
        rows = json.loads((site / f"charts/{chart}.json").read_text())
        read = [layer["data"] for layer in spec["layer"] if "url" in layer["data"]]
        assert {data["url"] for data in read} == {f"{chart}.json"}
        assert {data["format"]["property"] for data in read} == set(rows)
        for layer in spec["layer"]:
            if "url" in layer["data"]:
                layer["data"] = {"name": layer["data"]["format"]["property"]}
        (family,) = (site.parent / "charts").glob(f"*/{chart}.vl.json")
        assert {**spec, "datasets": rows} == json.loads(family.read_text())


def test_every_file_that_a_page_names_is_there(site, shown):
    for name, _, attributes in elements(shown):
        for key in ("href", "src"):
            address = attributes.get(key) or ""
            if address and not address.startswith(("#", *WEB)):
                assert (site / address.partition("#")[0]).is_file(), f"{name}: {address}"


def files_of(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_a_site_is_replaced_by_the_same_byte_for_byte(site, config, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/old.html").touch()
    planned = plan(config).by_path["bundle"]
    inputs = {
        name: [site.parent / each.path for each in outputs]
        for name, outputs in planned.inputs.items()
    }
    write_site(planned.spec, tmp_path / "site", inputs)
    first, again = files_of(site), files_of(tmp_path / "site")
    first.pop(".snakemake_timestamp", None)
    assert first.keys() == again.keys()
    assert {name for name in again if again[name] != first[name]} == set()
    sums = json.loads(first.pop("manifest.json"))["sha256"]
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in first.items()}


@pytest.mark.parametrize("wrong", ["../../etc", HOSTILE, "", "twice"])
def test_a_chart_whose_id_is_no_file_name_or_another_one_s_is_refused(wrong, site, tmp_path):
    family = shutil.copytree(site.parent / "charts" / "chips", tmp_path / "chips")
    index = family / "index.json"
    charts = json.loads(index.read_text())
    charts = charts * 2 if wrong == "twice" else [{**charts[0], "id": wrong}]
    index.write_text(json.dumps(charts))
    thresholds, none = [site.parent / "thresholds.parquet"], list[Path]()
    inputs = {"charts": [family], "thresholds": thresholds, "models": none}
    inputs |= {"measured": none, "timings": none}
    with pytest.raises(RooflinesError, match="twice" if wrong == "twice" else "no name of a file"):
        write_site("{}", tmp_path / "site", inputs)


def test_it_says_what_the_config_says_of_it(shown):
    for page in shown.values():
        for text in (HOSTILE, "Jane Doe", "2026-11-22", 'https://example.org/"onclick="x'):
            assert text in page.text
        assert ("meta", {"name": "author", "content": "Jane Doe"}) in page.elements
    text = shown["method.html"].text
    assert all(sweep in text for sweep in CONFIG["sweeps"])


def test_it_lists_the_tables_that_are_published(shown, config, tmp_path):
    page = shown["method.html"]
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


def test_it_has_the_config(site, config):
    written = yaml.safe_load((site / "data" / "config.yaml").read_text())
    assert written == yaml.safe_load(yaml.safe_dump(config.plain))


def test_it_has_the_licences_of_others_and_is_small(site):
    """Scripts, styles and the font take 1.2 MB."""
    text = (site / "assets" / "LICENSES.txt").read_text()
    vega = ("vega 6", "vega-lite 6", "vega-embed 7", "d3-array", "BSD-3-Clause", "ISC")
    assert [name for name in (*vega, "SIL OPEN FONT LICENSE", "Inter") if name not in text] == []
    assert sum(path.stat().st_size for path in (site / "assets").iterdir()) < 1.3e6


def test_every_number_of_every_chip_is_there_with_its_source(site):
    numbers = pl.read_csv(site / "data" / "chips.csv", infer_schema=False)
    own = {"chip": "mine", "path": "memory.hbm.bytes_per_s", "value": "810000000000.0"}
    assert numbers.filter(**own).height == 1
    assert numbers.filter(pl.col("chip") != "mine").height == rooflines.chips().height
    details = put(site / "data" / "chip-numbers.js")[1]
    text = str(details)
    for said in ("197 TFLOP/s", "819 GB/s", "810 GB/s", "1.979 PFLOP/s", "printed with sparsity"):
        assert said in text, said
    listed = [one for chip in details["chips"].values() for one in chip["numbers"]]
    assert any(number["is_estimate"] for number in listed)
    cited = {source for number in listed for source in number["sources"]}
    assert "gcp-v5e-old" in cited & {*details["sources"]}
    variant = details["chips"]["mine"]
    assert len(variant["numbers"]) == 1, "what is its own"
    assert variant["remarks"][0].startswith("A variant of")


def test_the_page_has_every_step_that_it_offers_or_says_why_not(site):
    """Each model, phase, split, format and chip: once, on a chip or among what is skipped."""
    steps = put(site / "data" / "steps.js")[1]
    chips = {machine["chip"] for machine in steps["machines"]}
    assert chips >= {*SERVING, "mine"}
    for number, model in enumerate(steps["models"]):
        own = put(site / "data" / f"steps-{number}.js")[1]
        found = [
            {**step, "chip": steps["machines"][int(place)]["chip"]}
            for step in own["steps"]
            for place in step["estimates"]
        ]
        asked = []
        for phase in steps["phases"]:
            is_training = phase == "train"
            offered = steps["choices"]["train" if is_training else "serve"]
            splits = [split["name"] for split in offered["splits"]]
            further = set() if is_training else {*model["servers"]} - {*splits}
            for chip, split, dtypes in product(chips, [*splits, *further], offered["formats"]):
                if split in further and chip in steps["servers"]["tori"]:
                    continue
                step = {"chip": chip, "model": model["id"], "split": split, "dtypes": dtypes}
                skipped = (
                    all(row[name] in (None, "", value) for name, value in step.items())
                    for row in steps["skipped"]
                )
                if not any(skipped):
                    asked.append((phase, chip, split, dtypes))
        keys = ("phase", "chip", "split", "dtypes")
        assert key_differences(found, keys, asked) == ([], []), model["id"]


def test_the_page_has_every_chip_with_all_its_peaks(site):
    page = put(site / "data" / "explorer.js")[1]
    matrix = {chip: chip_entries()[chip].units.get("matrix", {}) for chip in base_chips()}
    plain = [chip for chip in page["chips"] if not chip["is_variant"]]
    found = [{"chip": chip["id"], "dtype": dtype} for chip in plain for dtype in chip["peaks"]]
    expected = [(chip, dtype) for chip, peaks in matrix.items() for dtype in peaks]
    assert key_differences(found, ("chip", "dtype"), expected) == ([], [])


def test_thresholds_that_are_offered_are_those_of_the_run(site):
    stored, offered = site.parent / "thresholds.parquet", site / "data" / "thresholds.parquet"
    assert offered.read_bytes() == stored.read_bytes()


def test_timings_of_a_run_stand_on_the_page_of_data(site):
    rows = pl.read_csv(site / "data" / "measured.csv").filter(
        pl.col("shards").is_null(), region="all"
    )
    row = rows.filter(set="grid", chip="b200", software="sglang", dtypes="bf16").row(0, named=True)
    text = re.sub(r"<[^>]*>+", "|", (site / "data.html").read_text(encoding="utf-8"))
    quantiles = [f"{significant(row[f'ratio_lower_{end}'])} ×" for end in ("p10", "median", "p90")]
    shown = [f"{row['n']} timings", *quantiles]
    assert f"B200||SGLang||bf16||bound||{'||'.join(shown)}" in text
    lacking = pl.read_csv(site / "data" / "measured-skipped.csv").filter(lacks="row")
    assert f"{lacking['timings'].sum()} timings without a row of the model." in text


def test_estimates_of_timings_of_a_run_have_a_number_of_their_own(tmp_path):
    row: dict[str, object] = {
        "set": "mine",
        "model": None,
        "collective": None,
        "split": "held_out",
        "shards": None,
    }
    row |= {"chip": "h100-sxm", "software": "vllm", "dtypes": "bf16", "region": "all"}
    row |= {"n": 10, "n_estimate": 7}
    for ratio, middle in (("ratio_lower", 1.5), ("ratio_estimate", 1.1)):
        ends = {"p10": middle - 0.1, "median": middle, "p90": middle + 0.2}
        row |= {f"{ratio}_{end}": value for end, value in ends.items()}
    pl.DataFrame([row]).write_csv(tmp_path / "measured.csv")
    views = run_views(tmp_path / "measured.csv")
    assert [view[4:] for view in views] == [
        ["bound", "10 timings", "1.4 ×", "1.5 ×", "1.7 ×"],
        ["estimate", "7 timings", "1 ×", "1.1 ×", "1.3 ×"],
    ]


def test_a_table_that_is_too_long_for_the_page_is_cut():
    about = {"sweep": "s", "axis": "B", "chip": "c", "shape": "w", "outcome": "found"}
    long = pl.DataFrame({"critical": range(MAX_ROWS + 7)}).with_columns(
        pl.lit(1).alias("critical_memory"),
        pl.lit(1).alias("critical_network"),
        *(pl.lit(text).alias(name) for name, text in about.items()),
    )
    data = threshold_data(long, [])
    assert data["counts"] == [MAX_ROWS, MAX_ROWS + 7, MAX_ROWS + 7]
    assert data["rows"] == [[number] for number in range(MAX_ROWS)]
    assert [column["name"] for column in data["columns"]] == ["critical"]
    rates = long.head(1).with_columns(axis=pl.lit("peak"), critical_exact=pl.lit(0.5))
    assert threshold_data(rates, [])["rows"] == [[0.5]]


def thresholds_of(*rows):
    """Thresholds with these sweeps, axes, chips, shapes and critical sizes."""
    columns = ("sweep", "axis", "chip", "shape", "critical", "critical_exact", "outcome")
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return pl.DataFrame(records, schema_overrides={"critical_exact": pl.Float64})


def test_the_page_has_the_longest_table_of_named_shapes_and_own_chips_first():
    frame = thresholds_of(
        *(("long", "B", chip, None, 7, None, "found") for chip in ("b200", "h100-sxm") * 3),
        ("named", "shards", "h100-sxm", "w", 9, None, "found"),
        *(("named", "B", chip, "w", 5, None, "found") for chip in ("own", "h100-sxm", "b200")),
        ("named", "B", "h100-sxm", "v", None, None, "never"),
        ("rates", "peak", "h100-sxm", "w", None, 1.5, "found"),
    )
    data = threshold_data(frame, [])
    assert (data["sweep"], data["axis"]) == ("named", "B")
    assert data["counts"] == [4, 4, 12]
    names = [column["name"] for column in data["columns"]]
    shown = [dict(zip(names, row, strict=True)) for row in data["rows"]]
    assert [row["critical"] for row in shown] == [5, 5, "never", 5]
    assert [row["chip"] for row in shown] == ["own", "h100-sxm", "h100-sxm", "b200"]
    assert data["left_out"] == 0


def test_chips_whose_rows_are_too_many_are_left_out_whole_and_counted(monkeypatch):
    monkeypatch.setattr(data_page, "MAX_ROWS", 13)
    frame = thresholds_of(
        *(("s", "B", f"own-{n % 9}", "w", n, None, "found") for n in range(18)),
    )
    data = threshold_data(frame, [])
    assert (data["counts"], data["left_out"]) == ([12, 18, 18], 3)
    at = [column["name"] for column in data["columns"]].index("chip")
    assert {row[at] for row in data["rows"]} == {f"own-{n}" for n in range(6)}


def test_without_thresholds_the_page_has_an_empty_table():
    data = threshold_data(thresholds_of(("s", "B", "c", "w", 1, None, "found")).clear(), [])
    assert (data["sweep"], data["axis"], data["counts"], data["rows"]) == ("", "", [0, 0, 0], [])


def test_no_file_loads_from_another_site(site, shown):
    for path in site.rglob("*"):
        described = path.name == "datapackage.json"  # it has the licence's and the site's address
        if path.suffix in (".js", ".css", ".json", ".svg") and path.is_file() and not described:
            for address in re.findall(r"https?://[^\s\"'`)]*", path.read_text()):
                assert address.startswith(tuple(FOREIGN)), f"{path.name}: {address}"
    loads = ("src", "href", "srcset", "action")
    for name, tag, attributes in elements(shown):
        for key in loads:
            value = attributes.get(key) or ""
            if re.match(r"[a-z]+:|//", value):
                assert tag == "a", f"{name}: {tag} {key}={value}"
                assert value.startswith(WEB), f"{name}: {tag} {key}={value}"
                assert attributes["rel"] == "noopener noreferrer", "it tells them nothing"


def test_pages_ask_for_a_strict_policy_and_have_no_script_or_style_of_their_own(shown):
    assert "unsafe" not in POLICY
    for page in shown.values():
        policies = [of for _, of in page.elements if of.get("http-equiv")]
        assert [of["content"] for of in policies] == [POLICY]
    for name, tag, attributes in elements(shown):
        assert tag != "style", name
        assert tag != "script" or attributes.get("src"), name
        assert not [key for key in attributes if key == "style" or key.startswith("on")], name


def test_pages_have_a_title_findings_and_a_picture_for_previews(site, shown):
    with Image.open(site / CARD) as picture:
        assert picture.size == (1200, 630)
    for page in shown.values():
        told = {of["property"]: of["content"] for _, of in page.elements if of.get("property")}
        assert told["og:title"]
        assert told["og:description"]
        assert told["og:image"].endswith(CARD)
    findings = [chart["finding"] for chart in put(site / "assets/charts-data.js")[1]["charts"]]
    index = {
        of["property"]: of["content"]
        for _, of in shown["index.html"].elements
        if of.get("property")
    }
    assert index["og:title"] == next(filter(None, findings))


def test_the_picture_for_previews_has_the_whole_address_of_a_published_site():
    given = {"address": "https://example.org/decode/"}
    render = TEMPLATES.get_template("method.html").render
    shared = {"policy": "", "version": "", "has_traces": False, "has_scenarios": False}
    page = {"sweeps": [], "tables": [], "config": False, "file": "method.html"}
    text = render(**shared, **page, site=given, card=card_address(given), card_text="x")
    assert 'content="https://example.org/decode/card.png"' in text
    assert 'content="https://example.org/decode/method.html"' in text
    assert "og:image" not in render(**shared, **page, site={}, card="", card_text="")
    assert card_address({}) == CARD


def test_the_card_shows_the_first_finding_that_has_a_picture(tmp_path):
    charts = [
        {"id": id_, "family": "a", "finding": finding}
        for id_, finding in (("plain", ""), ("undrawn", "x"), ("found", "y"))
    ]
    folder = tmp_path / "a"
    folder.mkdir()
    assert card_chart(charts, [folder]) is None
    for name in ("plain", "found"):
        (folder / f"{name}.png").touch()
    assert card_chart(charts, [folder]) == (charts[2], folder / "found.png")


def test_hostile_names_are_text(site, shown):
    small = {f"charts/{chart}-small.png" for chart in CHARTS}
    for name, tag, attributes in elements(shown):
        assert tag != "img" or attributes.get("src") in {"assets/icon.svg", *small}, name
    for name in PAGES:
        assert "<script>document" not in (site / name).read_text()
    assert HOSTILE in [row[1] for row in put(site / "data" / "chips.js")[1]["rows"]]
    for path in [
        *site.glob("charts/*.js"),
        *site.glob("data/*.js"),
        site / "assets/charts-data.js",
    ]:
        assert "<" not in path.read_text(), f"{path.name}: a name could end the script"


def test_only_addresses_of_the_web_become_links():
    source = '{% from "macros.html" import link %}{{ link(url, text) }}'
    render = TEMPLATES.from_string(source).render
    assert render(url="javascript:alert(1)", text="x<y") == "x&lt;y"
    assert render(url=None, text="x") == "x"
    link = '<a href="https://a/&#34;onclick=" rel="noopener noreferrer">x</a>'
    assert render(url='https://a/"onclick=', text="x") == link
    assert TEMPLATES.from_string("{{ value }}").render(value=None) == ""


def test_no_template_turns_escaping_off():
    folder = Path(pages.__file__).parent / "templates"
    assert set(TEMPLATES.list_templates()) == {
        *PAGES,
        *("layout.html", "macros.html", "scenarios.html", "traces.html"),
    }
    for name in TEMPLATES.list_templates():
        assert not re.search(r"safe|autoescape|Markup", (folder / name).read_text()), name
    assert TEMPLATES.autoescape is True
