"""Site: a folder with pages, data and downloads, from charts, thresholds and the catalogue.

No result is computed here: all numbers come from files, and the explorer evaluates coefficients
from `matmuls` and `steps`. The pages need no server and no network, and
run under a content security policy that allows only the folder's own scripts.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zlib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import yaml

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import read_parquet
from rooflines.basics.text import FORMULA, NUMBER_FORMATS
from rooflines.basics.version import __version__
from rooflines.charts.chart_files import SPEC, VIEWS
from rooflines.charts.frames import NOMINAL
from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.kit.render import dumps
from rooflines.charts.kit.themes import SIZES, config
from rooflines.charts.options import ALL
from rooflines.hardware.chip_catalogue import chip_entries, chip_sources
from rooflines.hardware.entries import Chip
from rooflines.results.atomic import atomic_folder
from rooflines.results.records import recorded
from rooflines.results.tables import metadata_of
from rooflines.site.card import CARD, card_chart, card_picture
from rooflines.site.chip_page import chip_details, chip_table
from rooflines.site.data_package import package_files
from rooflines.site.data_page import threshold_data
from rooflines.site.explorer import IN_EXPLORER, MATMULS, STEPS, doubles, explorer_files
from rooflines.site.opening import leading_plans, opening_state
from rooflines.site.pages import pages
from rooflines.site.scenario_page import scenario_files, scenario_views
from rooflines.site.trace_page import trace_files, trace_views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON

FOLDER = Path(__file__).parent

ROWS = ".json"
"""Ending of the file with the rows that a chart's specification reads."""

FILES = {
    "PNG": ".png",
    "SVG": ".svg",
    "PDF": ".pdf",
    "HTML": ".html",
    "Vega-Lite": ".vl.json",
    "Vega-Lite data": ROWS,
    "Parquet": ".parquet",
}
"""Downloads of a chart: text and file ending; pictures only if they were drawn."""

LISTED = ("id", "heading", "title", "finding", "subtitle", "caption", "params")
"""Fields of a chart on the page, from its family's index."""

LAYOUTS = ("web", "paper")
"""Layouts of a chart on the page: the second is narrow."""

COMPRESSION = 6
"""Level of zlib: 9 saves a hundredth of the bytes and takes twice the time."""

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@recorded
def write_site(
    spec: str,
    folder: str | Path,
    inputs: Mapping[str, Sequence[str | Path]],
    state: str | Path | None = None,
) -> None:
    """Write the site; a folder of that name is replaced.

    Args:
        spec: From `Plan.spec`: `site` with title, author, addresses and date, `config` as written,
            and `tables` elsewhere.
        folder: The folder to write.
        inputs: Files and folders: `charts`, families in list order, each with
            `index.json`; `thresholds` and `models`, thresholds for operations and for whole models;
            `measured`, those of `MEASURED_SUMMARIES`, `timings`, `traces` and `scenarios`, if any.
        state: Folder for data that the next run reuses if their inputs are equal; None: none.
    """
    content = json.loads(spec)
    written = _Writer(content, {name: [*map(Path, inputs[name])] for name in inputs})
    cache = Path(state) / "site" / f"{content['code']}.json" if state else None
    files = chain(_assets(), written.chart_files(), written.table_files(cache), written.pages())
    with atomic_folder(folder) as temporary:
        digests: dict[str, str] = {}
        for name, content in files:
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if path.suffix != ".pdf":  # the one format that differs from run to run
                digests[name] = hashlib.sha256(content).hexdigest()
        manifest = {
            "made_by": f"rooflines {__version__}",
            "vega_lite": VEGA_LITE,
            "sha256": dict(sorted(digests.items())),
        }
        text = json.dumps(manifest, indent=1) + "\n"
        (temporary / "manifest.json").write_text(text, encoding="utf-8")


class _Writer:
    """Paths and contents of a site's files, part by part.

    Args:
        spec, inputs: As in `write_site`.
    """

    def __init__(self, spec: JSON, inputs: Mapping[str, Sequence[Path]]) -> None:
        self.site: Mapping[str, str] = spec.get("site") or {}
        self.config: JSON | None = spec.get("config")
        self.tables: Sequence[JSON] = spec.get("tables", ())
        (thresholds,), models = inputs["thresholds"], inputs["models"]
        self.families, self.measured = inputs["charts"], inputs["measured"]
        self.traces, self.scenarios = inputs.get("traces", ()), inputs.get("scenarios", ())
        self.about = metadata_of(thresholds)
        self.frame = read_parquet(thresholds)
        self.listed = threshold_data(self.frame, self.about["columns"])
        self.stored = {"thresholds": thresholds} | {path.stem: path for path in models}
        self.charts: list[JSON] = []
        self.opening: dict[str, str] = {}
        other_files = map(metadata_of, (*models, *inputs["timings"]))
        made_from = (metadata["made_from"] for metadata in (self.about, *other_files))
        self.recipes: list[JSON] = [  # chips as written, not as in scenarios
            recipe
            for recipe in chain(*made_from)
            if recipe.get("sweep") not in spec.get("scenarios", ())
        ]

    def chart_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the charts and the chart page's list."""
        family_charts = [(family, chart) for family in self.families for chart in _charts(family)]
        ids = [chart["id"] for _, chart in family_charts]
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            problem = f"has the id {repeated[0]!r} twice"
            raise RooflinesError("charts", problem, "give every chart an id of its own")
        self.charts += [chart for _, chart in family_charts]
        data = {"charts": self.charts, "themes": _themes(), "formula_pattern": FORMULA}
        yield "assets/charts-data.js", _script("charts", data)
        configs = [recipe["config"] for recipe in self.recipes]
        shapes = {
            shape["name"]: shape for config in configs for shape in config.get("shapes") or ()
        }
        for family, chart in family_charts:
            yield from _chart_files(chart, family, shapes)

    def table_files(self, cache: Path | None) -> Iterator[tuple[str, bytes]]:
        """Yield thresholds, chips, the explorer's data, the data package, and the config."""
        yield "data/thresholds.js", _script("thresholds", self.listed)
        for name, path in self.stored.items():
            yield f"data/{name}.parquet", path.read_bytes()
        used = used_chips(self.recipes)
        chips = {**chip_entries(), **used}
        page_data: dict[str, JSON] = {}
        leading = leading_plans(self.families)
        for name, data in explorer_files(chips, self.recipes, cache, leading):
            page_data[name] = data
            if name != MATMULS:
                yield f"data/{name}.js", _script(name, data)
            else:  # it is exact for other tools
                yield f"data/{name}.js", _script(name, doubles(data))
                yield from package_files(chips, data, self.stored, self.site)
        self.opening = opening_state(self.recipes, page_data[MATMULS], page_data[STEPS], leading)
        yield "data/chips.js", _script("chips", chip_table(used))
        yield "data/chip-numbers.js", _script("chip-numbers", chip_details(used, chip_sources()))
        if self.config is not None:
            text = yaml.safe_dump(self.config, sort_keys=False, allow_unicode=True)
            yield "data/config.yaml", text.encode()

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Yield the pages and errors at timings."""
        for path in self.measured:
            yield f"data/{path.name}", path.read_bytes()
        yield from trace_files(self.traces)
        yield from scenario_files(self.scenarios)
        card = card_chart(self.charts, self.families)
        if card is not None:
            yield CARD, card_picture(card[1].read_bytes())
        rendered = pages(
            self.site,
            charts=self.charts,
            counts=self.frame.group_by("sweep").len(),
            about=self.about,
            listed=self.listed,
            downloads=list(self.stored),
            tables=self.tables,
            config=self.config is not None,
            measured=self.measured,
            traces=trace_views(self.traces),
            scenarios=scenario_views(self.scenarios),
            card=card[0]["title"] if card is not None else "",
            opening=self.opening,
        )
        for name, page in rendered:
            yield name, page.encode()


def used_chips(recipes: Iterable[JSON]) -> dict[str, Chip]:
    """Chips in recipes, catalogue chips first and in its order."""
    used = {chip: entry for recipe in recipes for chip, entry in recipe["chips"].items()}
    return {
        chip: Chip.model_validate(used[chip]) for chip in (*chip_entries(), *used) if chip in used
    }


def _charts(folder: Path) -> list[JSON]:
    """A family's charts for the page's list, with file paths."""
    listed = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    for chart in listed:
        if not SAFE_NAME.fullmatch(chart["id"]):
            raise RooflinesError(
                "charts",
                f"has the id {chart['id']!r}, which is no name of a file",
                "use letters, digits and hyphens",
            )
    return [
        {
            **{name: chart[name] for name in LISTED},
            "family": folder.name,
            "spec": f"charts/{chart['id']}.js",
            "files": [
                {"text": text, "path": f"charts/{chart['id']}{ending}"}
                for text, ending in FILES.items()
                if ending == ROWS or (folder / f"{chart['id']}{ending}").exists()
            ],
        }
        for chart in listed
    ]


def _script(name: str, data: object) -> bytes:
    """Wrap data as a script: a page opened from a folder cannot load JSON."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packed = base64.b64encode(zlib.compress(text.encode(), COMPRESSION)).decode()
    return f"ROOFLINES.put({json.dumps(name)},{json.dumps(packed)});\n".encode()


def _assets() -> Iterator[tuple[str, bytes]]:
    """Scripts, styles, the font and licences."""
    for path in sorted((FOLDER / "assets").iterdir()):
        yield f"assets/{path.name}", path.read_bytes()
    yield "assets/number-formats.js", number_formats_script().encode()
    font = (FOLDER / "vendor" / "inter-latin-wght-normal.woff2").read_bytes()
    source = f"data:font/woff2;base64,{base64.b64encode(font).decode()}"
    face = (
        '@font-face{font-family:"Inter";font-style:normal;font-weight:100 900;'
        f'src:url({source}) format("woff2")}}\n'
    )
    yield "assets/font.css", face.encode()
    yield "assets/vega.js", gzip.decompress((FOLDER / "vendor" / "vega.js.gz").read_bytes())
    parts = [
        "Licences of what this folder contains that others made.\n",
        (FOLDER / "vendor" / "vega-licences.txt").read_text(encoding="utf-8"),
        "=" * 100
        + "\nassets/font.css contains Inter, and so do the pictures.\n(OFL-1.1)\n"
        + "-" * 100,
        (FOLDER / "vendor" / "inter-OFL.txt").read_text(encoding="utf-8"),
    ]
    yield "assets/LICENSES.txt", "\n".join(parts).encode()


def number_formats_script() -> str:
    """Number formats as a script."""
    table = json.dumps(NUMBER_FORMATS, ensure_ascii=False)
    return f'"use strict";\nconst NUMBER_FORMATS = {table};\n'


def _themes() -> dict[str, dict[str, JSON]]:
    """Vega-Lite configs by theme and layout."""
    return {
        theme: {layout: config(SIZES[layout], dark=theme == "dark") for layout in LAYOUTS}
        for theme in ("light", "dark")
    }


def _explorer_address(values: Mapping[str, Any], shapes: Mapping[str, JSON]) -> str:
    """Explorer address with the state that a chart's view shows.

    Args:
        values: Chosen options by chart menu.
        shapes: Sweep shapes by name, with their sizes.
    """
    subject = "model" if "S" in values else "matmul"
    values_by_menu = {**shapes.get(values.get("shape", ""), {}), **values}
    state = {name: values_by_menu.get(menu) for menu, name in IN_EXPLORER[subject].items()}
    state_set = {name: value for name, value in state.items() if value not in (None, ALL)}
    if state_set.get("basis") == NOMINAL:
        state_set["basis"] = "bound"
    return f"index.html#{urlencode({'subject': subject, **state_set})}"


def externalize_data(spec: JSON, name: str) -> tuple[JSON, JSON]:
    """Move a specification's rows to `<name>.json`; returns the specification and rows by name."""
    for layer in spec["layer"]:
        if data := layer["data"].get("name"):
            layer["data"] = {"url": f"{name}.json", "format": {"type": "json", "property": data}}
    return {key: value for key, value in spec.items() if key != "datasets"}, spec["datasets"]


def _chart_files(
    chart: JSON, folder: Path, shapes: Mapping[str, JSON]
) -> Iterator[tuple[str, bytes]]:
    """Yield a chart's specification and views as a script, its downloads, and its thumbnails."""
    name = chart["id"]
    spec = json.loads((folder / f"{name}{SPEC}").read_text(encoding="utf-8"))
    alone, rows = externalize_data(spec, name)
    views = json.loads((folder / f"{name}{VIEWS}").read_text(encoding="utf-8"))
    for view in views["views"]:
        view["explorer"] = _explorer_address(view["values"], shapes)
    # The page has themes, and the views have the rest.
    page = {key: value for key, value in alone.items() if key not in ("config", "layer")}
    page["params"] = {param["name"]: param["value"] for param in spec["params"]}
    yield chart["spec"], _script(f"chart/{name}", {"spec": page, **views})
    for ending in (*FILES.values(), "-small.png"):
        path = folder / f"{name}{ending}"
        if path.exists() and ending != SPEC:
            yield f"charts/{path.name}", path.read_bytes()
    yield f"charts/{name}{SPEC}", dumps(alone).encode()
    yield f"charts/{name}.json", dumps(rows).encode()
