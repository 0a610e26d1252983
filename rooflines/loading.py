"""Validated config: sweeps, chips, calibrations and charts."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.errors import (
    Mistakes,
    PlausibilityWarning,
    RooflinesError,
    at_path,
    check_choice,
    close_to,
    quote,
)
from rooflines.basics.file_kinds import named_kind
from rooflines.basics.files import CONFIG_DIR, named_file
from rooflines.basics.text import abridge, counted
from rooflines.basics.yaml_file import Lines, in_file, read_yaml
from rooflines.charts.chart_choice import choose
from rooflines.config.model_fields import ModelSweepConfig
from rooflines.config.scenarios import (
    SWEEP_KEYS,
    Overrides,
    read_overrides,
    scenario_sweep,
)
from rooflines.config.schema import ConfigFile
from rooflines.fits.calibration_files import (
    merge_calibrations,
    read_calibrations,
    shipped_calibrations,
)
from rooflines.hardware.chip_catalogue import add_price, chip_entries, resolve_chips
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entry_forms import validate_entry
from rooflines.hardware.plausibility import plausibility_warnings
from rooflines.models.engine_rules import all_engines, validated_engines
from rooflines.models.library import models_of
from rooflines.sweep.cases import BaseSweep
from rooflines.sweep.checks import AnySweep, checked_sweep, contexts_beyond_training
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.config_sweeps import AnyKernelSweep, sweep_of_config
from rooflines.sweep.every_split import with_every_split
from rooflines.sweep.kind_sweep import KindSweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import sweep_of_models

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rooflines.basics.errors import KeyPath
    from rooflines.basics.yaml_file import JSON
    from rooflines.charts.views import Spec
    from rooflines.config.sweep_fields import SweepKeys
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.entries import Chip
    from rooflines.measured.timing_sets import MeasuredSet
    from rooflines.models.engine_rules import Engine
    from rooflines.models.model import Model
    from rooflines.traces.trace_sets import TraceSet

DEFAULT_CONFIG = CONFIG_DIR / "config.yaml"

MAX_THRESHOLDS, MAX_MODEL_THRESHOLDS = 5_000_000, 1_000_000
"""Thresholds of all sweeps of a config, of operations and of whole models [1]: a file holds each.

Those of models are solved one by one, and take a gigabyte then.
"""

MAX_KERNEL_THRESHOLDS = 100_000
"""Thresholds in a kernel sweep [1]: they are solved in fractions, some hundreds a second."""

CHIP_AS_WRITTEN = "as-written"
"""Base of a chip with a scenario's numbers, until they are resolved."""

SweepT = TypeVar("SweepT", Sweep, KindSweep, CollectiveSweep, ModelSweep)


@dataclass(frozen=True, repr=False)
class Config:
    """A validated config: its sweeps, ready to be computed.

    Attributes:
        file: Its name in messages.
        every: All sweeps (operations and whole models) by name.
        measurements: Timing sets by name.
        chips: All chips by id: the catalogue's and the config's own.
        calibrations: Shipped calibrations, and those in the config's files, which win.
        engines: Serving engines by id: the catalogue's, and the config's own, which win.
        traces: Traces by name.
        charts: The charts to draw, all choices made.
        formats: Picture formats.
        site: Texts and links on the site, without empty ones.
        plain: The config as JSON, as it was written.
        scenarios: By scenario, its sweeps by the sweeps as written; they are in `every`, too.
    """

    file: str
    every: Mapping[str, AnySweep]
    measurements: Mapping[str, MeasuredSet]
    chips: Mapping[str, Chip]
    calibrations: Calibrations
    charts: tuple[Spec, ...]
    formats: tuple[str, ...]
    site: Mapping[str, str]
    plain: JSON
    engines: Mapping[str, Engine] | None = None
    traces: Mapping[str, TraceSet] = field(default_factory=dict)
    scenarios: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Its sweeps, a line each, and its number of charts."""
        rows = sum(sweep.rows for sweep in self.every.values())
        head = (
            f"<Config {self.file}: {counted(len(self.every), 'sweep')}, "
            f"{counted(rows, 'row')}, {counted(len(self.charts), 'chart')}>"
        )
        return abridge(head, map(repr, self.every.values()))

    @cached_property
    def sweeps(self) -> dict[str, Sweep]:
        """Operation sweeps by name."""
        return _of_kind(Sweep, self.every)

    @cached_property
    def kernel_sweeps(self) -> dict[str, AnyKernelSweep]:
        """Kernel sweeps by name."""
        return _kernel_sweeps(self.every)

    @cached_property
    def model_sweeps(self) -> Mapping[str, ModelSweep]:
        """Model sweeps by name."""
        return _of_kind(ModelSweep, self.every)

    def sweep(self, name: str, kind: type[Any] = BaseSweep) -> Any:  # noqa: ANN401, of this kind
        """Sweep by name.

        Args:
            name: Its name.
            kind: `Sweep` or `ModelSweep`, to refuse the other kind.

        Raises:
            RooflinesError: There is none of that name.
        """
        if isinstance(self.every.get(name), kind):
            return self.every[name]
        key = "model-sweeps" if kind is ModelSweep else "sweeps"
        names = [name for name, sweep in self.every.items() if isinstance(sweep, kind)]
        raise self._unknown(key, names, name)

    def measurement(self, name: str) -> MeasuredSet:
        """Timing set by name.

        Raises:
            RooflinesError: There is none of that name.
        """
        if name not in self.measurements:
            raise self._unknown("measurements", [*self.measurements], name)
        return self.measurements[name]

    def _unknown(self, key: str, names: Sequence[str], name: str) -> RooflinesError:
        """Refusal of a name that is not below a key."""
        fix = f"use one of {', '.join(names)}" if names else f"describe it under `{key}:`"
        close = close_to(name, names)
        return RooflinesError(key, f"has no {quote(name)}", fix, close=close, file=self.file)


def _of_kind(kind: type[SweepT], every: Mapping[str, AnySweep]) -> dict[str, SweepT]:
    """Sweeps with one kind by name."""
    return {name: sweep for name, sweep in every.items() if isinstance(sweep, kind)}


def _kernel_sweeps(every: Mapping[str, AnySweep]) -> dict[str, AnyKernelSweep]:
    """Kernel sweeps by name."""
    kinds = KindSweep | CollectiveSweep
    return {name: sweep for name, sweep in every.items() if isinstance(sweep, kinds)}


def load_config(
    source: str | Path | Mapping[str, Any] | None = None, *, needs_sweeps: bool = True
) -> Config:
    """Load and validate a config from a file or a mapping.

    Args:
        source: A path, a mapping of the same form, or None for the default config. Paths in a file
            start at its folder, paths in a mapping at the working folder.
        needs_sweeps: Whether it is refused without sweeps and measurements; its chips and
            calibrations may be all that is needed.

    Returns:
        The config, fully validated: what it describes can be computed.

    Raises:
        RooflinesError: It has mistakes; for each, the message says where, what was found and how
            to fix it.

    Warns:
        PlausibilityWarning: A number in its own chips is probably a slip, or a context is
            longer than a model's training context.
    """
    line_of = None
    if isinstance(source, Mapping):
        with at_path(file="config"):
            config, unlikely = _checked("config", source, Path(), needs_sweeps=needs_sweeps)
    else:
        path = DEFAULT_CONFIG if source is None else Path(source)
        with named_kind(path, "config"):
            content, line_of = read_yaml(path), Lines(path).line_of
        with named_kind(path, "config"), in_file(path):
            config, unlikely = _checked(str(path), content, path.parent, needs_sweeps=needs_sweeps)
    for doubt in unlikely:
        warnings.warn(
            str(doubt.within(file=config.file, line_of=line_of)), PlausibilityWarning, stacklevel=2
        )
    return config


def _check_thresholds(solutions: int, most: int) -> None:
    if solutions > most:
        fix = "solve for fewer dimensions, for nothing with [], or choose fewer of the other sizes"
        problem = f"makes {solutions:,} thresholds, more than the {most:,} allowed"
        raise RooflinesError("thresholds", problem, fix)


def _checked(
    file: str, content: object, folder: Path, *, needs_sweeps: bool
) -> tuple[Config, list[RooflinesError]]:
    """Config with its likely slips.

    Args:
        file: Its name in messages.
        content: What it holds.
        folder: Where its paths start.
        needs_sweeps: As of `load_config`.

    Raises:
        RooflinesError: All mistakes in its form or, if there are none, all others.
    """
    top, form_chips = _form(content)
    has_content = top.sweeps or top.model_sweeps or top.measurements or top.traces
    if needs_sweeps and not has_content:
        problem = "has no sweeps, so there is nothing to compute"
        raise RooflinesError("", problem, "describe one under `sweeps:`")
    unlikely = _doubts(top, form_chips)
    with Mistakes() as mistakes:
        chips = form_chips
        with mistakes.at("prices"):
            chips = _priced(form_chips, top.prices)
        calibrations = _all_calibrations(top, folder, mistakes)
        fitted = calibrations or shipped_calibrations()
        every = _sweeps(top, chips, calibrations, folder, mistakes)
        model_sweeps = _of_kind(ModelSweep, every)
        with mistakes.at("measurements") as part:
            measurements = _measurements(top, chips, fitted, folder, part)
        with mistakes.at("traces") as part:
            traces = _traces(top, chips, folder, part)
        changed: dict[str, dict[str, AnySweep]] = {}
        with mistakes.at("scenarios"):
            unlikely += _scenarios(top, content, chips, calibrations, folder, every, changed)
        with mistakes.at("charts"):
            named = {*top.sweeps, *top.model_sweeps, *top.measurements}
            refused = named - {*every, *measurements}
            specs = _specs(top, every, changed, measurements, refused)
    for name, sweep in model_sweeps.items():
        unlikely += [
            doubt.within("model-sweeps", name) for doubt in contexts_beyond_training(sweep)
        ]
    site = top.site.model_dump(exclude_none=True) if top.site else {}
    config = Config(
        file,
        _with_scenarios(every, changed),
        measurements,
        chips,
        fitted,
        specs,
        tuple(top.formats),
        site,
        _plain(content),
        all_engines(top.engines) if top.engines else None,
        traces,
        {
            scenario: {name: sweep.name for name, sweep in sweeps.items()}
            for scenario, sweeps in changed.items()
        },
    )
    return config, unlikely


def _specs(
    top: ConfigFile,
    every: Mapping[str, AnySweep],
    changed: Mapping[str, Mapping[str, AnySweep]],
    measurements: Mapping[str, MeasuredSet],
    refused: Collection[str],
) -> tuple[Spec, ...]:
    """Charts: with `auto` of sweeps as written, in a list of those in scenarios, too."""
    if top.charts is not None:
        every = _with_scenarios(every, changed)
    kinds = _of_kind(Sweep, every), _kernel_sweeps(every), _of_kind(ModelSweep, every)
    return choose(top.charts, *kinds, measurements, refused)


def _with_scenarios(
    every: Mapping[str, AnySweep], changed: Mapping[str, Mapping[str, AnySweep]]
) -> dict[str, AnySweep]:
    """Sweeps by name, those as written first."""
    scenario_sweeps = chain(*(sweeps.values() for sweeps in changed.values()))
    return {**every, **{sweep.name: sweep for sweep in scenario_sweeps}}


def _form(content: object) -> tuple[ConfigFile, Mapping[str, Chip]]:
    """Config keys, each checked by itself, and all chips by id.

    Raises:
        RooflinesError: All mistakes in keys, chips and names.
    """
    given = content if isinstance(content, Mapping) else {}
    with Mistakes() as mistakes:
        with mistakes.at():
            top = validate_entry(ConfigFile, content)
        with mistakes.at("chips"):
            chips = {**chip_entries(), **_own_chips(given.get("chips", {}))}
        with mistakes.at("engines"):
            validated_engines(given.get("engines", {}))
    return top, chips


def _plain(content: object) -> JSON:
    """A config as JSON, as it was written, without where files are put."""
    plain: JSON = json.loads(json.dumps(content, default=str))
    return {key: value for key, value in plain.items() if key != "pathvars"}


def _doubts(top: ConfigFile, chips: Mapping[str, Chip]) -> list[RooflinesError]:
    """Likely slips in the config's own chips.

    Raises:
        RooflinesError: A number cannot be what is meant.
    """
    unlikely: list[RooflinesError] = []
    with Mistakes() as mistakes:
        for chip, entry in top.chips.items():
            with mistakes.at("chips", chip):
                entry_doubts = plausibility_warnings(entry, chips[chip], chips)
                unlikely += [doubt.within("chips", chip) for doubt in entry_doubts]
    return unlikely


def _sweeps(
    top: ConfigFile,
    chips: Mapping[str, Chip],
    calibrations: Calibrations | None,
    folder: Path,
    mistakes: Mistakes,
) -> dict[str, AnySweep]:
    """Valid sweeps by name."""
    sweeps: dict[str, AnySweep] = {}
    for key, configs, most in (
        ("sweeps", top.sweeps, MAX_THRESHOLDS),
        ("model-sweeps", top.model_sweeps, MAX_MODEL_THRESHOLDS),
    ):
        solutions = 0
        for name, config in configs.items():
            with mistakes.at(key, name) as entry_mistakes:
                _check_chip_parts(config, chips)
                fits = _calibrated(config, calibrations, entry_mistakes)
                entries = chips, dtype_entries(), fits
                sweep: AnySweep
                if not isinstance(config, ModelSweepConfig):
                    sweep = checked_sweep(sweep_of_config(name, config, *entries))
                else:
                    models = _models(name, config, top, folder, entry_mistakes)
                    shared = with_every_split(config, models, chips)
                    model_sweep = sweep_of_models(name, shared, *entries, models)
                    if top.engines:
                        engines = all_engines(top.engines)
                        model_sweep = replace(model_sweep, engines=engines)
                    sweep = checked_sweep(model_sweep)
                solved = solutions + sweep.max_thresholds()
                if isinstance(sweep, KindSweep):
                    _check_thresholds(sweep.max_thresholds(), MAX_KERNEL_THRESHOLDS)
                _check_thresholds(solved, most)
                entry_mistakes.check()
                sweeps[name], solutions = sweep, solved
    return sweeps


def _scenarios(  # noqa: PLR0913, PLR0917, what a config has
    top: ConfigFile,
    content: Any,  # noqa: ANN401, as it was written
    chips: Mapping[str, Chip],
    calibrations: Calibrations | None,
    folder: Path,
    every: Mapping[str, AnySweep],
    changed: dict[str, dict[str, AnySweep]],
) -> list[RooflinesError]:
    """Add sweeps that scenarios change, by scenario and name as written; return likely slips."""
    unlikely: list[RooflinesError] = []
    with Mistakes() as mistakes:
        for scenario, written in top.scenarios.items():
            with mistakes.at(scenario) as part:
                overrides = read_overrides(written, content, chips)
                other_chips, doubts = _scenario_chips(overrides, chips)
                unlikely += [doubt.within("scenarios", scenario) for doubt in doubts]
                scenario_top = _scenario_content(overrides, content, every)
                sweeps = _sweeps(scenario_top, other_chips, calibrations, folder, part)
                part.check()
                changed[scenario] = {
                    name: _renamed(sweep, scenario, every) for name, sweep in sweeps.items()
                }
    return unlikely


def _renamed(sweep: AnySweep, scenario: str, every: Mapping[str, AnySweep]) -> AnySweep:
    """Sweep under its name in a scenario.

    Raises:
        RooflinesError: A sweep as written has this name.
    """
    name = scenario_sweep(sweep.name, scenario)
    if name in every:
        problem = f"makes a sweep {quote(name)}, and the config has one"
        raise RooflinesError("", problem, "choose another name for the scenario")
    return replace(sweep, name=name)


def _scenario_chips(
    overrides: Overrides, chips: Mapping[str, Chip]
) -> tuple[dict[str, Chip], list[RooflinesError]]:
    """Chips with a scenario's numbers and prices, under their ids; and likely slips."""
    changed, unlikely = dict(chips), list[RooflinesError]()
    with Mistakes() as mistakes:
        for chip, numbers in overrides.chips.items():
            with mistakes.at("chips"):
                entry = {"base": CHIP_AS_WRITTEN, "source": "the scenario", **numbers}
                written = {**chips, CHIP_AS_WRITTEN: chips[chip]}
                variant = resolve_chips({chip: entry}, written)[chip]
                with at_path(chip):
                    doubts = plausibility_warnings(entry, variant, written)
                unlikely += [doubt.within("chips", chip) for doubt in doubts]
                changed[chip] = variant.model_copy(update={"base": chips[chip].base})
        with mistakes.at("prices"):
            changed = _priced(changed, overrides.prices)
    return changed, unlikely


def _scenario_content(
    overrides: Overrides, content: Mapping[str, Any], every: Mapping[str, AnySweep]
) -> ConfigFile:
    """Config with the sweeps that a scenario changes.

    Raises:
        RooflinesError: It changes none, or a value is wrong.
    """
    sweeps = {
        key: {
            name: overrides.sweeps[key].get(name, sweep)
            for name, sweep in (content.get(key) or {}).items()
            if name in overrides.sweeps[key]
            or (name in every and _is_changed(every[name], overrides))
        }
        for key in SWEEP_KEYS
    }
    if not any(sweeps.values()):
        chips = sorted({*overrides.chips, *overrides.prices})
        problem = f"changes {', '.join(chips)}, which no sweep computes with"
        raise RooflinesError("", problem, "override a chip, a price or a key of a sweep")
    rest = {key: value for key, value in content.items() if key in ("calibrations", "engines")}
    return validate_entry(ConfigFile, {**rest, **sweeps})


def _is_changed(sweep: AnySweep, overrides: Overrides) -> bool:
    """Tell whether a scenario's chips, or prices of a model's chips, change a sweep."""
    chips = {*sweep.config.chips}
    if not isinstance(sweep, ModelSweep):
        return not chips.isdisjoint(overrides.chips)
    if sweep.config.pools is not None:
        chips.add(sweep.config.pools.prefill.chip)
    return not chips.isdisjoint({*overrides.chips, *overrides.prices})


def _check_chip_parts(config: SweepKeys, chips: Mapping[str, Chip]) -> None:
    """Refuse levels, networks and providers that no chip has.

    A slip would only leave out rows, or their prices.
    """
    levels = dict.fromkeys(level for chip in chips.values() for level in chip.memory)
    networks = dict.fromkeys(network for chip in chips.values() for network in chip.networks)
    joining: dict[KeyPath, list[str]] = {("network",): [*chain(*(config.network or ()))]}
    if isinstance(config, ModelSweepConfig) and config.pools is not None:
        for name in ("prefill", "decode"):
            pool = getattr(config.pools, name)
            joining["pools", name, "network"] = (pool and pool.network) or []
    with Mistakes() as mistakes:
        for level in config.memory:
            with mistakes.at("memory"):
                check_choice(level, levels, "no memory level of any chip")
        for path, named in joining.items():
            for network in named:
                with mistakes.at(*path):
                    check_choice(network, networks, "no interconnect of any chip")
        if isinstance(config, ModelSweepConfig) and config.prices.provider is not None:
            prices = chain(*(chip.prices or () for chip in chips.values()))
            sellers = dict.fromkeys(price.provider for price in prices)
            with mistakes.at("prices", "provider"):
                check_choice(config.prices.provider, sellers, "no provider of any chip's prices")


def _models(
    name: str, config: ModelSweepConfig, top: ConfigFile, folder: Path, mistakes: Mistakes
) -> Mapping[str, Model]:
    """Models in a model sweep."""
    if name in top.sweeps:
        problem = "is the name of a sweep of operations, too"
        mistakes.add(RooflinesError("", problem, "choose another name: both have folders of it"))
    with mistakes.at("models"):
        return models_of(config.models, folder)
    return {}


def _calibrated(
    config: SweepKeys, calibrations: Calibrations | None, mistakes: Mistakes
) -> Calibrations:
    """Calibrations for a sweep; unknown software is a mistake, unless its file has one."""
    if calibrations is not None:
        with mistakes.at("calibration"):
            calibrations.check_softwares(config.calibration or ())
    return calibrations or shipped_calibrations()


def _measurements(
    top: ConfigFile,
    chips: Mapping[str, Chip],
    fitted: Calibrations,
    folder: Path,
    mistakes: Mistakes,
) -> dict[str, MeasuredSet]:
    """The valid timing sets."""
    sets: dict[str, MeasuredSet] = {}
    if not top.measurements:
        return sets
    # Imported here: only a config with timings reads tables before a job starts.
    from rooflines.measured.catalogues import Catalogues  # noqa: PLC0415
    from rooflines.measured.timing_sets import checked_set  # noqa: PLC0415

    catalogues = Catalogues(chips, dtype_entries(), fitted)
    for name, config in top.measurements.items():
        with mistakes.at(name):
            with at_path("file"):
                path = named_file(folder, config.file)
            sets[name] = checked_set(name, config, path, catalogues)
    return sets


def _traces(
    top: ConfigFile, chips: Mapping[str, Chip], folder: Path, mistakes: Mistakes
) -> dict[str, TraceSet]:
    """The valid traces."""
    if not top.traces:
        return {}
    # Imported here: only a config with traces needs their readers.
    from rooflines.traces.trace_sets import checked_traces  # noqa: PLC0415

    return checked_traces(top.traces, chips, folder, mistakes)


def _own_chips(entries: Any) -> dict[str, Chip]:  # noqa: ANN401, any YAML value
    """Chips defined in the config.

    Raises:
        RooflinesError: Entries are wrong, or an id is in the catalogue already.
    """
    catalogue = chip_entries()
    with Mistakes() as mistakes:
        for chip in entries if isinstance(entries, Mapping) else ():
            if chip in catalogue:
                fix = f"choose another id and write `base: {chip}` for a variant of it"
                mistakes.add(RooflinesError(chip, "is a chip of the catalogue already", fix))
        return resolve_chips(entries, catalogue)


def _priced(chips: Mapping[str, Chip], prices: Mapping[str, float]) -> dict[str, Chip]:
    """Chips with the config's own prices."""
    priced = {**chips}
    with Mistakes() as mistakes:
        for chip, usd_per_hour in prices.items():
            with mistakes.at(chip):
                check_choice(chip, chips, "no chip", "see `rooflines list chips`")
                priced[chip] = add_price(chips[chip], usd_per_hour, "the config")
    return priced


def _all_calibrations(top: ConfigFile, folder: Path, mistakes: Mistakes) -> Calibrations | None:
    """Shipped calibrations and those in the config's files, which win; None if one fails."""
    parts = [shipped_calibrations()]
    with mistakes.at("calibrations") as part:
        for index, path in enumerate(top.calibrations):
            with part.at(index):
                parts.append(read_calibrations(named_file(folder, path)))
    return merge_calibrations(parts) if len(parts) == 1 + len(top.calibrations) else None
