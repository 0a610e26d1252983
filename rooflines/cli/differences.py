"""The differences of two chips, or of two configs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines import api
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted, significant
from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.cli.chips import BANDWIDTH, PEAK
from rooflines.cli.output import one_chip
from rooflines.config import load_config
from rooflines.model.columns import TEXTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.config import Config

SIZE = 8192
"""D and F of the default question [1]."""

SCHEMA = {
    "what": pl.String,
    "one": pl.Float64,
    "other": pl.Float64,
    "ratio": pl.Float64,
    "because_of": pl.String,
}

MAIN = "bf16"
"""The dtype combination of the summary."""

RATES = ("flops_per_s", "bytes_per_s")
"""Last words of the numbers that a critical batch on one chip depends on."""


class Differences(NamedTuple):
    """What differs.

    Attributes:
        names: What is compared.
        summary: The main points, a line each.
        frame: `what`, `one`, `other`, `ratio` (other / one), `because_of`; a row per difference.
    """

    names: tuple[str, str]
    summary: list[str]
    frame: pl.DataFrame


def of_chips(one: str, other: str, config: str | None = None) -> Differences:
    """The numbers of two chips that differ, and the critical batches, with the number that is why.

    Args:
        one: The id of a chip.
        other: Another.
        config: The path of a config whose own chips count too.

    Raises:
        RooflinesError: The config has mistakes, there is no such chip, or the two are one.
    """
    loaded = load_config(config, needs_sweeps=False) if config else None
    chips = loaded.chips if loaded else chip_entries()
    one, other = one_chip("first chip", one, chips), one_chip("second chip", other, chips)
    if one == other:
        problem = f"is {one!r} again"
        raise RooflinesError(
            "second chip", problem, "give two chips that differ, such as h100-sxm and b200"
        )
    catalogue = api.chips(loaded)
    first, second = (_numbers(catalogue, chip) for chip in (one, other))
    numbers = [
        _row(path, first.get(path), second.get(path))
        for path in dict.fromkeys([*first, *second])
        if first.get(path) != second.get(path)
    ]
    changes = {p: v for p, v in second.items() if first.get(p, v) != v}
    critical = _critical(one, other, changes, loaded.plain.get("chips", {}) if loaded else {})
    differ = [row for row in critical if row["one"] != row["other"]]
    summary = [
        (
            f"{one} and {other}: {len(numbers):,} of {counted(len({*first, *second}), 'number')} "
            f"differ; ratio is {other} / {one}"
        ),
        *_main(first, second, critical),
        _prices(one, other, chips),
    ]
    frame = pl.DataFrame([*numbers, *differ], schema=SCHEMA, orient="row")
    return Differences((one, other), summary, frame)


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
            both = f"{_text(row['one'])} and {_text(row['other'])}"
            factors.append(f"compute-bound from B = {both} (a layer of {SIZE:,} x {SIZE:,})")
    if factors:
        yield ", ".join(factors)


def _prices(one: str, other: str, chips: Mapping[str, Chip]) -> str:
    """The lowest dated price of both chips, or which one has none."""
    texts = []
    for name in (one, other):
        price = chips[name].lowest_price()
        texts.append(
            f"none of {name} is known (--config with `prices: {{{name}: 2.5}}` gives one)"
            if price is None
            else f"{name} ${price.usd_per_hour:,.4g} ({price.provider}, {price.date})"
        )
    return f"Lowest dated price of an hour: {'; '.join(texts)}"


def _text(value: float | None) -> str:
    return "never" if value is None else significant(value)


def _row(
    what: str, one: float | None, other: float | None, why: str | None = None
) -> dict[str, Any]:
    ratio = other / one if one and other is not None else None
    return {"what": what, "one": one, "other": other, "ratio": ratio, "because_of": why}


def _numbers(catalogue: pl.DataFrame, chip: str) -> dict[str, float]:
    """The numbers of a chip by path; prices and power are no part of a roofline."""
    frame = catalogue.filter(chip=chip)
    return {
        path: value
        for path, value in zip(frame["path"], frame["value"], strict=True)
        if path.startswith(("units.", "memory.", "networks."))
    }


def _critical(
    one: str, other: str, changes: Mapping[str, float], own: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Critical batches of two chips, with the numbers of the other chip that explain them.

    Args:
        one: A chip.
        other: Another.
        changes: Numbers of the other chip that differ and that the first one has too, by path.
        own: Chips that are not in the catalogue, as a config has them.
    """
    variants = {
        f"variant-{number}": {"base": one, path: value, "source": other}
        for number, (path, value) in enumerate(changes.items())
        if path.endswith(RATES) and path.startswith(("units.matrix.", "memory.hbm."))
    }
    paths = {chip: next(path for path in entry if "." in path) for chip, entry in variants.items()}
    sweep = {
        "operation": "matmul",
        "grid": {"B": 1, "D": SIZE, "F": SIZE},
        "dtypes": list(dtype_entries().combinations),
        "chips": [one, other, *variants],
        "thresholds": ["B"],
    }
    chips = {**own, **variants}
    config = load_config({"sweeps": {"question": sweep}, "chips": chips, "charts": []})
    sizes: dict[str, dict[str, float | None]] = {}
    for row in api.thresholds(config).select("chip", "dtypes", "critical").to_dicts():
        sizes.setdefault(row["dtypes"], {})[row["chip"]] = row["critical"]
    return [
        _row(
            f"critical B, {dtypes}",
            of[one],
            of[other],
            _reason({paths[chip]: of.get(chip) for chip in paths}, of[one], of[other]),
        )
        for dtypes, of in sizes.items()
        if one in of and other in of
    ]


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


def of_configs(one: str, other: str) -> Differences:
    """The rows and critical sizes of two configs that differ.

    Args:
        one: The path of a config.
        other: Another.

    Raises:
        RooflinesError: One of them is wrong.
    """
    configs = [load_config(path) for path in (one, other)]
    rows = [{name: sweep.rows for name, sweep in config.sweeps.items()} for config in configs]
    counts = [
        _row(f"rows, {name}", rows[0].get(name), rows[1].get(name))
        for name in dict.fromkeys([*rows[0], *rows[1]])
        if rows[0].get(name) != rows[1].get(name)
    ]
    numbers = _changed_numbers(configs)
    sizes, in_both, alone = _changed_sizes(configs, numbers)
    summary = [
        (
            f"{one}: {counted(sum(rows[0].values()), 'row')}; {other}: "
            f"{counted(sum(rows[1].values()), 'row')}; ratio is {other} / {one}"
        ),
        (
            f"{len(sizes):,} of {counted(in_both, 'threshold')} in both differ; "
            f"{alone[0]:,} are in the first only, {alone[1]:,} in the second only"
        ),
    ]
    known = [row for row in sizes if row["ratio"] is not None]
    if known:
        most = max(known, key=lambda row: abs(math.log(row["ratio"])))
        summary.append(f"Most: {most['what']}: {_text(most['one'])} and {_text(most['other'])}")
    if sizes and not numbers:
        summary.append("No number of a chip differs: see the sweeps (efficiency, tile, shares)")
    frame = pl.DataFrame([*counts, *numbers, *sizes], schema=SCHEMA, orient="row")
    return Differences((one, other), summary, frame)


def _changed_numbers(configs: Sequence[Config]) -> list[dict[str, Any]]:
    """The numbers of chips in both configs that differ."""
    values = [
        {(row["chip"], row["path"]): row["value"] for row in api.chips(config).to_dicts()}
        for config in configs
    ]
    chips = [{chip for chip, _ in found} for found in values]
    return [
        _row(f"{key[0]}, {key[1]}", values[0].get(key), values[1].get(key))
        for key in dict.fromkeys([*values[0], *values[1]])
        if key[0] in chips[0] & chips[1] and values[0].get(key) != values[1].get(key)
    ]


def _place(key: Mapping[str, str], vary: Collection[str]) -> str:
    """Which threshold a key means: its sweep, chip and dtypes, its axis, and what else varies."""
    head = ", ".join(key[name] for name in ("sweep", "chip", "dtypes"))
    others = [
        f"{name}={cell}"
        for name, cell in key.items()
        if cell and name in vary and name not in ("sweep", "chip", "dtypes", "axis")
    ]
    return " ".join([f"{head}: critical {key['axis']}", *(["at", *others] if others else [])])


def _changed_sizes(
    configs: Sequence[Config], numbers: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], int, list[int]]:
    """Thresholds that differ, how many are in both configs, and in one only."""
    frames = [api.thresholds(config) for config in configs]
    dims = [
        name for name in dict.fromkeys([*frames[0].columns, *frames[1].columns]) if len(name) == 1
    ]
    keys = ["sweep", "axis", "share", "shards", *dims, *TEXTS]
    found = []
    for frame in frames:
        missing = [pl.lit(None).alias(name) for name in keys if name not in frame.columns]
        full = frame.with_columns(missing).select(*keys, "critical")
        found.append(full.with_columns(pl.col(keys).cast(pl.String).fill_null("")).to_dicts())
    tables = [{tuple(row[key] for key in keys): row["critical"] for row in rows} for rows in found]
    common = [key for key in tables[0] if key in tables[1]]
    reasons: dict[str, list[str]] = {}
    for number in numbers:
        chip, _, path = number["what"].partition(", ")
        reasons.setdefault(chip, []).append(path)
    vary = {
        name
        for name, cells in zip(keys, zip(*common, strict=True), strict=False)
        if len({*cells}) > 1
    }
    differ = [
        _row(
            _place(dict(zip(keys, key, strict=True)), vary),
            tables[0][key],
            tables[1][key],
            ", ".join(reasons.get(key[keys.index("chip")], ())) or None,
        )
        for key in common
        if tables[0][key] != tables[1][key]
    ]
    return differ, len(common), [len(table) - len(common) for table in tables]
