"""Config with a plan's mixed servers: sweeps whose rows have its numbers, and their fronts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import ESTIMATE_BASIS
from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import validate_entry
from rooflines.hardware.support import default_route
from rooflines.models.split import Split
from rooflines.serving.deployments import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.answers.serve_answer import ServePlan
    from rooflines.sweep.step_sweep import ModelSweep

OPTION = "--write-config"
"""Option by which it is asked for."""

FRONT = "front"
"""Chart of each sweep."""


def plan_config(plan: ServePlan) -> str:
    """Config in YAML: a sweep for each route between chips, over splits and batches.

    A deployment `2 x tp8` at batch B is the row with split tp8 and B: its `t_estimate_s` is TPOT.

    Args:
        plan: Mixed servers by estimates.

    Raises:
        RooflinesError: The plan has two pools, or another basis: no sweep has such rows.
    """
    import yaml  # noqa: PLC0415, plans do without it

    if any(row["kind"] != MIXED for row in plan.rows):
        problem = "has no rows for two pools, whose batch is no whole number"
        raise RooflinesError(OPTION, problem, "add --only mixed")
    if any(not float(row["batch"]).is_integer() for row in plan.rows):
        problem = "has no rows for batches that fall to a load, which are no whole numbers"
        raise RooflinesError(OPTION, problem, "leave out --load, or add --goal min-chips")
    if plan.basis is not ESTIMATE_BASIS:
        problem = "has estimates with prompts between tokens alone, and this plan has none"
        raise RooflinesError(OPTION, problem, "plan chips that have a calibration, without --bound")
    sweeps = dict(_sweeps(plan))
    charts = [{"chart": FRONT, "sweep": name} for name in sweeps]
    content = {"model-sweeps": sweeps, "charts": charts}
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)


def _sweeps(plan: ServePlan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield sweeps by name: `serve`, and for further routes `serve-nvlink-infiniband`."""
    groups: list[tuple[Sequence[str], dict[str, Any], dict[str, set[int]]]] = []
    for sweep in plan.sweeps:
        (chip,) = sweep.config.chips
        batches: dict[str, set[int]] = {}
        for row in plan.rows:
            if row["chip"] == chip:
                batches.setdefault(row["split"], set()).add(int(row["batch"]))
        for route, names in _by_route(sweep, batches).items():
            keys = _common_keys(sweep, route)
            same = (group for group in groups if group[1] | {"chips": [chip]} == keys)
            group = next(same, None)
            if group is None:
                group = route, keys, {}
                groups.append(group)
            group[1]["chips"] = [*dict.fromkeys([*group[1]["chips"], chip])]
            for name in names:
                group[2].setdefault(name, set()).update(batches[name])
    for index, (networks, keys, by_split) in enumerate(groups):
        suffix = f"-{'-'.join(networks or keys['chips'])}" if index else ""
        splits = [validate_entry(Split, name) for name in by_split]
        yield (
            f"serve{suffix}",
            {
                **keys,
                "grid": {"B": sorted(set().union(*by_split.values()))},
                "splits": [_split_keys(split) for split in splits],
            },
        )


def _by_route(sweep: ModelSweep, names: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """Split names by route between their chips; one chip has no route, and joins another one."""
    (chip,) = sweep.config.chips
    by_route: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        chips = validate_entry(Split, name).chips
        route = tuple(default_route(sweep.chips[chip], chips)) if chips > 1 else ()
        by_route.setdefault(route, []).append(name)
    if () in by_route and len(by_route) > 1:
        single = by_route.pop(())
        by_route[min(by_route, key=len)] += single
    return by_route


def _common_keys(sweep: ModelSweep, route: Sequence[str]) -> dict[str, Any]:
    """Keys of a sweep, without splits and batches."""
    left_out = {"splits", "network", "grid"}
    keys = sweep.config.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    return {**keys, "thresholds": [], **({"network": [[*route]]} if route else {})}


def _split_keys(split: Split) -> dict[str, Any]:
    """Split as a config has it."""
    return split.model_dump(mode="json", exclude_defaults=True) or {"tp": 1}
