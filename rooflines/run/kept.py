"""Rows of an earlier run: those of chips that have not changed are kept.

A copy of the file stays in the state of runs; the record of the file has its digest and the recipes
that it is of.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.files import read_parquet
from rooflines.basics.lazy import pl
from rooflines.model.columns import Column
from rooflines.results.atomic import link_or_copy
from rooflines.results.records import record_of, results_root
from rooflines.results.tables import metadata_of
from rooflines.run.lock import STATE
from rooflines.sweep.recipes import beside, without_chips

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.run.outputs import Output


class Kept(NamedTuple):
    """The rows of a file of an earlier run.

    Attributes:
        recipes: What they are of, by sweep.
        columns: Their columns.
        frames: The rows by sweep.
    """

    recipes: Mapping[str, JSON]
    columns: tuple[Column, ...]
    frames: Mapping[str, pl.DataFrame]

    @classmethod
    def read(cls, path: str | Path, code: str) -> Kept:
        """Those of a file, as this code wrote it; none where its copy differs from its record.

        Args:
            path: The file.
            code: The digest of the code.
        """
        file, home = Path(path), results_root(Path(path))
        record, copied = home and record_of(home, file), _copy_of(file)
        if not record or record.spec.get("code") != code or record.damage(copied):
            return cls({}, (), {})
        recipes = {recipe["sweep"]: recipe for recipe in record.spec.get("sweeps", [record.spec])}
        columns = tuple(Column(**column) for column in metadata_of(copied)["columns"])
        return cls(recipes, columns, _by_sweep(read_parquet(copied), recipes))

    def columns_of(self, recipes: Sequence[JSON]) -> tuple[Column, ...]:
        """The columns of sweeps that differ from these in their chips alone; else none."""
        ours = [without_chips(recipe) for recipe in self.recipes.values()]
        return self.columns if ours == [without_chips(recipe) for recipe in recipes] else ()

    def of(self, recipe: JSON) -> tuple[list[str], pl.DataFrame]:
        """The chips of a sweep whose rows have to be made, and the rows of the others."""
        chips, old = list(recipe["config"]["chips"]), self.recipes.get(recipe["sweep"])
        if old is None or (new := _changed_chips(recipe, old)) is None:
            return chips, pl.DataFrame()
        rows = self.frames.get(recipe["sweep"], pl.DataFrame())
        if new or len(chips) < len(old["chips"]):
            same = [chip for chip in chips if chip not in new]
            rows = rows.filter(pl.col("chip").cast(pl.String).is_in(same)) if rows.height else rows
        return new, rows


def rows_kept(part: Output, results: Path) -> int:
    """The rows of a part that its job will take from the copy of the run before [1].

    Args:
        part: The part of a table.
        results: The folder of results.
    """
    path, recipe = results / part.path, json.loads(part.spec)
    record = record_of(results, path)
    if not (record and record.spec["code"] == recipe["code"] and _copy_of(path).is_file()):
        return 0
    new = _changed_chips(recipe, record.spec)
    return sum(rows for chip, rows in part.rows_by_chip.items() if new and chip not in new)


def _changed_chips(recipe: JSON, old: JSON) -> list[str] | None:
    """The chips of a recipe that an earlier one lacks or had otherwise; None: more has changed."""
    if without_chips(recipe) != without_chips(old):
        return None
    chips: list[str] = recipe["config"]["chips"]
    return [chip for chip in chips if recipe["chips"][chip] != old["chips"].get(chip)]


def _by_sweep(frame: pl.DataFrame, recipes: Mapping[str, JSON]) -> dict[str, pl.DataFrame]:
    """The rows of each sweep, which follow one another; a part of a table is of one sweep."""
    if "sweep" not in frame.columns:
        return dict.fromkeys(recipes, frame)
    runs = frame.select(pl.col("sweep").rle()).unnest("sweep")
    found, start = dict[str, pl.DataFrame](), 0
    for length, sweep in runs.iter_rows():
        found[sweep] = frame.slice(start, length)
        start += length
    return found


def of_chips(recipe: JSON, chips: Sequence[str]) -> JSON:
    """The recipe of some chips of a sweep."""
    config = {**recipe["config"], "chips": chips, "on_unsupported": "skip"}
    used = {chip: recipe["chips"][chip] for chip in (*chips, *beside(recipe))}
    return {**recipe, "config": config, "chips": used}


def keep(path: str | Path) -> None:
    """Keep a copy of a file of a run for the next one, as a second name where that is possible."""
    if results_root(Path(path)) is None:
        return
    kept = _copy_of(Path(path))
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_name(f"{kept.name}.new")
    new.unlink(missing_ok=True)
    link_or_copy(Path(path), new)
    new.replace(kept)


def _copy_of(path: Path) -> Path:
    """The place of the copy of a file."""
    place = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]
    return STATE / "kept" / f"{place}.parquet"
