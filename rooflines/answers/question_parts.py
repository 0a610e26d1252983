"""Questions that are answered part by part: a number for each chip, or a split that is asked for.

Also a limit on the step time beside a batch: whether the batch keeps it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import (
    BASIS,
    BASIS_RATES,
    ESTIMATE_BASIS,
    MIXED_BASIS,
    SERIALIZED_BASIS,
    Basis,
    basis_of,
    table_basis,
)
from rooflines.answers.best_split import (
    RATE,
    split_cases,
    starting_sweep,
    target_basis,
    with_largest_batch,
)
from rooflines.answers.case_answer import thresholds_of
from rooflines.answers.case_table import (
    CALIBRATED_TO,
    CASE_KEYS,
    MIXED_TITLES,
    UNRANKED,
    Cases,
    request_cases,
    side_by_side,
)
from rooflines.answers.measured_number import several_measured
from rooflines.answers.phrases import price_notes, step_title
from rooflines.answers.question import question_sweep
from rooflines.answers.question_sizes import BLAS
from rooflines.answers.question_words import EVERY_SPLIT, LIST_CHIPS, Question
from rooflines.answers.typed_options import typed_options
from rooflines.answers.word_forms import key_name
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import MeasuredValue
from rooflines.basics.text import seconds, usd
from rooflines.config.model_fields import AUTO
from rooflines.dictionary.columns import ALWAYS, FOUND
from rooflines.evaluation.step_rows import HOUR_S
from rooflines.models.architecture import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.answers.question import QuestionCatalogues

TOKENS_PER_MTOK = 1e6

MAX_TP = 64
"""Largest tensor parallelism that is tried [1]."""


def parts_cases(
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    bound: bool = False,
    **options: Any,  # noqa: ANN401, as typed
) -> Cases | None:
    """Tabulate a question by number of chips, or by tensor parallelism; None: it asks for neither.

    A split that is asked for on a number of chips becomes `auto`.

    Args:
        question: What it names.
        catalogues: What can be named.
        bound: True to lead with the bound where there is an estimate, too.
        **options: As of `answered`.

    Raises:
        RooflinesError: Something is invalid, or the chips cannot do it.
    """
    if question.counts:
        return _by_count(question, catalogues, bound=bound, **options)
    is_limited = "within" in {**question.options, **options} and question.model is not None
    named = [chip for chip in question.chips if chip in catalogues.chips]
    if is_limited and not _has_batch(question) and len(named) == len(question.chips) > 1:
        return _by_count(question, catalogues, bound=bound, **options)
    number = str({**question.options, **options}.get("chips", ""))
    several = question.model is not None and len(named) == len(question.chips) > 1
    trains = TRAIN in (options.get("phase"), question.options.get("phase"))
    asks_every = question.splits == [EVERY_SPLIT] or options.get("split") == AUTO
    is_searched = (trains and _any_split(question)) or asks_every
    if several and question.count is not None and is_searched:
        return _by_count(question, catalogues, bound=bound, **options)
    if several and number.isdigit() and question.count is None and _any_split(question):
        counted = replace(question, count=int(number), options={**question.options})
        counted.options.pop("chips", None)
        rest = {key: value for key, value in options.items() if key != "chips"}
        return _by_count(counted, catalogues, bound=bound, **rest)
    if question.ask_split and question.model is not None and not question.splits:
        if question.count is None and not trains and len(question.chips) < 2:  # noqa: PLR2004, one chip, or a missing one
            return _by_tp(question, catalogues, bound=bound, **options)
        question.splits = [EVERY_SPLIT]
    return None


def _any_split(question: Question) -> bool:
    """Check for a question that leaves the split open."""
    return not question.splits or question.splits == [EVERY_SPLIT]


def _by_count(
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    bound: bool,
    **options: Any,  # noqa: ANN401, as typed
) -> Cases:
    """Chips that each have a number of their own, a row each.

    Raises:
        RooflinesError: As `parts_cases`; or no model is named, or a number was measured.
    """
    counts: dict[str, int | None] = {**question.counts}
    counts = counts or dict.fromkeys(question.chips, question.count)
    named = " and ".join(f"{count or 1} {chip}" for chip, count in counts.items())
    if question.model is None:
        raise RooflinesError("chips", f"are {named}, which share a model", "leave out the numbers")
    parts = dict[str, tuple[Question, dict[str, Any]]]()
    for chip, count in counts.items():
        single = replace(
            question,
            chips=[chip],
            count=count,
            counts={},
            sizes={**question.sizes},
            splits=[*question.splits],
        )
        if count and "within" in {**question.options, **options} and not single.splits:
            single.splits = [{"tp": str(count)}]
        keys = typed_options(single, catalogues.chips, options)
        if isinstance(measured := keys.get("measured"), MeasuredValue):
            raise several_measured(measured, f"the question has {named}")
        parts[chip] = single, keys
    if any(keys.get("split") == AUTO for _, keys in parts.values()):
        return _best_of_each([*parts.values()], catalogues, bound=bound)
    return _parts_answered(parts, catalogues, bound=bound)


def _by_tp(
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    bound: bool,
    **options: Any,  # noqa: ANN401, as typed
) -> Cases:
    """Tensor parallelisms, a row each; a note names the smallest that fits, or keeps a limit.

    Raises:
        RooflinesError: As `parts_cases`; none is possible.
    """
    if not question.chips:
        raise RooflinesError("chip", "is missing", LIST_CHIPS)
    chip = catalogues.chips[question.chips[0]]
    network = next(iter(chip.networks.values()), None)
    domain = network.domain if network and isinstance(network.domain, int) else MAX_TP
    parts = dict[str, tuple[Question, dict[str, Any]]]()
    for power in range(min(domain, MAX_TP).bit_length()):
        tp = str(2**power)
        single = replace(question, sizes={**question.sizes}, splits=[{"tp": tp}], ask_split=False)
        parts[f"tp{tp}"] = single, typed_options(single, catalogues.chips, options)
    limits = {keys.get("within") for _, keys in parts.values()}
    at_batch = {limit_at_batch(question, keys) for _, keys in parts.values()}
    cases = _parts_answered(parts, catalogues, bound=bound)
    (limit_s,), (checked_s,) = limits, at_batch
    keeping = _keeping(cases, checked_s)
    verdict = f"{keeping[0]['split']} is the smallest tp that fits" if keeping else "No tp fits"
    if limit_s is not None:
        verdict = f"{keeping[0]['split']} is the smallest tp" if keeping else "No tp is"
        verdict += f" within {seconds(limit_s)} by the {cases.basis.noun}"
    return replace(cases, notes=[f"{verdict}.", *cases.notes])


def _parts_answered(
    parts: Mapping[str, tuple[Question, Mapping[str, Any]]],
    catalogues: QuestionCatalogues,
    *,
    bound: bool,
) -> Cases:
    """Table for questions that differ in chips or splits, by what they differ in."""
    questions = [*parts.values()]
    if "within" in questions[0][1]:
        questions = [*_with_largest_batches(parts, catalogues, bound=bound)]
    sweeps, errors = [], []
    for question, keys in questions:
        try:
            sweeps.append(question_sweep(question, catalogues, **keys))
        except RooflinesError as error:
            errors.append(error)
    if not sweeps:
        raise errors[-1]
    has_requests = "requests" in questions[0][1]
    return (request_cases if has_requests else side_by_side)(sweeps, bound=bound)


def _with_largest_batches(
    parts: Mapping[str, tuple[Question, Mapping[str, Any]]],
    catalogues: QuestionCatalogues,
    *,
    bound: bool,
) -> list[tuple[Question, dict[str, Any]]]:
    """Questions with their largest batches as in `with_largest_batch`, by the basis of each.

    Raises:
        RooflinesError: No question has a batch within the time; a note names the others.
    """
    errors, bases = dict[str, RooflinesError](), dict[str, Basis]()
    for label, (question, options) in parts.items():
        try:
            sweep, _ = starting_sweep(question, catalogues, options)
        except RooflinesError as error:
            errors[label] = error
        else:
            bases[label] = target_basis(sweep, bound=bound)
    searched = []
    for label, basis in bases.items():
        question, options = parts[label]
        try:
            with_batch = with_largest_batch(
                question, catalogues, options, basis=basis, label=f"{label}: "
            )
        except RooflinesError as error:
            errors[label] = error
        else:
            searched.append(with_batch)
    if not searched:
        raise next(reversed(errors.values()))
    for label, mistake in errors.items():
        question, options = parts[label]
        reason = f"{mistake.where} {mistake.problem}"
        if mistake.where == "within":
            reason = f"no batch that fits is within {seconds(options['within'])}"
        question.notes.append(f"{label} is left out: {reason}")
    return searched


def _best_of_each(
    searches: Sequence[tuple[Question, Mapping[str, Any]]],
    catalogues: QuestionCatalogues,
    *,
    bound: bool,
) -> Cases:
    """Best split of each question as one table, each on the basis that its splits are ranked by."""
    cases = [
        split_cases(question, catalogues, bound=bound, **options) for question, options in searches
    ]
    rows = [dict(case.rows[0]) for case in cases]
    trains = all("bubble" in row for row in rows)
    if trains:
        basis = table_basis(rows, bound=bound)
    else:
        basis = cases[0].basis if len({case.basis for case in cases}) == 1 else MIXED_BASIS
        for row, case in zip(rows, cases, strict=True):
            row |= {BASIS: case.basis.key, MIXED_BASIS.column: row.get(case.basis.column)}
            row[f"{RATE}{MIXED_BASIS.suffix}"] = row.get(RATE)
    titles = {name: title for case in cases for name, title in case.columns.items()}
    columns = {"chip": "chip", "chips": "chips"}
    columns |= {name: title for name, title in titles.items() if name not in COMPARED_TO_BEST}
    headline = _ranked_training(rows, basis, searches, catalogues) if trains else ""
    columns = _mixed_columns(columns, trains=trains) if basis is MIXED_BASIS else columns
    if len({row.get("B") for row in rows}) == 1:
        columns.pop("B", None)
    columns |= {USD_RATE: "$/Mtok"} if any(row.get(USD_RATE) for row in rows) else {}
    sizes = {letter: rows[0][letter] for letter in ("B", "S") if letter not in columns}
    sizes = {letter: size for letter, size in sizes.items() if size is not None}
    head = step_title({**rows[0], "chips": 1}, sizes)._replace(chip="").text()
    lengths = {"input": "isl", "output": "osl"}
    parts = [f"{word} = {rows[0][key]:,}" for key, word in lengths.items() if rows[0].get(key)]
    chips = {chip: catalogues.chips[chip] for question, _ in searches for chip in question.chips}
    fits = _calibrations(cases)
    notes = [*fits, "Ask for one kind of chip to see all of its splits.", *price_notes(chips)]
    if basis is SERIALIZED_BASIS:
        notes.insert(0, "Kernels one after another: not each chip has a calibration.")
    if basis is MIXED_BASIS:
        notes.insert(len(fits), SERIALIZED_NOTE)
    for row in rows:
        row |= {name: row.get(name) for name in columns}
    title = " · ".join([head, *parts, "the best split of each"])
    return Cases(f"{title}{headline and chr(10)}{headline}", rows, columns, "B", basis, notes)


def _calibrations(cases: Sequence[Cases]) -> list[str]:
    """Calibrations behind the estimates of several tables, in one sentence."""
    notes = (note for case in cases for note in case.notes if note.startswith(CALIBRATED_TO))
    names = dict.fromkeys(
        note.removeprefix(CALIBRATED_TO).partition("; rates")[0] for note in notes
    )
    return [f"{CALIBRATED_TO}{';'.join(names)}; rates and cost are theirs."] if names else []


def _mixed_columns(columns: Mapping[str, str], *, trains: bool) -> dict[str, str]:
    """Columns of a table with a basis for each row: in training both times, else the row's own."""
    rates = {f"{name}{suffix}" for name in BASIS_RATES for suffix in RATE_SUFFIXES}
    times = set() if trains else {ESTIMATE_BASIS.column, SERIALIZED_BASIS.column}
    requests = columns.keys() & MIXED_TITLES.keys()
    mixed = {name: columns[name] for name in ("chip", "chips")} | {BASIS: BASIS}
    if not (trains or requests):
        keys = {name: columns[name] for name in ("split", "B") if name in columns}
        mixed |= {**keys, MIXED_BASIS.column: MIXED_BASIS.title}
    for name, title in columns.items():
        if name in rates and not requests:
            mixed[f"{RATE}{MIXED_BASIS.suffix}"] = "tokens/s/chip"
        elif name not in times:
            mixed[name] = MIXED_TITLES.get(name, title)
    return mixed | ({f"mfu{MIXED_BASIS.suffix}": "MFU"} if trains else {})


RATE_SUFFIXES = ("", SERIALIZED_BASIS.suffix, ESTIMATE_BASIS.suffix)
"""Rate suffixes that a table on each row's own basis replaces."""

SERIALIZED_NOTE = (
    "Serialized: chips without a calibration, kernels at their bounds, one after another. "
    f"{UNRANKED}"
)

USD_RATE = "usd_per_mtok_trained"
"""Column with USD per million tokens trained, on the basis."""


def _ranked_training(
    rows: list[dict[str, Any]],
    basis: Basis,
    searches: Sequence[tuple[Question, Mapping[str, Any]]],
    catalogues: QuestionCatalogues,
) -> str:
    """Sort chips by what is asked, the quickest or the cheapest first, and say both.

    Chips without a calibration stand last beside those with one. Rows get `USD_RATE`.

    Args:
        rows: A row a chip.
        basis: The table's basis.
        searches: Questions, whose words may ask for the cheapest.
        catalogues: Chips with their prices.
    """
    for row in rows:
        row[USD_RATE] = None
        price = catalogues.chips[row["chip"]].lowest_price()
        if price is not None and row["fits"] is not False:
            rate = row[f"{RATE}{basis.suffix}"]
            row[USD_RATE] = price.usd_per_hour / HOUR_S / rate * TOKENS_PER_MTOK
    words = {key_name(word) for question, _ in searches for word in question.tokens}

    def order(row: Mapping[str, Any]) -> tuple[bool, bool, float, float]:
        dollars = math.inf if row[USD_RATE] is None else row[USD_RATE]
        ranked = (
            (dollars, row[basis.column]) if words & COST_WORDS else (row[basis.column], dollars)
        )
        is_serialized = row.get(BASIS) == SERIALIZED_BASIS.key
        return row["fits"] is False, is_serialized, *ranked

    rows.sort(key=order)
    ranked = [row for row in rows if row["fits"] is not False]
    ranked = [row for row in ranked if row.get(BASIS) == ranked[0].get(BASIS)]
    if not ranked:
        return "None of the chips holds a plan that was tried."
    noun = ESTIMATE_BASIS.noun if basis is MIXED_BASIS else basis.noun
    noun = SERIALIZED_BASIS.noun if ranked[0].get(BASIS) == SERIALIZED_BASIS.key else noun
    quickest = min(ranked, key=lambda row: float(row[basis.column]))
    texts = [f"quickest {quickest['chip']}, {seconds(quickest[basis.column])} a step"]
    if priced := [row for row in ranked if row[USD_RATE] is not None]:
        cheapest = min(priced, key=lambda row: float(row[USD_RATE]))
        texts.append(f"cheapest {cheapest['chip']}, {usd(cheapest[USD_RATE])}/Mtok trained")
    texts = texts[::-1] if words & COST_WORDS else texts
    return f"By the {noun}: {', '.join(texts)}."


COST_WORDS = {"cheapest", "cheap", "cheaper", "cost", "costs", "price", "$", "usd", "money"}
"""Words that ask for the cheapest chip."""


COMPARED_TO_BEST = ("bottleneck_vs_best", "excess_s")
"""Columns that compare a split with the best of its chip."""


# ---------------------------------------------------------------- a size that is asked for

OPEN_SIZES = {"B": 64, "D": 8192, "F": 8192}
"""Sizes of a matmul that are asked for, where no size is critical [1]."""


def at_critical_size(
    question: Question, catalogues: QuestionCatalogues, options: Mapping[str, Any]
) -> Question:
    """Question about an operation at the critical size along a letter that is asked for.

    Args:
        question: An operation without a size; a note says which is taken.
        catalogues: What can be named.
        options: As of `question_sweep`.

    Raises:
        RooflinesError: Several sizes are asked for, or something is invalid.
    """
    if question.model is not None or not question.open_sizes:
        return question
    letters = [BLAS.get(letter, letter) for letter in question.open_sizes]
    if len(letters) > 1:
        problem = f"are asked for along {' and '.join(question.open_sizes)}"
        raise RooflinesError("sizes", problem, "ask for one, and give the others")
    (letter,), (typed,) = letters, question.open_sizes
    size = OPEN_SIZES.get(letter, OPEN_SIZES["D"])
    tried = replace(question, sizes={**question.sizes, letter: size})
    sweep = question_sweep(
        tried, catalogues, **{k: v for k, v in options.items() if k != "measured"}
    )
    solved = [row for row in thresholds_of(sweep) if row["axis"] == letter and row["share"] == 1]
    critical = {row["critical"] for row in solved if row["outcome"] == FOUND}
    if len(solved) == len(critical) == 1:
        (size,) = critical
        text = f"{letter}={size:,} is the smallest that is compute-bound"
    elif len(solved) == 1:
        outcome = (
            "any size is compute-bound"
            if solved[0]["outcome"] == ALWAYS
            else "none is compute-bound"
        )
        text = f"{outcome}; {letter}={size:,} is taken"
    else:
        text = f"the column `compute-bound from` has it; {letter}={size:,} is taken"
    question.notes.append(f"{typed} is asked for: {text}")
    return replace(tried, sizes={**tried.sizes, letter: size})


# ---------------------------------------------------------------- a limit beside a batch


def limit_at_batch(question: Question, options: dict[str, Any]) -> float | None:
    """Take the limit on the step time out of the options where a batch is typed, too [s].

    Args:
        question: What it names.
        options: As `typed_options` has them.
    """
    serves = question.model is not None and options.get("phase") != TRAIN
    if serves and _has_batch(question):
        limit_s: float | None = options.pop("within", None)
        return limit_s
    return None


def _has_batch(question: Question) -> bool:
    return "B" in {letter.upper() for letter in question.sizes}


def _keeping(cases: Cases, limit_s: float | None) -> list[Mapping[str, Any]]:
    """Rows that fit and keep a limit [s]; None: that fit."""
    column = cases.basis.column
    fitting = (row for row in cases.rows if row["fits"] is not False)
    return [row for row in fitting if limit_s is None or row[column] <= limit_s]


def limit_verdict(cases: Cases, limit_s: float) -> str:
    """Sentence on the cases that keep a limit [s]."""
    keeping = _keeping(cases, limit_s)
    labels = [key for key in (*CASE_KEYS, "input", "output", "B", "S") if key in cases.columns]
    names = [
        " ".join(f"{key}={row[key]}" if key.isupper() else str(row[key]) for key in labels)
        for row in keeping
    ]
    limit = f"within {seconds(limit_s)} by the {cases.basis.noun}"
    if not keeping:
        return f"None is {limit}."
    return f"{limit.capitalize()}: {', '.join(filter(None, names)) or 'yes'}."


def step_verdict(row: Mapping[str, Any], limit_s: float, *, bound: bool = False) -> str:
    """Sentence on whether a step keeps a limit.

    Args:
        row: Row of the step.
        limit_s: The limit [s].
        bound: True to hold the bound against it.
    """
    basis = basis_of([row], bound=bound)
    time_s = row[basis.column]
    side = "within" if time_s <= limit_s else "over"
    return f"B={row['B']:,} is {side} {seconds(limit_s)}: {seconds(time_s)} by the {basis.noun}"
