"""`rooflines compare`: two chips, or two configs; what differs, by how much, and why."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import polars as pl

from rooflines import api
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted, significant
from rooflines.catalogue.chips import chip_entries, dtype_entries, resolve_chips
from rooflines.cli.chips import BANDWIDTH, PEAK
from rooflines.cli.output import as_csv, as_table, number, one_chip, width
from rooflines.config import load_config
from rooflines.explanation.answer import thresholds_of
from rooflines.explanation.question import Known, sweep_of
from rooflines.explanation.words import Question
from rooflines.fits.entries import Calibrations
from rooflines.model.columns import TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.config import Config

EXAMPLES = """
\b
Examples:
  rooflines compare h100-sxm b200
  rooflines compare my.yaml other.yaml
  rooflines compare h100-sxm mine --config mine.yaml
  rooflines compare h100-sxm b200 --csv
"""

CONFIG_NAMES = (".yaml", ".yml")
"""How the name of a config ends."""

MOST_SHOWN = 40
"""Differences that are shown [1]; CSV has all."""

SIZE = 8192
"""D and F of the default question [1]."""

MAIN = "bf16"
"""The dtype combination of the summary."""

RATES = ("flops_per_s", "bytes_per_s")
"""Last words of the numbers that a critical batch on one chip depends on."""

SCHEMA = {
    "what": pl.String,
    "one": pl.Float64,
    "other": pl.Float64,
    "ratio": pl.Float64,
    "because_of": pl.String,
}


class Differences(NamedTuple):
    """What differs.

    Attributes:
        summary: The main points, a line each.
        rows: `what`, `one`, `other`, `ratio` (other / one), `because_of`; a row per difference.
    """

    summary: list[str]
    rows: list[dict[str, Any]]


@click.command("compare", epilog=EXAMPLES)
@click.argument("one", metavar="CHIP|CONFIG")
@click.argument("other", metavar="CHIP|CONFIG")
@click.option("--config", metavar="FILE", help="A config whose own chips can be named too.")
@click.option("--csv", "csv", is_flag=True, help="All differences as CSV.")
def command(one: str, other: str, config: str | None, *, csv: bool) -> None:
    """Compare two chips, or two configs: what differs, by how much, and which number is why.

    Chips: their numbers, and the critical batch of a matmul with D = F = 8192 in each dtype
    combination that both support. Configs: rows, and critical sizes.
    """
    if _is_config(one) and _is_config(other):
        if config is not None:
            problem, fix = "is for chips, but two configs are compared", "leave it out"
            raise RooflinesError("--config", problem, fix)
        found = _of_configs(one, other)
    else:
        loaded = load_config(config, needs_sweeps=False) if config else None
        chips = loaded.chips if loaded else chip_entries()
        one, other = one_chip("first chip", one, chips), one_chip("second chip", other, chips)
        found = _of_chips(one, other, chips, api.chips(loaded))
    if csv:
        click.echo(as_csv(pl.DataFrame(found.rows, schema=SCHEMA, orient="row")))
        return
    lines, rows = [*found.summary], found.rows
    if rows:
        cells = [
            (
                row["what"],
                number(row["what"], row["one"]),
                number(row["what"], row["other"]),
                number("", row["ratio"]),
                row["because_of"] or "",
            )
            for row in rows[:MOST_SHOWN]
        ]
        lines += ["", as_table(("what", one, other, "ratio", "because of"), cells, width())]
    if len(rows) > MOST_SHOWN:
        lines.append(f"... {len(rows) - MOST_SHOWN:,} more: --csv")
    click.echo("\n".join(lines))


def _is_config(name: str) -> bool:
    """Whether a word names a config and not a chip."""
    with suppress(OSError):  # a name that no file can have
        return name.endswith(CONFIG_NAMES) or Path(name).is_file()
    return False


def _row(
    what: str, one: float | None, other: float | None, why: str | None = None
) -> dict[str, Any]:
    ratio = other / one if one and other is not None else None
    return {"what": what, "one": one, "other": other, "ratio": ratio, "because_of": why}


def _differing(
    one: Mapping[str, float], other: Mapping[str, float], prefix: str = ""
) -> list[dict[str, Any]]:
    """Rows of the numbers of either that differ; None: it has none of the name."""
    return [
        _row(f"{prefix}{name}", one.get(name), other.get(name))
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    ]


def _size(value: float | None) -> str:
    return "never" if value is None else significant(value)


# ---------------------------------------------------------------- chips


def _of_chips(
    one: str, other: str, chips: Mapping[str, Chip], catalogue: pl.DataFrame
) -> Differences:
    """The numbers of two chips that differ, and the critical batches, with the number that is why.

    Raises:
        RooflinesError: The two are one.
    """
    if one == other:
        fix = "give two chips that differ, such as h100-sxm and b200"
        raise RooflinesError("second chip", f"is {one!r} again", fix)
    first, second = (_numbers(catalogue, chip) for chip in (one, other))
    numbers = _differing(first, second)
    changes = {path: value for path, value in second.items() if first.get(path, value) != value}
    critical = list(_critical(one, other, changes, chips))
    summary = [
        (
            f"{one} and {other}: {len(numbers):,} of {counted(len({*first, *second}), 'number')} "
            f"differ; ratio is {other} / {one}"
        ),
        *_main(first, second, critical),
        f"Lowest dated price of an hour: {'; '.join(_price(chips, name) for name in (one, other))}",
    ]
    return Differences(
        summary, [*numbers, *(row for row in critical if row["one"] != row["other"])]
    )


def _numbers(catalogue: pl.DataFrame, chip: str) -> dict[str, float]:
    """The numbers of a chip by path; prices and power are no part of a roofline."""
    return {
        path: value
        for path, value in catalogue.filter(chip=chip).select("path", "value").iter_rows()
        if path.startswith(("units.", "memory.", "networks."))
    }


def _main(
    first: Mapping[str, float], second: Mapping[str, float], critical: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """The ratios of the peak and the memory's bandwidth, and what they make of the critical B."""
    factors = [
        f"{name} × {significant(second[path] / first[path])}"
        for name, path in (("bf16 peak", PEAK), ("memory bandwidth", BANDWIDTH))
        if path in first and path in second
    ]
    for row in critical:
        if row["what"] == f"critical B, {MAIN}":
            both = f"{_size(row['one'])} and {_size(row['other'])}"
            factors.append(f"compute-bound from B = {both} (a layer of {SIZE:,} x {SIZE:,})")
    if factors:
        yield ", ".join(factors)


def _price(chips: Mapping[str, Chip], name: str) -> str:
    """The lowest dated price of a chip, or that it has none."""
    price = chips[name].lowest_price()
    if price is None:
        return f"none of {name} is known (--config with `prices: {{{name}: 2.5}}` gives one)"
    return f"{name} ${price.usd_per_hour:,.4g} ({price.provider}, {price.date})"


def _critical(
    one: str, other: str, changes: Mapping[str, float], chips: Mapping[str, Chip]
) -> Iterator[dict[str, Any]]:
    """Critical batches of two chips, with the numbers of the other chip that explain them.

    Args:
        one: A chip.
        other: Another.
        changes: Numbers of the other chip that differ and that the first one has too, by path.
        chips: By id.
    """
    paths = {
        f"variant-{index}": path
        for index, path in enumerate(changes)
        if path.endswith(RATES) and path.startswith(("units.matrix.", "memory.hbm."))
    }
    variants = {
        variant: {"base": one, path: changes[path], "source": other}
        for variant, path in paths.items()
    }
    known = Known({**chips, **resolve_chips(variants, chips)}, Calibrations())
    asked = Question([one, other, *variants], dtypes=[*dtype_entries().combinations])
    asked.sizes = {"B": 1, "D": SIZE, "F": SIZE}
    sizes: dict[str, dict[str, float | None]] = {}
    for row in thresholds_of(sweep_of(asked, known)):
        if (row["axis"], row["share"]) == ("B", 1):
            sizes.setdefault(row["dtypes"], {})[row["chip"]] = row["critical"]
    for dtypes, of in sizes.items():
        if one in of and other in of:
            changed = {path: of.get(variant) for variant, path in paths.items()}
            why = _reason(changed, of[one], of[other])
            yield _row(f"critical B, {dtypes}", of[one], of[other], why)


def _reason(
    changed: Mapping[str, float | None], one: float | None, other: float | None
) -> str | None:
    """The numbers that alone move the critical size as the other chip does, and those against.

    Args:
        changed: The critical size with one number changed, by the number's path; None: never.
        one: That of the first chip.
        other: That of the second.
    """
    if one == other:
        return None
    start, end = (math.inf if size is None else size for size in (one, other))
    moved = {path: math.inf if size is None else size for path, size in changed.items()}
    up = [path for path, size in moved.items() if size > start]
    down = [path for path, size in moved.items() if size < start]
    causes, against = (up, down) if end > start else (down, up)
    if not causes:
        return "several numbers together"
    return ", ".join(causes) + (f"; against it {', '.join(against)}" if against else "")


# ---------------------------------------------------------------- configs


def _of_configs(one: str, other: str) -> Differences:
    """The rows and critical sizes of two configs that differ.

    Raises:
        RooflinesError: One of them is wrong.
    """
    configs = [load_config(path) for path in (one, other)]
    rows = [{name: sweep.rows for name, sweep in config.sweeps.items()} for config in configs]
    changed = _changed_numbers(configs)
    both, alone = _thresholds(configs)
    sizes = _changed_sizes(both, changed)
    summary = [
        (
            f"{one}: {counted(sum(rows[0].values()), 'row')}; {other}: "
            f"{counted(sum(rows[1].values()), 'row')}; ratio is {other} / {one}"
        ),
        (
            f"{len(sizes):,} of {counted(both.height, 'threshold')} in both differ; "
            f"{alone[0]:,} are in the first only, {alone[1]:,} in the second only"
        ),
    ]
    if known := [row for row in sizes if row["ratio"] is not None]:
        most = max(known, key=lambda row: abs(math.log(row["ratio"])))
        summary.append(f"Most: {most['what']}: {_size(most['one'])} and {_size(most['other'])}")
    numbers = [row for several in changed.values() for row in several]
    if sizes and not numbers:
        summary.append("No number of a chip differs: see the sweeps (efficiency, tile, shares)")
    return Differences(summary, [*_differing(rows[0], rows[1], "rows, "), *numbers, *sizes])


def _changed_numbers(configs: Sequence[Config]) -> dict[str, list[dict[str, Any]]]:
    """The numbers that differ of chips in both configs, by chip."""
    values: list[dict[str, dict[str, float]]] = []
    for config in configs:
        by_chip: dict[str, dict[str, float]] = {}
        for chip, path, value in api.chips(config).select("chip", "path", "value").iter_rows():
            by_chip.setdefault(chip, {})[path] = value
        values.append(by_chip)
    first, second = values
    return {
        chip: _differing(first[chip], second[chip], f"{chip}, ") for chip in first if chip in second
    }


def _thresholds(configs: Sequence[Config]) -> tuple[pl.DataFrame, list[int]]:
    """The thresholds of both configs, with `one` and `other`; how many are in one only."""
    frames = [api.thresholds(config) for config in configs]
    names = dict.fromkeys([*frames[0].columns, *frames[1].columns])
    keys = ["sweep", "axis", "share", "shards", *(n for n in names if len(n) == 1), *TEXTS]
    first, second = (
        frame.select(
            *(
                (pl.col(key) if key in frame.columns else pl.lit(None)).cast(pl.String).alias(key)
                for key in keys
            ),
            pl.col("critical").alias(name),
        ).with_columns(pl.col(keys).fill_null(""))
        for frame, name in zip(frames, ("one", "other"), strict=True)
    )
    both = first.join(second, on=keys, maintain_order="left")
    return both, [frame.height - both.height for frame in (first, second)]


def _changed_sizes(
    both: pl.DataFrame, changed: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Thresholds that differ, with the numbers of their chip that do."""
    named = ("sweep", "chip", "dtypes", "axis")
    keys = [name for name in both.columns if name not in (*named, "one", "other")]
    vary = [name for name in keys if both[name].n_unique() > 1]
    rows = []
    for row in both.filter(pl.col("one").ne_missing(pl.col("other"))).iter_rows(named=True):
        others = [f"{name}={row[name]}" for name in vary if row[name]]
        place = f"{row['sweep']}, {row['chip']}, {row['dtypes']}: critical {row['axis']}"
        numbers = (each["what"].partition(", ")[2] for each in changed.get(row["chip"], ()))
        what = " ".join([place, *(["at", *others] if others else [])])
        rows.append(_row(what, row["one"], row["other"], ", ".join(numbers) or None))
    return rows
