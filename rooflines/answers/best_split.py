"""Every split for a model step over a number of chips, best first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import polars as pl

from rooflines.answers.any_routing import mean_titles
from rooflines.answers.assumptions import as_column, as_note, assumptions_of
from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS, SERIALIZED_BASIS, Basis, basis_of
from rooflines.answers.best_plans import (
    KEPT,
    PLAN_TIE,
    plan_ranks,
    searched_keys,
    searched_plans,
)
from rooflines.answers.case_answer import rows_of
from rooflines.answers.case_table import (
    BAND_TEXT,
    USER_RATE,
    Cases,
    band_text,
    basis_notes,
    request_cases,
)
from rooflines.answers.phrases import price_notes, step_title
from rooflines.answers.question import (
    catalogues_in,
    model_question,
    question_sweep,
    split_of,
)
from rooflines.answers.question_words import FSDP
from rooflines.answers.routes import routes_of
from rooflines.answers.split_headline import request_headline, split_headline
from rooflines.answers.step_answer import LEFT_OUT
from rooflines.basics.errors import RooflinesError, at_path
from rooflines.basics.numbers import number, whole
from rooflines.basics.text import counted, percent, seconds, whole_percent
from rooflines.config.axis_sizes import Sizes
from rooflines.config.model_fields import AUTO, MAX_CHIPS, Targets
from rooflines.evaluation.row_frames import StepTable
from rooflines.fits.estimate_band import estimate_band
from rooflines.hardware.entry_forms import validate_entry
from rooflines.hardware.support import default_route, hint_fewer_chips, interconnects, need_of
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.models.split import Split
from rooflines.solvers.plan_search import RANK_TIMES
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.every_split import with_every_split
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingCase
from rooflines.theory.resources import RESOURCES
from rooflines.training.parallel_plan import ZERO_STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rooflines.answers.best_plans import PlanReport
    from rooflines.answers.question import HasCatalogues, QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.models.model import Model
    from rooflines.training.parallel_plan import TrainingPlan

MAX_SHOWN = 20
"""Splits on a screen [1]."""

TIE = 1e-9
"""Relative excess that counts as a tie: step times are sums over a few thousand kernels [1]."""

CAPACITY = "capacity"
"""Bottleneck of a split that does not fit."""

TIMES = {
    **{resource.name: f"t_{resource.name}_s" for resource in RESOURCES},
    "activation": "t_activation_s",
}
"""Times of a step by what takes them."""

KEYS = (
    "chip",
    "model",
    "phase",
    "memory",
    "network",
    "dtypes",
    "split",
    "tp",
    "dp",
    "ep",
    "chips",
)

VALUES = (
    "t_step_s",
    "t_estimate_s",
    "t_estimate_p10_s",
    "t_estimate_p90_s",
    "t_serial_s",
    "t_lower_s",
    *TIMES.values(),
    "network_bytes",
    "bound",
    "tokens_per_s_per_chip",
    "fits",
    "max_B",
    "footprint_bytes",
    "bottleneck_vs_best",
    "excess_s",
)
"""`bottleneck_vs_best` is the resource with the largest excess over the best split's time, for as
many sequences; `excess_s` is that excess [s]."""


def best_splits(  # noqa: PLR0913, the parts of a question
    chip: str,
    model: str | Model,
    *,
    B: int | None = None,  # noqa: N803, the letters of the docs
    S: int,  # noqa: N803, the same
    T: int | None = None,  # noqa: N803, the same
    dtypes: str | Mapping[str, object] | None = None,
    chips: int,
    within: float | None = None,
    phase: str = "decode",
    network: str | Sequence[str] | None = None,
    bound: bool = False,
    keep: int | None = KEPT,
    config: HasCatalogues | None = None,
    **options: object,
) -> pl.DataFrame:
    """Rank every split for a step over a number of chips, in training the best plans.

    Args:
        chip: As in `explain_model`.
        model: As in `explain_model`.
        B: Sequences, of all replicas together [1]; None with `within`.
        S: Tokens of each sequence after the step; in prefill of the prompt [1].
        T: New tokens of each sequence, in decode; None: 1 [1].
        dtypes: As in `explain_model`, or `train`.
        chips: How many chips share the model, tp * dp [1].
        within: Longest time that decides, see below [s]: B is then the largest batch that keeps it
            and fits; None: B is given.
        phase: `decode`, `prefill` or `train`.
        network: Interconnects, inner first; None: the chip's first, with the one around it where
            the first does not join all chips.
        bound: True to let the bound decide.
        keep: In training how many plans are found, each the best with its tp, pp, cp, dp and ep;
            None: each that fits [1].
        config: As in `explain`.
        **options: Others of `explain_model` or `train`. In training also `interleave`, which like
            `micro_batch`, `shard` and `recompute` is searched unless it is given; `search`, what
            else is searched: `loss`, `offload`, or `cp` below 4,096 tokens per chip; `by`, the
            time that ranks plans, `t_rank_s`, `t_serial_s` or `t_upper_s`; and `every`, True for
            every plan, not only each layout's best.

    Returns:
        A row for each split: `KEYS`, sizes and `VALUES`. Those that fit come first, of these the
        quickest, or with `within` the most tokens per second and chip. `t_step_s` is the time that
        decides: the estimate where every split has one, else `t_serial_s`; with `bound`,
        `t_lower_s`. Splits without a batch within the time are left out. `note` has the
        assumptions. In training the columns in its table, and `t_rank_s`, halfway from
        `t_serial_s` to `t_upper_s`, which decides unless `by` names another; `tie` is true for
        times at most 3 % above the first. Where no plan fits, one row, the leanest. With `bound`
        every split has a row, with the other keys as given or their defaults, and those with
        replicas also one with sharded weights (FSDP).

    Raises:
        RooflinesError: Something is invalid, or no split is possible.
    """
    catalogues = catalogues_in(config)
    question = model_question(chip, model, {"B": B, "S": S, "T": T}, dtypes, catalogues)
    links = network.split(",") if isinstance(network, str) else network
    options["phase"] = phase
    ranked = _ranked(
        question,
        catalogues,
        chips=chips,
        within=within,
        network=links,
        bound=bound,
        keep=keep,
        **options,
    )
    return ranked.rows


class Ranked(NamedTuple):
    """Ranked splits.

    Attributes:
        rows: As in `best_splits`.
        sweep: The sweep over all splits.
        basis: Time that decides.
        report: What a search of training plans compared; None: there was none.
    """

    rows: pl.DataFrame
    sweep: ModelSweep
    basis: Basis
    report: PlanReport | None = None


def _ranked(  # noqa: PLR0913, the parts of a question
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    chips: int | str,
    within: float | str | None = None,
    network: Sequence[str] | None = None,
    bound: bool = False,
    keep: int | None = KEPT,
    **options: object,
) -> Ranked:
    """Ranked splits as in `best_splits`."""
    with at_path("chips"):
        number_of_chips = whole(chips, maximum=MAX_CHIPS)
    batch_given = "B" in {letter.upper() for letter in question.sizes}
    trains = options.get("phase") == TRAIN
    if within is not None:
        _check_searched(question, options)
        question = replace(question, sizes={**question.sizes, "B": number_of_chips})
    elif not batch_given:
        longest = "" if trains else ", or a limit on the step time, such as --within 0.02"
        raise RooflinesError("sizes", "lack B", f"write B=64{longest}")
    fixed = {key for key in options if options[key] is not None}
    runs = options.pop("interleave", None) if trains else None
    by, every = options.pop("by", None), bool(options.pop("every", False))
    on_request = searched_keys(options.pop("search", None))
    layout = cast("Mapping[str, int] | None", options.pop("layout", None))
    if not trains or bound:
        _check_plans_searched(by, every=every, on_request=on_request, trains=trains)
    base_sweep = question_sweep(question, catalogues, **options)
    if base_sweep.rows > 1 or not isinstance(base_sweep, ModelSweep):
        raise RooflinesError("the question", "has several sizes or dtypes", "ask for one at a time")
    if runs is not None:
        base_sweep = _interleaved(base_sweep, runs)
    all_splits = _with_every_split(base_sweep, question.chips[0], number_of_chips, network)
    report = None
    if trains and not bound:
        all_splits, report = searched_plans(
            _changed(all_splits),
            chips=number_of_chips,
            fixed=fixed,
            layout=layout,
            on_request=on_request,
            by=cast("str | None", by),
            keep=keep,
            every=every,
        )
    elif trains and "shard" not in options:
        all_splits = _with_sharded_weights(all_splits)
    if within is None:
        all_splits = _changed(all_splits)
        frame = StepTable(all_splits).frame().collect()
        basis = basis_of(frame.select("t_estimate_s", "t_serial_s").to_dicts(), bound=bound)
        rows = (
            _in_order(frame, basis, by_throughput=False)
            if report is None
            else _in_plan_order(frame, all_splits, basis, report)
        )
    else:
        basis = target_basis(all_splits, bound=bound)
        rows = _within(all_splits, _target(within, basis), basis)
    return Ranked(rows.with_columns(as_column(all_splits)), all_splits, basis, report)


def _check_plans_searched(
    by: object, *, every: bool, on_request: Collection[str], trains: bool
) -> None:
    """Refuse options of a search of training plans where there is none.

    Raises:
        RooflinesError: One is given.
    """
    for name, is_given in (("by", by is not None), ("all", every), ("search", bool(on_request))):
        if is_given:
            problem, fix = "is for training plans, which are searched", "leave it out"
            if trains:
                problem = "excludes --bound, which compares layouts with the other keys as given"
            raise RooflinesError(f"--{name}", problem, fix)


def _with_sharded_weights(all_splits: ModelSweep) -> ModelSweep:
    """Add each training plan with replicas again with weights sharded over them (FSDP)."""
    plans = all_splits.config.splits
    shard = {"shard": ZERO_STAGES[FSDP]}
    sharded = [plan.model_copy(update=shard) for plan in plans if plan.dp > 1]
    config = all_splits.config.model_copy(update={"splits": [*plans, *sharded]})
    return replace(all_splits, config=config)


def target_basis(all_splits: ModelSweep, *, bound: bool = False) -> Basis:
    """Basis of a target: the estimate where every split has one.

    Args:
        all_splits: The sweep.
        bound: True to hold the bound against it.
    """
    cases = (case for block in all_splits.blocks for case in block.cases)
    if bound:
        return BOUND_BASIS
    return (
        ESTIMATE_BASIS
        if all(None not in case.kernel_estimates for case in cases)
        else SERIALIZED_BASIS
    )


TRIED = 16
"""Batches tried at once in a search [1]."""


def with_largest_batch(
    question: Question,
    catalogues: QuestionCatalogues,
    options: Mapping[str, Any],
    *,
    basis: Basis | None = None,
    label: str = "",
) -> tuple[Question, dict[str, Any]]:
    """Question with the largest batch that its split keeps in the step time; notes say so.

    Args:
        question: A model, with one chip, split and context.
        catalogues: What can be named.
        options: As for `question_sweep`, and `within` [s].
        basis: Time that is held against the limit; None: the estimate where there is one.
        label: Text before the note, where several batches are searched.

    Raises:
        RooflinesError: Something is invalid, or no batch that fits keeps the time.
    """
    rest = {**options}
    within = rest.pop("within")
    sweep, start = starting_sweep(question, catalogues, options)
    basis = basis or target_basis(sweep)
    target = _target(within, basis)
    batch, max_batch = _within(sweep, target, basis).select("B", "max_B").row(0)
    if "requests" in rest:  # prompts between tokens take more than the steps alone

        def times(batches: Sequence[int]) -> list[float]:
            tried = replace(question, sizes={**question.sizes, "B": list(batches)})
            rows = rows_of(question_sweep(tried, catalogues, **rest))
            by_batch = {row["B"]: row[basis.column] for row in rows}
            return [by_batch[size] for size in batches]

        batch = largest_size(times, target.t_step_s[0], range(start, batch + 1))
    limit = f"within {seconds(target.t_step_s[0])} by the {basis.noun}"
    reason = f"that fits, {limit}" if batch == max_batch else limit
    question.notes.append(f"{label}B = {batch:,} is the largest batch {reason}")
    return replace(question, sizes={**question.sizes, "B": batch}), rest


def starting_sweep(
    question: Question, catalogues: QuestionCatalogues, options: Mapping[str, Any]
) -> tuple[ModelSweep, int]:
    """Sweep with one sequence a replica, from which a batch search starts, and its sequences.

    Args:
        question: A model, with one chip, split and context.
        catalogues: What can be named.
        options: As for `question_sweep`, and `within`.

    Raises:
        RooflinesError: Something is invalid, or there are several cases.
    """
    _check_searched(question, options)
    split = options.get("split")
    start = 1 if split is None else validate_entry(Split, split_of(split)).dp
    single = replace(question, sizes={**question.sizes, "B": start})
    keys = {key: value for key, value in options.items() if key != "within"}
    sweep = question_sweep(single, catalogues, **keys)
    if sweep.rows > 1 or not isinstance(sweep, ModelSweep):
        raise RooflinesError("the question", "has several sizes or dtypes", "ask for one at a time")
    return sweep, start


def largest_size(
    times: Callable[[Sequence[int]], Sequence[float]], limit_s: float, sizes: range
) -> int:
    """Largest size, such as a batch, whose time keeps a limit; times grow with the size.

    Args:
        times: Time of each of several sizes [s].
        limit_s: The limit [s].
        sizes: Sizes to search, from the smallest on [1].

    Raises:
        RooflinesError: The smallest takes longer.
    """
    low, high = sizes.start - 1, sizes.stop
    while high - low > 1:
        step = max(1, (high - low) // TRIED)
        batches = range(low + step, high, step)
        is_kept = [time <= limit_s for time in times(batches)]
        count = is_kept.index(False) if False in is_kept else len(is_kept)
        low, high = (
            batches[count - 1] if count else low,
            batches[count] if count < len(is_kept) else high,
        )
    if low < sizes.start:
        problem = f"is {limit_s:g} s, which one request a replica does not meet"
        raise RooflinesError("within", problem, "allow more time, or use more chips")
    return low


def _target(within: object, basis: Basis) -> Targets:
    """Step time as a target for the time of a basis."""
    with at_path("within"):
        return Targets.model_validate({"t_step_s": [number(within)], "time": basis.column})


def _check_searched(question: Question, options: Mapping[str, Any]) -> None:
    """Refuse a batch search where B is given, or in training.

    Raises:
        RooflinesError: It is either.
    """
    if options.get("phase") == TRAIN:
        problem = "is not for training, whose batch is not searched"
        raise RooflinesError("within", problem, "leave it out, and write B=64")
    if "B" in {letter.upper() for letter in question.sizes}:
        problem = "is given, but --within searches for the batch"
        raise RooflinesError(
            "B", problem, "leave out B, or --within; a time that was measured is --measured"
        )


def _interleaved(sweep: ModelSweep, runs: object) -> ModelSweep:
    """Sweep with interleaved layer runs, for plans that have pipeline stages."""
    with at_path("interleave"):
        keys = {"interleave": whole(runs)}
    plans = [plan.model_copy(update=keys) for plan in sweep.config.splits]
    return replace(sweep, config=sweep.config.model_copy(update={"splits": plans}))


def split_cases(  # noqa: PLR0913, the parts of a question
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    split: object = None,
    chips: Any = None,  # noqa: ANN401, as typed
    network: Any = None,  # noqa: ANN401, the same
    bound: bool = False,
    **options: Any,  # noqa: ANN401, the same
) -> Cases:
    """Splits as a table for a screen.

    Args:
        question: One chip, a model and its sizes.
        catalogues: What can be named.
        split: `auto`.
        chips: How many chips share the model, tp * dp [1].
        network: Interconnects with a comma, inner first; None: those that join the chips.
        bound: True to let the bound decide.
        **options: As of `best_splits`.

    Raises:
        RooflinesError: As `best_splits`, or there is not one chip.
    """
    if split != AUTO:
        problem, fix = "needs --split auto", "add --split auto, or leave it out"
        raise RooflinesError("--chips", problem, fix)
    if len(question.chips) != 1:
        problem = f"is auto, but {counted(len(question.chips), 'chip')} are named"
        raise RooflinesError("--split", problem, "ask for one kind of chip")
    if chips is None:
        problem = "is auto, which needs a number of chips"
        raise RooflinesError("--split", problem, "add --chips 16")
    links = network.split(",") if network else None
    frame, all_splits, basis, report = _ranked(
        question, catalogues, chips=chips, network=links, bound=bound, **options
    )
    if "requests" in options:
        return _request_splits(question, catalogues, all_splits, basis, options)
    rows = frame.to_dicts()
    if DECODE in all_splits.config.phase:
        for row in rows:
            row[USER_RATE] = row[RATE] * row["chips"] / row["B"]
    if basis is ESTIMATE_BASIS:
        for row in rows:
            row[BAND_TEXT] = band_text(row)
    same: dict[str, int] = {letter: rows[0][letter] for letter in question.sizes}
    head = step_title(rows[0], same, every_split=True).text()
    head = head if report is None else report.head(head)
    rate = f"{RATE}{basis.suffix}" if "bubble" in frame.columns else RATE
    suffix = basis.suffix if basis is ESTIMATE_BASIS else ""
    based = {RATE: rate, DAYS: f"{DAYS}{suffix}", USD: f"{USD}{suffix}"}
    based |= {MFU: f"{MFU}{basis.suffix}"} if "bubble" in frame.columns else {}
    titles = {based.get(name, name): title.format(basis.title) for name, title in COLUMNS.items()}
    paces = {DAYS: "serialized", f"{DAYS}{ESTIMATE_BASIS.suffix}": "estimate"}
    titles |= {name: f"{DAYS} ({pace})" for name, pace in paces.items() if name in titles}
    titles = mean_titles(titles, [all_splits])
    titles = titles if report is None else _plan_titles(titles, report)
    filled = {
        name: title
        for name, title in titles.items()
        if any(row.get(name) is not None for row in rows)
    }
    notes = [*_search_notes(rows, report)]
    notes += basis_notes([all_splits], rows, basis)
    notes += _experts_note(all_splits) if basis is ESTIMATE_BASIS else ()
    if DAYS in filled and basis is SERIALIZED_BASIS:
        notes.append("Days are of kernels at their bounds, no forecast.")
    notes += [f"Route: {route}." for route in routes_of(all_splits)]
    notes += price_notes({chip: all_splits.chips[chip] for chip in question.chips})
    notes += _more_notes(rows[MAX_SHOWN:], "splits" if report is None else "plans")
    if basis is ESTIMATE_BASIS and all_splits.config.phase == [DECODE]:
        notes += _tie_notes(all_splits, question.chips[0], rows)
    notes += _skipped_notes(all_splits, frame) if report is None else ()
    notes += map(as_note, assumptions_of(all_splits).items())
    headline = split_headline(
        rows,
        basis,
        titles,
        phase=all_splits.config.phase[0],
        within_s=_limit_s(options, basis),
        is_ranked_apart=report is not None,
        is_draft=all_splits.config.draft is not None,
    )
    return Cases(f"{head}\n{headline}", rows, filled, "B", basis, notes, MAX_SHOWN)


def _limit_s(options: Mapping[str, Any], basis: Basis) -> float | None:
    """Limit on the step time in the options [s]; None: none."""
    within = options.get("within")
    return None if within is None else _target(within, basis).t_step_s[0]


def _experts_note(all_splits: ModelSweep) -> Iterator[str]:
    """Note on estimates of training whose fit has other models with experts."""
    cases = (case for block in all_splits.blocks for case in block.cases)
    for case in cases:
        if isinstance(case, TrainingCase) and case.has_experts and case.fit:
            models = case.fit.models
            if models and case.name not in models:
                yield f"No steps of {case.name}: the estimate is by {', '.join(models)}."
            return


def _more_notes(rest: Sequence[Mapping[str, Any]], noun: str) -> Iterator[str]:
    """Note on rows that a screen does not show."""
    if rest:
        large = sum(row["fits"] is False for row in rest)
        misfits = f", {large} of which do not fit" if large else ""
        yield f"{len(rest)} more {noun}{misfits}: --csv and --json have all."


def _search_notes(rows: Sequence[Mapping[str, Any]], report: PlanReport | None) -> Iterator[str]:
    """Notes on a search of training plans, or that no split fits."""
    if report is not None:
        yield from report.notes(len(rows), sum(row["tie"] for row in rows))


def _plan_titles(titles: Mapping[str, str], report: PlanReport) -> dict[str, str]:
    """Column titles of training plans: with the time that ranks, and ties."""
    shown = dict[str, str]()
    for name, title in titles.items():
        if name != "B":
            shown[name] = title
        if name == "t_upper_s" and report.by == "t_rank_s":
            shown["t_rank_s"] = "rank"
    return {**shown, "tie": f"within {whole_percent(PLAN_TIE)}"}


def _request_splits(
    question: Question,
    catalogues: QuestionCatalogues,
    all_splits: ModelSweep,
    basis: Basis,
    options: Mapping[str, Any],
) -> Cases:
    """Splits as a table of requests, the best first, with a time limit each at its largest batch.

    Raises:
        RooflinesError: No split has a batch within the limit.
    """
    sweeps: list[Any] = [all_splits]
    if "within" in options:
        sweeps = []
        for split in all_splits.config.splits:
            keys = {**options, "split": split.model_dump(exclude_defaults=True) or None}
            single = replace(question, notes=[])
            try:
                single, rest = with_largest_batch(single, catalogues, keys, basis=basis)
            except RooflinesError as error:
                last = error
            else:
                sweeps.append(question_sweep(single, catalogues, **rest))
        if not sweeps:
            raise last
    cases = request_cases(sweeps, bound=basis is BOUND_BASIS, is_ranked=True)
    decides = "output_tokens_per_s" if "within" in options else "tpot_basis_s"
    sign = -1 if "within" in options else 1
    rows = sorted(cases.rows, key=lambda row: (row["fits"] is False, sign * row[decides]))
    same = {} if "B" in cases.columns else {"B": rows[0]["B"]}
    words = {"input": "isl", "output": "osl"}
    lengths = [f"{words[key]} = {rows[0][key]:,}" for key in words if key not in cases.columns]
    head = step_title(
        {**rows[0], "chips": all_splits.config.splits[0].chips}, same, every_split=True
    )
    more = len(rows) - MAX_SHOWN
    notes = [
        *cases.notes,
        *([f"{more} more splits: --csv and --json have all."] if more > 0 else []),
    ]
    headline = request_headline(rows, cases.basis, is_limited="within" in options)
    question_text = "\n".join([" · ".join([head.text(), *lengths]), headline])
    return replace(cases, question=question_text, rows=rows, notes=notes, shown=MAX_SHOWN)


def _tie_notes(
    all_splits: ModelSweep, chip: str, rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Note on splits that fit, and whose estimates differ from the best by less than the error."""
    cases = (case for block in all_splits.blocks for case in block.cases)
    softwares = next((case.choice.softwares for case in cases), None)
    band = estimate_band(all_splits.calibrations, chip, softwares[0]) if softwares else None
    fitting = [row for row in rows if row["fits"] is not False]
    if band is None or not fitting:
        return
    best = max(row[RATE] for row in fitting)
    tied = [str(row["split"]) for row in fitting if best / row[RATE] - 1 < band.median]
    if len(tied) > 1:
        names = tied[:MAX_NAMED]
        if more := len(tied) - len(names):
            names.append(f"{more} more")
        named = f"{', '.join(names[:-1])} and {names[-1]}"
        error = "held-out error" if band.basis == LEFT_OUT else "error of the fit"
        yield f"{named} tie within {percent(band.median)}, the median {error} of estimates."


def _skipped_notes(all_splits: ModelSweep, rows: pl.DataFrame) -> Iterator[str]:
    """Notes on splits without a row, grouped by reason: a few by name, many as a count."""
    reasons = {skipped.split: skipped.reason for skipped in all_splits.skipped}
    ranked = {*rows["split"].cast(pl.String)}
    missing: dict[str, list[tuple[str, str]]] = {}
    for split in (split.name for split in all_splits.config.splits):
        if split not in ranked:
            reason = reasons.get(split, "no batch that fits meets the step time")
            missing.setdefault(getattr(reason, "need", reason), []).append((split, reason))
    for splits in missing.values():
        first, reason = splits[0]
        named = ", ".join(split for split, _ in splits)
        if len({reason for _, reason in splits}) > 1 or len(splits) > MAX_NAMED:
            named = f"{len(splits):,} splits, such as {first}"
        yield f"Left out: {named}: {reason}."


MAX_NAMED = 4
"""Splits that a note names [1]."""

RATE = "tokens_per_s_per_chip"
"""Rate at the time that decides; in training at the time that one split's answer leads with."""

DAYS = "days"
"""Days of a whole training, with `tokens`."""

USD = "usd"
"""Cost of a whole training, with `tokens`."""

MFU = "mfu"
"""Model FLOPs utilization of a step of training."""

COLUMNS = {
    "split": "split",
    "B": "B",
    "t_estimate_s": "estimate",
    BAND_TEXT: "80% within",
    "t_serial_s": "serialized",
    "t_upper_s": "no overlap",
    "t_lower_s": "at least",
    "bound": "bound",
    "bubble": "bubble",
    USER_RATE: "tokens/s/user",
    RATE: "tokens/s/chip ({})",
    MFU: "MFU ({})",
    DAYS: "days",
    USD: "USD",
    "footprint_bytes": "memory",
    "bottleneck_vs_best": "slower by",
    "excess_s": "excess",
}
"""Column titles on a screen, by column; the rate's title names its time."""


def _changed(sweep: ModelSweep, **keys: object) -> ModelSweep:
    """The sweep with other keys in its config.

    Raises:
        RooflinesError: No split of the sweep has rows.
    """
    changed = replace(sweep, config=sweep.config.model_copy(update=keys))
    if changed.rows:
        return checked_sweep(changed)
    unjoined = (skipped for skipped in changed.skipped if need_of(skipped.reason) == "network")
    first = next(unjoined, changed.skipped[0])
    has = "" if first.chip is None else f"{first.chip} has "
    problem = f"is auto, but no split is possible; {first.split}: {has}{first.reason}"
    fix = "ask for other sizes, or fewer chips"
    if first.chip and need_of(first.reason) == "network":
        chips = max(split.chips for split in changed.config.splits)
        fix = hint_fewer_chips(changed.chips[first.chip], "fewer chips", (chips,))
    raise RooflinesError("--split", problem, fix)


def _with_every_split(
    sweep: ModelSweep, chip: str, chips: int, network: Sequence[str] | None
) -> ModelSweep:
    """Replace the split of a sweep by every split over `chips` chips."""
    entry = sweep.chips[chip]
    names = network or default_route(entry, chips)
    _, _, missing = interconnects(entry, names)
    if missing and chips > 1:
        raise RooflinesError("chips", f"are {chips}: {missing}", "ask for one chip")
    keys = {"num_chips": chips, "network": [names] if chips > 1 else None, "thresholds": []}
    config = with_every_split(sweep.config.model_copy(update=keys), sweep.models, sweep.chips)
    return replace(sweep, config=config, fastest_axes=TRAIN in config.phase)


def _within(all_splits: ModelSweep, targets: Targets, basis: Basis) -> pl.DataFrame:
    """Splits, each with the largest batch that fits and meets the step time."""
    solved = sweep_thresholds(_changed(all_splits, thresholds=["B"], targets=targets))
    largest = solved.select("split", B=pl.min_horizontal("max_B_latency", "max_B_fit"))
    largest = largest.filter(pl.col("B") > 0)
    if largest.is_empty():
        splits = "no split meets" if len(all_splits.config.splits) > 1 else "it does not meet"
        problem = f"is {targets.t_step_s[0]:g} s, which {splits} with any batch that fits"
        raise RooflinesError("within", problem, "allow more time, or use more chips")
    grid = {**all_splits.config.grid, "B": Sizes(largest["B"].unique().sort().to_list())}
    rows = StepTable(_changed(all_splits, grid=grid)).frame().collect()
    rows = rows.join(largest, on=["split", "B"], how="semi", maintain_order="left")
    return _in_order(rows, basis, by_throughput=True)


def _in_plan_order(
    rows: pl.DataFrame, sweep: ModelSweep, basis: Basis, report: PlanReport
) -> pl.DataFrame:
    """Rank training plans as their search does, and add what makes each slower than the best."""
    plans = {split.name: cast("TrainingPlan", split) for split in sweep.config.splits}
    serial, upper = pl.col("t_serial_s"), pl.col("t_upper_s")
    rows = rows.with_columns(t_rank_s=serial + RANK_TIMES["t_rank_s"] * (upper - serial))
    rows = rows[plan_ranks(rows.to_dicts(), plans, report.by)]
    tie = _fits() & (pl.col(report.by) <= pl.col(report.by).first() * (1 + PLAN_TIE))
    return _with_excess(rows.with_columns(tie=tie, t_step_s=pl.col(basis.column)))


def _in_order(rows: pl.DataFrame, basis: Basis, *, by_throughput: bool) -> pl.DataFrame:
    """Rank rows, best first, and add the bottleneck that makes each slower than the best.

    The time of a step that decides is that of the basis.
    """
    decides = basis.column
    rows = rows.with_columns(t_step_s=pl.col(decides))
    if "bubble" not in rows.columns:
        per_step = pl.col("tokens_per_s_per_chip_serial") * pl.col("t_serial_s")
        rows = rows.with_columns(tokens_per_s_per_chip=per_step / pl.col(decides))
    order = -pl.col("tokens_per_s_per_chip") if by_throughput else pl.col("t_step_s")
    rows = rows.sort(_fits().not_(), order, "footprint_bytes", "split", maintain_order=True)
    return _with_excess(rows)


def _fits() -> pl.Expr:
    """Fit of a split; on a chip without a capacity it fits."""
    return pl.col("fits").fill_null(value=True)


def _with_excess(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the bottleneck that makes each row slower than the first; and choose the columns."""
    times, shown = TIMES, [*KEYS, "B", "S", "^T$", *VALUES]
    if "bubble" in rows.columns:
        shown = [*rows.columns, "bottleneck_vs_best", "excess_s"]
        rows = rows.with_columns(t_bubble_s=pl.col("t_upper_s") * pl.col("bubble"))
        times = {**TIMES, "bubble": "t_bubble_s"}
    best, fits = rows.row(0, named=True), _fits()
    differences = {
        name: pl.col(time) - best[time] * pl.col("B") / best["B"] for name, time in times.items()
    }
    max_excess = pl.max_horizontal(differences.values())
    loses = fits & (max_excess > TIE * pl.col("t_step_s"))
    bottleneck_vs_best = pl.coalesce(
        pl.when(difference == max_excess).then(pl.lit(name))
        for name, difference in differences.items()
    )
    return rows.with_columns(
        bottleneck_vs_best=pl.when(~fits)
        .then(pl.lit(CAPACITY))
        .when(loses)
        .then(bottleneck_vs_best),
        excess_s=pl.when(loses).then(max_excess),
    ).select(shown)
