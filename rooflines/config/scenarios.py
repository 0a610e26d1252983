"""Scenarios: named overrides by dotted path, and the sweeps of a config with them.

A scenario is compared with the config as it is written. Paths name numbers of chips, prices, and
keys of sweeps; only the sweeps that a scenario changes are computed again.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import Mistakes, RooflinesError, check_choice, quote

if TYPE_CHECKING:
    from collections.abc import Collection

SWEEP_KEYS = ("sweeps", "model-sweeps")
"""Keys of a config with sweeps."""

CHIPS, PRICES = "chips", "prices"

HOW = (
    "write a path such as chips.h100-sxm.memory.hbm.bytes_per_s, prices.h100-sxm, "
    "sweeps.NAME.dtypes or model-sweeps.NAME.grid.S"
)

AS_WRITTEN = "as written"
"""Name of the config without a scenario."""


class Overrides(NamedTuple):
    """Overrides by kind.

    Attributes:
        chips: Numbers by chip and dotted path.
        prices: Hourly price by chip [USD/h].
        sweeps: Sweeps with replaced values, by key and name, as a config has them.
    """

    chips: Mapping[str, Mapping[str, Any]]
    prices: Mapping[str, Any]
    sweeps: Mapping[str, Mapping[str, Any]]


def read_overrides(
    written: Mapping[str, Any], content: Mapping[str, Any], chips: Collection[str]
) -> Overrides:
    """Sort a scenario's overrides by what they replace.

    Args:
        written: Values by dotted path.
        content: The config that they change.
        chips: Ids of all chips.

    Raises:
        RooflinesError: A path names nothing that a scenario can change; all such paths are named.
    """
    numbers: dict[str, dict[str, Any]] = {}
    prices: dict[str, Any] = {}
    sweeps: dict[str, dict[str, Any]] = {key: {} for key in SWEEP_KEYS}
    if not written:
        raise RooflinesError("", "overrides nothing", HOW)
    with Mistakes() as mistakes:
        for path, value in written.items():
            with mistakes.at(path):
                key, _, rest = str(path).partition(".")
                name, _, inner = rest.partition(".")
                if key == CHIPS and inner:
                    check_choice(name, chips, "no chip", "see `rooflines list chips`")
                    numbers.setdefault(name, {})[inner] = value
                elif key == PRICES and name and not inner:
                    check_choice(name, chips, "no chip", "see `rooflines list chips`")
                    prices[name] = value
                elif key in SWEEP_KEYS and inner:
                    check_choice(name, content.get(key) or {}, f"none of {key}")
                    sweep = copy.deepcopy(content[key][name])
                    _replace(sweeps[key].setdefault(name, sweep), inner.split("."), value)
                else:
                    problem = f"is {quote(str(path))}, which a scenario cannot override"
                    raise RooflinesError("", problem, HOW)
    return Overrides(numbers, prices, sweeps)


def _replace(values: Any, keys: list[str], value: Any) -> None:  # noqa: ANN401, as a config has them
    """Replace a value in nested mappings; missing mappings are added."""
    *outer, last = keys
    for key in outer:
        inner = values.get(key)
        if inner is None:
            inner = values[key] = {}
        if not isinstance(inner, Mapping):
            problem = f"passes through {key}, which is {quote(inner)}"
            raise RooflinesError("", problem, f"override {key} as a whole")
        values = inner
    values[last] = value


def scenario_sweep(sweep: str, scenario: str) -> str:
    """Name of a sweep in a scenario."""
    return f"{sweep}-{scenario}"
