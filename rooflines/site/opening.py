"""Opening state for the explorer: chips, layers, models and splits that a run is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rooflines.basics.files import read_parquet
from rooflines.charts.frames import dimension_sizes
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.timing_errors import MATMUL
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.recipes import sweep_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.step_sweep import ModelSweep

MODEL = "model"
"""Explorer subject for model steps."""

PLANS = "plans"
"""Chart kind that compares training plans."""

MAX_PLANS = 8
"""Maximum leading plans that the page offers [1]."""

MAX_CHIPS = 4
"""Maximum chips in the opening state if a run has more [1]; the page's menu has all."""


def run_chips(names: Iterable[str], defaults: Sequence[str]) -> list[str]:
    """Order a run's chips for a page: its own, then the page's defaults, then others."""
    listed = [*dict.fromkeys(names)]
    unlisted = [name for name in listed if name not in chip_entries()]
    return [*dict.fromkeys([*unlisted, *(name for name in defaults if name in listed), *listed])]


def leading_plans(families: Iterable[Path]) -> list[str]:
    """Training plans that fit, as the first chart that compares plans orders them.

    Args:
        families: Chart folders by kind.
    """
    for family in families:
        if family.name == PLANS:
            for chart in json.loads((family / "index.json").read_text(encoding="utf-8")):
                rows = read_parquet(family / f"{chart['id']}.parquet").filter("fits")
                return [str(name) for name in rows["split"].head(MAX_PLANS)]
    return []


def opening_state(
    recipes: Sequence[JSON], matmuls: JSON, steps: JSON, leading: Sequence[str] = ()
) -> dict[str, str]:
    """Address settings for the explorer's first state.

    A setting that the run shares with the page's defaults is left out, so that a run over the
    whole catalogue opens as the catalogue does.

    Args:
        recipes: Recipes for the run's sweeps, in the config's order.
        matmuls: The page's matmul data: what its menus offer.
        steps: The page's step data.
        leading: Training plans by name, best first.
    """
    swept = [recipe for recipe in recipes if "sweep" in recipe and "operation" in recipe["config"]]
    swept.sort(key=lambda recipe: not _has_defaults(recipe, matmuls))
    sweep = next((sweep for sweep in map(sweep_of, swept) if _is_matmul(sweep)), None)
    served = [recipe for recipe in recipes if "sweep" in recipe and "models" in recipe]
    sweep = sweep or next(map(sweep_of, served), None)
    if sweep is None:
        return {}
    defaults = matmuls["default_chips"]
    offered = {chip["id"] for chip in matmuls["chips"]}
    chips = [chip for chip in sweep.chips if chip in offered]
    if not chips:
        return {}
    if len(chips) > MAX_CHIPS:
        chips = run_chips(chips, defaults)[:MAX_CHIPS]
    state = {"chips": "" if chips == [*defaults] else ",".join(chips)}
    if isinstance(sweep, Sweep):
        state |= _matmul(sweep, matmuls)
    else:
        state |= _step(sweep, matmuls, steps, leading, chips[0])
    return {name: value for name, value in state.items() if value}


def _has_defaults(recipe: JSON, matmuls: JSON) -> bool:
    """Check that a sweep has the page's default chips and layer."""
    defaults, shapes = matmuls["page"]["defaults"], recipe["config"].get("shapes") or ()
    layers = {(shape.get("D"), shape.get("F")) for shape in shapes}
    has_chips = {*matmuls["default_chips"]} <= recipe["chips"].keys()
    return has_chips and (defaults["D"], defaults["F"]) in layers


def _is_matmul(sweep: object) -> bool:
    """Check that the explorer's matmul is what a sweep is over."""
    return isinstance(sweep, Sweep) and sweep.op.dims == ("B", "D", "F") and sweep.unit == "matrix"


def _matmul(sweep: Sweep, matmuls: JSON) -> dict[str, str]:
    """Dtypes, layer and batch from an operation sweep."""
    defaults, menu = matmuls["page"]["defaults"], [dtype["name"] for dtype in matmuls["dtypes"]]
    state = {"dtypes": _offered(sweep.combinations, menu, menu[0])}
    shapes = [shape.sizes for shape in sweep.config.shapes or ()]
    layers = [(sizes["D"], sizes["F"]) for sizes in shapes if {"D", "F"} <= sizes.keys()]
    if layers and (defaults["D"], defaults["F"]) not in layers:
        state |= {name: str(size) for name, size in zip("DF", layers[0], strict=True)}
    state["B"] = _near(defaults["B"][MATMUL], dimension_sizes(sweep, "B"))
    if not layers:
        state |= {name: _near(defaults[name], dimension_sizes(sweep, name)) for name in "DF"}
    return state


def _step(
    sweep: ModelSweep, matmuls: JSON, steps: JSON, leading: Sequence[str], chip: str
) -> dict[str, str]:
    """Model, phase, format, split and sizes from a sweep over model steps."""
    config, defaults = sweep.config, matmuls["page"]["defaults"]
    phase = DECODE if DECODE in config.phase else config.phase[0]
    training = phase == TRAIN
    choices = steps["choices"]["train" if training else "serve"]
    models = [model["id"] for model in steps["models"]]
    model = _offered(sweep.models, models, models[choices["model"]])
    place = {"chip": chip, "model": model or models[choices["model"]]}
    skipped = {
        row.get("split")
        for row in steps["skipped"]
        if all(row.get(name) in {None, "", value} for name, value in place.items())
    }
    splits = [split["name"] for split in choices["splits"] if split["name"] not in skipped]
    preferred = choices["splits"][choices["split"]]["name"]
    lengths = [request.input for request in config.requests or ()] or sweep.sizes.get("S", ())
    return {
        "subject": MODEL,
        "phase": phase,
        "model": model,
        "format": _offered([dtypes.label for dtypes in config.dtypes], choices["formats"]),
        "plan" if training else "split": _offered(
            [*leading, *(split.name for split in config.splits)],
            splits,
            "" if leading else preferred,
        ),
        "B": _near(defaults["B"][MODEL], sweep.sizes.get("B", ())),
        "S": _near(defaults["S"], lengths),
    }


def _offered(names: Iterable[str], menu: Collection[str], default: str = "") -> str:
    """First run name that a menu offers; empty if none, or if the default is one."""
    chosen = [name for name in names if name in menu]
    return "" if default in chosen or not chosen else chosen[0]


def _near(default: int, sizes: Iterable[int]) -> str:
    """Run size nearest to a default; empty if the run's sizes reach over the default."""
    values = [*sizes]
    if not values or min(values) <= default <= max(values):
        return ""
    return str(min(values, key=lambda size: abs(size - default)))
