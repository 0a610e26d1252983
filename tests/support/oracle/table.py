"""The rows of a sweep, in order."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from oracle.fits import fits_of
from oracle.network import why_not_joined
from oracle.operations import Sharding, operation_of
from oracle.quantities import as_list, exact, whole
from oracle.setting import RESOURCES, Setting
from oracle.sweeps import (
    axes_of,
    combination_of,
    default_unit,
    exactly,
    network_of,
    points,
    resolve_chips,
    routes,
    splits,
    stored_bits,
)


@dataclass(frozen=True)
class Row:
    """One requested row: its keys, and its setting or the reason why it is not supported."""

    keys: Mapping[str, Any]
    sizes: Mapping[str, int]
    setting: Setting | None
    reason: str | None

    def values(self):
        """Return the row of the table."""
        assert self.setting is not None
        return {**self.keys, **self.sizes, **self.setting.row(self.sizes, self.keys["shards"])}


class Case(NamedTuple):
    """What a sweep combines on one chip, without sizes."""

    chip: str
    memory: str
    dtypes: Mapping[str, str]
    formats: Mapping[str, Any]
    sharding: Sharding
    axes: tuple[int, ...]
    route: list[str] | None


def setting_of(sweep, chip, case, fits=None):
    """Return the setting, or None and why there is none; and the name of the network."""
    _, memory, dtypes, formats, sharding, axes, route = case
    names, links = network_of(chip, route)
    unit = sweep.get("unit", default_unit(sweep))
    peak = chip["units"].get(unit, {}).get(dtypes["compute"])
    level = chip["memory"].get(memory, {})
    network = "+".join(names) if links else None
    if peak is None:
        return None, "compute dtype", network
    if "bytes_per_s" not in level:
        return None, "memory", network
    reason = why_not_joined(links, axes)
    if reason is not None:
        return None, reason, network
    units = dict.fromkeys(("compute", "attention"), dtypes["compute"])
    asked = {"chip": case.chip, "memory": memory, "networks": names, "unit": unit, "dtypes": units}
    efficiency = (chip.get("efficiency") or {}) | (sweep.get("efficiency") or {})
    setting = Setting(
        operation=operation_of(sweep["operation"]),
        sharding=sharding,
        bits={operand: stored_bits(formats, dtypes[operand]) for operand in ("x", "w", "out")},
        peak=exact(peak["flops_per_s"]),
        memory_rate=exact(level["bytes_per_s"]),
        capacity=exact(level["capacity_bytes"]) if "capacity_bytes" in level else None,
        links=links,
        efficiency={r: exact(efficiency.get(r, 1)) for r in RESOURCES},
        fits=fits_of(asked, chip, as_list(sweep.get("calibration") or []), fits or {}),
        exact_flops=exactly(sweep),
        tile={d: whole(size) for d, size in (sweep.get("tile") or {}).items()},
        two_levels=any(len(names or []) > 1 for names in routes(sweep)),
        axes=axes if len(axes) > 1 else (),
    )
    return setting, None, network


Fits = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Files of calibrations: by kind, by chip and software, and by compute dtype or collective."""


def rows(sweep, chips, dtypes, fits=None):
    """Yield every requested row in order, including unsupported ones."""
    operation = operation_of(sweep["operation"])
    resolved = resolve_chips(chips, as_list(sweep["chips"]))
    forms = as_list(sweep.get("shards", [1]))
    several = any(len(axes_of(form)) > 1 for form in forms)
    for chip, memory in product(as_list(sweep["chips"]), as_list(sweep.get("memory", "hbm"))):
        alone = False  # whether rows without a network were there
        for route in routes(sweep):
            missing = not network_of(resolved[chip], route)[1]
            for lead, spec in product(points(sweep), sweep["dtypes"]):
                name, combination = combination_of(spec, dtypes["combinations"])
                for sharding, axes in splits(sweep):
                    if missing and alone and axes == (1,):
                        continue
                    case = Case(chip, memory, combination, dtypes["formats"], sharding, axes, route)
                    setting, reason, network = setting_of(sweep, resolved[chip], case, fits)
                    keys = {
                        "operation": operation.name,
                        "chip": chip,
                        "unit": sweep.get("unit", default_unit(sweep)),
                        "memory": memory,
                        "network": network,
                        "dtypes": name,
                        "sharding": sharding.name,
                        "shards": math.prod(axes),
                        **({"axes": "x".join(map(str, axes))} if several else {}),
                    }
                    for shape, sizes in lead:
                        yield Row({**keys, "shape": shape}, sizes, setting, reason)
            alone = alone or missing
