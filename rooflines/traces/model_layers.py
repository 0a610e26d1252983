"""Kernels without operators in a step, laid on a model's layers by their order.

Attention kernels are anchors: as many as the model has layers, or a multiple. Between two anchors
the matmuls must be the model's, in its order; where they are not, they stay without a bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.traces.kernel_names import activity_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.models.groups import Group
    from rooflines.models.model import Model
    from rooflines.traces.model_step import ModelStep
    from rooflines.traces.trace_records import Activity, OperatorCost

ATTENTION, EXPERTS, MATMUL, NORM, UNEMBED = "attention", "experts", "matmul", "norm", "unembed"

SPLIT_GROUPS = {"qkv": 3, "gate-up": 2, "q-kv": 2}
"""Matmuls that engines also run apart: q, k and v; gate and up [1]."""

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
        self._before = [group for group in groups[:first] if _is_matmul(group)]
        self._after = [group for group in groups[last + 1 :] if group.name != UNEMBED]
        self.windowed = [group.name for group in groups if group.context and group.window]
        self.full_layers = sum(g.count for g in groups if g.context and not g.window)
        self.has_head = any(group.name == UNEMBED for group in groups)

    @property
    def before(self) -> list[str]:
        """Matmuls before attention."""
        return [group.name for group in self._before]

    def after(self, layer: int) -> list[str]:
        """Matmuls, and experts, after attention in a layer: first layers may be dense."""
        routed = next((group.count for group in self._after if group.moe is not None), None)
        if routed is None or routed == self.layers:
            return [group.name for group in self._after]
        dense = self.layers - routed
        return [
            group.name
            for group in self._after
            if group.count == self.layers or (group.count == dense) == (layer < dense)
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
    laid = _Layout(ordered, kinds, anchors, step).laid()
    if laid.fitting < laid.layers * MIN_FITTING_SHARE:
        why, kernels = laid.reasons.most_common(1)[0]
        problem = (
            f"{step.model.name} fits {laid.fitting} of {laid.layers} layers: {why}, "
            f"{kernels} kernels in all"
        )
        raise RooflinesError("--model", problem, "give the model that ran, or auto")
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
        self._fitting = 0
        full = self._order.full_layers * len(anchors) // self._order.layers
        by_time = sorted(anchors, key=lambda place: -activities[place].duration_ns)
        self._full = {*by_time[:full]} if self._order.windowed else {*anchors}

    def laid(self) -> LaidStep:
        """Lay all kernels."""
        anchors, layers = self._anchors, self._order.layers
        self._lay_between(0, anchors[0], -1, [], is_last=False)
        for index, place in enumerate(anchors):
            layer = index % layers
            self._groups[layer, self._attention(place)].append(place)
            is_end = index + 1 == len(anchors)
            end = len(self._activities) if is_end else anchors[index + 1]
            is_last = layer + 1 == layers
            self._lay_between(place + 1, end, layer, self._order.after(layer), is_last=is_last)
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
        self, first: int, end: int, layer: int, after: Sequence[str], *, is_last: bool
    ) -> None:
        """Lay the kernels between two anchors."""
        matmuls = [place for place in range(first, end) if self._kinds[place] == MATMUL]
        expected = [name for name in after if name != EXPERTS]
        expected += [UNEMBED] if is_last and self._order.has_head else []
        follows = end < len(self._activities)
        before = self._order.before if follows else []
        names = fitted_names([*expected, *before], len(matmuls))
        if names is None:
            wanted = ", ".join([*expected, *before])
            self._reasons[f"{len(matmuls)} matmuls where {wanted} are expected"] += len(matmuls)
            for place in matmuls:
                self._add_outside(place, layer)
            names = []
        elif layer >= 0:
            self._fitting += 1
        owners = dict[int, tuple[int, str]]()
        for place, name in zip(matmuls, names, strict=False):
            owners[place] = (layer if name not in before else layer + 1, name)
            self._groups[owners[place]].append(place)
        projected = min(
            (place for place, (_, name) in owners.items() if name in before), default=end
        )
        self._lay_others(range(first, end), layer, after, owners, projected)

    def _lay_others(
        self,
        places: range,
        layer: int,
        after: Sequence[str],
        owners: dict[int, tuple[int, str]],
        projected: int,
    ) -> None:
        """Lay what is no matmul: parts on their kernel, the rest by its kind."""
        last_owner: tuple[int, str] | None = None
        head_norms = [p for p in places if self._kinds[p] == NORM and p > projected]
        for place in places:
            kind = self._kinds[place]
            if kind == MATMUL:
                last_owner = owners.get(place)
            elif kind in ("experts", "experts part") and EXPERTS in after:
                self._groups[layer, EXPERTS].append(place)
            elif kind == "matmul part" and last_owner is not None:
                self._groups[last_owner].append(place)
            elif kind == "attention part" and places.start:
                self._groups[layer, self._attention(places.start - 1)].append(place)
            elif kind == NORM:
                cost = self._step.norm_cost(self._norm_heads(place, head_norms))
                self._add_small(place, layer, kind, cost)
            else:
                self._add_small(place, layer, kind, self._small.get(kind))

    def _norm_heads(self, place: int, head_norms: Sequence[int]) -> int:
        """Heads that a norm between qkv and attention is over: queries, then keys, or all."""
        step = self._step
        if place not in head_norms:
            return 0
        if len(head_norms) == 1:
            return step.query_heads + step.kv_heads
        return step.query_heads if place == head_norms[0] else step.kv_heads

    def _add_small(self, place: int, layer: int, kind: str, cost: OperatorCost | None) -> None:
        layer = max(layer, 0)
        self._rows.append(LayerKernels(layer, kind, [self._activities[place]], cost))

    def _add_outside(self, place: int, layer: int) -> None:
        self._add_small(place, layer, self._kinds[place], None)


def fitted_names(expected: list[str], count: int) -> list[str] | None:
    """Matmul names in order; None: there are not as many as expected.

    Args:
        expected: The model's matmuls, in order.
        count: Matmul kernels [1]; q, k and v, or gate and up, may run apart.
    """
    splits = [name for name in SPLIT_GROUPS if name in expected]
    for chosen in ([], *([name] for name in splits), splits):
        names = [
            name
            for group in expected
            for name in [group] * (SPLIT_GROUPS[group] if group in chosen else 1)
        ]
        if len(names) == count:
            return names
    return None
