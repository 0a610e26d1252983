"""Changes between two runs: tables by sweep, and the inputs that differ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.basics.lazy import pl
from rooflines.config.scenarios import AS_WRITTEN, PRICES
from rooflines.hardware.entries import Chip
from rooflines.results.catalogue_frames import chip_numbers
from rooflines.results.folders import (
    MODEL_THRESHOLDS_FILE,
    MODELS_FOLDER,
    SCENARIO_INDEX,
    SCENARIOS_FOLDER,
    TABLES_FOLDER,
    THRESHOLDS_FILE,
)
from rooflines.results.table_changes import (
    ORDER_DIGITS,
    ROW_KIND,
    THRESHOLD_KIND,
    ChangeGroup,
    TableChanges,
    changes_between,
)
from rooflines.results.tables import PART_FILES, metadata_of, scan, scan_sweeps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

TABLES = (TABLES_FOLDER, MODELS_FOLDER)
"""Folders with the rows of sweeps."""

SOLVED = (THRESHOLDS_FILE, MODEL_THRESHOLDS_FILE)
"""Files with thresholds."""


class Source(NamedTuple):
    """A sweep's results.

    Attributes:
        folder: The results folder.
        sweep: The sweep.
    """

    folder: Path
    sweep: str


class InputChange(NamedTuple):
    """An input that differs.

    Attributes:
        path: Its path in a config: keys joined by dots.
        before: The first value as text; empty: none.
        after: The second value.
    """

    path: str
    before: str
    after: str


@dataclass(frozen=True)
class RunChanges:
    """Changes between two runs.

    Attributes:
        names: Names, first and second.
        tables: Changes by table.
        removed: Sweeps in the first alone.
        added: Sweeps in the second alone.
        inputs: Inputs that differ in the compared sweeps.
        versions: Package versions that made them.
    """

    names: tuple[str, str]
    tables: Sequence[TableChanges]
    removed: Sequence[str] = ()
    added: Sequence[str] = ()
    inputs: Sequence[InputChange] = ()
    versions: tuple[str, str] = ("", "")

    @cached_property
    def groups(self) -> list[ChangeGroup]:
        """Groups with changes, the largest first."""
        groups = [group for table in self.tables for group in table.groups if group.changed]
        return sorted(groups, key=_order, reverse=True)

    def frame(self) -> pl.DataFrame:
        """Changed numbers, the largest change first: keys, both numbers, ratio."""
        ends = ("quantity_unit", "before", "after", "ratio")
        frame = pl.concat([table.frame for table in self.tables], how="diagonal_relaxed")
        factor = pl.max_horizontal("ratio", 1 / pl.col("ratio")).round_sig_figs(ORDER_DIGITS)
        in_order = frame.sort(factor, descending=True, nulls_last=False, maintain_order=True)
        empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
        return in_order.select(pl.exclude(*ends, *({*empty} - {*ends})), *ends)


def _order(group: ChangeGroup) -> float:
    """A group's largest factor, rounded [1]."""
    return float(f"{group.factor:.{ORDER_DIGITS - 1}e}")


def compare_runs(before: Path, after: Path) -> RunChanges:
    """Compare the sweeps that two results folders both have.

    Args:
        before: The first results folder.
        after: The second results folder.

    Raises:
        RooflinesError: A folder has no tables, or one cannot be read.
    """
    first, second = sweeps_in(before), sweeps_in(after)
    pairs = [(Source(before, name), Source(after, name)) for name in first if name in second]
    changes = compare_sweeps((str(before), str(after)), pairs)
    return RunChanges(
        changes.names,
        changes.tables,
        [name for name in first if name not in second],
        [name for name in second if name not in first],
        changes.inputs,
        changes.versions,
    )


def compare_sweeps(names: tuple[str, str], pairs: Iterable[tuple[Source, Source]]) -> RunChanges:
    """Compare sweeps in pairs.

    Args:
        names: Names, first and second.
        pairs: First and second sweep by pair.

    Raises:
        RooflinesError: A table cannot be read.
    """
    tables = list[TableChanges]()
    inputs: dict[str, InputChange] = {}
    versions = ("", "")
    for before, after in pairs:
        tables += _sweep_changes(before, after)
        (first, made_first), (second, made_second) = _recipe(before), _recipe(after)
        versions = (made_first, made_second)
        second = {**second, "sweep": before.sweep}
        inputs |= {change.path: change for change in _input_changes(first, second)}
    return RunChanges(names, tables, inputs=[*inputs.values()], versions=versions)


def has_results(folder: Path) -> bool:
    """Tell whether a folder has a run's tables."""
    return folder.is_dir() and any((folder / kind).is_dir() for kind in TABLES)


def sweeps_in(folder: Path) -> list[str]:
    """Sweeps with tables in a results folder.

    Raises:
        RooflinesError: It has none.
    """
    names = [
        path.name
        for kind in TABLES
        for path in sorted((folder / kind).glob("*"))
        if any(path.glob(PART_FILES))
    ]
    if not names:
        problem = "has no tables of a run" if folder.is_dir() else "does not exist"
        fix = "give two folders that `rooflines run` wrote, such as results"
        raise RooflinesError("", problem, fix, file=str(folder))
    return names


def _sweep_changes(before: Source, after: Source) -> Iterator[TableChanges]:
    """Changes in a sweep's rows, then in its thresholds."""
    rows = (scan(source.folder, source.sweep) for source in (before, after))
    yield changes_between(before.sweep, ROW_KIND, *rows)
    for file in SOLVED:
        paths = [source.folder / file for source in (before, after)]
        if not all(path.exists() for path in paths):
            continue
        first, second = (scan_sweeps(path) for path in paths)
        if before.sweep in first and after.sweep in second:
            solved = (first[before.sweep].drop("sweep"), second[after.sweep].drop("sweep"))
            yield changes_between(before.sweep, THRESHOLD_KIND, *solved)


# ------------------------------------------------------------ inputs


def _recipe(source: Source) -> tuple[JSON, str]:
    """Recipe behind a sweep's thresholds, and the version that made them."""
    for path in (source.folder / file for file in SOLVED):
        if path.exists():
            about = metadata_of(path)
            for recipe in about["made_from"]:
                if recipe["sweep"] == source.sweep:
                    return recipe, about["version"]
    return {}, ""


def _input_changes(before: JSON, after: JSON) -> Iterator[InputChange]:
    """Inputs that differ between two recipes; catalogue entries of one recipe alone follow."""
    first, second = (_inputs(recipe) for recipe in (before, after))
    for key in dict.fromkeys(chain(first, second)):
        entries = first.get(key, {}), second.get(key, {})
        shared = [name for name in entries[0] if name in entries[1]]
        sides = [
            dict(chain(*(_leaves(side[name], f"{key}.{name}") for name in shared)))
            for side in entries
        ]
        for path in dict.fromkeys(chain(*sides)):
            values = [side.get(path, "") for side in sides]
            if values[0] != values[1]:
                yield InputChange(path, *values)


def _inputs(recipe: JSON) -> JSON:
    """A sweep's inputs by config key and entry; a chip's lowest price stands for all."""
    chips = {chip: Chip.model_validate(entry) for chip, entry in recipe.get("chips", {}).items()}
    prices = {chip: entry.lowest_price() for chip, entry in chips.items()}
    numbers = dict[str, dict[str, float]]()
    rates = pl.col("path").str.starts_with(f"{PRICES}.").not_()
    for row in chip_numbers(chips).filter(rates).iter_rows(named=True):
        numbers.setdefault(row["chip"], {})[row["path"]] = row["value"]
    dtypes = recipe.get("dtypes", {})
    key = "model-sweeps" if "models" in recipe else "sweeps"
    return {
        "chips": numbers,
        "prices": {chip: price.usd_per_hour for chip, price in prices.items() if price},
        key: {recipe.get("sweep", ""): recipe.get("config", {})},
        "models": {name: entry["shape"] for name, entry in recipe.get("models", {}).items()},
        **{f"dtypes.{kind}": entries for kind, entries in dtypes.items()},
        "calibrations": {
            f"{software}.{fit}": values
            for software, fits in recipe.get("calibrations", {}).get("calibrations", {}).items()
            for fit, values in fits.items()
        },
    }


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Values in nested mappings as text, by dotted path."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}")
    else:
        yield path, _leaf_text(value)


def _leaf_text(value: object) -> str:
    """Format a value; mappings in a list by name, or by their keys that are set."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return ", ".join(map(_leaf_text, value))
    if isinstance(value, dict):
        return value.get("name") or " ".join(
            f"{key}={part}" for key, part in value.items() if part is not None
        )
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------ scenarios


def scenarios_in(folder: Path) -> dict[str, dict[str, str]]:
    """Scenarios in a results folder: sweeps in each by the sweeps as written."""
    scenarios = {}
    for path in sorted((folder / SCENARIOS_FOLDER).glob(f"*/{SCENARIO_INDEX}")):
        try:
            scenarios[path.parent.name] = json.loads(path.read_text(encoding="utf-8"))["pairs"]
        except (OSError, ValueError, LookupError, TypeError):
            fix = "run again"
            raise RooflinesError("", "is no index of a scenario", fix, file=str(path)) from None
    return scenarios


def compare_scenario(folder: Path, scenario: str, pairs: Mapping[str, str]) -> RunChanges:
    """Compare a scenario's sweeps with those as written.

    Args:
        folder: The results folder.
        scenario: The scenario's name.
        pairs: Its sweeps by the sweeps as written.

    Raises:
        RooflinesError: A table cannot be read.
    """
    sources = [(Source(folder, name), Source(folder, copy)) for name, copy in pairs.items()]
    return compare_sweeps((AS_WRITTEN, scenario), sources)
