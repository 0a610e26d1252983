"""The folder to publish: from the charts on disk, the thresholds and the catalogue to pages, data and downloads.

Nothing is computed here that a reader would take for a result: numbers come from the files, this puts them into pages. The pages work
from a folder, without a server or a network, under a policy that lets no script run but the folder's own.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import vl_convert as vlc

from rooflines.basics.errors import RooflinesError
from rooflines.basics.version import __version__
from rooflines.charts.kit.themes import SIZES, config
from rooflines.charts.registry import headings
from rooflines.results.records import appearing_folder, recording
from rooflines.results.tables import csv_text, metadata_of
from rooflines.site.packing import packed_rows
from rooflines.site.pages import pages
from rooflines.site.text import as_json
from rooflines.site.threshold_data import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.model.resources import JSON

__all__ = ["site_files", "write_bundle"]

HERE = Path(__file__).parent

VEGA_LITE = "6.4"
EXPORTS = "window.vegaEmbed = vegaEmbed;"

FILES = {
    "PNG, light": "-light.png",
    "PNG, dark": "-dark.png",
    "SVG": ".svg",
    "PDF": ".pdf",
    "Vega-Lite": ".json",
    "CSV": ".csv",
    "Parquet": ".parquet",
}
"""The files of a chart that one can take away."""

LOOKS = {"web": (13, 14, 15, 16), "paper": (8, 9, 10, 11)}
"""Sizes of text that a page draws a chart in, by its layout [px]: the largest one that fits."""

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write_bundle(
    folder: str | Path, families: Iterable[str | Path], thresholds: str | Path
) -> None:
    """Write the folder to publish, in place of whatever stands there.

    Args:
        folder: Where it goes.
        families: The folder of every family of charts, in the order of the list: its charts' files, and `index.json`, which lists them.
        thresholds: The thresholds, as Parquet; their metadata have the chips.
    """
    with recording(recipes=metadata_of(thresholds)["made_from"]), appearing_folder(folder) as aside:
        sums: dict[str, str] = {}
        for name, content in site_files([Path(family) for family in families], Path(thresholds)):
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if path.suffix != ".pdf":  # the one format that differs from run to run
                sums[name] = hashlib.sha256(content).hexdigest()
        manifest = {
            "made_by": f"rooflines {__version__}",
            "vega_lite": VEGA_LITE,
            "sha256": dict(sorted(sums.items())),
        }
        (aside / "manifest.json").write_text(
            json.dumps(manifest, indent=1) + "\n", encoding="utf-8"
        )


def site_files(families: Sequence[Path], thresholds: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the folder but its manifest: its path and content.

    Args:
        families: The folder of every family of charts.
        thresholds: The thresholds, as Parquet.
    """
    charts = [chart for family in families for chart in _charts(family)]
    _refuse_doubles([chart["id"] for chart in charts])
    with (
        ThreadPoolExecutor(1) as beside
    ):  # ended whatever happens: one that is left alone can keep an interrupted process from ending
        vega = beside.submit(_vega)  # takes seconds, in which the rest is read and packed
        yield from _assets()
        yield "assets/charts-data.js", _script("charts", {"charts": charts, "looks": _looks()})
        for chart in charts:
            yield from _chart_files(
                chart, next(family for family in families if family.name == chart["family"])
            )
        about = metadata_of(thresholds)
        frame = pl.read_parquet(thresholds)
        chosen = next(
            (
                param["value"]
                for chart in charts
                for param in chart["params"]
                if param["name"] == "chip"
            ),
            None,
        )
        yield from _threshold_files(frame, thresholds, about["columns"], chosen)
        for name, text in pages(charts, frame, about):
            yield name, text.encode()
        yield "assets/vega.js", vega.result()


def _charts(folder: Path) -> list[dict[str, Any]]:
    """The charts of a family as the page knows them."""
    family = folder.name
    given = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    for chart in given:
        if not SAFE_NAME.fullmatch(chart["id"]):
            raise RooflinesError(
                "charts",
                f"has the id {chart['id']!r}, which is no name of a file",
                "use letters, digits and hyphens",
            )
    return [
        {
            "id": chart["id"],
            "family": family,
            "heading": chart.get("heading")
            or headings().get(family)
            or family.replace("-", " ").capitalize(),
            "title": chart["title"],
            "subtitle": chart["subtitle"],
            "caption": chart["caption"],
            "params": chart["params"],
            "spec": f"charts/{chart['id']}.js",
            "files": [
                [text, f"charts/{_download(chart['id'], ending)}"] for text, ending in FILES.items()
            ],
        }
        for chart in given
    ]


def _download(chart: str, ending: str) -> str:
    return f"{chart}.vl.json" if ending == ".json" else f"{chart}{ending}"


def _refuse_doubles(ids: Sequence[str]) -> None:
    doubles = sorted({name for name in ids if ids.count(name) > 1})
    if doubles:
        raise RooflinesError(
            "charts", f"has the id {doubles[0]!r} twice", "give every chart an id of its own"
        )


def _script(name: str, data: object) -> bytes:
    """Data as a script: what a page opened from a folder can load, unlike JSON."""
    return f"ROOFLINES.put({as_json(name)},{as_json(data)});\n".encode()


def _assets() -> Iterator[tuple[str, bytes]]:
    """Scripts, styles, the font and licences."""
    for path in sorted((HERE / "assets").iterdir()):
        yield f"assets/{path.name}", path.read_bytes()
    font = base64.b64encode(
        (HERE / "vendor" / "inter-latin-wght-normal.woff2").read_bytes()
    ).decode()
    face = f'@font-face{{font-family:"Inter";font-style:normal;font-weight:100 900;src:url(data:font/woff2;base64,{font}) format("woff2")}}\n'
    yield "assets/font.css", face.encode()
    parts = [
        "Licences of what this folder contains that others made.\n",
        (HERE / "vendor" / "vega-licences.txt").read_text(encoding="utf-8"),
        "=" * 100
        + "\nassets/font.css contains Inter, and so do the pictures.\n(OFL-1.1)\n"
        + "-" * 100,
        (HERE / "vendor" / "inter-OFL.txt").read_text(encoding="utf-8"),
    ]
    yield "assets/LICENSES.txt", "\n".join(parts).encode()


def _vega() -> bytes:
    """Vega, in a function of its own: its short names would clash with those of other scripts."""
    return f"(function(){{{vlc.javascript_bundle(EXPORTS, vl_version=VEGA_LITE)}}})();\n".encode()


def _looks() -> dict[str, dict[str, Any]]:
    """Configs of Vega-Lite by theme, layout and size of text."""
    return {
        name: {
            layout: {
                str(em): config(replace(SIZES[layout], em=em), dark=name == "dark") for em in sizes
            }
            for layout, sizes in LOOKS.items()
        }
        for name in ("light", "dark")
    }


def _chart_files(chart: JSON, folder: Path) -> Iterator[tuple[str, bytes]]:
    """A chart's specification as a script, its files, and its picture in the list."""
    spec = (
        folder / f"{chart['id']}.json"
    ).read_bytes()  # an infinite number in it is none that a script may have
    yield (
        chart["spec"],
        _script(f"chart/{chart['id']}", _packed(json.loads(spec, parse_constant=lambda _: None))),
    )
    for ending in FILES.values():
        yield (
            f"charts/{_download(chart['id'], ending)}",
            (folder / f"{chart['id']}{ending}").read_bytes(),
        )
    for name in (f"{chart['id']}-{theme}-small.png" for theme in ("light", "dark")):
        yield f"charts/{name}", (folder / name).read_bytes()


def _packed(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification whose rows are packed where they can be; the page unpacks them."""
    columns = {name: packed_rows(rows) for name, rows in spec.get("datasets", {}).items()}
    rows = {name: rows for name, rows in spec.get("datasets", {}).items() if columns[name] is None}
    return {
        "spec": {**spec, "datasets": rows},
        "columns": {name: form for name, form in columns.items() if form is not None},
    }


def _threshold_files(
    frame: pl.DataFrame, parquet: Path, columns: Sequence[JSON], chip: str | None
) -> Iterator[tuple[str, bytes]]:
    """The thresholds: what the page's table loads, and all of them to take away."""
    listed = []
    for number, table in enumerate(tables(frame)):
        parts = []
        for place, (of_chip, rows, of, packed) in enumerate(table.parts):
            file = f"data/thresholds-{number:02d}-{place:03d}.js"
            parts.append({"chip": of_chip, "rows": rows, "all": of, "file": file})
            yield file, _script(file, packed)
        listed.append(
            {
                "id": f"{table.sweep}.{table.axis}",
                "sweep": table.sweep,
                "axis": table.axis,
                "rows": table.rows,
                "parts": parts,
            }
        )
    yield (
        "data/thresholds.js",
        _script(
            "thresholds",
            {"tables": listed, "columns": columns, "table": _first_table(frame), "chip": chip},
        ),
    )
    yield "data/thresholds.parquet", parquet.read_bytes()
    yield "data/thresholds.csv.gz", gzip.compress(csv_text(frame).encode(), mtime=0)


def _first_table(frame: pl.DataFrame) -> str | None:
    """The table that one is most likely to look something up in: of named shapes if there are any, the largest that solves for a size."""
    named = pl.col("shape").is_not_null().any()
    found = frame.group_by("sweep", "axis", maintain_order=True).agg(
        named.alias("named"), (pl.col("axis") != "shards").all().alias("size"), pl.len()
    )
    best = found.sort("size", "named", "len", descending=True, maintain_order=True).head(1)
    return next((f"{sweep}.{axis}" for sweep, axis, *_ in best.iter_rows()), None)
