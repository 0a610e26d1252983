"""Kernels without operators in a step, laid on a model's layers by their order.

Attention kernels are anchors: as many as the model has layers, or a multiple. Between two anchors
the matmuls must be the model's, in its order; where they are not, they stay without a bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise, product
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.traces.kernel_names import activity_kind
from rooflines.traces.model_step import KEYS, QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.models.groups import Group
    from rooflines.models.model import Model
    from rooflines.traces.model_step import ModelStep
    from rooflines.traces.trace_records import Activity, OperatorCost

ATTENTION, EXPERTS, MATMUL, NORM, UNEMBED = "attention", "experts", "matmul", "norm", "unembed"
ACTIVATION, ROUTER, SHARED, UP = "activation", "router", "shared", "kv-up"

MATMULS = {"qkv": (1, 3), "gate-up": (1, 2), "q-kv": (1, 2), "qkv-down": (1, 2), SHARED: (2, 3, 0)}
"""Matmuls that a group runs as, the usual number first [1].

Engines run q, k and v apart, or gate and up; shared experts have gate-up and down, or are routed.
"""

MIN_FITTING_SHARE = 0.5
"""Share of the layers whose matmuls must be the model's, or the model is refused [1]."""


class LayerKernels(NamedTuple):
    """Kernels for one group in one layer.

    Attributes:
        layer: Layer, the first 0 [1].
        group: Group of the model, or the kind of kernels between groups.
        activities: The kernels, in order.
        cost: Work; None: outside the model.
    """

    layer: int
    group: str
    activities: list[Activity]
    cost: OperatorCost | None


class LaidStep(NamedTuple):
    """Step laid on a model.

    Attributes:
        rows: Kernels by layer and group.
        layers: Layers between anchors [1].
        fitting: Layers whose matmuls are the model's [1].
        reasons: Kernels that stay without a bound, by reason.
    """

    rows: list[LayerKernels]
    layers: int
    fitting: int
    reasons: Counter[str]


def anchors_of(activities: Iterable[Activity]) -> int:
    """Attention kernels in a step [1]."""
    return sum(activity_kind(activity) == ATTENTION for activity in activities)


def attention_layers(model: Model) -> int:
    """Layers with attention [1]."""
    return sum(part.layers for part in model.shape.attentions)


def misfit_reason(model: Model, anchors: int) -> str | None:
    """Reason why attention kernels are not those of a model's layers; None: they may be.

    Args:
        model: The model.
        anchors: Attention kernels in a step [1].
    """
    layers = attention_layers(model)
    if not layers:
        return f"{model.name} has no layers with attention"
    if not anchors:
        return "the step has no attention kernels, which tell layers apart"
    if anchors % layers:
        return f"{anchors} attention kernels are no multiple of {model.name}'s {layers} layers"
    return None


class LayerOrder:
    """A model's matmuls and experts by layer, in run order.

    Args:
        step: The model's step.
    """

    def __init__(self, step: ModelStep) -> None:
        groups = step.groups
        self.layers = attention_layers(step.model)
        places = [place for place, group in enumerate(groups) if group.context]
        first, last = (places[0], places[-1]) if places else (0, 0)
        self.before = [group.name for group in groups[:first] if _is_matmul(group)]
        after = [group for group in groups[last + 1 :] if group.name != UNEMBED]
        routed = next((n for n, group in enumerate(after) if group.name == ROUTER), len(after))
        self._everywhere = {group.name for group in after if group.count == self.layers}
        self._dense = [group.name for group in after[:routed]]
        self._routed = [group.name for group in after[routed:]]
        self.routed_layers = after[routed].count if self._routed else 0
        # Absorbed MLA multiplies by keys' up-projection before attention, by values' after it.
        self._values = [UP] if UP in self.before and not step.sums.prefills else []
        self.windowed = [group.name for group in groups if group.context and group.window]
        self.full_layers = sum(g.count for g in groups if g.context and not g.window)
        self.has_head = any(group.name == UNEMBED for group in groups)

    def after(self, *, has_experts: bool) -> list[str]:
        """Matmuls, and experts, after attention in a layer with experts, or in a dense one."""
        chosen = [*self._dense, *self._routed]
        absent = self._dense if has_experts else self._routed
        return [
            *self._values,
            *(name for name in chosen if name in self._everywhere or name not in absent),
        ]


def _is_matmul(group: Group) -> bool:
    return bool(group.weights) and group.moe is None


def lay_step(activities: Sequence[Activity], step: ModelStep) -> LaidStep:
    """Lay a step's activities on a model.

    Args:
        activities: What a device did in the step.
        step: The model's step.

    Raises:
        RooflinesError: Attention kernels are no multiple of the model's layers, or the matmuls of
            most layers are not the model's.
    """
    ordered = sorted(activities, key=attrgetter("begin_ns"))
    kinds = [activity_kind(activity) for activity in ordered]
    anchors = [place for place, kind in enumerate(kinds) if kind == ATTENTION]
    if reason := misfit_reason(step.model, len(anchors)):
        raise RooflinesError("--model", reason, "give the model that ran, or auto")
    layout = _Layout(ordered, kinds, anchors, step)
    laid = layout.laid()
    if laid.fitting < laid.layers * MIN_FITTING_SHARE:
        why, kernels = laid.reasons.most_common(1)[0]
        problem = (
            f"{step.model.name} fits {laid.fitting} of {laid.layers} layers: {why}, "
            f"{kernels} kernels in all"
        )
        raise RooflinesError("--model", problem, "give the model that ran, or auto")
    if reason := layout.experts_reason():
        raise RooflinesError("--model", reason, "give the model that ran, or auto")
    return laid


class _Layout:
    """Kernels between anchors, by layer and group."""

    def __init__(
        self,
        activities: Sequence[Activity],
        kinds: Sequence[str],
        anchors: Sequence[int],
        step: ModelStep,
    ) -> None:
        self._activities, self._kinds, self._anchors = activities, kinds, anchors
        self._order = LayerOrder(step)
        self._costs = step.group_costs()
        self._small = step.small_costs()
        self._step = step
        self._groups: dict[tuple[int, str], list[int]] = defaultdict(list)
        self._rows: list[LayerKernels] = []
        self._reasons = Counter[str]()
        self._fitting = self._routed = 0
        full = self._order.full_layers * len(anchors) // self._order.layers
        by_time = sorted(anchors, key=lambda place: -activities[place].duration_ns)
        self._full = {*by_time[:full]} if self._order.windowed else {*anchors}

    def experts_reason(self) -> str | None:
        """Reason why the layers with experts are not the model's; None: they are, or not seen.

        Experts' kernels tell; where none has a name that is known, the matmuls of a layer.
        """
        layers = len(self._anchors)
        expected = self._order.routed_layers * layers // self._order.layers
        seen = sum(map(self._has_experts, range(layers)))
        if not seen and self._fitting == layers:
            seen = self._routed
        if seen in (0, expected):
            return None
        return (
            f"{seen} of {layers} layers have experts, and {expected} of {self._step.model.name}'s"
        )

    def _has_experts(self, index: int) -> bool:
        """True if experts run after an anchor."""
        return EXPERTS in self._kinds[self._anchors[index] : self._end(index)]

    def _end(self, index: int) -> int:
        """Place of the next anchor, or the end."""
        is_last = index + 1 == len(self._anchors)
        return len(self._activities) if is_last else self._anchors[index + 1]

    def laid(self) -> LaidStep:
        """Lay all kernels."""
        anchors, layers = self._anchors, self._order.layers
        self._lay_between(0, anchors[0], -1, ([],), is_last=False)
        for index, place in enumerate(anchors):
            layer = index % layers
            self._groups[layer, self._attention(place)].append(place)
            is_last = layer + 1 == layers
            # Where no experts are seen in a step, their kernels have unknown names.
            orders = [self._order.after(has_experts=self._has_experts(index))]
            if EXPERTS not in self._kinds:
                orders.append(self._order.after(has_experts=True))
            self._lay_between(place + 1, self._end(index), layer, orders, is_last=is_last)
            if is_last:
                self._flush()
        self._flush()
        return LaidStep(self._rows, len(anchors), self._fitting, self._reasons)

    def _attention(self, place: int) -> str:
        return ATTENTION if place in self._full else self._order.windowed[0]

    def _flush(self) -> None:
        """Rows for one pass through the layers; what is laid already is the next pass's."""
        layers = self._order.layers
        for (layer, group), places in sorted(self._groups.items(), key=lambda item: item[1][0]):
            activities = [self._activities[place] for place in places]
            cost = self._costs.get(group)
            self._rows.append(LayerKernels(layer % layers, group, activities, cost))
        self._groups.clear()

    def _lay_between(
        self, first: int, end: int, layer: int, orders: Iterable[Sequence[str]], *, is_last: bool
    ) -> None:
        """Lay the kernels between two anchors, in the first order that fits."""
        matmuls = [place for place in range(first, end) if self._kinds[place] == MATMUL]
        head = [UNEMBED] if is_last and self._order.has_head else []
        before = self._order.before if end < len(self._activities) else []
        alternatives = []
        for after in orders:
            names = [*(name for name in after if name != EXPERTS), *head]
            groups = [*((layer, name) for name in names), *((layer + 1, name) for name in before)]
            alternatives.append(groups)
        fitted = fitted_groups(alternatives, len(matmuls))
        if fitted is None:
            usual = (name for _, name in alternatives[0] for _ in range(MATMULS.get(name, (1,))[0]))
            wanted = ", ".join(usual)
            self._reasons[f"{len(matmuls)} matmuls where {wanted} are expected"] += len(matmuls)
            for place in matmuls:
                self._add_outside(place, layer)
        elif layer >= 0:
            self._fitting += 1
            self._routed += any(name == ROUTER for _, name in fitted)
        owners = dict(zip(matmuls, self._with_shared(matmuls, fitted or ()), strict=False))
        for place, owner in owners.items():
            self._groups[owner].append(place)
        projected = min((p for p, (owner, _) in owners.items() if owner > layer), default=end)
        self._lay_others(range(first, end), layer, owners, projected)

    def _with_shared(
        self, matmuls: Sequence[int], groups: Sequence[tuple[int, str]]
    ) -> Sequence[tuple[int, str]]:
        """Groups of matmuls where those around an activation are of the shared experts.

        Engines run them before the router or after it.
        """
        chosen = [place for place, (_, name) in enumerate(groups) if name in (ROUTER, SHARED)]
        routers = [groups[place] for place in chosen if groups[place][1] == ROUTER]
        shared = [groups[place] for place in chosen if groups[place][1] == SHARED]
        if not routers or not shared or chosen[-1] - chosen[0] >= len(chosen):
            return groups
        first, end = chosen[0], chosen[-1] + 1
        spans = (self._kinds[left:right] for left, right in pairwise(matmuls[first:end]))
        inside = (ACTIVATION in kinds and EXPERTS not in kinds for kinds in spans)
        gate_up = next((place for place, is_inside in enumerate(inside) if is_inside), None)
        is_first = gate_up is not None and gate_up + 2 == len(shared)
        ordered = [*shared, *routers] if is_first else [*routers, *shared]
        return [*groups[:first], *ordered, *groups[end:]]

    def _lay_others(
        self, places: range, layer: int, owners: dict[int, tuple[int, str]], projected: int
    ) -> None:
        """Lay what is no matmul: parts on their kernel, the rest by its kind."""
        last_owner: tuple[int, str] | None = None
        inner_norms = [p for p in places if self._kinds[p] == NORM and p > projected]
        for place in places:
            kind = self._kinds[place]
            if kind == MATMUL:
                last_owner = owners.get(place)
            elif kind in (EXPERTS, "experts part") and self._order.routed_layers:
                self._groups[layer, EXPERTS].append(place)
                last_owner = layer, EXPERTS
            elif kind == "matmul part" and last_owner is not None:
                self._groups[last_owner].append(place)
            elif kind == "attention part" and places.start:
                self._groups[layer, self._attention(places.start - 1)].append(place)
            elif kind == NORM:
                self._add_small(place, layer, kind, self._norm_cost(place, inner_norms))
            elif kind == ACTIVATION:
                group = last_owner[1] if last_owner else ""
                self._add_small(place, layer, kind, self._step.activation_cost(group))
            else:
                self._add_small(place, layer, kind, self._small.get(kind))

    def _norm_cost(self, place: int, inner_norms: Sequence[int]) -> OperatorCost:
        """Work in a norm; between qkv and attention it is over queries, then keys, or both."""
        if place not in inner_norms:
            return self._step.norm_cost()
        if len(inner_norms) == 1:
            return self._step.norm_cost(QUERIES, KEYS)
        return self._step.norm_cost(QUERIES if place == inner_norms[0] else KEYS)

    def _add_small(self, place: int, layer: int, kind: str, cost: OperatorCost | None) -> None:
        layer = max(layer, 0)
        self._rows.append(LayerKernels(layer, kind, [self._activities[place]], cost))

    def _add_outside(self, place: int, layer: int) -> None:
        self._add_small(place, layer, self._kinds[place], None)


def fitted_groups(
    alternatives: Iterable[Sequence[tuple[int, str]]], count: int
) -> Sequence[tuple[int, str]] | None:
    """Layer and group of each matmul, in order; None: there are not as many as expected.

    Of several fits the one with the fewest groups in an unusual number of matmuls counts.

    Args:
        alternatives: The model's groups with matmuls in order, each with its layer; several where
            a layer may be dense, or have experts.
        count: Matmul kernels [1]; q, k and v, or gate and up, may run apart.
    """
    fits: list[tuple[int, Sequence[tuple[int, str]]]] = []
    for expected in alternatives:
        names = [*dict.fromkeys(name for _, name in expected if name in MATMULS)]
        for numbers in product(*(MATMULS[name] for name in names)):
            chosen = dict(zip(names, numbers, strict=True))
            groups = [group for group in expected for _ in range(chosen.get(group[1], 1))]
            if len(groups) == count:
                unusual = sum(MATMULS[name][0] != number for name, number in chosen.items())
                fits.append((unusual, groups))
    return min(fits, key=itemgetter(0))[1] if fits else None
