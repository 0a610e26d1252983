"""The data of the page "What if": formulas, and what it shows first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rooflines.catalogue.chips import dtype_entries
from rooflines.fits.entries import joined_calibrations, shipped_calibrations
from rooflines.model.operation import NAMED
from rooflines.site.chip_page import MAIN_DTYPE
from rooflines.site.formulas import formulas
from rooflines.sweep.recipes import fits_of, sweep_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip


def what_if_data(
    chips: Mapping[str, Chip], used: Sequence[str], recipes: Sequence[JSON], chip: str | None
) -> JSON:
    """The data of the page.

    Args:
        chips: All chips that it offers, by id.
        used: Those of the recipes.
        recipes: Of sweeps and of timings.
        chip: The chip that charts show first; None: no chart has one.

    Returns:
        What `formulas` returns; the `first` chips of both sides and dtypes: the chip of the charts,
        and the one that most recipes name; and `sizes`, the first ones of each einsum.
    """
    sweeps = [recipe for recipe in recipes if "operation" in recipe["config"]]
    calibrations = joined_calibrations(
        [
            shipped_calibrations(),
            *(fits_of(recipe) for recipe in recipes if "sweep" in recipe),
        ]
    )
    operations = {recipe["config"]["operation"]: recipe for recipe in sweeps}
    named = Counter(name for recipe in recipes for name in recipe["chips"])
    often = sorted(used, key=lambda name: (name != chip, -named[name]))
    a, b, *_ = dict.fromkeys([*often, *chips])
    return {
        **formulas(chips, dtype_entries(), operations, calibrations),
        "first": [a, b, MAIN_DTYPE],
        "sizes": dict(_sizes(recipe) for name, recipe in operations.items() if name not in NAMED),
    }


def _sizes(recipe: JSON) -> tuple[str, dict[str, int]]:
    """The operation of a sweep, and the size in the middle of each of its axes [1]."""
    sweep = sweep_of(recipe)
    axes = [axis for axis in (sweep.lead, *sweep.inner) if axis]
    columns = {name: values for axis in axes for name, values in axis.columns.items()}
    return sweep.op.name, {dim: columns[dim][len(columns[dim]) // 2] for dim in sweep.op.dims}
