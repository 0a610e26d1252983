"""`rooflines list chips`: chips in the catalogue, and every number for one with its source."""

from __future__ import annotations

from typing import Any

import click
import polars as pl

from rooflines import api
from rooflines.answers.name_search import find_group
from rooflines.cli import output
from rooflines.hardware.chip_catalogue import chip_entries, chip_sources
from rooflines.loading import load_config

PEAK, BANDWIDTH, CAPACITY = (
    "units.matrix.bf16.flops_per_s",
    "memory.hbm.bytes_per_s",
    "memory.hbm.capacity_bytes",
)
"""The numbers of the list."""

LIST = ("chip", "bf16 peak", "memory", "capacity", "label", "vendor", "name")
"""The columns of the list."""

ESTIMATE = " (estimate)"


@click.command("chips", cls=output.WithExamples)
@click.argument("chip", required=False, metavar="[ID]")
@output.config_option
@click.option("--all", "show_all", is_flag=True, help="Variants of chips too.")
@output.prints_frame
def command(chip: str | None, config: str | None, *, show_all: bool) -> output.Printed:
    """List the chips of the catalogue, or every number of one chip with its source.

    The capacity is what the device reports to a program, the label what is printed on it. Variants,
    which differ from a chip in some numbers, are left out of the list without --all; CSV and JSON
    have all of them. A maker or a generation, such as nvidia or blackwell, lists its chips.

    Examples:
        rooflines list chips
        rooflines list chips h100-sxm
        rooflines list chips blackwell
        rooflines list chips --all
        rooflines list chips --csv > chips.csv
    """
    loaded = None if config is None else load_config(config, needs_sweeps=False)
    frame = api.chips(loaded)
    group = [] if chip is None else find_group(chip, loaded.chips if loaded else chip_entries())
    if group:
        whole = frame.filter(pl.col("chip").is_in(group))
        return whole, _list(whole, whole)
    if chip is not None:
        frame = frame.filter(chip=output.one_chip("chip", chip, loaded.chips if loaded else None))
    config_chips = loaded.plain.get("chips", {}) if loaded else {}
    listed = pl.col("base").is_null() | pl.col("chip").is_in([*config_chips])
    text = (
        _list(frame if show_all else frame.filter(listed), frame)
        if chip is None
        else _chip_sheet(frame)
    )
    return frame, text


def _list(frame: pl.DataFrame, whole: pl.DataFrame) -> str:
    """A line for each chip: its id, name, bf16 peak, and bandwidth and size of its main memory."""
    numbers = {(row["chip"], row["path"]): row for row in frame.to_dicts()}
    nothing: dict[str, Any] = {"value": None, "estimate": False, "label": None}
    variant = pl.format("{} (variant of {})", "name", "base")
    named = frame.select("chip", "vendor", name=pl.coalesce(variant, "name"))
    rows = [
        {
            **row,
            "bf16 peak": output.chip_number("FLOP/s", peak["value"]),
            "memory": output.chip_number("B/s", rate["value"]),
            "capacity": output.chip_number("B", size["value"]) + ESTIMATE * size["estimate"],
            "label": size["label"],
        }
        for row in named.unique(maintain_order=True).to_dicts()
        for peak, rate, size in [
            [numbers.get((row["chip"], path), nothing) for path in (PEAK, BANDWIDTH, CAPACITY)]
        ]
    ]
    more = whole["chip"].n_unique() - len(rows)
    rest = f"; {more} variants with --all" if more else ""
    hint = "`rooflines list chips ID` has its numbers"
    shown = output.table(LIST, rows)
    return f"{shown}\n\n{len(rows)} chips{rest}; {hint}"


def _chip_sheet(frame: pl.DataFrame) -> str:
    """Every number of a chip, its source, and the sources' titles."""
    first = frame.row(0, named=True)
    rows = [
        {
            "number": row["path"],
            "value": output.chip_number(row["unit"], row["value"])
            + (f" (label {row['label']})" if row["label"] else "")
            + ESTIMATE * row["estimate"],
            "confidence": row["confidence"] or "",
            "source": row["source"] or "",
        }
        for row in frame.to_dicts()
    ]
    named = {name for row in rows for name in row["source"].split(", ")}
    titles = [
        "\n  ".join([f"{name}: {about['title']}", *([about["url"]] if "url" in about else [])])
        for name, about in chip_sources().items()
        if name in named
    ]
    head = f"{first['chip']}: {first['name']}, {first['vendor']}"
    head += f", a variant of {first['base']}" if first["base"] else ""
    shown = output.table(("number", "value", "confidence", "source"), rows)
    return "\n".join([head, "", shown, *(["", "Sources:"] if titles else []), *titles])
