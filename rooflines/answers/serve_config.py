"""Config with a plan's deployments: sweeps whose rows have its numbers, and their fronts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers.overrides import typed_prices, written_variants
from rooflines.answers.serve_answer import shown_rows
from rooflines.basics.yaml_file import read_yaml
from rooflines.hardware.chip_catalogue import SET_SUFFIX
from rooflines.hardware.entry_forms import validate_entry
from rooflines.hardware.support import default_route
from rooflines.models.split import Split
from rooflines.serving.deployments import MIXED, POOLS
from rooflines.serving.front import doubling_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.answers.serve_answer import ServePlan
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.step_sweep import ModelSweep

FRONT = "front"
"""Chart of sweeps."""

OWN_KEYS = ("chips", "prices", "engines")
"""Keys of a config with chips, prices and engines of its own."""


class OwnNumbers(NamedTuple):
    """Numbers of a plan that no catalogue has.

    Attributes:
        settings: PATH=NUMBER of chips, as typed.
        price: Price of a chip, as typed; None: those of the catalogue.
        config: Path of the config with further chips; None: none.
    """

    settings: Sequence[str] = ()
    price: str | None = None
    config: str | None = None

    def keys(self, chips: Mapping[str, Chip]) -> dict[str, Any]:
        """Keys of a config that has them.

        Args:
            chips: Chips of the plan by id.
        """
        keys: dict[str, Any] = {}
        if self.config is not None:
            content = read_yaml(Path(self.config))
            keys = {key: content[key] for key in OWN_KEYS if content.get(key)}
            folder = Path(self.config).resolve().parent
            if files := content.get("calibrations"):
                keys["calibrations"] = [str(folder / file) for file in files]
        if self.settings:
            bases = [entry.base for entry in chips.values() if entry.base is not None]
            keys["chips"] = keys.get("chips", {}) | written_variants(bases, self.settings)
        if self.price is not None:
            named = {name.removesuffix(SET_SUFFIX): entry for name, entry in chips.items()}
            prices = typed_prices(self.price, chips, named)
            keys["prices"] = keys.get("prices", {}) | {
                name: float(usd) for name, usd in prices.items()
            }
        return keys


class PlanRow(NamedTuple):
    """Deployment as rows of a sweep.

    Attributes:
        deployment: Its name.
        sweep: The sweep's name.
        split: Split of the rows.
        batches: Its batch, or the whole ones around a real batch [1].
    """

    deployment: str
    sweep: str
    split: str
    batches: Sequence[int]

    @property
    def comment(self) -> str:
        """Line of a config that says which rows these are."""
        batches = " and ".join(map(str, self.batches))
        return f"# {self.deployment}: sweep {self.sweep}, split {self.split}, B = {batches}"


HEAD = """\
# Rows of deployments. TPOT is t_estimate_s of mixed servers and of two pools; by other bases
# tpot_mixed_s and tpot_mixed_serial_s of mixed servers, tpot_s and tpot_serial_s of two pools.
# Where prompts or a load end a batch, it is a real number, between two rows.
"""


def plan_config(plan: ServePlan, overrides: OwnNumbers | None = None) -> str:
    """Config in YAML: sweeps with the rows of all mixed servers, and of the two pools shown.

    Mixed servers share a sweep for each route between chips. Two pools have one each, with their
    numbers of servers.

    Args:
        plan: Deployments.
        overrides: Numbers that no catalogue has.
    """
    import yaml  # noqa: PLC0415, plans do without it

    sweeps, rows = dict[str, dict[str, Any]](), list[PlanRow]()
    charted = []
    for name, keys, sweep_rows in _mixed_sweeps(plan):
        sweeps[name] = keys
        rows += sweep_rows
        charted.append(name)
    pools_chips = set[str]()
    for name, keys, sweep_rows in _pool_sweeps(plan):
        sweeps[name] = keys
        rows += sweep_rows
        if keys["chips"][0] not in pools_chips:  # the best two pools of a chip
            charted.append(name)
        pools_chips.add(keys["chips"][0])
    if any(sweep.config.draft is not None for sweep in plan.sweeps):
        charted = []  # the chart has one new token a step
    chips = {name: chip for sweep in plan.sweeps for name, chip in _chips_of(sweep).items()}
    content = {
        **({} if overrides is None else overrides.keys(chips)),
        "model-sweeps": sweeps,
        "charts": [{"chart": FRONT, "sweep": name} for name in charted],
    }
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
    return "".join([HEAD, *(f"{row.comment}\n" for row in rows), text])


def _mixed_sweeps(plan: ServePlan) -> Iterator[tuple[str, dict[str, Any], list[PlanRow]]]:
    """Yield sweeps of mixed servers: `serve`, and for further routes `serve-nvlink-infiniband`."""
    groups: list[tuple[Sequence[str], dict[str, Any], list[Mapping[str, Any]]]] = []
    for sweep in plan.sweeps:
        (chip,) = sweep.config.chips
        mixed = [row for row in plan.rows if row["kind"] == MIXED and row["chip"] == chip]
        for route, names in _by_route(sweep, [row["split"] for row in mixed]).items():
            keys = _common_keys(sweep, route, mixed=True)
            same = (group for group in groups if group[1] | {"chips": [chip]} == keys)
            group = next(same, None)
            if group is None:
                group = route, keys, []
                groups.append(group)
            group[1]["chips"] = [*dict.fromkeys([*group[1]["chips"], chip])]
            group[2].extend(row for row in mixed if row["split"] in names)
    for index, (networks, keys, rows) in enumerate(groups):
        name = "-".join(["serve", *((networks or keys["chips"]) if index else ())])
        batches = {batch for row in rows for batch in _batches(row)}
        splits = [validate_entry(Split, split) for split in dict.fromkeys(r["split"] for r in rows)]
        yield (
            name,
            {**keys, "grid": {"B": sorted(batches)}, "splits": [*map(_split_keys, splits)]},
            [PlanRow(row["deployment"], name, row["split"], _batches(row)) for row in rows],
        )


def _pool_sweeps(plan: ServePlan) -> Iterator[tuple[str, dict[str, Any], list[PlanRow]]]:
    """Yield sweeps of two pools, such as `pools-4-tp2-1-tp8`, with batches up to the deployment's.

    Limits on TPOT with the same servers share a sweep.
    """
    by_chip = {next(iter(sweep.config.chips)): sweep for sweep in plan.sweeps}
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in shown_rows(plan.rows):
        if row["kind"] == POOLS:
            groups.setdefault((row["prefill_chip"], row["chip"], row["deployment"]), []).append(row)
    several = len({(reading, writing) for reading, writing, _ in groups}) > 1
    for (reading, writing, _), rows in groups.items():
        first = rows[0]
        prefill, decode = (validate_entry(Split, first[key]) for key in ("prefill_split", "split"))
        numbers = [first["prefill_servers"], first["prefill_split"]]
        numbers += [first["servers"], first["split"]]
        name = "-".join(map(str, ["pools", *([writing] if several else []), *numbers]))
        batches = {batch for row in rows for batch in _batches(row)}
        grid = batches | doubling_batches(decode.dp, max(batches), 1)
        sweep, route = by_chip[writing], _route(by_chip[writing], decode)
        reader = by_chip[reading]
        yield (
            name,
            {
                **_common_keys(sweep, route, mixed=False),
                "grid": {"B": sorted(grid)},
                "splits": [_split_keys(decode)],
                "pools": {
                    "prefill": {
                        "chip": reading,
                        "split": _split_keys(prefill),
                        **_network_keys(_route(reader, prefill)),
                    },
                    "servers": {"prefill": first["prefill_servers"], "decode": first["servers"]},
                },
            },
            [PlanRow(row["deployment"], name, row["split"], _batches(row)) for row in rows],
        )


def _batches(row: Mapping[str, Any]) -> list[int]:
    """Whole batches around a deployment's, with a sequence for each replica [1]."""
    least = row["dp"]
    whole = {math.floor(row["batch"]), math.ceil(row["batch"])}
    return sorted({max(least, batch) for batch in whole})


def _chips_of(sweep: ModelSweep) -> dict[str, Chip]:
    """Chips of a sweep by id."""
    return {name: sweep.chips[name] for name in sweep.config.chips}


def _route(sweep: ModelSweep, split: Split) -> tuple[str, ...]:
    """Networks between a server's chips; one chip has none."""
    (chip,) = sweep.config.chips
    return tuple(default_route(sweep.chips[chip], split.chips)) if split.chips > 1 else ()


def _network_keys(route: Sequence[str]) -> dict[str, Any]:
    """Networks as a server of a pool has them."""
    return {"network": [*route]} if route else {}


def _by_route(sweep: ModelSweep, names: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """Split names by route between their chips; one chip has no route, and joins another one."""
    by_route: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(names):
        by_route.setdefault(_route(sweep, validate_entry(Split, name)), []).append(name)
    if () in by_route and len(by_route) > 1:
        single = by_route.pop(())
        by_route[min(by_route, key=len)] += single
    return by_route


def _common_keys(sweep: ModelSweep, route: Sequence[str], *, mixed: bool) -> dict[str, Any]:
    """Keys of a sweep, without splits and batches."""
    left_out = {"splits", "network", "grid"}
    keys = sweep.config.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    if mixed:
        keys["requests"] = [{**request, "mixed": True} for request in keys["requests"]]
    return {**keys, "thresholds": [], **({"network": [[*route]]} if route else {})}


def _split_keys(split: Split) -> dict[str, Any]:
    """Split as a config has it."""
    return split.model_dump(mode="json", exclude_defaults=True) or {"tp": 1}
