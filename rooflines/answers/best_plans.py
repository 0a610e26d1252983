"""Best training plans over a number of chips: what is searched, and what is said of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.basics.numbers import divisors
from rooflines.basics.text import counted, si, whole_percent
from rooflines.config.model_fields import MAX_CHIPS
from rooflines.hardware.support import host_link, missing_peak_reason, need_of
from rooflines.solvers.plan_search import (
    MIN_CONTEXT,
    ON_REQUEST,
    RANK_TIMES,
    SEARCHED,
    PlanEvaluator,
    PlanSpace,
    plan_order,
    search,
)
from rooflines.sweep.every_split import plans_of
from rooflines.training.parallel_plan import whole_sequence_reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.training_sweep import TrainingCase
    from rooflines.training.parallel_plan import TrainingPlan

PLAN_TIE = 0.03
"""Plans within this share of the first one's time tie: published layouts lie that close [1]."""

PLAN_OPTIONS = {"by": "by", "search": "search", "every": "all"}
"""Options of a search of plans, as keys, and as they are typed."""

KEPT = 20
"""Plans that a search finds, each the best of its layout [1]."""

MAX_PLANS = 20_000
"""Most plans that are computed one by one [1]."""

MORE_CHIPS = 64
"""Most times as many chips among which a plan is sought that fits [1]."""

NEEDS = {
    "multiple": "share B or S in no whole numbers",
    "network": "are not joined by the interconnects",
    "groups": "do not fill groups of the inner network",
    "axes": "are not modelled on a torus",
    "host": "have no link to the host in the catalogue",
    "once": "add gradients up over micro-batches, which are freed",
}
"""Reasons for layouts that are left out, by their need."""

NOT_OF_MODEL = "do not divide the model's heads, layers or experts"
NOT_OF_SEQUENCES = f"{NOT_OF_MODEL}, or share a sequence (cp)"
OTHER_LAYOUT = "have other numbers than those given"
SHORT_CONTEXT = f"have fewer than {MIN_CONTEXT:,} tokens per chip under cp (--search cp)"


@dataclass
class PlanReport:
    """Comparison that a search made, beside the plans that it found.

    Attributes:
        by: Time that ranks, a key in `RANK_TIMES`.
        searched: Keys that were searched, besides the layout.
        layouts: All layouts over the chips [1].
        given: Other keys of the plans that are searched, as given.
        reasons: Layouts without a plan in the table, by reason.
        has_estimate: True if there are estimates, which follow the math alone.
        every: True if all plans were computed, not only each layout's best.
        misfit: Sentences where no plan fits.
    """

    by: str
    searched: tuple[str, ...]
    layouts: int
    reasons: Counter[str] = field(default_factory=Counter)
    given: dict[str, object] = field(default_factory=dict)
    has_estimate: bool = False
    every: bool = False
    misfit: list[str] = field(default_factory=list)

    def head(self, text: str) -> str:
        """Question with the keys that were searched or given."""
        if self.every:
            return text.replace("every split of", "every plan of")
        names = [key.replace("_", "-") for key in ("layout", *self.searched)]
        given = [f"{key.replace('_', '-')}={value}" for key, value in self.given.items()]
        fixed = f" · given: {', '.join(given)}" if given else ""
        best = text.replace("every split of", "the best plans of")
        return f"{best}\nsearched: {', '.join(names)}{fixed}"

    def notes(self, shown: int, ties: int) -> Iterator[str]:
        """Sentences about the search.

        Args:
            shown: Rows in the table [1].
            ties: Plans among them that tie with the first [1].
        """
        yield from self.misfit
        ranks = {
            "t_rank_s": "t_rank_s, halfway from serialized to no overlap",
            "t_serial_s": "the serialized time",
            "t_upper_s": "the time without overlap",
        }
        blind = "; estimates follow the math alone, and cannot rank layouts"
        yield f"Ranked by {ranks[self.by]}{blind * self.has_estimate}."
        if ties > 1:
            least = "at least " if ties == shown and not self.every else ""
            within = whole_percent(PLAN_TIE)
            yield f"{least}{ties} plans are within {within} of the first: a tie.".capitalize()
        left_out = [f"{count:,} {reason}" for reason, count in self.reasons.most_common()]
        if left_out:
            yield f"Left out of {self.layouts:,} layouts: {'; '.join(left_out)}."


def searched_keys(text: object) -> frozenset[str]:
    """Keys that are searched on request, from a text with commas.

    Raises:
        RooflinesError: One is not in `ON_REQUEST`.
    """
    names = text.split(",") if isinstance(text, str) else cast("Sequence[str]", text or ())
    with at_path("--search"):
        for name in names:
            check_choice(name, ON_REQUEST, "nothing that is searched on request")
    return frozenset(names)


def rank_of(by: str | None, case: TrainingCase) -> str:
    """Time that ranks plans: as asked, else what the estimate follows, else `t_rank_s`.

    An estimate that multiplies the time without overlap ranks as that does; one that follows the
    math alone does not see the layout.

    Raises:
        RooflinesError: It is not in `RANK_TIMES`.
    """
    if by is not None:
        with at_path("--by"):
            check_choice(by, RANK_TIMES, "no time that ranks plans")
        return by
    return "t_upper_s" if case.fit is not None and case.fit.base == "upper" else "t_rank_s"


def searched_plans(  # noqa: PLR0913, the parts of a search
    layouts: ModelSweep,
    *,
    chips: int,
    fixed: Collection[str],
    layout: Mapping[str, int] | None = None,
    on_request: Collection[str] = (),
    by: str | None = None,
    keep: int | None = KEPT,
    every: bool = False,
) -> tuple[ModelSweep, PlanReport]:
    """Replace layouts by the best plans, or by all.

    Args:
        layouts: Sweep with every layout over the chips; one chip, model, batch and context.
        chips: The number of chips [1].
        fixed: Plan keys that are given.
        layout: Chips for tp, pp, cp, dp or ep that are given; None: none.
        on_request: Keys in `ON_REQUEST` that are searched.
        by: Time that ranks; None: see `rank_of`.
        keep: Plans that are found; None: one of each layout that fits [1].
        every: True for every plan, whether it fits or not.

    Raises:
        RooflinesError: Something is invalid, or there are more than `MAX_PLANS`.
    """
    cases = cast("Sequence[TrainingCase]", layouts.cases)
    (batch,), (context,) = layouts.batches, layouts.contexts
    ranked_by = rank_of(by, cases[0])
    free = frozenset(key for key in SEARCHED if key not in fixed)
    free |= {key for key in on_request if key != "cp" and key not in fixed}
    space = PlanSpace(PlanEvaluator(cases[0], batch, context, RANK_TIMES[ranked_by]), free)
    has_experts = cases[0].model.shape.moe is not None
    report = PlanReport(
        ranked_by,
        tuple(key for key in (*SEARCHED, *ON_REQUEST) if key in free),
        number_of_layouts(chips, has_experts=has_experts),
        given={
            **(layout or {}),
            **{key: getattr(cases[0].plan, key) for key in SEARCHED if key in fixed},
        },
        has_estimate=cases[0].fit is not None and cases[0].fit.base == "math",
        every=every,
    )
    is_whole = whole_sequence_reason(cases[0].model.shape) is not None
    other_layouts = report.layouts - len(layouts.config.splits)
    report.reasons[NOT_OF_SEQUENCES if is_whole else NOT_OF_MODEL] = other_layouts
    for skipped in layouts.skipped:
        report.reasons[NEEDS.get(str(need_of(skipped.reason)), skipped.reason)] += 1
    plans = [
        case.plan
        for case in cases
        if all(getattr(case.plan, key) == number for key, number in (layout or {}).items())
    ]
    report.reasons[OTHER_LAYOUT] = len(cases) - len(plans)
    if not plans:
        given = ", ".join(f"{key}={number}" for key, number in (layout or {}).items())
        problem = f"is auto with {given}, which leaves no layout of {counted(chips, 'chip')}"
        raise RooflinesError("--split", problem, "write other numbers, or auto alone")
    tried = [plan for plan in plans if "cp" in on_request or _is_long(plan, context)] or plans
    report.reasons[SHORT_CONTEXT] = len(plans) - len(tried)
    if every:
        found_plans = [plan for layout in tried for plan in space.plans(layout)]
        if len(found_plans) > MAX_PLANS:
            problem = f"are {len(found_plans):,} plans, more than {MAX_PLANS:,}"
            fix = "fix some of them, such as --recompute full, or leave out --all"
            raise RooflinesError("--all", problem, fix)
    else:
        outcome = search(space, tried, keep)
        report.reasons.update(outcome.reasons)
        found_plans = outcome.plans
        if outcome.leanest is not None:
            found_plans = [outcome.leanest]
            report.misfit = [*_misfit(space, outcome.leanest, len(tried), cases[0], fixed)]
    report.reasons = +report.reasons
    config = layouts.config.model_copy(update={"splits": found_plans})
    return replace(layouts, config=config), report


def number_of_layouts(chips: int, *, has_experts: bool) -> int:
    """Ways to write a chip count as tp * pp * cp * dp, each with every ep [1]."""
    sizes = divisors(chips)
    ways = dict.fromkeys(sizes, 1)
    for _ in range(3):
        ways = {size: sum(ways[part] for part in divisors(size)) for size in sizes}
    return ways[chips] * (len(sizes) if has_experts else 1)


def _is_long(plan: TrainingPlan, context: int) -> bool:
    """True if a chip has enough tokens in a sequence for cp to be tried."""
    return plan.cp == 1 or context >= MIN_CONTEXT * plan.cp


def plan_ranks(
    rows: Sequence[Mapping[str, object]], plans: Mapping[str, TrainingPlan], by: str
) -> list[int]:
    """Row positions, best first, in the order that a search has; plans that fit come first.

    Args:
        rows: Rows in a table for training, with the column `by`.
        plans: Plans by name.
        by: Time that ranks.
    """

    def order(index: int) -> tuple[object, ...]:
        row = rows[index]
        counted_bytes = row["peak_bytes"] if row["fits_by"] == "peak" else row["footprint_bytes"]
        plan = plans[str(row["split"])]
        rank = plan_order(cast("float", row[by]), cast("float", counted_bytes), plan, plan.name)
        return row["fits"] is False, *rank

    return sorted(range(len(rows)), key=order)


# ------------------------------------------------------------ none fits


def _misfit(
    space: PlanSpace,
    leanest: TrainingPlan,
    layouts: int,
    case: TrainingCase,
    fixed: Collection[str],
) -> Iterator[str]:
    """Yield sentences on a search in which nothing fits: the leanest plan, and what would fit."""
    evaluator = space.evaluator
    needed = evaluator.bytes_of(leanest)
    has = si(evaluator.capacity, "B")
    yield (
        f"No plan fits: of {counted(layouts, 'layout')} the leanest, {leanest.name}, needs "
        f"{si(needed, 'B')}, and a {case.chip} has {has}."
    )
    changes = [*_changes(space, leanest, case, fixed)]
    if changes:
        yield f"What would fit: {'; '.join(changes)}."


def _changes(
    space: PlanSpace, leanest: TrainingPlan, case: TrainingCase, fixed: Collection[str]
) -> Iterator[str]:
    """Yield changes each of which alone lets a plan fit."""
    chips = leanest.chips
    for number in _more_chips(chips):
        if plan := _fitting_on(space, leanest, number):
            yield f"{number:,} chips ({plan.name})"
            break
    keys: dict[str, object] = {
        "recompute": "full",
        "shard": "weights",
        "micro_batch": 1,
        "optimizer": "adam-8bit",
        "loss": "fused",
    }
    if host_link(case.place.entry) is not None:
        keys["offload"] = tuple(dict.fromkeys([*leanest.offload, "states"]))
    for key, value in keys.items():
        if getattr(leanest, key) == value or (key in SEARCHED and key not in fixed):
            continue
        changed = PlanSpace(space.evaluator, space.free - {key})
        if plan := _fitting_on(changed, leanest.model_copy(update={key: value}), chips):
            text = ",".join(value) if isinstance(value, tuple) else value
            yield f"--{key.replace('_', '-')} {text} ({plan.name})"
    if names := _larger_chips(space.evaluator.bytes_of(leanest), case):
        yield f"{' or '.join(names)} as the chip"


def _more_chips(chips: int) -> Iterator[int]:
    """Yield chip counts: twice as many and so on, each after the one halfway to it."""
    factor = 1
    while factor < MORE_CHIPS:
        if chips % 2 == 0 or factor > 1:
            yield chips * factor * 3 // 2
        factor *= 2
        yield chips * factor


def _fitting_on(space: PlanSpace, fixed: TrainingPlan, chips: int) -> TrainingPlan | None:
    """Plan with the least memory over a chip count, if it fits."""
    evaluator = space.evaluator
    if chips > MAX_CHIPS:
        return None
    plans = [
        space.leanest(plan)
        for plan in plans_of(evaluator.model.shape, chips, fixed)
        if evaluator.batch % plan.global_micro_batch == 0
        and evaluator.context % plan.cp == 0
        and _is_long(plan, evaluator.context)
    ]
    leanest = min(plans, key=evaluator.bytes_of, default=None)
    return leanest if leanest is not None and space.fits(leanest) else None


def _larger_chips(needed: float, case: TrainingCase) -> list[str]:
    """Chips with the least memory that holds these bytes, and with the case's dtypes."""
    sweep, memory = case.place.sweep, case.memory
    by_bytes: dict[float, list[str]] = {}
    for name, chip in sweep.chips.items():
        level = chip.memory.get(memory)
        if level is None or level.capacity_bytes is None or level.capacity_bytes < needed:
            continue
        if not any(missing_peak_reason(chip, sweep.unit, dtype) for dtype in case.computes):
            by_bytes.setdefault(float(level.capacity_bytes), []).append(name)
    return by_bytes[min(by_bytes)][:2] if by_bytes else []
