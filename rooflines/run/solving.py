"""The jobs of thresholds: those of chips that have not changed are kept.

A copy of each file of thresholds stays in the state of runs, with the recipes that it is of.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import read_parquet
from rooflines.critical.thresholds import all_columns, all_thresholds, sweep_thresholds
from rooflines.model.columns import Column
from rooflines.results.records import digest_of, recorded
from rooflines.results.tables import metadata_of, write_parquet
from rooflines.run.jobs import about
from rooflines.settings.model_sweeps import AXES
from rooflines.sweep.operations import Sweep
from rooflines.sweep.recipes import sweep_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.checks import AnySweep


@recorded
def write_thresholds(spec: str, path: str | Path, state: str | Path = "") -> None:
    """Write the thresholds of all sweeps of operations, or of whole models.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The Parquet file to write.
        state: The folder for the state of runs; empty: nothing is kept.
    """
    plan = json.loads(spec)
    models, recipes = plan["of_models"], plan["sweeps"]
    place = hashlib.sha256(str(Path(path).absolute()).encode()).hexdigest()[:16]
    kept = Path(state) / "solved" / f"{place}.parquet" if state else None
    before = Kept.read(kept, plan.get("code"))
    sweeps = map(sweep_of, recipes)
    columns = before.columns_of(recipes) or all_columns(list(sweeps), models=models)
    frames = [_thresholds(recipe, before) for recipe in recipes]
    frame = pl.concat([all_thresholds([], models=models), *frames], how="diagonal_relaxed")
    frame = frame.select(column.name for column in columns)
    write_parquet(frame.lazy(), path, about(recipes, columns, code=plan.get("code")))
    if kept:
        _keep(Path(path), kept)


class Kept(NamedTuple):
    """The thresholds of an earlier run.

    Attributes:
        recipes: What they are of, by sweep.
        columns: Their columns.
        frames: The thresholds by sweep.
    """

    recipes: Mapping[str, JSON]
    columns: tuple[Column, ...]
    frames: Mapping[str, pl.DataFrame]

    @classmethod
    def read(cls, path: Path | None, code: str | None) -> Kept:
        """Those in a file, as it was written by this code; none where it is missing or damaged."""
        with suppress(OSError, RooflinesError, KeyError):
            if path and _digest_file(path).read_text(encoding="utf-8") == digest_of(path):
                made_from = metadata_of(path)
                if made_from["code"] == code:
                    recipes = {recipe["sweep"]: recipe for recipe in made_from["made_from"]}
                    columns = tuple(Column(**column) for column in made_from["columns"])
                    return cls(recipes, columns, _by_sweep(read_parquet(path)))
        return cls({}, (), {})

    def columns_of(self, recipes: Sequence[JSON]) -> tuple[Column, ...]:
        """The columns of sweeps that differ from these in their chips alone; else none."""
        ours = [_without_chips(recipe) for recipe in self.recipes.values()]
        return self.columns if ours == [_without_chips(recipe) for recipe in recipes] else ()

    def of(self, recipe: JSON) -> tuple[list[str], pl.DataFrame]:
        """The chips of a sweep that have to be solved for, and the thresholds of the others."""
        chips, old = list(recipe["config"]["chips"]), self.recipes.get(recipe["sweep"])
        if old is None or _without_chips(recipe) != _without_chips(old):
            return chips, pl.DataFrame()
        new = [chip for chip in chips if recipe["chips"][chip] != old["chips"].get(chip)]
        rows = self.frames.get(recipe["sweep"], pl.DataFrame())
        if new or len(chips) < len(old["chips"]):
            same = [chip for chip in chips if chip not in new]
            rows = rows.filter(pl.col("chip").cast(pl.String).is_in(same)) if rows.height else rows
        return new, rows


def _by_sweep(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of each sweep, which follow one another."""
    runs = frame.select(pl.col("sweep").rle()).unnest("sweep")
    found, start = dict[str, pl.DataFrame](), 0
    for length, sweep in runs.iter_rows():
        found[sweep] = frame.slice(start, length)
        start += length
    return found


def _thresholds(recipe: JSON, before: Kept) -> pl.DataFrame:
    """The thresholds of a sweep: solved for chips that have changed, in the order of all."""
    every, (chips, same) = recipe["config"]["chips"], before.of(recipe)
    if len(chips) == len(every):
        return sweep_thresholds(sweep_of(recipe))
    if not chips and every == before.recipes[recipe["sweep"]]["config"]["chips"]:
        return same
    solved = []
    if chips:
        print(f"{recipe['sweep']}: solved for {', '.join(chips)}")
        config = {**recipe["config"], "chips": chips, "on_unsupported": "skip"}
        alone = {chip: recipe["chips"][chip] for chip in chips}
        with suppress(RooflinesError):  # it is left with no rows, which the whole sweep is not
            solved = [sweep_thresholds(sweep_of({**recipe, "config": config, "chips": alone}))]
    frame = pl.concat([same, *solved], how="diagonal_relaxed")
    ranks = [
        pl.col(name)
        .cast(pl.Float64 if name == "share" else pl.String)
        .replace_strict({value: rank for rank, value in enumerate(values)}, default=None)
        for name, values in _order(sweep_of(recipe)).items()
    ]
    return frame.sort(ranks, maintain_order=True)


def _order(sweep: AnySweep) -> dict[str, Sequence[str | float]]:
    """The values of columns that order the thresholds of a sweep, slowest first."""
    if isinstance(sweep, Sweep):
        shares = [float(share) for share in sweep.config.shares]
        return {"axis": sweep.solved, "share": shares, "chip": sweep.config.chips}
    return {
        "axis": AXES,
        "model": list(sweep.models),
        "phase": sweep.config.phase,
        "split": [split.name for split in sweep.config.splits],
        "chip": sweep.config.chips,
    }


def _without_chips(recipe: JSON) -> JSON:
    """A recipe without its chips."""
    rest = {key: value for key, value in recipe.items() if key != "chips"}
    return {**rest, "config": {**recipe["config"], "chips": None}}


def _keep(path: Path, kept: Path) -> None:
    """Keep a file of thresholds for the next run, as a second name where that is possible."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_name(f"{kept.name}.new")
    new.unlink(missing_ok=True)
    _digest_file(kept).unlink(missing_ok=True)
    try:
        os.link(path, new)
    except OSError:
        shutil.copyfile(path, new)
    new.replace(kept)
    _digest_file(kept).write_text(digest_of(kept), encoding="utf-8")


def _digest_file(kept: Path) -> Path:
    return kept.with_suffix(".sha256")
