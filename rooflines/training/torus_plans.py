"""Training plans on a torus: slices, mappings onto their axes, and the fastest.

The layout is tp, cp, dp, pp from the inside, ep over the innermost chips in tp, cp and dp; torus
pods share dp and are joined by another network. A plan without typed axes takes the mapping with
the least network time for the step, so that its bound holds for every mapping by axes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from rooflines.hardware.support import Reason
from rooflines.theory.network import axes_text
from rooflines.theory.tori import (
    AxisMapping,
    Slice,
    fastest_mapping,
    mappings_onto,
    max_slice,
    nearest_slices,
    slice_shapes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.theory.network import Link
    from rooflines.theory.tori import Typed


class MappedPlan(Protocol):
    """Plan values that decide a mapping."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    pods: int

    @property
    def context(self) -> str:
        """Attention over cp: ring or heads."""

    @property
    def topology(self) -> str | None:
        """Slice as typed, such as `4x4x8`."""

    @property
    def pod_chips(self) -> int:
        """Chips in a pod [1]."""

    @property
    def pod_stage_chips(self) -> int:
        """Chips per pipeline stage in a pod [1]."""

    @property
    def typed(self) -> Mapping[str, Typed]:
        """Chips along axes as typed, by key."""

    @property
    def typed_axes(self) -> str:
        """Typed axes, slice or pods."""


Key = tuple[str, int, int]
"""Load form, and its group's chips and stride."""


def torus_mappings(
    plan: MappedPlan, names: Sequence[str], links: tuple[Link, ...]
) -> tuple[AxisMapping, ...] | Reason:
    """Mappings from a plan onto torus axes, or the reason why there are none.

    Args:
        plan: The plan.
        names: The interconnects, the torus first.
        links: Their links.
    """
    torus, chips = links[0], plan.pod_chips
    bounds = _bounds(plan)
    if isinstance(bounds, Reason):
        return bounds
    shapes = _shapes(plan, names[0], torus)
    if isinstance(shapes, Reason):
        return shapes
    typed = _typed(plan)
    fixed = plan.ep > 1 or plan.pp > 1 or (plan.cp > 1 and plan.context == "heads")
    for shape in shapes if typed else shapes[:1]:
        if missing := [
            axis for _, _, chips in typed for axis in chips.letters if axis >= len(shape)
        ]:
            letters = " and ".join(chr(ord("a") + axis) for axis in missing)
            return Reason("axes", f"no axis {letters} on {names[0]}: {len(shape)} axes, a to c")
        if mappings := mappings_onto(Slice(torus, shape), bounds, typed, fixed=fixed):
            return mappings
    parts = plan.typed_axes or "-".join(f"{key}{getattr(plan, key)}" for key in ("tp", "cp", "dp"))
    sizes = " or ".join(axes_text(shape) for shape in shapes)
    return Reason(
        "axes", f"axes of {sizes} ({chips} chips of {names[0]}), which {parts} does not fill"
    )


def _bounds(plan: MappedPlan) -> tuple[int, ...] | Reason:
    """Chips inside each boundary in a pod's layout, ep among them [1]."""
    ends = [plan.tp, plan.tp * plan.cp, plan.pod_stage_chips, plan.pod_chips]
    bounds = sorted({1, *ends, plan.ep})
    for low, high in pairwise(bounds):
        if high % low:
            return Reason("axes", f"no place for ep {plan.ep} in the layout of tp, cp and dp")
    return tuple(bounds)


def _typed(plan: MappedPlan) -> tuple[tuple[int, int, Typed], ...]:
    """Typed chips along axes, each between two layout boundaries."""
    inner = plan.tp * plan.cp
    ends = {
        "tp": (1, plan.tp),
        "cp": (plan.tp, inner),
        "dp": (inner, plan.pod_stage_chips),
        "pp": (plan.pod_stage_chips, plan.pod_chips),
        "ep": (1, plan.ep),
    }
    return tuple((*ends[key], chips) for key, chips in sorted(plan.typed.items()))


def _shapes(plan: MappedPlan, name: str, torus: Link) -> tuple[tuple[int, ...], ...] | Reason:
    """Shapes that a plan may take, the default first."""
    shapes = slice_shapes(torus, plan.pod_chips)
    if plan.topology is not None:
        shape = tuple(map(int, plan.topology.split("x")))
        return (shape,) if shape in shapes else _unfilled(plan, name, Slice(torus, shape), shapes)
    if shapes:
        return shapes
    if plan.pod_chips > max_slice(torus):
        return _more_than_a_slice(plan, name, torus)
    nearest = " and ".join(f"{number:,}" for number in nearest_slices(torus, plan.pod_chips))
    count = f"{plan.pod_chips:,} chips"
    return Reason("axes", f"no slice of {count} on {name}: the nearest are {nearest}")


def _unfilled(
    plan: MappedPlan, name: str, torus: Slice, shapes: tuple[tuple[int, ...], ...]
) -> Reason:
    """Reason why a typed slice does not have a plan's chips."""
    left, rest = divmod(torus.chips, plan.pod_chips)
    if left > 1 and not rest and torus.shape in slice_shapes(torus.link, torus.chips):
        text = f"{torus.chips} chips on {torus.text} of {name}: {plan.pod_chips} leave {left}"
        return Reason("axes", f"{text} of an axis, write tp={left}, or fill the axes")
    listed = ", ".join(axes_text(shape) for shape in shapes) or "none"
    count = f"{plan.pod_chips:,} chips"
    return Reason("axes", f"no slice {torus.text} of {count} on {name}; those of {count}: {listed}")


def _more_than_a_slice(plan: MappedPlan, name: str, torus: Link) -> Reason:
    """Reason why chips are no single slice, with the pods that have as many."""
    chips, most = plan.pod_chips, f"{max_slice(torus):,} chips at most in a slice of {name}"
    for pods in range(2, plan.dp // plan.pods + 1):
        if plan.dp // plan.pods % pods == 0 and slice_shapes(torus, chips // pods):
            write = f"dp={plan.dp // plan.pods // pods}+{pods * plan.pods}"
            division = f"{pods} pods of {chips // pods:,}"
            return Reason("axes", f"{most}: {chips:,} are {division}, write {write}")
    return Reason("axes", most)


def fastest_for(mappings: Sequence[AxisMapping], amounts: dict[Key, float]) -> AxisMapping:
    """AxisMapping with the least network time for what a step sends."""
    return fastest_mapping(mappings, tuple((*key, amount) for key, amount in amounts.items()))
