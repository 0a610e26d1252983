"""`rooflines compare`: two chips, which of their numbers differ, by how much, and what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.answers.question import question_sweep
from rooflines.answers.question_words import Question
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted, significant
from rooflines.cli import output
from rooflines.cli.chips import BANDWIDTH, PEAK
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.results.catalogue_frames import chip_numbers
from rooflines.solvers.threshold_frames import sweep_thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.hardware.entries import Chip

SIZE = 8192
"""D and F of the matmul whose critical batches are compared [1]."""

MAIN = "bf16"
"""The dtype combination of the summary."""

RATES = r"^(units|memory|networks)\."
"""Paths of the numbers that are compared: prices are of different sellers and days."""


@click.command("compare", cls=output.WithExamples)
@click.argument("first_chip", metavar="CHIP")
@click.argument("second_chip", metavar="CHIP")
@output.config_option
@output.prints_frame
def command(first_chip: str, second_chip: str, config: str | None) -> output.Printed:
    """Compare two chips: which numbers differ, by how much, and from which batch on they compute.

    The critical batch is that of a matmul with D = F = 8192 in each dtype combination that both
    support; a null is a batch that no size reaches, or a number that one of them lacks.

    Examples:
        rooflines compare h100-sxm b200
        rooflines compare h100-sxm mine --config mine.yaml
        rooflines compare h100-sxm b200 --csv
    """
    catalogues = output.catalogues_of(config)
    first_chip = output.one_chip("first chip", first_chip, catalogues.chips)
    second_chip = output.one_chip("second chip", second_chip, catalogues.chips)
    if first_chip == second_chip:
        fix = "give two chips that differ, such as h100-sxm and b200"
        raise RooflinesError("second chip", f"is {first_chip!r} again", fix)
    chips = {name: catalogues.chips[name] for name in (first_chip, second_chip)}
    numbers = chip_numbers(chips).filter(pl.col("path").str.contains(RATES))
    numbers = numbers.select("chip", "value", "unit", what="path")
    frame = _side_by_side(
        pl.concat([numbers, _critical(first_chip, second_chip, catalogues)]),
        first_chip,
        second_chip,
    )
    differ = frame.filter(pl.col("one").ne_missing(pl.col("other")))
    rows = [
        row | {side: output.chip_number(row["unit"], row[side]) for side in ("one", "other")}
        for row in differ.to_dicts()
    ]
    shown = output.table(
        {"what": "what", "one": first_chip, "other": second_chip, "ratio": "ratio"}, rows
    )
    return differ, "\n".join([*_summary(frame, chips), "", shown])


def _critical(first_chip: str, second_chip: str, catalogues: QuestionCatalogues) -> pl.DataFrame:
    """Critical batches by chip and dtypes, of the combinations that both chips compute."""
    question = Question([first_chip, second_chip], dtypes=[*dtype_entries().combinations])
    question.sizes = {"B": 1, "D": SIZE, "F": SIZE}
    thresholds = sweep_thresholds(question_sweep(question, catalogues)).filter(
        pl.col("axis") == "B", share=1
    )
    return thresholds.filter(pl.len().over("dtypes") > 1).select(
        pl.col("chip").cast(pl.String),
        value=pl.col("critical").cast(pl.Float64),
        unit=pl.lit(""),
        what=pl.format("critical B, {}", "dtypes"),
    )


def _side_by_side(numbers: pl.DataFrame, first_chip: str, second_chip: str) -> pl.DataFrame:
    """Numbers of two chips in a row each: `what`, `one`, `other`, `ratio`, `unit`."""
    first, second = (
        numbers.filter(chip=chip).select("what", "unit", pl.col("value").alias(name))
        for chip, name in ((first_chip, "one"), (second_chip, "other"))
    )
    keys = ["what", "unit"]
    joined = first.join(second, on=keys, how="full", coalesce=True, maintain_order="left_right")
    ratio = pl.when(pl.col("one") != 0).then(pl.col("other") / pl.col("one"))
    return joined.select("what", "one", "other", ratio.alias("ratio"), "unit")


def _ratio(row: dict[str, float | None]) -> str:
    return "-" if row["ratio"] is None else significant(row["ratio"])


def _summary(frame: pl.DataFrame, chips: dict[str, Chip]) -> Iterator[str]:
    """Count of differences, ratios of peak and bandwidth, critical batches, and prices."""
    first_chip, second_chip = chips
    of_chips = frame.filter(pl.col("what").str.contains(RATES))
    differ = of_chips.filter(pl.col("one").ne_missing(pl.col("other"))).height
    yield (
        f"{first_chip} and {second_chip}: {differ} of {counted(of_chips.height, 'number')} differ; "
        f"ratio is {second_chip} / {first_chip}"
    )
    rows = {row["what"]: row for row in frame.to_dicts()}
    factors = [
        f"{name} × {_ratio(rows[path])}"
        for name, path in (("bf16 peak", PEAK), ("memory bandwidth", BANDWIDTH))
        if path in rows and rows[path]["ratio"]
    ]
    if row := rows.get(f"critical B, {MAIN}"):
        sizes = [row[side] for side in ("one", "other")]
        batches = " and ".join("never" if size is None else significant(size) for size in sizes)
        factors.append(f"compute-bound from B = {batches} (a layer of {SIZE:,} × {SIZE:,})")
    if factors:
        yield ", ".join(factors)
    yield f"Lowest dated price per hour: {'; '.join(map(_price, chips, chips.values()))}"


def _price(name: str, chip: Chip) -> str:
    """Lowest dated price for a chip, or a hint to set one."""
    price = chip.lowest_price()
    if price is None:
        return f"{name} unknown (set one in --config: `prices: {{{name}: 2.5}}`)"
    return f"{name} ${price.usd_per_hour:,.4g} ({price.provider}, {price.date})"
