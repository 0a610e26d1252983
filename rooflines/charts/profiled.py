"""Profiled kernels as dots under the roofs of their chip."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, printable
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted, si, significant
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.charts import roofs
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.place import Label, labelled
from rooflines.charts.kit.text import chip_label, part_name, with_value
from rooflines.charts.kit.themes import Margins
from rooflines.charts.views import View
from rooflines.explanation.sentences import Sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.kit.place import Plane

MARGINS, NAME_ROOM = Margins(left=4.2, right=15.2), 14.4

MOST_DOTS, MOST_NAMES = 500, 12
"""Kernels that are drawn, and of these that are named, those that take most time [1]."""

LARGEST, SMALLEST, AWAY = 2.4, 0.14, 0.35
"""Area of the dot with the largest share and the least area of a dot [em^2]; from it to its
name [em]."""

LONGEST_NAME, MOST_CHARACTERS = 15.0, 200
"""Width of the name of a kernel [em], and its characters; names of templates may have thousands."""


def kernels_view(
    kernels: pl.DataFrame,
    chip: str,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> View:
    """Kernels of a profile under the roofs that they are compared with, with areas by their time.

    Args:
        kernels: From `rooflines.kernels`.
        chip: The chip that ran them.
        chips: The chips by id, such as `Config.chips`; by default those of the catalogue.
        title: Replaces the finding.

    Raises:
        RooflinesError: No kernel has both operations and memory traffic.
    """
    shown = kernels.filter(pl.col("memory_intensity") > 0, pl.col("flops_per_s") > 0)
    if shown.is_empty():
        problem = "has no kernel with both operations and memory traffic"
        raise RooflinesError("", problem, "profile kernels that compute, or read the table")
    entry = (chip_entries() if chips is None else chips)[chip]
    share = pl.col("seconds") / kernels["seconds"].sum()
    drawn = shown.with_columns(time_share=share).sort("time_share", descending=True)
    area = (LARGEST / drawn["time_share"][0] * pl.col("time_share")).clip(SMALLEST)
    drawn = drawn.head(MOST_DOTS).with_columns(area=area)
    names = [printable(name) for name in drawn["kernel"]]
    names = [n if len(n) <= MOST_CHARACTERS else f"{n[: MOST_CHARACTERS - 1]}…" for n in names]
    texts = [
        with_value(name, f"{significant(100 * part)} %", LONGEST_NAME)
        for name, part in zip(names, drawn["time_share"], strict=True)
    ]
    dots = drawn.select(
        *("launches", "flops_per_s", "seconds", "time_share", "roof_share", "bound", "area"),
        intensity="memory_intensity",
        kernel=pl.Series(names, dtype=pl.String),
        attainable=pl.col("flops_per_s") / pl.col("roof_share"),
    )
    lines = _roofs(kernels, entry)
    plane = roofs.plane_of(lines, dots)
    data = {
        **roofs.data_of(lines, plane, MARGINS),
        "dots": dots,
        "dot-names": _names(dots, texts, lines, plane),
    }
    return View(
        _says(kernels, chip, title),
        _subtitle(kernels, dots, entry),
        _layers(),
        data,
        MARGINS,
        drawn.drop("area"),
        kit.plane_params(plane),
        (chip,),
    )


def _names(
    dots: pl.DataFrame, texts: Sequence[str], lines: pl.DataFrame, plane: Plane
) -> pl.DataFrame:
    """The names of the first kernels beside their dots, off all dots."""
    at = dots.select("intensity", "flops_per_s").rows()
    radii = [math.sqrt(area / math.pi) for area in dots["area"]]
    labels = [
        Label(text, [point], distance=radius + AWAY)
        for text, point, radius in zip(texts[:MOST_NAMES], at, radii, strict=False)
    ]
    paths = roofs.paths_of(lines, plane)
    return labelled(MARGINS, plane, labels, paths, list(zip(at, radii, strict=True)))


def _roofs(kernels: pl.DataFrame, entry: Chip) -> pl.DataFrame:
    """The roof of each unit and dtype that kernels are compared with."""
    compared = kernels.drop_nulls("compute").select("unit", "compute").unique(maintain_order=True)
    rate = float(entry.memory[MAIN_MEMORY].exact.bytes_per_s)
    rows = [
        (f"{compute}, {unit}", float(entry.units[unit][compute].exact))
        for unit, compute in compared.iter_rows()
    ]
    roofs_of = pl.DataFrame(
        rows, schema={"roof": pl.String, "flops_per_s": pl.Float64}, orient="row"
    )
    texts = [with_value(name, si(peak, "FLOP/s"), NAME_ROOM) for name, peak in rows]
    return roofs_of.with_columns(
        bytes_per_s=pl.lit(rate),
        ridge=pl.col("flops_per_s") / rate,
        text=pl.Series(texts, dtype=pl.String),
    ).sort("flops_per_s", descending=True)


def _layers() -> list[kit.Layer]:
    """Roofs, a line from every dot to its roof, the dots, and the names."""
    across = "Arithmetic intensity (FLOP per byte of main memory)"
    x, y, lines = roofs.roof_layers(None, across, "Attained FLOP/s")
    tips = [
        kit.tip("kernel"),
        kit.tip("launches", "launches", ",d"),
        kit.tip("roof_share", "share of roof", ".1%"),
        kit.tip("time_share", "share of time", ".1%"),
        kit.tip("seconds", "measured, s", ".4~s"),
        kit.tip("intensity", "FLOP/byte", ".4~s"),
        kit.tip("flops_per_s", "FLOP/s", ".4~s"),
        kit.tip("bound"),
    ]
    at = {"x": {**x, "field": "intensity"}, "y": {**y, "field": "flops_per_s"}}
    size: dict[str, Any] = {"opacity": 0.85, "size": kit.expr("em * em * datum.area")}
    return [
        lines[0],
        kit.layer("dots", "rule", "rule", {**at, "y2": {"field": "attainable"}}),
        kit.layer("dots", "point", "timing", {**at, "tooltip": tips}, **size),
        *kit.labels("dot-names", "strong", {"x": x, "y": y}),
        *lines[1:],
    ]


def _says(kernels: pl.DataFrame, chip: str, title: str | None) -> Sentence:
    """The share of the roof that all kernels reach together."""
    share = float(kernels["t_lower_s"].sum()) / float(kernels["seconds"].sum())
    number = counted(kernels.height, "kernel")
    text = f"{number} at {significant(100 * share)} % of the roofline of {chip_label(chip)}"
    return Sentence(text=title or text, rows=[{"chip": chip}], chosen=chip)


def _subtitle(kernels: pl.DataFrame, dots: pl.DataFrame, entry: Chip) -> str:
    """How to read it, and what is not drawn."""
    rate = si(float(entry.memory[MAIN_MEMORY].exact.bytes_per_s), "B/s")
    words = (
        f"Least over measured time of all; {part_name(MAIN_MEMORY)} at {rate}. Area and number of "
        "a dot: share of the time. Dashed: to its roof."
    )
    if left_out := kernels.height - dots.height:
        time = 100 * (1 - float(dots["time_share"].sum()))
        words += f" Not drawn: {counted(left_out, 'kernel')}, {significant(time)} % of the time."
    return words
