"""Operator calls with what they launched: rows in a trace's table."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from rooflines.fits.nsight import short_name
from rooflines.traces.collective_rules import collective_cost, custom_all_reduce_cost
from rooflines.traces.copy_rules import compiled_cost, copy_cost, crosses_host
from rooflines.traces.engine_attention import engine_attention_cost, is_engine_attention
from rooflines.traces.host_tree import ancestors, is_graph_launch
from rooflines.traces.operator_rules import has_rule, operator_cost
from rooflines.traces.step_annotations import step_tokens
from rooflines.traces.trace_records import Call, Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.traces.trace_records import (
        Activity,
        Annotation,
        OperatorCost,
        StepTokens,
        Trace,
    )

COMMUNICATION = "record_param_comms"
"""Operator that records a collective."""

MAX_SHAPE = 80
"""Characters of dims as text [1]."""

MAX_KERNEL_NAME = 60
"""Characters of a kernel's short name [1]."""

BEFORE = "launched before the trace began"
NO_OPERATORS = "no operators in the file"
IN_GRAPH = "replayed from a graph, without operators"
NO_RULE = "no rule"
NO_SHAPES = "no shapes"
"""Reasons why a call has no bound."""

COPIES = ("copy", "set")
"""Kinds of activities that move bytes alone."""


@lru_cache(1 << 16)
def kernel_label(name: str) -> str:
    """Kernel name without types and parameters."""
    return short_name(name).partition("<")[0][:MAX_KERNEL_NAME]


def trace_calls(trace: Trace) -> list[Call]:
    """Calls in a trace, each with its cost where one is known.

    All activities that a call launches on a device are one row. The call is the innermost operator
    around a launch with a known cost; without any, the innermost operator.

    Args:
        trace: Its activities have launches, operators and steps.
    """
    return _CallTable(trace).calls()


class _CallTable:
    """Activities by call."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.tokens = [step_tokens(step.name) for step in trace.steps]
        self.kernels: dict[int, list[str]] = defaultdict(list)
        for activity in trace.activities:
            self.kernels[id(activity.operator)].append(activity.name)
        self.costs: dict[tuple[int, int, int], OperatorCost | None] = {}

    def calls(self) -> list[Call]:
        """Calls in order of their first activity in the file."""
        by_key: dict[tuple[object, ...], Call] = {}
        for activity in self.trace.activities:
            operator, cost = self._costed(activity)
            has_graph = is_graph_launch(activity.launch) and not activity.captured
            if operator is None and not has_graph:
                operator = _innermost(activity.operator)
            if operator is None:
                key: tuple[object, ...] = (id(activity),)
            else:
                replay = id(activity.launch) if activity.captured else None
                key = (id(operator), replay, activity.device)
            call = by_key.get(key)
            if call is None:
                call = by_key[key] = self._call(activity, operator, cost, has_graph=has_graph)
            call.activities.append(activity)
        for call in by_key.values():
            _cost_copies(call)
        return [*by_key.values()]

    def _call(
        self,
        activity: Activity,
        operator: Operator | Annotation | None,
        cost: OperatorCost | None,
        *,
        has_graph: bool,
    ) -> Call:
        """Call without its activities."""
        if operator is None:
            shape = activity.compiled.shape[:MAX_SHAPE] if activity.compiled else ""
            call = Call(kernel_label(activity.name), shape, [], None, cost, activity.step)
        else:
            dims = operator.arguments.input_dims if isinstance(operator, Operator) else ()
            call = Call(operator.name, dims_text(dims), [], operator, cost, activity.step)
        if has_graph:
            call.origin = "graph"
        if cost is not None:
            return call
        if activity.launch is None and activity.operator is None:
            if self.trace.launches:
                call.origin, call.why = "before", BEFORE
            else:
                call.why = NO_OPERATORS
        elif has_graph:
            call.why = IN_GRAPH
        else:
            call.why = NO_RULE if call.shape else NO_SHAPES
        return call

    def _costed(
        self, activity: Activity
    ) -> tuple[Operator | Annotation | None, OperatorCost | None]:
        """Operator that tells an activity's work, and this work."""
        if activity.kind == "collective":
            operator, cost = self._collective(activity)
            if cost is not None:
                return operator, cost
        elif activity.compiled is not None:
            return None, compiled_cost(activity.compiled)
        if is_graph_launch(activity.launch) and not activity.captured:
            return None, None
        for event in ancestors(activity.operator):
            if isinstance(event, Operator):
                cost = self._cost(event, activity)
                if cost is not None:
                    return event, cost
        return None, None

    def _collective(
        self, activity: Activity
    ) -> tuple[Operator | Annotation | None, OperatorCost | None]:
        """Operator and work for a collective, by its message, else by the tensor it reduces."""
        recorded = next(
            (
                event
                for event in ancestors(activity.operator)
                if isinstance(event, Operator) and event.name == COMMUNICATION
            ),
            None,
        )
        message = activity.message or (recorded.arguments.message if recorded else None)
        if message is not None:
            return recorded or activity.operator, collective_cost(message)
        operator = activity.operator
        if isinstance(operator, Operator):
            world = self.trace.world_size
            return operator, custom_all_reduce_cost(operator.name, operator.arguments, world)
        return None, None

    def _cost(self, operator: Operator, activity: Activity) -> OperatorCost | None:
        """Work for an operator's call, computed once."""
        key = (id(operator), id(activity.operator), activity.step)
        if key not in self.costs:
            self.costs[key] = self._computed_cost(operator, activity)
        return self.costs[key]

    def _computed_cost(self, operator: Operator, activity: Activity) -> OperatorCost | None:
        if is_engine_attention(operator.name):
            tokens: StepTokens | None = self.tokens[activity.step] if activity.step >= 0 else None
            if tokens is None:
                return None
            return engine_attention_cost(operator.name, operator.arguments, tokens)
        if not has_rule(operator.name):
            return None
        names: Sequence[str] = self.kernels.get(id(operator), ())
        names = names or self.kernels[id(activity.operator)]
        return operator_cost(operator.name, operator.arguments, names)


def _innermost(event: Operator | Annotation | None) -> Operator | None:
    """Innermost operator; None: annotations alone, which tell no call."""
    operators = (ancestor for ancestor in ancestors(event) if isinstance(ancestor, Operator))
    return next(operators, None)


def _cost_copies(call: Call) -> None:
    """Give copies their bytes; those over the host link even beside an operator."""
    if all(activity.kind in COPIES for activity in call.activities):
        over_host = any(crosses_host(activity) for activity in call.activities)
        if over_host or call.cost is None:
            call.cost = copy_cost(call.activities)
            call.why = ""


def dims_text(dims: Iterable[Sequence[object]]) -> str:
    """Dims as text, such as 64x4096 4096x4096; lists of tensors are left out."""
    texts = (
        "x".join(map(str, size))
        for size in dims
        if isinstance(size, list) and size and not isinstance(size[0], list)
    )
    return " ".join(texts)[:MAX_SHAPE]
