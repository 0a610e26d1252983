"""`rooflines compare`: two chips, or two configs; what differs, by how much, and why."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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


class Differences(NamedTuple):
    """What differs.

    Attributes:
        summary: The main points, a line each.
        frame: `what`, `one`, `other`, `because_of`; a row per difference.
    """

    summary: list[str]
    frame: pl.DataFrame


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
    ratio = pl.when(pl.col("one") != 0).then(pl.col("other") / pl.col("one"))
    frame = found.frame.select("what", "one", "other", ratio.alias("ratio"), "because_of")
    if csv:
        click.echo(as_csv(frame))
        return
    lines = [*found.summary]
    if not frame.is_empty():
        cells = [
            (what, number(what, of_one), number(what, of_other), number("", ratio), why or "")
            for what, of_one, of_other, ratio, why in frame.head(MOST_SHOWN).iter_rows()
        ]
        lines += ["", as_table(("what", one, other, "ratio", "because of"), cells, width())]
    if frame.height > MOST_SHOWN:
        lines.append(f"... {frame.height - MOST_SHOWN:,} more: --csv")
    click.echo("\n".join(lines))


def _is_config(name: str) -> bool:
    """Whether a word names a config and not a chip."""
    with suppress(OSError):  # a name that no file can have
        return name.endswith(CONFIG_NAMES) or Path(name).is_file()
    return False


def _joined(tables: Iterable[pl.DataFrame], keys: Sequence[str], value: str) -> pl.DataFrame:
    """A number of two tables by their keys, as `one` and `other`; null: it lacks the keys."""
    first, second = (
        table.select(*keys, pl.col(value).cast(pl.Float64).alias(name))
        for table, name in zip(tables, ("one", "other"), strict=True)
    )
    return first.join(second, on=keys, how="full", coalesce=True, maintain_order="left_right")


def _differing(joined: pl.DataFrame, what: pl.Expr, why: pl.Expr | None = None) -> pl.DataFrame:
    """The rows of a joined table whose numbers differ, with what they are, and why they do."""
    differ = joined.filter(pl.col("one").ne_missing(pl.col("other")))
    because = pl.lit(None, dtype=pl.String) if why is None else why
    return differ.select(what.alias("what"), "one", "other", because.alias("because_of"))


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
    tables = (catalogue.filter(chip=name) for name in (one, other))
    numbers = _joined(tables, ["path"], "value").filter(
        pl.col("path").str.contains(r"^(units|memory|networks)\.")
    )
    both = {path: (first, second) for path, first, second in numbers.iter_rows()}
    shared = {path: pair for path, pair in both.items() if None not in pair}
    changes = {path: second for path, (first, second) in shared.items() if first != second}
    critical = _critical(one, other, changes, chips)
    differ = _differing(numbers, pl.col("path"))
    summary = [
        (
            f"{one} and {other}: {differ.height:,} of {counted(len(both), 'number')} differ; "
            f"ratio is {other} / {one}"
        ),
        *_main(shared, critical),
        f"Lowest dated price of an hour: {'; '.join(_price(chips, name) for name in (one, other))}",
    ]
    named = pl.format("critical B, {}", "dtypes")
    return Differences(summary, differ.vstack(_differing(critical, named, pl.col("because_of"))))


def _main(numbers: Mapping[str, tuple[float, float]], critical: pl.DataFrame) -> Iterator[str]:
    """The ratios of the peak and the memory's bandwidth, and what they make of the critical B."""
    factors = [
        f"{name} × {significant(numbers[path][1] / numbers[path][0])}"
        for name, path in (("bf16 peak", PEAK), ("memory bandwidth", BANDWIDTH))
        if path in numbers
    ]
    for row in critical.filter(dtypes=MAIN).to_dicts():
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
) -> pl.DataFrame:
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
    rows = [
        (
            dtypes,
            of[one],
            of[other],
            _reason({path: of.get(each) for each, path in paths.items()}, of[one], of[other]),
        )
        for dtypes, of in sizes.items()
        if one in of and other in of
    ]
    names = {"dtypes": pl.String, "one": pl.Float64, "other": pl.Float64, "because_of": pl.String}
    return pl.DataFrame(rows, schema=names, orient="row")


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
    counts = (
        pl.DataFrame({"sweep": [*config.sweeps], "rows": [s.rows for s in config.sweeps.values()]})
        for config in configs
    )
    rows = _joined(counts, ["sweep"], "rows")
    shared = [chip for chip in configs[0].chips if chip in configs[1].chips]
    numbers = _joined(map(api.chips, configs), ["chip", "path"], "value").filter(
        pl.col("chip").is_in(shared), pl.col("one").ne_missing(pl.col("other"))
    )
    thresholds, alone = _thresholds(configs)
    sizes = _changed_sizes(thresholds, numbers)
    summary = [
        (
            f"{one}: {counted(int(rows['one'].sum()), 'row')}; {other}: "
            f"{counted(int(rows['other'].sum()), 'row')}; ratio is {other} / {one}"
        ),
        (
            f"{sizes.height:,} of {counted(thresholds.height, 'threshold')} in both differ; "
            f"{alone[0]:,} are in the first only, {alone[1]:,} in the second only"
        ),
    ]
    factor = (pl.col("other") / pl.col("one")).log().abs()
    known = sizes.drop_nulls(["one", "other"]).sort(factor, descending=True, maintain_order=True)
    summary += [
        f"Most: {most['what']}: {_size(most['one'])} and {_size(most['other'])}"
        for most in known.head(1).to_dicts()
    ]
    if numbers.is_empty() and not sizes.is_empty():
        summary.append("No number of a chip differs: see the sweeps (efficiency, tile, shares)")
    named = _differing(numbers, pl.format("{}, {}", "chip", "path"))
    counted_rows = _differing(rows, pl.format("rows, {}", "sweep"))
    return Differences(summary, pl.concat([counted_rows, named, sizes]))


def _thresholds(configs: Sequence[Config]) -> tuple[pl.DataFrame, list[int]]:
    """The thresholds of both configs, with `one` and `other`; how many are in one only."""
    frames = [api.thresholds(config) for config in configs]
    names = dict.fromkeys([*frames[0].columns, *frames[1].columns])
    keys = ["sweep", "axis", "share", "shards", *(n for n in names if len(n) == 1), *TEXTS]
    first, second = (
        frame.select(
            pl.col("critical").cast(pl.Float64).alias(name),
            *(
                pl.col(key).cast(pl.String).fill_null("")
                if key in frame.columns
                else pl.lit("").alias(key)
                for key in keys
            ),
        )
        for frame, name in zip(frames, ("one", "other"), strict=True)
    )
    both = first.join(second, on=keys, maintain_order="left")
    return both, [frame.height - both.height for frame in (first, second)]


def _changed_sizes(both: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Thresholds that differ, with the numbers of their chip that do."""
    named = ("sweep", "chip", "dtypes", "axis", "one", "other")
    what = pl.format("{}, {}, {}: critical {}", "sweep", "chip", "dtypes", "axis")
    at = pl.lit("")
    for name in both.columns:
        if name not in named and both[name].n_unique() > 1:
            at += pl.when(pl.col(name) != "").then(f" {name}=" + pl.col(name)).otherwise(pl.lit(""))
    what += pl.when(at != "").then(" at" + at).otherwise(pl.lit(""))
    paths = numbers.group_by("chip").agg(pl.col("path").str.join(", "))
    return _differing(both.join(paths, on="chip", how="left"), what, pl.col("path"))
