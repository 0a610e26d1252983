"""Search for training plans that fit, where a typed one does not; each is computed first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from rooflines.answers.plan_remedies import Remedies, Remedy
from rooflines.answers.question import question_sweep
from rooflines.answers.training_answer import TrainingAnswer
from rooflines.answers.typed_options import typed_options
from rooflines.config.model_fields import MAX_CHIPS
from rooflines.evaluation.row_frames import StepTable
from rooflines.hardware.support import default_route, host_link, interconnects
from rooflines.models.architecture import TRAIN
from rooflines.sweep.every_split import plans_of
from rooflines.sweep.training_sweep import TrainingSweep
from rooflines.training.parallel_plan import ZERO_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.answer import Answer
    from rooflines.answers.case_table import Cases
    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.training.parallel_plan import TrainingPlan

MAX_GROWTH = 6
"""Chip doublings that are tried [1]."""

MAX_STAGES, CP = 16, (1, 2, 8)
"""Pipeline stages at most, and context parallelism, of the layouts that are tried [1]."""

LEFT_OUT = ("split", "chips", "phase", "measured", "host_link", "pays", "slowdown", "every", "by")
"""Options that a plan that fits replaces, or that are of one plan alone."""

STATES = ("states",)
"""Tensors in host memory, as `offload` names them."""

LIGHTER = ("none", "selective")
"""Less recomputation than in full."""

COLUMNS = ("split", "chips", "fits", "footprint_bytes", "state_bytes", "saved_bytes")
"""Remedy columns, besides the times."""

TIMES = ("t_upper_s", "t_serial_s", "t_estimate_s")


def remedies_of(sweep: ModelSweep, chips: int) -> Remedies | None:
    """Plans that fit, by lever: sharding and recomputing, the optimizer, offload, more chips.

    Args:
        sweep: Sweep over one plan, whose keys all plans share unless a lever changes them.
        chips: Given chips [1].

    Returns:
        None: no plan could be tried.
    """
    lean = {"shard": ZERO_STAGES["zero3"], "recompute": "full"}
    rows = _rows(sweep, chips, lean)
    if not rows:
        return None
    leanest = min(rows, key=lambda row: cast("float", row["footprint_bytes"]))
    plans = [Remedy("plan", best)] if (best := _quickest(sweep, chips, rows)) else []
    if not plans:
        (fixed,) = sweep.config.splits
        changes = dict[str, dict[str, object]]()
        if cast("TrainingPlan", fixed).optimizer == "adam":
            changes["optimizer"] = {**lean, "optimizer": "adam-8bit"}
        if host_link(sweep.chips[sweep.config.chips[0]]) is not None:
            changes["offload"] = {**lean, "offload": STATES}
        tried = {lever: _best(_rows(sweep, chips, keys)) for lever, keys in changes.items()}
        for more in (chips * 2**growth for growth in range(1, MAX_GROWTH + 1)):
            if more > MAX_CHIPS or tried.get("more chips"):
                break
            tried["more chips"] = _quickest(sweep, more, _rows(sweep, more, lean))
        plans = [Remedy(lever, row) for lever, row in tried.items() if row]
    return Remedies(leanest, len(rows), plans)


def _quickest(
    sweep: ModelSweep, chips: int, rows: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Quickest plan that fits, also with less recomputation, if any does in full."""
    if not any(row["fits"] for row in rows):
        return None
    lighter = [
        row
        for name in LIGHTER
        for row in _rows(sweep, chips, {"shard": ZERO_STAGES["zero3"], "recompute": name})
    ]
    return _best([*rows, *lighter])


def _best(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Quickest row that fits, without overlap; None: none fits."""
    fitting = [row for row in rows if row["fits"]]
    return min(fitting, key=lambda row: cast("float", row["t_upper_s"]), default=None)


def _rows(sweep: ModelSweep, chips: int, changes: Mapping[str, object]) -> list[dict[str, Any]]:
    """Rows by layout on given chips, with other keys; empty: none is possible."""
    (name,) = sweep.config.chips
    entry = sweep.chips[name]
    route = default_route(entry, chips) if chips > 1 else None
    if route is not None and interconnects(entry, route)[2]:
        return []
    plans = [layout.model_copy(update=dict(changes)) for layout in _layouts(sweep, chips)]
    keys = {"splits": plans, "network": [route], "thresholds": [], "num_chips": None}
    tried = replace(sweep, config=sweep.config.model_copy(update=keys), fastest_axes=True)
    if not plans or not tried.rows:
        return []
    frame = StepTable(tried).frame()
    names = [column for column in (*COLUMNS, *TIMES) if column in frame.collect_schema()]
    return frame.select(names).collect().to_dicts()


def _layouts(sweep: ModelSweep, chips: int) -> Iterator[TrainingPlan]:
    """Yield a few layouts: tp none or widest in a node, up to 16 stages, ep none or widest."""
    (model,) = sweep.models.values()
    (fixed,) = sweep.config.splits
    entry = sweep.chips[sweep.config.chips[0]]
    _, links, _ = interconnects(entry, default_route(entry, chips)) if chips > 1 else ("", (), "")
    node = (links[0].domain or chips) if links else 1
    plans = plans_of(model.shape, chips, cast("TrainingPlan", fixed))
    plans = [plan for plan in plans if plan.tp <= node and plan.pp <= MAX_STAGES and plan.cp in CP]
    widest_tp = max((plan.tp for plan in plans), default=1)
    widest_ep = max((plan.ep for plan in plans), default=1)
    for plan in plans:
        if plan.tp in (1, widest_tp) and plan.ep in (1, widest_ep):
            yield plan


def remedies_for(
    question: Question, catalogues: QuestionCatalogues, options: Mapping[str, Any], chips: int
) -> Remedies | None:
    """Plans that fit in place of a typed one, as `remedies_of`.

    Args:
        question: One chip, a model and its sizes.
        catalogues: What can be named.
        options: Those typed, as words and apart; the split may be every split.
        chips: Given chips [1].
    """
    single = replace(question, notes=[], sizes={**question.sizes}, count=None)
    keys = [keys for keys in question.splits if isinstance(keys, dict)]
    layout = dict.fromkeys(("tp", "pp", "cp", "dp", "ep", "interleave"))
    shared = [{key: value for key, value in plan.items() if key not in layout} for plan in keys]
    single.splits = [plan for plan in shared if plan][:1]
    single.options = {key: text for key, text in question.options.items() if key not in LEFT_OUT}
    rest = {key: value for key, value in options.items() if key not in LEFT_OUT}
    typed = typed_options(single, catalogues.chips, {**rest, "phase": TRAIN})
    sweep = question_sweep(single, catalogues, **typed)
    if sweep.rows > 1 or not isinstance(sweep, TrainingSweep) or len(sweep.config.splits) > 1:
        return None
    return remedies_of(sweep, chips)


def with_remedies(
    question: Question,
    catalogues: QuestionCatalogues,
    answer: Answer | Cases,
    options: Mapping[str, Any],
) -> Answer | Cases:
    """Answer about one plan with plans that fit, where this one does not.

    Args:
        question: What it names.
        catalogues: What can be named, with typed changes.
        answer: Its answer.
        options: Options of the line.
    """
    if not isinstance(answer, TrainingAnswer) or answer.row["fits"] is not False:
        return answer
    remedies = remedies_for(question, catalogues, options, answer.row["chips"])
    return replace(answer, remedies=remedies)
