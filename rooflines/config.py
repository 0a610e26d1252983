"""A validated config: its sweeps, of operations and of whole models, chips and charts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.errors import (
    Mistakes,
    Partial,
    PlausibilityWarning,
    RooflinesError,
    close_to,
    placed,
    quote,
)
from rooflines.basics.named_file import named_file
from rooflines.basics.text import abridged, counted
from rooflines.basics.yaml_file import Lines, in_file, read_yaml
from rooflines.catalogue.chips import (
    CONFIG_DIR,
    chip_entries,
    dtype_entries,
    resolve_chips,
)
from rooflines.catalogue.forms import checked_name, understood
from rooflines.catalogue.plausibility import doubts
from rooflines.charts.choice import choose
from rooflines.fits.entries import (
    joined_calibrations,
    read_calibrations,
    shipped_calibrations,
)
from rooflines.models.resolve import models_of
from rooflines.serving.sweep import checked_model_sweep, too_long
from rooflines.settings.charts import ChartConfig, understood_chart
from rooflines.settings.measurements import MeasurementConfig
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.settings.schema import ConfigFile, SweepConfig
from rooflines.sweep.checks import checked_sweep

if TYPE_CHECKING:
    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import Spec
    from rooflines.fits.entries import Calibrations
    from rooflines.measured.sets import MeasuredSet
    from rooflines.models.model import Model
    from rooflines.serving.sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

DEFAULT_CONFIG = CONFIG_DIR / "config.yaml"

MOST_THRESHOLDS, MOST_MODEL_THRESHOLDS = 5_000_000, 1_000_000
"""Thresholds of all sweeps of a config, of operations and of whole models [1]: a file holds each.

Those of models are solved one by one, and take a gigabyte then.
"""

AnySweep = TypeVar("AnySweep")
AnySweepConfig = TypeVar("AnySweepConfig", SweepConfig, ModelSweepConfig)


@dataclass(frozen=True, repr=False)
class Config:
    """A validated config: its sweeps, ready to be computed.

    Attributes:
        file: Its name in messages.
        sweeps: The sweeps of operations by name.
        model_sweeps: The sweeps of whole models by name.
        measurements: The sets of timings by name.
        chips: All chips by id, those of the catalogue and the config's own.
        calibrations: Those of the package and of the config's files, which win.
        charts: The charts to draw, all choices made.
        formats: The formats of their pictures.
        site: What the site says of itself and links to, without what is not given.
        plain: The config as JSON, as it was written.
    """

    file: str
    sweeps: Mapping[str, Sweep]
    model_sweeps: Mapping[str, ModelSweep]
    measurements: Mapping[str, MeasuredSet]
    chips: Mapping[str, Chip]
    calibrations: Calibrations
    charts: tuple[Spec, ...]
    formats: tuple[str, ...]
    site: Mapping[str, str]
    plain: JSON

    def __repr__(self) -> str:
        """Its sweeps, a line each, and its number of charts."""
        sweeps: list[Sweep | ModelSweep]
        sweeps = [*self.sweeps.values(), *self.model_sweeps.values()]
        rows = sum(sweep.rows for sweep in sweeps)
        head = (
            f"<Config {self.file}: {counted(len(sweeps), 'sweep')}, "
            f"{counted(rows, 'row')}, {counted(len(self.charts), 'chart')}>"
        )
        return abridged(head, map(repr, sweeps))

    def sweep(self, name: str) -> Sweep:
        """One of the sweeps of operations.

        Raises:
            RooflinesError: There is none of that name.
        """
        return self._one("sweeps", self.sweeps, name)

    def model_sweep(self, name: str) -> ModelSweep:
        """One of the sweeps of whole models.

        Raises:
            RooflinesError: There is none of that name.
        """
        return self._one("model-sweeps", self.model_sweeps, name)

    def measurement(self, name: str) -> MeasuredSet:
        """One of the sets of timings.

        Raises:
            RooflinesError: There is none of that name.
        """
        return self._one("measurements", self.measurements, name)

    def measured_recipes(self) -> list[JSON]:
        """The sets of timings as JSON."""
        return [self.measured_recipe(name) for name in self.measurements]

    def measured_recipe(self, name: str) -> JSON:
        """A set of timings as JSON.

        Raises:
            RooflinesError: There is none of that name.
        """
        from rooflines.measured.sets import measured_recipe  # noqa: PLC0415, as below

        recipe: JSON = measured_recipe(self.measurement(name))
        return recipe

    def _one(self, key: str, sweeps: Mapping[str, AnySweep], name: str) -> AnySweep:
        if name not in sweeps:
            fix = f"use one of {', '.join(sweeps)}" if sweeps else f"describe it under `{key}:`"
            close = close_to(name, sweeps)
            raise RooflinesError(key, f"has no {quote(name)}", fix, close=close, file=self.file)
        return sweeps[name]


def load_config(
    source: str | Path | Mapping[str, Any] | None = None, *, needs_sweeps: bool = True
) -> Config:
    """The config in a file or a mapping.

    Args:
        source: A path, a mapping of the same form, or None for the default config. Paths in a file
            start at its folder, paths in a mapping at the working folder.
        needs_sweeps: Whether it is refused without sweeps and measurements; its chips and
            calibrations may be all that is read of it.

    Returns:
        The config, fully validated: what it describes can be computed.

    Raises:
        RooflinesError: It has mistakes; for each, the message says where, what was found and how
            to fix it.

    Warns:
        PlausibilityWarning: A number of one of its own chips is probably a slip, or a context is
            longer than a model is trained for.
    """
    line_of = None
    if isinstance(source, Mapping):
        with placed(file="config"):
            config, unlikely = _understood("config", source, Path(), needs_sweeps=needs_sweeps)
    else:
        path = DEFAULT_CONFIG if source is None else Path(source)
        content, line_of = read_yaml(path), Lines(path).of
        with in_file(path):
            config, unlikely = _understood(
                str(path), content, path.parent, needs_sweeps=needs_sweeps
            )
    for doubt in unlikely:
        warnings.warn(
            str(doubt.within(file=config.file, line_of=line_of)), PlausibilityWarning, stacklevel=2
        )
    return config


def _check_thresholds(solutions: int, most: int) -> None:
    if solutions > most:
        fix = "solve for fewer dimensions, for nothing with [], or choose fewer of the other sizes"
        raise RooflinesError(
            "thresholds",
            f"makes {solutions:,} thresholds, more than the {most:,} that one file holds",
            fix,
        )


def _understood(
    file: str, content: object, folder: Path, *, needs_sweeps: bool
) -> tuple[Config, list[RooflinesError]]:
    """The config, and likely slips in it.

    Args:
        file: Its name in messages.
        content: What it holds.
        folder: Where its paths start.
        needs_sweeps: As of `load_config`.
    """
    sweeps: dict[str, Sweep] = {}
    model_sweeps: dict[str, ModelSweep] = {}
    measurements: dict[str, MeasuredSet] = {}
    with Mistakes() as mistakes:
        top = understood(ConfigFile, content, mistakes)
        kinds = ("sweeps", "model_sweeps", "measurements")
        nothing = not top.refused & {*kinds} and not any(getattr(top, kind) for kind in kinds)
        if needs_sweeps and nothing:
            problem = "has no sweeps, so there is nothing to compute"
            mistakes.add(RooflinesError("", problem, "describe one under `sweeps:`"))
        chips, unlikely = _all_chips(top, mistakes)
        calibrations = _all_calibrations(top, folder, mistakes)
        with mistakes.at("sweeps") as part:
            sweeps = _sweeps(top, chips, calibrations, part)
        with mistakes.at("model-sweeps") as part:
            model_sweeps = _model_sweeps(top, chips, calibrations, folder, part)
        fitted = calibrations or shipped_calibrations()
        with mistakes.at("measurements") as part:
            measurements = _measurements(top, chips, fitted, folder, part)
        with mistakes.at("charts") as part:
            charts = _understood_charts(top.charts, part)
            valid = {*sweeps, *model_sweeps, *measurements}
            named = (*top.sweeps, *top.model_sweeps, *top.measurements)
            refused = [name for name in named if name not in valid]
            specs = choose(charts, sweeps, model_sweeps, measurements, refused)
    unlikely += [
        doubt.within(f"model-sweeps.{name}")
        for name, sweep in model_sweeps.items()
        for doubt in too_long(sweep)
    ]
    site = top.site.model_dump(exclude_none=True) if top.site else {}
    found = Config(
        file,
        sweeps,
        model_sweeps,
        measurements,
        chips,
        fitted,
        specs,
        tuple(top.formats),
        site,
        top.plain,
    )
    return found, unlikely


def _sweeps(
    top: ConfigFile, chips: Partial[Chip], calibrations: Calibrations | None, mistakes: Mistakes
) -> dict[str, Sweep]:
    """The valid sweeps of operations."""
    sweeps: dict[str, Sweep] = {}
    for name, sweep in top.sweeps.items():
        with mistakes.at(str(name)) as own:
            with own.at():
                checked_name(name)
            config = understood(SweepConfig, sweep, own)
            if "chips" in top.refused:
                config = config.refusing("chips")
            config, fits = _calibrated(config, calibrations, own)
            checked = checked_sweep(name, config, chips, dtype_entries(), fits)
            solutions = sum(each.solutions() for each in (*sweeps.values(), checked))
            _check_thresholds(solutions, MOST_THRESHOLDS)
            own.check()
            sweeps[name] = checked
    return sweeps


def _model_sweeps(
    top: ConfigFile,
    chips: Partial[Chip],
    calibrations: Calibrations | None,
    folder: Path,
    mistakes: Mistakes,
) -> dict[str, ModelSweep]:
    """The valid sweeps of whole models."""
    sweeps: dict[str, ModelSweep] = {}
    for name, sweep in top.model_sweeps.items():
        with mistakes.at(str(name)) as own:
            with own.at():
                checked_name(name)
                if "sweeps" not in top.refused and name in top.sweeps:
                    fix = "choose another name: both have folders of it"
                    raise RooflinesError("", "is the name of a sweep of operations, too", fix)
            config = understood(ModelSweepConfig, sweep, own)
            if "chips" in top.refused:
                config = config.refusing("chips")
            config, fits = _calibrated(config, calibrations, own)
            models: dict[str, Model] = {}
            with own.at("models"):
                models = models_of(config.models, folder)
            checked = checked_model_sweep(name, config, models, chips, dtype_entries(), fits)
            solved = sum(each.solutions() for each in (*sweeps.values(), checked))
            _check_thresholds(solved, MOST_MODEL_THRESHOLDS)
            own.check()
            sweeps[name] = checked
    return sweeps


def _calibrated(
    config: AnySweepConfig, calibrations: Calibrations | None, mistakes: Mistakes
) -> tuple[AnySweepConfig, Calibrations]:
    """The keys of a sweep, and its calibrations; unknown software is a mistake."""
    if calibrations is None:
        config = config.refusing("calibration")
    fits = calibrations or shipped_calibrations()
    with mistakes.at("calibration"):
        fits.check_softwares(config.calibration or ())
    return config, fits


def _measurements(
    top: ConfigFile,
    chips: Partial[Chip],
    fitted: Calibrations,
    folder: Path,
    mistakes: Mistakes,
) -> dict[str, MeasuredSet]:
    """The valid sets of timings."""
    sets: dict[str, MeasuredSet] = {}
    if not top.measurements:
        return sets
    # Imported here: only a config with timings reads tables before a job starts.
    from rooflines.measured.catalogues import Catalogues  # noqa: PLC0415
    from rooflines.measured.sets import check_new, checked_set  # noqa: PLC0415

    catalogues = Catalogues(chips, dtype_entries(), fitted)
    for name, entry in top.measurements.items():
        with mistakes.at(str(name)) as own:
            with own.at():
                checked_name(name)
            config = understood(MeasurementConfig, entry, own)
            with placed("file"):
                path = named_file(folder, config.file)
            found = checked_set(name, config, path, catalogues)
            check_new(found, sets.values())
            own.check()
            sets[name] = found
    return sets


def _all_chips(top: ConfigFile, mistakes: Mistakes) -> tuple[Partial[Chip], list[RooflinesError]]:
    """The valid chips of the catalogue and of the config, and likely slips in the latter."""
    catalogue = chip_entries()
    own: Partial[Chip] = Partial({}, ())
    unlikely: list[RooflinesError] = []
    with mistakes.at("chips") as part:
        for chip in top.chips:
            with part.at(str(chip)):
                if chip in catalogue:
                    raise RooflinesError(
                        "",
                        "is a chip of the catalogue already",
                        f"choose another id and write `base: {chip}` for a variant of it",
                    )
        own = resolve_chips(top.chips, catalogue, part)
        for chip, entry in own.items():
            with part.at(chip):
                unlikely += [
                    doubt.within(f"chips.{chip}")
                    for doubt in doubts(top.chips[chip], entry, {**catalogue, **own})
                ]
    return Partial({**catalogue, **own}, own.refused), unlikely


def _all_calibrations(top: ConfigFile, folder: Path, mistakes: Mistakes) -> Calibrations | None:
    """The calibrations of the package and of the config's files, which win; None if one fails."""
    parts = [shipped_calibrations()]
    with mistakes.at("calibrations") as part:
        for index, path in enumerate(top.calibrations):
            with part.at(f"[{index}]"):
                parts.append(read_calibrations(named_file(folder, path)))
    return joined_calibrations(parts) if len(parts) == 1 + len(top.calibrations) else None


def _understood_charts(charts: object, mistakes: Mistakes) -> str | list[ChartConfig | None]:
    """The charts without their invalid fields; None for one that cannot be checked further."""
    if not isinstance(charts, list):
        return str(charts)
    checked: list[ChartConfig | None] = [None] * len(charts)
    for index, chart in enumerate(charts):
        with mistakes.at(f"[{index}]") as part:
            checked[index] = understood_chart(chart, part)
    return checked
