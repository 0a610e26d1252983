"""Calls in a trace with a model: kernels without operators get the work in its groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path
from rooflines.models.library import find_model, model_entries
from rooflines.traces.bound_times import ROUNDING_SHARE
from rooflines.traces.model_layers import anchors_of, attention_layers, lay_step
from rooflines.traces.model_step import ModelStep, step_sums
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.step_annotations import step_tokens
from rooflines.traces.trace_records import Call, Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.models.model import Model
    from rooflines.traces.bound_times import TraceRates
    from rooflines.traces.model_layers import LayerKernels
    from rooflines.traces.model_step import StepSums
    from rooflines.traces.trace_records import Activity, OperatorCost, Trace

AUTO_MODEL = "auto"
"""Model that is found by its layers, vocabulary and width."""

MIN_VOCABULARY = 30_000
"""Columns from which a product, or an argmax, is over a vocabulary [1]."""

SAME_WORK = 0.01
"""Difference within which FLOP of a model and of shapes agree [1]."""

MAX_FASTER_SHARE = 0.1
"""Share of a model's matmuls that may be faster than their bound, or the model is refused [1]."""

NO_TOKENS = (
    "the trace names no tokens of its steps, which a model's work depends on",
    "record the annotations that vLLM and SGLang write around each step",
)
NO_CONTEXT = (
    "the trace names no context of its steps, which attention's work depends on",
    "give --context with the tokens of a sequence",
)
NO_ANCHORS = (
    "no step that names its tokens has attention kernels, which tell layers apart",
    "give a trace of whole steps",
)
"""Reasons why a model is laid on no step, and what to do."""

MAX_SHARDS = 512
"""Chips that a tp is looked for up to [1]."""


@dataclass
class ModelMatch:
    """Result from laying a model on a trace.

    Attributes:
        model: The model.
        layers: Layers with attention in all steps [1].
        fitting: Of those, layers whose matmuls are the model's [1].
        agreeing: Matmuls whose FLOP by the model and by shapes agree [1].
        differing: Group and shapes' FLOP over the model's, for each other matmul.
        reasons: Kernels that stay without a bound, by reason.
        skipped: Steps that the model was not laid on [1].
        sums: Sums of the steps that it was laid on, by number.
    """

    model: Model
    layers: int = 0
    fitting: int = 0
    agreeing: int = 0
    differing: list[tuple[str, float]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    sums: dict[int, StepSums] = field(default_factory=dict)

    @property
    def shards(self) -> int | None:
        """Chips that explain all differing FLOP, each 1/n of the model's [1]; None: none do."""
        inverse = {1 / ratio for _, ratio in self.differing if ratio}
        chips = {round(number) for number in inverse}
        count = max(chips, default=1)
        near = all(abs(number - count) < SAME_WORK * number for number in inverse)
        return count if near and 1 < count <= MAX_SHARDS else None

    @property
    def notes(self) -> list[str]:
        """Sentences on what fits and what does not."""
        notes = [f"{self.model.name}: the matmuls of {self.fitting} of {self.layers} layers fit"]
        if self.agreeing or self.differing:
            matmuls = self.agreeing + len(self.differing)
            note = f"model and shapes agree on the FLOP of {self.agreeing} matmuls of {matmuls}"
            if self.differing:
                group, ratio = self.differing[0]
                chips = f": give --tp {self.shards}" if self.shards else ""
                note += f"; {group} has {ratio:.3g} times the model's (shapes count){chips}"
            notes.append(note)
        notes += [f"{count} kernels without a bound: {why}" for why, count in self.reasons.items()]
        if self.skipped:
            notes.append(
                f"{self.skipped} steps without tokens or attention are not laid on the model"
            )
        return notes


class SeenSizes(NamedTuple):
    """Sizes that tell a model.

    Attributes:
        anchors: Attention kernels in a step [1].
        vocabulary: Columns in the last product, or in an argmax; None: not seen [1].
        width: That product's depth; None: not seen [1].
    """

    anchors: int
    vocabulary: int | None
    width: int | None

    @property
    def text(self) -> str:
        """Sizes in words."""
        parts = [f"{self.anchors} attention kernels"]
        parts += [f"a vocabulary of {self.vocabulary:,}"] if self.vocabulary else []
        return ", ".join([*parts, *([f"width {self.width:,}"] if self.width else [])])


def model_calls(  # noqa: PLR0913, the parts of a trace with a model
    trace: Trace,
    calls: Sequence[Call],
    name: str,
    rates: TraceRates | None,
    *,
    tp: int = 1,
    context: int | None = None,
) -> tuple[list[Call], ModelMatch]:
    """Calls where kernels without a cost are those of a model's groups, with what fits.

    Args:
        trace: The trace, with steps and launches.
        calls: Its calls; those whose kernels the model takes lose them.
        name: The model: an id, a config.json, or `auto`.
        rates: Rates of the chip; None: not known.
        tp: Chips that share each layer [1].
        context: Tokens of context per sequence, where annotations have none [1].

    Raises:
        RooflinesError: The model is unknown, or not the one that ran.
    """
    if name == AUTO_MODEL:
        with at_path("--model"):
            name = auto_model(seen_sizes(trace, calls))
    model = find_model(name)
    match = ModelMatch(model)
    call_of = {id(activity): call for call in calls for activity in call.activities}
    taken: list[Call] = []
    refusal: RooflinesError | None = None
    steps: dict[tuple[str, int], list[Activity]] = defaultdict(list)
    for activity in trace.activities:
        steps[activity.device, activity.step].append(activity)
    for (_, index), activities in steps.items():
        tokens = step_tokens(trace.steps[index].name) if index >= 0 else None
        sums = step_sums(tokens, context)
        if sums is None or not anchors_of(activities):
            match.skipped += any(call_of[id(a)].cost is None for a in activities)
            continue
        chip: Chip | None = None if rates is None else rates.chip
        try:
            laid = lay_step(activities, ModelStep(model, sums, tp, chip))
        except RooflinesError as error:
            refusal = error
            match.skipped += 1
            continue
        match.sums[index] = sums
        match.layers += laid.layers
        match.fitting += laid.fitting
        match.reasons += laid.reasons
        for row in laid.rows:
            taken += _take(row, index, call_of, match)
    if not match.layers:
        raise refusal or RooflinesError("--model", *_unlaid_reason(trace, context))
    _refuse_faster(taken, model, rates)
    return [*(call for call in calls if call.activities), *taken], match


def _unlaid_reason(trace: Trace, context: int | None) -> tuple[str, str]:
    """Reason why a model is laid on no step, and what to do."""
    tokens = [sums for step in trace.steps if (sums := step_tokens(step.name)) is not None]
    if any(step_sums(sums, context) for sums in tokens):
        return NO_ANCHORS
    return NO_CONTEXT if any(step_sums(sums, 1) for sums in tokens) else NO_TOKENS


def _take(row: LayerKernels, step: int, call_of: dict[int, Call], match: ModelMatch) -> list[Call]:
    """Call with a group's kernels that have no cost by shapes; compared where they have one."""
    with_shapes = {
        id(call): call
        for activity in row.activities
        if (call := call_of[id(activity)]).cost is not None
    }
    if row.cost is not None:
        _compare(row, row.cost, [*with_shapes.values()], match)
    kernels = [activity for activity in row.activities if call_of[id(activity)].cost is None]
    if not kernels:
        return []
    for activity in kernels:
        call_of[id(activity)].activities.remove(activity)
    shape, why = (f"layer {row.layer}", "") if row.cost else ("", "outside the model")
    return [Call(row.group, shape, kernels, None, row.cost, step, why, "model")]


def _compare(
    row: LayerKernels, cost: OperatorCost, calls: Sequence[Call], match: ModelMatch
) -> None:
    """Compare the FLOP of a matmul; an engine's attention gets the windows that the model has."""
    costs = [(call, call.cost) for call in calls if call.cost is not None]
    if cost.kind == "matmul":
        products = [shaped for _, shaped in costs if shaped.kind == "matmul"]
        if len(products) == 1 and products[0].flops:
            ratio = products[0].flops / cost.flops
            if abs(ratio - 1) < SAME_WORK:
                match.agreeing += 1
            else:
                match.differing.append((row.group, ratio))
    if cost.kind == "attention":
        for call, shaped in costs:
            if shaped.kind == "attention" and not shaped.exact:
                call.cost = cost


def _refuse_faster(taken: Iterable[Call], model: Model, rates: TraceRates | None) -> None:
    """Refuse a model whose matmuls need longer than the kernels ran.

    Raises:
        RooflinesError: More than a few do.
    """
    if rates is None:
        return
    ratios = [
        call.kernel_ns / NS_PER_S / seconds.lower
        for call in taken
        if call.cost is not None and call.cost.kind == "matmul"
        if (seconds := rates.seconds(call.cost)) is not None
    ]
    faster = [ratio for ratio in ratios if ratio < 1 - ROUNDING_SHARE]
    if len(faster) > len(ratios) * MAX_FASTER_SHARE:
        problem = (
            f"{model.name} is too large: {len(faster)} of its {len(ratios)} matmuls ran in less "
            f"time than {rates.name} needs for them, one in {min(faster):.2f} of it"
        )
        raise RooflinesError(
            "--model", problem, "give the model that ran, or --tp if chips share it"
        )


# ------------------------------------------------------------ a model by its sizes


def seen_sizes(trace: Trace, calls: Iterable[Call]) -> SeenSizes:
    """Sizes in a trace that tell its model.

    Args:
        trace: The trace, with steps.
        calls: Its calls.
    """
    steps: dict[tuple[str, int], list[Activity]] = defaultdict(list)
    for activity in trace.activities:
        steps[activity.device, activity.step].append(activity)
    anchors = max(map(anchors_of, steps.values()), default=0)
    vocabulary: int | None = None
    width: int | None = None
    for call in calls:
        sizes = call.cost.sizes if call.cost is not None else {}
        columns = sizes.get("F", 0)
        if columns >= MIN_VOCABULARY and columns > (vocabulary or 0):
            vocabulary, width = columns, sizes.get("D")
        if isinstance(call.operator, Operator) and call.operator.name == "aten::argmax":
            dims = call.operator.arguments.input_dims
            if dims and dims[0] and dims[0][-1] >= MIN_VOCABULARY:
                vocabulary = vocabulary or dims[0][-1]
    return SeenSizes(anchors, vocabulary, width)


def auto_model(sizes: SeenSizes) -> str:
    """Only model in the catalogue with a trace's sizes.

    Raises:
        RooflinesError: There is none, or there are several.
    """
    fix = "give the model that ran, such as --model qwen3-8b"
    if not sizes.anchors or not sizes.vocabulary:
        missing = "attention kernels" if not sizes.anchors else "vocabulary"
        raise RooflinesError("", f"is auto, and the trace shows no {missing}", fix)
    models = [name for name in model_entries() if _has_sizes(name, sizes)]
    if len(models) == 1:
        return models[0]
    problem = f"{', '.join(models)} all fit" if models else "no model of the catalogue fits"
    raise RooflinesError("", f"is auto, and {problem}: {sizes.text}", fix)


def _has_sizes(name: str, sizes: SeenSizes) -> bool:
    """Check a model in the catalogue against a trace's sizes."""
    entry = model_entries()[name]
    layers = attention_layers(entry.model(name))
    fits = bool(layers) and not sizes.anchors % layers and sizes.vocabulary == entry.V
    return fits and sizes.width in (None, entry.D)
