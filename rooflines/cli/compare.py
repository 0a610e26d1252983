"""`rooflines compare`: chips by number or model, and results of two runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from rooflines.answers.completion import complete, complete_training
from rooflines.answers.corrections import CommandLine
from rooflines.answers.explain import answered
from rooflines.answers.name_search import check_chip
from rooflines.answers.overrides import with_overrides
from rooflines.answers.phrases import price_notes
from rooflines.answers.question import question_sweep
from rooflines.answers.question_words import Question, all_mistakes, parse_words
from rooflines.answers.word_forms import COMPARE
from rooflines.basics.errors import RooflinesError, at_path
from rooflines.basics.text import counted, significant
from rooflines.cli import output
from rooflines.cli.chips import BANDWIDTH, CAPACITY, PEAK
from rooflines.cli.explain import QuestionCommand, answer_output, answered_line, echo_notes
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.architecture import TRAIN
from rooflines.results.catalogue_frames import chip_numbers
from rooflines.solvers.threshold_frames import sweep_thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.hardware.entries import Chip

SIZE = 8192
"""D and F of the matmul whose critical batches are compared [1]."""

MAIN = "bf16"
"""The dtype combination of the summary."""

PAIR = 2
"""Chips that are compared number by number [1]."""

MAIN_NUMBERS = {
    "bf16 peak": (PEAK, "FLOP/s"),
    "fp8 peak": ("units.matrix.fp8.flops_per_s", "FLOP/s"),
    "memory": (BANDWIDTH, "B/s"),
    "capacity": (CAPACITY, "B"),
}
"""Paths and units in the table of several chips, by title."""

RATES = r"^(units|memory|networks)\."
"""Paths of the numbers that are compared: prices are of different sellers and days."""


@click.command("compare", cls=QuestionCommand)
@click.argument(
    "words", nargs=-1, metavar="CHIP CHIP... [MODEL or SIZES] | RESULTS [RESULTS or SCENARIO]"
)
@output.config_option
@output.out_options("Of results: a picture, .png, .svg, .pdf or .html, or all changes as .parquet.")
@output.picture_options
@output.prints_frame
def command(  # noqa: PLR0913, the options
    words: tuple[str, ...],
    config: str | None,
    out: str | None,
    size: str | None,
    *,
    dark: bool,
    force: bool,
) -> output.Printed:
    """Compare chips, one model on several chips, or the results of two runs.

    Of two chips the numbers that differ, with their ratio; of several a table; a maker or a
    generation stands for all its chips. The critical batch is that of a matmul with D = F = 8192 in
    each dtype combination that both support; a null is a batch that no size reaches, or a number
    that one of them lacks. With a model or sizes it is `rooflines explain` on all of the chips.

    Of two folders of results, it shows what changed in thresholds, times and costs: the inputs that
    differ, the rows that only one has, and groups of rows with their ratio, largest change first.
    Rows are joined on chip, dtypes, sizes and split; a key with one value on both sides, such as
    the dtypes of two runs with one combination, is compared across. --csv has every changed number.
    Of one folder, all scenarios or those named are compared with the config as written.

    Examples:
        rooflines compare h100-sxm b200
        rooflines compare h100 b200 mi355x
        rooflines compare h100 vs b200 llama-3.1-70b
        rooflines compare h100 b200 llama-3.1-8b llama-3.1-70b
        rooflines compare h100-sxm mine --config mine.yaml
        rooflines compare h100-sxm b200 --csv
        rooflines compare results-before results-after
        rooflines compare results-before results-after -o changes.svg
        rooflines compare results SCENARIO
    """
    if any(map(_is_folder, words)):
        from rooflines.cli import run_comparison  # noqa: PLC0415 - pictures take a second to load

        if compared := run_comparison.read_changes(words):
            return run_comparison.compared_runs(compared, out, size, dark=dark, force=force)
    for option, value in (("--out", out), ("--size", size), ("--dark", dark)):
        if value:
            fix = "leave it out, or name two folders of results"
            raise RooflinesError(option, "is given for chips, of which no picture is drawn", fix)
    catalogues = output.catalogues_of(config)
    question, printed = answered_line(COMPARE, CommandLine(words, {}), catalogues, _compared)
    echo_notes(question)
    return printed


def _is_folder(word: str) -> bool:
    """Tell whether a word is a folder's path."""
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):  # longer than a path can be
        return False


def _compared(line: CommandLine, catalogues: QuestionCatalogues) -> tuple[Question, output.Printed]:
    """Question of a line, and the comparison that it asks for."""
    question = parse_words(line.words, catalogues.chips, COMPARE)
    if any(mistake.error.where == "chip" for mistake in question.mistakes):
        question.check()
    with all_mistakes(question):
        for word in question.chips:
            with at_path("chip"):
                check_chip(word, catalogues.chips, output.USE_CHIP)
        if len(question.chips) < PAIR and not (question.model and len(question.splits) > 1):
            problem = "are fewer than the two of a comparison"
            fix = "give two chips that differ, such as h100-sxm and b200"
            raise RooflinesError("chips", problem, fix)
        if question.model is not None or question.operation or question.product or question.sizes:
            price = question.options.pop("price", None)
            catalogues = with_overrides(question, catalogues, (), price)
            if question.model is None:
                return question, answer_output(answered(question, catalogues))
            return question, _models(question, catalogues)
    if len(question.chips) > PAIR or question.counts:
        return question, _table(question.chips, catalogues, question.counts)
    return question, _pair(*question.chips, catalogues=catalogues)


def _models(question: Question, catalogues: QuestionCatalogues) -> output.Printed:
    """Every model on all chips, a table each."""
    frames, screens = list[pl.DataFrame](), list[str]()
    for model in [question.model, *question.other_models]:
        single = replace(question, model=model, sizes={**question.sizes}, splits=[*question.splits])
        if single.options.get("phase") == TRAIN:
            complete_training(single, {})
        else:
            complete(single, catalogues)
        frame, screen, *_ = answer_output(answered(single, catalogues))
        frames.append(frame)
        screens.append(str(screen))
    return pl.concat(frames, how="diagonal_relaxed"), "\n\n".join(screens)


def _table(
    names: Sequence[str], catalogues: QuestionCatalogues, counts: Mapping[str, int]
) -> output.Printed:
    """Main numbers of several chips, or of a number of each, a row each."""
    chips = {name: catalogues.chips[name] for name in names}
    numbers = {(row["chip"], row["path"]): row["value"] for row in chip_numbers(chips).to_dicts()}
    critical = _critical(names, catalogues).filter(what=f"critical B, {MAIN}")
    batches = dict(critical.select("chip", "value").iter_rows())
    rows: list[dict[str, Any]] = []
    for name, chip in chips.items():
        price = chip.lowest_price()
        main = {title: numbers.get((name, path)) for title, (path, _) in MAIN_NUMBERS.items()}
        usd, provider = (price.usd_per_hour, price.provider) if price else (None, None)
        count = counts.get(name, 1)
        total = {title: value and count * value for title, value in {**main, "USD/h": usd}.items()}
        usd = total.pop("USD/h")
        rest = {"critical B": batches.get(name), "USD/h": usd, "provider": provider}
        rows.append({"chip": name, **({"chips": count} if counts else {}), **total, **rest})
    units = {title: unit for title, (_, unit) in MAIN_NUMBERS.items()} | {"critical B": ""}
    shown = [
        row | {title: output.chip_number(unit, row[title]) for title, unit in units.items()}
        for row in rows
    ]
    note = f"critical B: of a {MAIN} matmul with D = F = {SIZE:,}"
    lines = [output.table([*rows[0]], shown), "", note, *price_notes(chips)]
    if counts:
        lines.append("Peaks, memory and prices are of all chips; name a model to compare its step.")
    return pl.DataFrame(rows), "\n".join(lines)


def _pair(first_chip: str, second_chip: str, *, catalogues: QuestionCatalogues) -> output.Printed:
    """Numbers in which two chips differ."""
    chips = {name: catalogues.chips[name] for name in (first_chip, second_chip)}
    numbers = chip_numbers(chips).filter(pl.col("path").str.contains(RATES))
    numbers = numbers.select("chip", "value", "unit", what="path")
    frame = _side_by_side(
        pl.concat([numbers, _critical([first_chip, second_chip], catalogues, shared=True)]),
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


def _critical(
    names: Sequence[str], catalogues: QuestionCatalogues, *, shared: bool = False
) -> pl.DataFrame:
    """Critical batches by chip and dtypes.

    Args:
        names: Chips.
        catalogues: What can be named.
        shared: Of the combinations alone that all chips compute.
    """
    question = Question([*names], dtypes=[*dtype_entries().combinations])
    question.sizes = {"B": 1, "D": SIZE, "F": SIZE}
    thresholds = sweep_thresholds(question_sweep(question, catalogues)).filter(
        pl.col("axis") == "B", share=1
    )
    if shared:
        thresholds = thresholds.filter(pl.len().over("dtypes") == len(names))
    return thresholds.select(
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
    """Difference count, peak and bandwidth ratios, critical batches, and prices."""
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
    yield from price_notes(chips)
    if unpriced := [name for name, chip in chips.items() if chip.lowest_price() is None]:
        yield f"Set a price in --config: `prices: {{{unpriced[0]}: 2.5}}`."
