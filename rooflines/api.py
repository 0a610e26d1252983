"""The Python interface: rows and thresholds of a config, and the catalogues, as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import at_path, check_choice
from rooflines.basics.file_kinds import check_kind
from rooflines.dictionary.columns import column_records
from rooflines.evaluation.row_frames import KernelTable, skipped_frame, table_of
from rooflines.fits.nsight import read_launches
from rooflines.fits.rocm_counters import counters_in, read_dispatches
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries, resolve_combinations
from rooflines.measured.profiled_kernels import kernel_frame
from rooflines.measured.timing_summary import measured_frame, summaries
from rooflines.models.model_sheet import shape_rows
from rooflines.results.catalogue_frames import chip_numbers, shapes_frame
from rooflines.solvers.threshold_frames import all_thresholds, sweep_thresholds
from rooflines.sweep.recipes import skipped_records
from rooflines.sweep.step_sweep import ModelSweep

if TYPE_CHECKING:
    from pathlib import Path

    from rooflines.loading import Config


def rows(config: Config, sweep: str) -> pl.LazyFrame:
    """Rows in a sweep (operation or whole models) as a lazy frame: times [s], bounds, estimates.

    Args:
        config: From `load_config`.
        sweep: The sweep's name.

    Returns:
        A lazy frame with the columns that the workflow writes, in its order; `columns()` explains
        them. FLOPs, bytes and footprints are per chip.

    Raises:
        RooflinesError: There is no such sweep.
    """
    return table_of(config.sweep(sweep)).stored_frame()


def thresholds(config: Config, sweep: str | None = None) -> pl.DataFrame:
    """Critical sizes, in closed form: where t_math overtakes every other time.

    For operations and kernels, the smallest compute-bound size along each axis; for whole models,
    critical batches and contexts, and the fewest chips that hold weights and KV cache.

    Args:
        config: From `load_config`.
        sweep: A sweep's name; by default all operation and kernel sweeps; without these all
            model sweeps.

    Returns:
        One row per combination and solved axis; `columns()` explains the columns.

    Raises:
        RooflinesError: There is no such sweep.
    """
    if sweep is not None:
        return sweep_thresholds(config.sweep(sweep))
    named = config.sweeps | config.kernel_sweeps
    return all_thresholds([*(named or config.every).values()], models=not named)


def model_layers(config: Config, sweep: str) -> pl.LazyFrame:
    """Kernels in a model sweep as a lazy frame: times [s] per layer.

    Args:
        config: From `load_config`.
        sweep: The sweep's name.

    Returns:
        One row per kernel and step, with values for one layer: a step sums `count` times these.
        `columns()` explains the columns.

    Raises:
        RooflinesError: There is no such sweep.
    """
    return KernelTable(config.sweep(sweep, ModelSweep)).stored_frame()


def skipped(config: Config) -> pl.DataFrame:
    """Rows that the sweeps ask for but cannot have, with the reason; may be empty."""
    return skipped_frame(skipped_records(config.every.values()))


def measurements(config: Config, name: str) -> pl.DataFrame:
    """Timings in a set, beside bound and estimate [s].

    Args:
        config: From `load_config`.
        name: The name of the set.

    Returns:
        One row per timing that the model covers; `columns()` explains the columns.

    Raises:
        RooflinesError: There is no such set, or its timings cannot be joined.
    """
    return measured_frame(config.measurement(name).join())


def measured_summary(config: Config, name: str | None = None) -> pl.DataFrame:
    """Errors at timings, for bound and estimates: |predicted / measured - 1| by region.

    Args:
        config: From `load_config`, with measurements.
        name: A set's name; by default all sets.

    Returns:
        One row per set, chip, software, dtypes, split and region; `columns()` explains them.

    Raises:
        RooflinesError: There is no such set, or its timings cannot be joined.
    """
    sets = config.measurements.values() if name is None else [config.measurement(name)]
    return summaries(
        (
            timing_set.name,
            timing_set.join().frame,
            timing_set.config.held_out,
            timing_set.catalogues.fits,
        )
        for timing_set in sets
    )


def profiled_kernels(
    path: str | Path, chip: str, dtype: str | None = None, config: Config | None = None
) -> pl.DataFrame:
    """Profiled kernels on a chip's roofline: FLOPs, bytes, time [s] and bound [s] per kernel.

    Args:
        path: The CSV that `ncu --csv` prints, of the page `raw` or `details`, or the counters of
            rocprof-compute (pmc_perf.csv, or its folder) or rocprofv3 (counter_collection.csv).
        chip: Its id in the catalogue, or in the config.
        dtype: The dtype that tensor cores compute in; by default that of their counters.
        config: Adds the config's own chips to the catalogue.

    Returns:
        One row per kernel, most time first; `columns()` explains the columns.

    Raises:
        RooflinesError: The file lacks counters, or the chip the dtype, or there is no such chip.
    """
    chips = chip_entries() if config is None else config.chips
    with at_path("chip"):
        check_choice(chip, chips, "no chip", "see `rooflines list chips`, or give its config")
    path = counters_in(path)
    kind = check_kind(path, "kernels")
    read = read_dispatches if kind is not None and kind.maker == "amd" else read_launches
    return kernel_frame(read(path), chips[chip], dtype)


def model_shapes() -> pl.DataFrame:
    """The models of the catalogue: parameters by every convention, caches, sources.

    Returns:
        A row for each model; `columns()` explains the columns. `rooflines.models` has the models
        themselves.
    """
    return shapes_frame(shape_rows())


def chips(config: Config | None = None) -> pl.DataFrame:
    """Chips: one row per number, with unit and source.

    Args:
        config: Adds the config's own chips to the catalogue.

    Returns:
        `chip`, `name`, `vendor`, `base` (null: no variant), `path` (such as
        `memory.hbm.bytes_per_s`), `value`, `unit` (SI, without prefix), `part` and `meaning` (for
        readers), `source`, `confidence`, `estimate`, `label` (of a capacity: as it is printed, such
        as `80 GB`), `halved`, `printed_with_sparsity`, `clock` (of a peak: `boost` if it is for the
        printed boost clock, which the chip may exceed), `note`.
        Shares (measured, efficiencies, calibrations) are left out.
    """
    return chip_numbers(chip_entries() if config is None else config.chips)


def dtypes() -> pl.DataFrame:
    """The dtype combinations.

    Returns:
        `dtypes` (the name), `x`, `w`, `out`, `compute` (formats), `x_bits`, `w_bits`, `out_bits`
        [bit], `note`.
    """
    catalogue = dtype_entries()
    combinations = resolve_combinations(list(catalogue.combinations), catalogue)
    return pl.DataFrame(
        [
            {
                "dtypes": name,
                **catalogue.combinations[name].dtypes,
                **{f"{operand}_bits": float(bits) for operand, bits in combination.bits.items()},
                "note": catalogue.combinations[name].note,
            }
            for name, combination in combinations.items()
        ],
        infer_schema_length=None,
    )


def columns() -> pl.DataFrame:
    """The column dictionary.

    Returns:
        `file` (table, thresholds, models, layers, training, training-layers,
        model-thresholds, skipped, summary, model-shapes, measured, measured-summary,
        measured-skipped or kernels), `column`, `unit`, `meaning`,
        `null` (its meaning).
    """
    return pl.DataFrame(column_records())
