"""The site: a folder of pages, data and downloads, from charts, thresholds and the catalogue.

No result is computed here: all numbers come from files, and the first page evaluates the
coefficients of `formulas` and `steps`. The pages need no server and no network, and
run under a content security policy that allows only the scripts of the folder.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import read_parquet
from rooflines.basics.text import FORMULA
from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_sources
from rooflines.charts.files import SPEC, VIEWS
from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.kit.themes import SIZES, config
from rooflines.results.atomic import atomic_folder
from rooflines.results.records import recording
from rooflines.results.tables import metadata_of
from rooflines.site.chip_page import chip_details, chip_table
from rooflines.site.data_package import package_files
from rooflines.site.data_page import threshold_data
from rooflines.site.downloads import download_files, downloads_of
from rooflines.site.explorer import MATMULS, explorer_files, offered_chips
from rooflines.site.far_page import far_view
from rooflines.site.pages import ListedChart, ListedTable, Published, pages, used_chips
from rooflines.site.text import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON

HERE = Path(__file__).parent

FILES = {
    "PNG": ".png",
    "SVG": ".svg",
    "PDF": ".pdf",
    "HTML": ".html",
    "Vega-Lite": ".vl.json",
    "Parquet": ".parquet",
}
"""Downloads of a chart: text and ending of each file; of pictures, those that were drawn."""

LAYOUTS = ("web", "paper")
"""Layouts of a chart in the page: the second is the narrow one."""

COMPRESSION = 6
"""Level of zlib: 9 saves a hundredth of the bytes and takes twice the time."""

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write_bundle(  # noqa: PLR0913, all but the first three have a default
    folder: str | Path,
    families: Iterable[str | Path],
    thresholds: str | Path,
    models: Iterable[str | Path] = (),
    spec: str = "{}",
    *,
    measured: Iterable[str | Path] = (),
    timings: Iterable[str | Path] = (),
    kept: Path | None = None,
) -> None:
    """Write the site; a folder of that name is replaced.

    Args:
        folder: The folder to write.
        families: The folders of the families of charts, in the order of the list: the files of the
            charts, and `index.json`, which lists them.
        thresholds: The thresholds, as Parquet; their metadata have the chips.
        models: thresholds of whole models, as Parquet, for download.
        spec: What the site says of itself and the config, from `Plan.spec`.
        measured: Errors at timings, and timings without a row, as CSV; none without timings.
        timings: The timings, as Parquet; their metadata have the chips.
        kept: A file for data that the next run reads if their inputs are equal; None: none.
    """
    whole_models, joined = [Path(path) for path in models], [Path(path) for path in timings]
    recipes = _recipes([Path(thresholds), *whole_models, *joined])
    of_config = json.loads(spec)
    files = site_files(
        [Path(family) for family in families],
        Path(thresholds),
        whole_models,
        of_config.get("site"),
        of_config.get("config"),
        measured=[Path(path) for path in measured],
        tables=of_config.get("tables", ()),
        timings=joined,
        kept=kept,
    )
    with recording(recipes=recipes), atomic_folder(folder) as temporary:
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


def site_files(  # noqa: PLR0913, all but the first two have a default
    families: Sequence[Path],
    thresholds: Path,
    models: Sequence[Path] = (),
    site: Mapping[str, str] | None = None,
    written: JSON | None = None,
    *,
    measured: Sequence[Path] = (),
    tables: Sequence[ListedTable] = (),
    timings: Sequence[Path] = (),
    kept: Path | None = None,
) -> Iterator[tuple[str, bytes]]:
    """All files of the site except its manifest.

    Args:
        families: The folders of the families of charts.
        thresholds: The thresholds, as Parquet.
        models: thresholds of whole models, as Parquet.
        site: Its title, author, addresses and date, those that are given.
        written: The config as it was written, for download; None: there is none.
        measured: The files of `MEASURED_SUMMARIES`; none without timings.
        tables: The tables that are published elsewhere.
        timings: The timings, as Parquet.
        kept: As of `write_bundle`.

    Yields:
        Path and content of each file.
    """
    folders = {family.name: family for family in families}
    charts = [chart for family in families for chart in _charts(family)]
    _check_unique([chart["id"] for chart in charts])
    yield from _assets()
    data = {"charts": charts, "themes": _themes(), "formula": FORMULA}
    yield "assets/charts-data.js", _script("charts", data)
    for chart in charts:
        yield from _chart_files(chart, folders[chart["family"]])
    about = metadata_of(thresholds)
    frame = read_parquet(thresholds)
    listed = threshold_data(frame, about["columns"])
    yield "data/thresholds.js", _script("thresholds", listed)
    downloads = downloads_of(thresholds, list(models))
    for download in downloads:
        yield from download_files(download)
    others = _recipes([*models, *timings])
    named = {"thresholds": thresholds} | {path.stem: path for path in models}
    yield from _catalogue_files([*about["made_from"], *others], named, site or {}, kept)
    if written is not None:
        text = yaml.safe_dump(written, sort_keys=False, allow_unicode=True)
        yield "data/config.yaml", text.encode()
    far = None
    if measured:
        _, skipped = measured
        far = far_view(skipped, timings)
        for path in measured:
            yield f"data/{path.name}", path.read_bytes()
    published = Published(site or {}, written is not None, downloads, tables, listed, far)
    for name, page in pages(charts, frame, about, published):
        yield name, page.encode()


def _recipes(files: Iterable[Path]) -> list[JSON]:
    """What files were made from, by their metadata."""
    return [recipe for file in files for recipe in metadata_of(file)["made_from"]]


def _charts(folder: Path) -> list[ListedChart]:
    """The charts of a family."""
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
            "id": chart["id"],
            "family": folder.name,
            "heading": chart["heading"],
            "title": chart["title"],
            "subtitle": chart["subtitle"],
            "caption": chart["caption"],
            "params": chart["params"],
            "spec": f"charts/{chart['id']}.js",
            "files": [
                (text, f"charts/{chart['id']}{ending}")
                for text, ending in FILES.items()
                if (folder / f"{chart['id']}{ending}").exists()
            ],
        }
        for chart in listed
    ]


def _check_unique(ids: Sequence[str]) -> None:
    """Refuse an id that two charts have."""
    repeated = sorted({name for name in ids if ids.count(name) > 1})
    if repeated:
        raise RooflinesError(
            "charts", f"has the id {repeated[0]!r} twice", "give every chart an id of its own"
        )


def _script(name: str, data: object) -> bytes:
    """Data as a script, which a page opened from a folder can load; it cannot load JSON."""
    packed = base64.b64encode(zlib.compress(as_json(data).encode(), COMPRESSION)).decode()
    return f"ROOFLINES.put({as_json(name)},{as_json(packed)});\n".encode()


def _assets() -> Iterator[tuple[str, bytes]]:
    """Scripts, styles, the font and licences."""
    for path in sorted((HERE / "assets").iterdir()):
        yield f"assets/{path.name}", path.read_bytes()
    font = (HERE / "vendor" / "inter-latin-wght-normal.woff2").read_bytes()
    source = f"data:font/woff2;base64,{base64.b64encode(font).decode()}"
    face = (
        '@font-face{font-family:"Inter";font-style:normal;font-weight:100 900;'
        f'src:url({source}) format("woff2")}}\n'
    )
    yield "assets/font.css", face.encode()
    yield "assets/vega.js", gzip.decompress((HERE / "vendor" / "vega.js.gz").read_bytes())
    parts = [
        "Licences of what this folder contains that others made.\n",
        (HERE / "vendor" / "vega-licences.txt").read_text(encoding="utf-8"),
        "=" * 100
        + "\nassets/font.css contains Inter, and so do the pictures.\n(OFL-1.1)\n"
        + "-" * 100,
        (HERE / "vendor" / "inter-OFL.txt").read_text(encoding="utf-8"),
    ]
    yield "assets/LICENSES.txt", "\n".join(parts).encode()


def _themes() -> dict[str, dict[str, JSON]]:
    """Configs of Vega-Lite by theme and layout."""
    return {
        theme: {layout: config(SIZES[layout], dark=theme == "dark") for layout in LAYOUTS}
        for theme in ("light", "dark")
    }


def _chart_files(chart: ListedChart, folder: Path) -> Iterator[tuple[str, bytes]]:
    """A chart's specification with its views as a script, its downloads, and its small pictures."""
    name = chart["id"]
    spec = json.loads((folder / f"{name}{SPEC}").read_text(encoding="utf-8"))
    for key in ("config", "datasets", "layer"):  # the page has themes, and the views have the rest
        spec.pop(key)
    views = json.loads((folder / f"{name}{VIEWS}").read_text(encoding="utf-8"))
    yield chart["spec"], _script(f"chart/{name}", {"spec": spec, **views})
    for ending in FILES.values():
        path = folder / f"{name}{ending}"
        if path.exists():
            yield f"charts/{path.name}", path.read_bytes()
    small = f"{name}-small.png"
    yield f"charts/{small}", (folder / small).read_bytes()


def _catalogue_files(
    recipes: Sequence[JSON],
    tables: Mapping[str, Path],
    site: Mapping[str, str],
    kept: Path | None,
) -> Iterator[tuple[str, bytes]]:
    """All chips: the data of the first page, numbers, and the data package."""
    used = used_chips(recipes)
    chips = offered_chips(used)
    for name, data in explorer_files(chips, recipes, kept):
        yield f"data/{name}.js", _script(name, data)
        if name == MATMULS:
            yield from package_files(chips, data, tables, site)
    yield "data/chips.js", _script("chips", chip_table(used))
    yield "data/chip-numbers.js", _script("chip-numbers", chip_details(used, chip_sources()))
