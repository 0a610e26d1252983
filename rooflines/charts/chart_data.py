"""Numbers behind charts: files of a run, or a config computed on demand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, at_path, check_choices, close_to, quote
from rooflines.basics.files import scan_parquet
from rooflines.basics.lazy import pl
from rooflines.basics.text import abridge, counted
from rooflines.charts.frames import CASE, NO_SOFTWARE, check_shown
from rooflines.dictionary.columns import AXES
from rooflines.evaluation.row_frames import KernelTable, table_of
from rooflines.fits.timings import MATMUL_SIZES
from rooflines.measured.timing_sets import TimedCase
from rooflines.measured.timing_summary import measured_frame
from rooflines.results.folders import MEASURED_FOLDER, MODEL_THRESHOLDS_FILE, THRESHOLDS_FILE
from rooflines.results.tables import metadata_of, scan, scan_sweeps
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.kernel_sweep import KernelSweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.recipes import chips_of, sweep_of
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.theory.network import axes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.cases import Block
    from rooflines.sweep.config_sweeps import AnyKernelSweep
    from rooflines.sweep.operation_sweep import OperationCase


TIMING_COLUMNS = (
    "compute",
    *MATMUL_SIZES,
    "seconds",
    "flops",
    "memory_intensity",
    "t_lower_s",
    "t_estimate_s",
    "ratio_lower",
    "ratio_estimate",
    "fits_cache",
)
"""The columns of timings that charts read, besides `CASE`."""


@dataclass(frozen=True, repr=False)
class Results:
    """Tables and sweeps behind charts, from a config or a run.

    Attributes:
        rows: The table from a sweep over operations or whole models, for some chips.
        thresholds: The thresholds from an operation or model sweep, for some chips.
        sweep: An operation sweep: its rates, costs and axes.
        kernel_sweep: A sweep over a kernel.
        model_sweep: A sweep of whole models.
        joined: A set of timings joined with the model.
        place: The folder or the config that they are from.
        names: The sweeps.
    """

    rows: Callable[..., pl.LazyFrame]
    thresholds: Callable[..., pl.LazyFrame]
    sweep: Callable[[str], Sweep]
    kernel_sweep: Callable[[str], AnyKernelSweep]
    model_sweep: Callable[[str], ModelSweep]
    joined: Callable[[str], MeasuredRows]
    place: str
    names: tuple[str, ...]

    def select(self, sweep: str, chips: Sequence[str], dtypes: Sequence[str]) -> Selection:
        """Select chips and dtype combinations in a sweep, in this order.

        Raises:
            RooflinesError: There is no such sweep, chip or combination, or no chip supports any
                combination.
        """
        operation_sweep = self.sweep(sweep)
        check_shown(operation_sweep, chips, dtypes)
        return Selection(self, operation_sweep, tuple(chips), tuple(dtypes))

    def with_rows_in_memory(self, sweep: str, chips: Sequence[str]) -> Results:
        """Copy with one sweep's rows in memory, for many views.

        Args:
            sweep: The sweep.
            chips: The chips whose rows are held.
        """

        @cache
        def collected(rows: Callable[..., pl.LazyFrame]) -> pl.DataFrame:
            return rows(sweep, chips).collect()

        def from_memory(rows: Callable[..., pl.LazyFrame]) -> Callable[..., pl.LazyFrame]:
            return lambda name: collected(rows).lazy() if name == sweep else rows(name)

        return replace(self, rows=from_memory(self.rows), thresholds=from_memory(self.thresholds))

    def kernels(self, sweep: str, model: str, chip: str) -> pl.DataFrame:
        """Compute the kernels of a model's steps on a chip."""
        return _kernels(self, sweep, model, chip)

    def source(self, kind: str, name: str) -> Sweep | AnyKernelSweep | ModelSweep | MeasuredRows:
        """Source for a kind's charts: a sweep, or a timing set.

        Args:
            kind: `sweeps`, `kernel_sweeps`, `model_sweeps` or `measurements`.
            name: Its name.

        Raises:
            RooflinesError: No source has that name.
        """
        if kind == "measurements":
            return self.joined(name)
        if kind == "kernel_sweeps":
            return self.kernel_sweep(name)
        return self.model_sweep(name) if kind == "model_sweeps" else self.sweep(name)

    def __repr__(self) -> str:
        """The source and its sweeps, one per line."""
        return abridge(
            f"<Results of {self.place}: {counted(len(self.names), 'sweep')}>", self.names
        )


@dataclass(frozen=True, repr=False)
class Selection:
    """Chips and dtype combinations selected in a sweep, from `Results.select`."""

    results: Results
    sweep: Sweep
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]

    def __repr__(self) -> str:
        """The sweep with its selected chips and dtypes."""
        return (
            f"<Selection of {self.sweep.name}: {', '.join(self.chips)}; {', '.join(self.dtypes)}>"
        )

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the sweep's operation, the first one first."""
        return self.sweep.op.dims

    @cached_property
    def by_chip(self) -> Mapping[str, Block[OperationCase]]:
        """Block of each chip at its first memory level in the sweep."""
        by_chip = {chip_rows.place.chip: chip_rows for chip_rows in reversed(self.sweep.blocks)}
        return {chip: by_chip[chip] for chip in self.chips if chip in by_chip}

    @cached_property
    def default_split(self) -> tuple[int, str]:
        """Chip count and sharding for charts that show one: the fewest chips.

        Among shardings with that count, the sweep's first.
        """
        order = list(self.sweep.shardings)
        splits = {
            (case.shards, case.sharding)
            for chip_rows in self.by_chip.values()
            for case in chip_rows.cases
            if case.dtypes in self.dtypes
        }
        first = min(splits, key=lambda split: (split[0], order.index(split[1])), default=None)
        return first or (1, order[0])

    def cases(self) -> list[OperationCase]:
        """The first case of every combination that the chips support."""
        cases = []
        for chip_rows in self.by_chip.values():
            first = {case.dtypes: case for case in reversed(chip_rows.cases)}
            cases += [first[name] for name in self.dtypes if name in first]
        return cases

    def rows(self) -> pl.LazyFrame:
        """Rows of the selected chips and combinations."""
        return self.filter_rows(self.results.rows(self.sweep.name))

    def thresholds(self) -> pl.LazyFrame:
        """Their thresholds for all shares of the attainable peak; share 1 is compute-bound."""
        return self.filter_rows(self.results.thresholds(self.sweep.name))

    def split_filter(self, split: str | None = None) -> pl.Expr:
        """Filter for rows on one chip or with a split; None: rows with `default_split`."""
        if split:
            return (pl.col("sharding") == split) | (pl.col("shards") == 1)
        shards, sharding = self.default_split
        return (pl.col("sharding") == sharding) & (pl.col("shards") == shards)

    def filter_rows(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Filter rows to the selection, each chip at one memory level and over one network.

        If a chip count has several layouts, such as 16 and 4x4, the sweep's first is kept;
        `network` then names the axes too, as in `ici 4x4`.
        """
        first = {
            key: pl.col("chip").replace_strict(
                {chip: getattr(rows.place, key) for chip, rows in self.by_chip.items()},
                default=None,
                return_dtype=pl.String,
            )
            for key in ("memory", "network")
        }
        selected = frame.filter(
            pl.col("chip").is_in(self.chips),
            pl.col("dtypes").is_in(self.dtypes),
            *(pl.col(key).eq_missing(value) for key, value in first.items()),
        )
        if not self.sweep.has_axes:
            return selected
        layouts = {math.prod(axes): axes_text(axes) for axes in reversed(self.sweep.splits)}
        selected = selected.filter(pl.col(AXES).is_in([*layouts.values()]) | pl.col(AXES).is_null())
        several = pl.col(AXES).str.contains("x").fill_null(value=False)
        along = pl.format("{} {}", "network", AXES)
        return selected.with_columns(network=pl.when(several).then(along).otherwise("network"))


@lru_cache(maxsize=4)
def _kernels(results: Results, sweep: str, model: str, chip: str) -> pl.DataFrame:
    model_sweep = results.model_sweep(sweep)
    config = model_sweep.config.model_copy(update={"chips": [chip]})
    return normalized(
        KernelTable(
            replace(model_sweep, config=config, models={model: model_sweep.models[model]})
        ).frame()
    ).collect()


def on_disk(results: str | Path) -> Results:
    """Read the results that a workflow run wrote.

    Args:
        results: The folder that a run writes to.
    """
    recipes = recipes_on_disk(results)

    @cache
    def solved(file: str) -> Mapping[str, pl.LazyFrame]:
        return scan_sweeps(Path(results) / file)

    def thresholds(sweep: str, chips: Sequence[str] = ()) -> pl.LazyFrame:
        of_models = isinstance(sweep_on_disk(sweep), ModelSweep)
        file = MODEL_THRESHOLDS_FILE if of_models else THRESHOLDS_FILE
        return normalized(solved(file)[sweep], chips)

    def recipe(sweep: str) -> JSON:
        with at_path(file=str(results)):
            check_choices(sweep, recipes, "no sweep of these results")
        return recipes[sweep]

    @cache
    def sweep_on_disk(sweep: str) -> Any:  # noqa: ANN401, a sweep of either kind
        return sweep_of(recipe(sweep))

    return Results(
        rows=lambda sweep, chips=(): normalized(scan(results, sweep), chips),
        thresholds=thresholds,
        sweep=sweep_on_disk,
        kernel_sweep=sweep_on_disk,
        model_sweep=sweep_on_disk,
        joined=lambda name: joined_on_disk(results, name),
        place=str(results),
        names=tuple(recipes),
    )


def recipes_on_disk(results: str | Path) -> dict[str, JSON]:
    """Recipes for a run's sweeps by name, from its threshold files' metadata."""
    paths = (Path(results) / name for name in (THRESHOLDS_FILE, MODEL_THRESHOLDS_FILE))
    paths = (path for path in paths if path.exists())
    return {recipe["sweep"]: recipe for path in paths for recipe in metadata_of(path)["made_from"]}


def of_config(config: Any) -> Results:  # noqa: ANN401, a Config, which is above charts
    """Compute a config's results on demand, without the workflow."""

    def joined(name: str) -> MeasuredRows:
        measurement = config.measurement(name)
        return MeasuredRows(
            name, measured_frame(measurement.join()).lazy(), measurement.catalogues.chips
        )

    return Results(
        rows=lambda sweep, chips=(): normalized(
            table_of(config.sweep(sweep)).stored_frame(), chips
        ),
        thresholds=lambda sweep, chips=(): normalized(
            sweep_thresholds(config.sweep(sweep)).lazy(), chips
        ),
        sweep=lambda name: config.sweep(name, Sweep),
        kernel_sweep=lambda name: config.sweep(name, KernelSweep),
        model_sweep=lambda name: config.sweep(name, ModelSweep),
        joined=joined,
        place=config.file,
        names=(*config.sweeps, *config.kernel_sweeps, *config.model_sweeps),
    )


def normalized(frame: pl.LazyFrame, chips: Sequence[str] = ()) -> pl.LazyFrame:
    """Cast names to text and floats to Float64, so that frames from different files join.

    Args:
        frame: A table.
        chips: Chips whose rows are kept, at a fifth of the time; none: all chips.
    """
    selectors = pl.selectors
    frame = frame.filter(pl.col("chip").is_in(list(chips))) if chips else frame
    return frame.with_columns(
        (selectors.categorical() | selectors.enum()).cast(pl.String),
        selectors.float().cast(pl.Float64),
    )


# ------------------------------------------------------------ timings


@dataclass(frozen=True)
class MeasuredRows:
    """Timings in one set, joined with the model.

    Attributes:
        name: The set.
        frame: The timings.
        entries: Catalogue entries of their chips.
    """

    name: str
    frame: pl.LazyFrame
    entries: Mapping[str, Chip]

    @cached_property
    def cases(self) -> Sequence[TimedCase]:
        """Timed (chip, software, dtypes) cases with their counts.

        Raises:
            RooflinesError: The set has timings of collectives.
        """
        if "dtypes" not in self.frame.collect_schema():
            problem = f"has timings of collectives in {self.name}, no matmuls"
            raise RooflinesError("measurements", problem, "choose another set of timings")
        keys = [pl.col(key).cast(pl.String) for key in CASE]
        counts = self.frame.group_by(keys).agg(timings=pl.len()).sort("timings", *CASE).collect()
        return [TimedCase(*row) for row in counts.iter_rows()]

    def timings_of(self, chip: str, software: str, dtypes: str) -> pl.DataFrame:
        """Timings of one case: `CASE` and `TIMING_COLUMNS`, as in `measured/<name>.parquet`."""
        named = pl.col("software").cast(pl.String).fill_null(NO_SOFTWARE)
        texts = pl.col("chip", "dtypes").cast(pl.String)
        case_rows = self.frame.with_columns(texts, named).filter(chip=chip, dtypes=dtypes)
        return (
            case_rows.filter(pl.col("software") == software)
            .select(*CASE, *TIMING_COLUMNS)
            .collect()
        )


def joined_on_disk(results: str | Path, name: str) -> MeasuredRows:
    """Read a set of timings that a run joined with the model.

    Raises:
        RooflinesError: The run has no such set.
    """
    path = Path(results) / MEASURED_FOLDER / f"{name}.parquet"
    if not path.is_file():
        set_names = [file.stem for file in sorted(path.parent.glob("*.parquet"))]
        fix = (
            f"use one of {', '.join(set_names)}"
            if set_names
            else "describe it in the config, and run it"
        )
        close = close_to(name, set_names)
        raise RooflinesError("measurements", f"has no {quote(name)}", fix, close=close)
    recipe = metadata_of(path)["made_from"][0]
    return MeasuredRows(name, scan_parquet(path), chips_of(recipe))
