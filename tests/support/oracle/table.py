"""The rows of a sweep, in order."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from oracle import sweeps
from oracle.fits import fits_of, softwares_of
from oracle.network import Link, why_not_joined
from oracle.operations import Sharding, operation_of
from oracle.quantities import as_list, exact, whole
from oracle.setting import RESOURCES, Setting


@dataclass(frozen=True)
class Row:
    """One requested row: its keys, and its setting or all reasons why it is not supported."""

    keys: Mapping[str, Any]
    sizes: Mapping[str, int]
    setting: Setting | None
    reasons: tuple[str, ...]

    def values(self):
        """Return the row of the table."""
        assert self.setting is not None
        return {**self.keys, **self.sizes, **self.setting.row(self.sizes, self.keys["shards"])}


class Case(NamedTuple):
    """Combinations of a sweep on one chip, without sizes."""

    chip: str
    memory: str
    dtypes: Mapping[str, str]
    formats: Mapping[str, Any]
    sharding: Sharding
    axes: tuple[int, ...]
    networks: list[str]
    links: tuple[Link, ...]


def setting_of(sweep, chip, case, fits=None):
    """Return the setting, or None and all reasons why there is none."""
    _, memory, dtypes, formats, sharding, axes, names, links = case
    unit = sweep.get("unit", sweeps.default_unit(sweep))
    peak = chip["units"].get(unit, {}).get(dtypes["compute"])
    level = chip["memory"].get(memory, {})
    reasons = [why_not_joined(links, axes), None if peak else "compute dtype"]
    reasons.append(None if "bytes_per_s" in level else "memory")
    if any(reasons):
        return None, tuple(reason for reason in reasons if reason)
    units = dict.fromkeys(("compute", "attention"), dtypes["compute"])
    asked = {"chip": case.chip, "memory": memory, "networks": names, "unit": unit, "dtypes": units}
    efficiency = (chip.get("efficiency") or {}) | (sweep.get("efficiency") or {})
    setting = Setting(
        operation=operation_of(sweep["operation"]),
        sharding=sharding,
        bits={
            operand: sweeps.stored_bits(formats, dtypes[operand]) for operand in ("x", "w", "out")
        },
        peak=exact(peak["flops_per_s"]),
        memory_rate=exact(level["bytes_per_s"]),
        capacity=exact(level["capacity_bytes"]) if "capacity_bytes" in level else None,
        links=links,
        efficiency={r: exact(efficiency.get(r, 1)) for r in RESOURCES},
        fits=fits_of(asked, chip, softwares_of(sweep, asked, chip, fits or {}), fits or {}),
        exact_flops=sweeps.exactly(sweep),
        tile={d: whole(size) for d, size in (sweep.get("tile") or {}).items()},
        two_levels=any(len(names or []) > 1 for names in sweeps.routes(sweep)),
        axes=axes if len(axes) > 1 else (),
    )
    return setting, ()


Fits = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Files of calibrations: by kind, by chip and software, and by compute dtype or collective."""


def rows(sweep, chips, dtypes, fits=None):
    """Yield every requested row in order, including unsupported ones."""
    operation = operation_of(sweep["operation"])
    resolved = sweeps.resolve_chips(chips, as_list(sweep["chips"]))
    forms = as_list(sweep.get("shards", [1]))
    several = any(len(sweeps.axes_of(form)) > 1 for form in forms)
    for chip, memory in product(as_list(sweep["chips"]), as_list(sweep.get("memory", "hbm"))):
        alone = False  # whether rows without a network were there
        for route in sweeps.routes(sweep):
            names, links = sweeps.network_of(resolved[chip], route)
            for lead, spec in product(sweeps.points(sweep), sweep["dtypes"]):
                name, combination = sweeps.combination_of(spec, dtypes["combinations"])
                for sharding, axes in sweeps.splits(sweep):
                    if not links and alone and axes == (1,):
                        continue
                    split = sharding, axes, names, links
                    case = Case(chip, memory, combination, dtypes["formats"], *split)
                    setting, reasons = setting_of(sweep, resolved[chip], case, fits)
                    keys = {
                        "operation": operation.name,
                        "chip": chip,
                        "unit": sweep.get("unit", sweeps.default_unit(sweep)),
                        "memory": memory,
                        "network": "+".join(names) if links else None,
                        "dtypes": name,
                        "sharding": sharding.name,
                        "shards": math.prod(axes),
                        **({"axes": "x".join(map(str, axes))} if several else {}),
                    }
                    for shape, sizes in lead:
                        yield Row({**keys, "shape": shape}, sizes, setting, reasons)
            alone = alone or not links
