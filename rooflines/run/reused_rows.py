"""Reuse rows from an earlier run for chips that have not changed.

A copy stays in the state of runs; the file's record has its digest and its recipes.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import read_parquet
from rooflines.basics.lazy import pl
from rooflines.config.model_fields import MODEL_AXES
from rooflines.dictionary.columns import Column
from rooflines.models.architecture import TRAIN
from rooflines.models.split import Split
from rooflines.results.atomic import link_or_copy
from rooflines.results.records import record_of, results_root
from rooflines.results.tables import metadata_of, runs_of
from rooflines.run.lock import STATE
from rooflines.sweep.recipes import shared_chips, without_chips
from rooflines.training.parallel_plan import TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.run.outputs import Output


class Kept(NamedTuple):
    """Rows in a file from an earlier run.

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
        """Read the rows of a file as this code wrote it; none if its copy differs from its record.

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
        rows = read_parquet(copied)
        if "sweep" in rows.columns:
            runs = runs_of(rows, ["sweep"])
            return cls(recipes, columns, {str(sweep): rows[a:b] for (sweep,), a, b in runs})
        return cls(recipes, columns, dict.fromkeys(recipes, rows))

    def columns_of(self, recipes: Sequence[JSON]) -> tuple[Column, ...]:
        """The columns of sweeps that differ from these in their chips alone; else none."""
        ours = [without_chips(recipe) for recipe in self.recipes.values()]
        return self.columns if ours == [without_chips(recipe) for recipe in recipes] else ()

    def rows_of(
        self, recipe: JSON, make: Callable[[JSON], pl.DataFrame], log: list[str]
    ) -> pl.DataFrame | None:
        """Rows in a sweep, made again for changed chips.

        Args:
            recipe: The recipe of the rows.
            make: Makes the rows of a recipe of some chips.
            log: Gets a line on rows that are made again.

        Returns:
            None where all rows have to be made.
        """
        every, old = recipe["config"]["chips"], self.recipes.get(recipe["sweep"])
        new = None if old is None else _changed_chips(recipe, old)
        if old is None or new is None or len(new) == len(every):
            return None
        rows = self.frames.get(recipe["sweep"], pl.DataFrame())
        if not new and every == old["config"]["chips"]:
            return rows
        new_rows = rows.clear()
        if new:
            log.append(f"{recipe['sweep']}: made for {', '.join(new)}")
            with suppress(RooflinesError):  # no row is left, which is no mistake of the whole sweep
                new_rows = make(of_chips(recipe, new))
        return _merged(rows, new_rows, _order(recipe), {*every} - {*new}, part="start" in recipe)


def rows_kept(part: Output, results: Path) -> int:
    """Rows in a part that its job will reuse from the previous run's copy [1].

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
    """The chips of a recipe that an earlier one lacks or had otherwise; None: more has changed.

    Measured numbers belong to all rows in their order, so that all are made again.
    """
    if without_chips(recipe) != without_chips(old) or recipe["config"].get("measured"):
        return None
    chips: list[str] = recipe["config"]["chips"]
    return [chip for chip in chips if recipe["chips"][chip] != old["chips"].get(chip)]


def of_chips(recipe: JSON, chips: Sequence[str]) -> JSON:
    """Recipe for some chips in a sweep."""
    config = {**recipe["config"], "chips": chips, "on_unsupported": "skip"}
    used = {chip: recipe["chips"][chip] for chip in (*chips, *shared_chips(recipe))}
    return {**recipe, "config": config, "chips": used}


def _order(recipe: JSON) -> dict[str, Sequence[str | float]]:
    """Column values that order a sweep's rows and thresholds, slowest first."""
    config = recipe["config"]
    if "models" not in recipe:
        shares = [float(share) for share in config["shares"]]
        return {"axis": config["thresholds"] or (), "share": shares, "chip": config["chips"]}
    trains = TRAIN in config["phase"]
    kind = TrainingPlan if trains else Split
    return {
        "axis": config["thresholds"] if trains else MODEL_AXES,
        "model": list(recipe["models"]),
        "phase": config["phase"],
        "split": [kind.model_validate(split).name for split in config["splits"]],
        "chip": config["chips"],
    }


def _merged(
    old: pl.DataFrame,
    new_rows: pl.DataFrame,
    order: Mapping[str, Sequence[str | float]],
    kept_chips: Collection[str],
    *,
    part: bool,
) -> pl.DataFrame:
    """Merge two frames in their common order by runs, without reading or copying rows.

    Args:
        old: Rows before.
        new_rows: Rows for chips that have changed.
        order: Column values in order, slowest first.
        kept_chips: Chips in `old` to keep.
        part: True for a table part: it has the runs that it had.
    """
    names = [name for name in order if name in old.columns]
    ranks: list[dict[str | float | None, int]] = [
        {value: rank for rank, value in enumerate(order[name])} for name in names
    ]
    before = list(runs_of(old, names))
    had = {key for key, *_ in before}
    runs_in_order = [(0, *run) for run in before if run[0][-1] in kept_chips]
    runs_in_order += [(1, *run) for run in runs_of(new_rows, names) if not part or run[0] in had]
    runs = sorted(
        ([rank.get(value, 0) for rank, value in zip(ranks, key, strict=True)], source, start, stop)
        for source, key, start, stop in runs_in_order
    )
    pieces: list[tuple[int, int, int]] = []
    for _, source, start, stop in runs:
        joins = bool(pieces) and (pieces[-1][0], pieces[-1][2]) == (source, start)
        pieces.append((source, pieces.pop()[1] if joins else start, stop))
    slices = ((old, new_rows)[source][start:stop] for source, start, stop in pieces)
    return pl.concat([old.clear(), *slices], how="diagonal_relaxed")


def keep(path: str | Path) -> None:
    """Keep a copy for the next run, as a hard link where possible."""
    if results_root(Path(path)) is None:
        return
    copy = _copy_of(Path(path))
    copy.parent.mkdir(parents=True, exist_ok=True)
    new = copy.with_name(f"{copy.name}.new")
    new.unlink(missing_ok=True)
    link_or_copy(Path(path), new)
    new.replace(copy)


def _copy_of(path: Path) -> Path:
    """Path to a file's copy."""
    place = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]
    return STATE / "kept" / f"{place}.parquet"
