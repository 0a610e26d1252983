"""The job of thresholds: those of chips that have not changed are kept."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.critical.thresholds import all_columns, all_thresholds, sweep_thresholds
from rooflines.models.split import Split
from rooflines.results.records import recorded
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about
from rooflines.run.kept import Kept, keep, of_chips
from rooflines.settings.model_sweeps import AXES
from rooflines.sweep.recipes import sweep_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON


@recorded
def write_thresholds(spec: str, path: str | Path) -> None:
    """Write the thresholds of all sweeps of operations, or of whole models.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The Parquet file to write.
    """
    plan = json.loads(spec)
    models, recipes = plan["of_models"], plan["sweeps"]
    before = Kept.read(path, plan["code"])
    sweeps = map(sweep_of, recipes)
    columns = before.columns_of(recipes) or all_columns(list(sweeps), models=models)
    frames = [_thresholds(recipe, before) for recipe in recipes]
    frame = pl.concat([all_thresholds([], models=models), *frames], how="diagonal_relaxed")
    frame = frame.select(column.name for column in columns)
    write_parquet(frame.lazy(), path, about(recipes, columns))
    keep(path)


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
        with suppress(RooflinesError):  # it is left with no rows, which the whole sweep is not
            solved = [sweep_thresholds(sweep_of(of_chips(recipe, chips)))]
    frame = pl.concat([same, *solved], how="diagonal_relaxed")
    ranks = [
        pl.col(name)
        .cast(pl.Float64 if name == "share" else pl.String)
        .replace_strict({value: rank for rank, value in enumerate(values)}, default=0)
        for name, values in _order(recipe).items()
    ]
    return frame.sort(ranks, maintain_order=True)


def _order(recipe: JSON) -> dict[str, Sequence[str | float]]:
    """The values of columns that order the thresholds of a sweep, slowest first."""
    config = recipe["config"]
    if "models" not in recipe:
        shares = [float(share) for share in config["shares"]]
        return {"axis": config["thresholds"] or (), "share": shares, "chip": config["chips"]}
    return {
        "axis": AXES,
        "model": list(recipe["models"]),
        "phase": config["phase"],
        "split": [Split.model_validate(split).name for split in config["splits"]],
        "chip": config["chips"],
    }
