"""A validated config: its sweeps, chips and charts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import (
    Mistakes,
    Partial,
    PlausibilityWarning,
    RooflinesError,
    close_to,
    placed,
    quote,
)
from rooflines.basics.text import abridged, counted
from rooflines.basics.yaml_file import Lines, in_file, read_yaml
from rooflines.calibration.entries import (
    joined_calibrations,
    read_calibrations,
    shipped_calibrations,
)
from rooflines.catalogue.chips import (
    CONFIG_DIR,
    chip_entries,
    dtype_entries,
    resolve_chips,
)
from rooflines.catalogue.forms import checked_name, understood
from rooflines.catalogue.plausibility import doubts
from rooflines.charts.choice import choose
from rooflines.settings.charts import ChartConfig, understood_chart
from rooflines.settings.schema import ConfigFile, SweepConfig
from rooflines.sweep.checks import checked_sweep

if TYPE_CHECKING:
    from rooflines.calibration.entries import Calibrations
    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import Spec
    from rooflines.sweep.sweep import Sweep

__all__ = ["DEFAULT_CONFIG", "Config", "load_config"]

DEFAULT_CONFIG = CONFIG_DIR / "config.yaml"

MOST_THRESHOLDS = 5_000_000
"""Thresholds of all sweeps of a config [1]: one file holds them."""


@dataclass(frozen=True, repr=False)
class Config:
    """A validated config: its sweeps, ready to be computed.

    Attributes:
        file: Its name in messages.
        sweeps: The sweeps by name.
        chips: All chips by id, those of the catalogue and the config's own.
        charts: The charts to draw, all choices made.
    """

    file: str
    sweeps: Mapping[str, Sweep]
    chips: Mapping[str, Chip]
    charts: tuple[Spec, ...]

    def __repr__(self) -> str:
        """Its sweeps, a line each, and its number of charts."""
        rows = sum(sweep.rows for sweep in self.sweeps.values())
        head = (
            f"<Config {self.file}: {counted(len(self.sweeps), 'sweep')}, "
            f"{counted(rows, 'row')}, {counted(len(self.charts), 'chart')}>"
        )
        return abridged(head, map(repr, self.sweeps.values()))

    def sweep(self, name: str) -> Sweep:
        """One of the sweeps.

        Raises:
            RooflinesError: There is none of that name.
        """
        if name not in self.sweeps:
            fix = f"use one of {', '.join(self.sweeps)}"
            raise RooflinesError(
                "sweeps",
                f"has no {quote(name)}",
                fix,
                close=close_to(name, self.sweeps),
                file=self.file,
            )
        return self.sweeps[name]


def load_config(source: str | Path | Mapping[str, Any] | None = None) -> Config:
    """The config in a file or a mapping.

    Args:
        source: A path, a mapping of the same form, or None for the default config.

    Returns:
        The config, fully validated: what it describes can be computed.

    Raises:
        RooflinesError: It has mistakes; for each, the message says where, what was found and how
            to fix it.

    Warns:
        PlausibilityWarning: A number of one of its own chips is probably a slip.
    """
    line_of = None
    if isinstance(source, Mapping):
        with placed(file="config"):
            config, unlikely = _understood("config", source)
    else:
        path = DEFAULT_CONFIG if source is None else Path(source)
        content, line_of = read_yaml(path), Lines(path).of
        with in_file(path):
            config, unlikely = _understood(str(path), content)
    for doubt in unlikely:
        warnings.warn(
            str(doubt.within(file=config.file, line_of=line_of)), PlausibilityWarning, stacklevel=2
        )
    return config


def _check_thresholds(solutions: int) -> None:
    if solutions > MOST_THRESHOLDS:
        fix = "solve for fewer dimensions, for nothing with [], or choose fewer of the other sizes"
        raise RooflinesError(
            "thresholds",
            f"makes {solutions:,} thresholds, more than the {MOST_THRESHOLDS:,} that one file "
            "holds",
            fix,
        )


def _understood(file: str, content: object) -> tuple[Config, list[RooflinesError]]:
    """The config, and likely slips in it."""
    sweeps: dict[str, Sweep] = {}
    with Mistakes() as mistakes:
        top = understood(ConfigFile, content, mistakes)
        chips, unlikely = _all_chips(top, mistakes)
        calibrations = _all_calibrations(top, mistakes)
        with mistakes.at("sweeps") as part:
            for name, sweep in top.sweeps.items():
                with part.at(str(name)) as own:
                    with own.at():
                        checked_name(name)
                    config = understood(SweepConfig, sweep, own)
                    if "chips" in top.refused:
                        config = config.refusing("chips")
                    checked = checked_sweep(name, config, chips, dtype_entries(), calibrations)
                    _check_thresholds(sum(each.solutions() for each in (*sweeps.values(), checked)))
                    own.check()
                    sweeps[name] = checked
        with mistakes.at("charts") as part:
            charts = _understood_charts(top.charts, part)
            refused = [name for name in top.sweeps if name not in sweeps]
            specs = choose(charts, sweeps, refused)
    return Config(file, sweeps, chips, specs), unlikely


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


def _all_calibrations(top: ConfigFile, mistakes: Mistakes) -> Calibrations:
    """The calibrations of the package and of the config's files, which win."""
    parts = [shipped_calibrations()]
    with mistakes.at("calibrations") as part:
        for index, path in enumerate(top.calibrations):
            with part.at(f"[{index}]"):
                parts.append(read_calibrations(path))
    return joined_calibrations(parts)


def _understood_charts(charts: object, mistakes: Mistakes) -> str | list[ChartConfig | None]:
    """The charts without their invalid fields; None for one that cannot be checked further."""
    if not isinstance(charts, list):
        return str(charts)
    checked: list[ChartConfig | None] = [None] * len(charts)
    for index, chart in enumerate(charts):
        with mistakes.at(f"[{index}]") as part:
            checked[index] = understood_chart(chart, part)
    return checked
