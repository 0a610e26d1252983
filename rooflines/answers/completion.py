"""Sizes and a split for a question about a model that has none; notes say which."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.answers.best_split import largest_size
from rooflines.answers.case_answer import rows_of
from rooflines.answers.case_table import Cases
from rooflines.answers.explain import answered
from rooflines.answers.head_room import largest_text
from rooflines.answers.question import question_sweep
from rooflines.answers.question_sizes import values_of
from rooflines.answers.question_words import EVERY_SPLIT, FSDP
from rooflines.answers.serving_answer import ServingAnswer
from rooflines.answers.typed_options import ENGINE_OPTIONS, typed_options
from rooflines.answers.word_forms import ACCUMULATION, key_name
from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.quantities import PER_USER, measured_value
from rooflines.basics.text import seconds
from rooflines.models.architecture import PREFILL
from rooflines.models.library import find_model
from rooflines.models.model import Model
from rooflines.training.parallel_plan import ZERO_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question

MODEL_SIZES = {"B": "64", "S": "8k"}
"""Sizes of a model that none are typed for."""

TRAINED_SEQUENCES = 512
"""B of a step of training that none is typed for, up to a multiple of the chips [1]."""

MAX_CONTEXT = 2**20
"""Longest context that is tried for a model that states none [1]."""

PROMPTS = "1"
"""B of a prefill that none is typed for."""

SPLITS = (
    *({"tp": str(chips)} for chips in (1, 2, 4, 8)),
    *(
        split
        for chips in (16, 32, 64)
        for split in (
            {"tp": "1", "dp": str(chips), "ep": str(chips)},
            {"tp": str(chips)},
            {"tp": "8", "pp": str(chips // 8)},
        )
    ),
)
"""Splits that are tried in turn for a model that none is typed for."""


def missing_sizes(question: Question, keys: Mapping[str, object]) -> dict[str, str]:
    """Sizes in place of those that a question about a model lacks; B is open within a limit.

    Args:
        question: A model and its chips.
        keys: Options, typed as words or as options.
    """
    typed = {letter.upper() for letter in question.sizes}
    defaults = {**MODEL_SIZES, "S": _context(question)}
    sizes = {letter: size for letter, size in defaults.items() if letter not in typed}
    if question.request:
        sizes.pop("S", None)
    if "within" in keys:
        sizes.pop("B", None)
    if "B" in sizes and keys.get("phase") == PREFILL:
        sizes["B"] = PROMPTS
    return sizes


def _made_for(question: Question) -> int | None:
    """Longest context that the model is made for [1]; None: not stated."""
    try:
        model = question.model
        return (model if isinstance(model, Model) else find_model(str(model))).shape.context
    except RooflinesError:  # said later, at its place
        return None


def _context(question: Question) -> str:
    """S that none is typed for: at most the context that the model is made for; a note says so."""
    context, usual = _made_for(question), MODEL_SIZES["S"]
    if context is None or context >= values_of(usual, "S")[0]:
        return usual
    if "S" not in {letter.upper() for letter in question.sizes} and not question.request:
        question.notes.append(f"S={context} is the model's context, shorter than {usual}")
    return str(context)


def complete_training(question: Question, options: Mapping[str, object]) -> None:
    """Add missing sizes to a step of training; a note says so.

    Args:
        question: A model and its chips.
        options: Options of the command, besides those typed as words.
    """
    keys = {**question.options, **options}
    chips = question.count or (int(str(keys.get("chips"))) if _is_whole(keys.get("chips")) else 1)
    steps = question.options.pop(ACCUMULATION, None)
    if steps is not None:
        _accumulate(question, steps, keys)
    sizes = {"B": str(-(-TRAINED_SEQUENCES // chips) * chips), "S": _context(question)}
    typed = {letter.upper() for letter in question.sizes}
    missing = {letter: size for letter, size in sizes.items() if letter not in typed}
    if missing and not question.product:
        question.sizes |= missing
        text = " ".join(f"{letter}={size}" for letter, size in missing.items())
        question.notes.append(f"{text}, where none is typed")


def _accumulate(question: Question, steps: str, keys: Mapping[str, object]) -> None:
    """Set B to the sequences of all micro-batches, or the micro-batch where B is typed.

    Raises:
        RooflinesError: There is not one split, or the numbers do not fit each other.
    """
    if not question.splits and question.count:
        question.splits = [{"dp": str(question.count), "shard": ZERO_STAGES[FSDP]}]
        question.notes.append(f"dp{question.count} {FSDP}, where no split is typed")
    plan = question.splits[0] if len(question.splits) == 1 else {}
    numbers = (
        [str(plan.get(key, 1)) for key in ("tp", "pp", "cp")] if isinstance(plan, dict) else []
    )
    given = [
        steps,
        str(keys.get("micro_batch", 1)),
        *numbers,
        str(plan.get("dp", 1)) if numbers else "",
    ]
    if not all(map(_is_whole, given)):
        fix = "write whole numbers and one split, such as dp64 grad_accum=8 micro_batch=2"
        raise RooflinesError(ACCUMULATION, f"is {quote(steps)}, beside no split or number", fix)
    shared = math.prod(map(int, numbers))
    dp = int(plan.get("dp") or max(1, (question.count or shared) // shared))
    typed = {letter.upper(): size for letter, size in question.sizes.items()}
    micro = int(str(keys.get("micro_batch", 1)))
    sequences = dp * int(steps) * micro
    if "B" not in typed:
        question.sizes["B"] = str(sequences)
    elif "micro_batch" not in keys and not _batch(typed["B"]) % (dp * int(steps)):
        micro = _batch(typed["B"]) // (dp * int(steps))
        question.options["micro_batch"] = str(micro)
    elif _batch(typed["B"]) != sequences:
        problem = (
            f"is {steps}: with dp{dp} and micro_batch={micro} a step has {sequences:,} sequences"
        )
        raise RooflinesError(ACCUMULATION, f"{problem}, but B is {typed['B']}", "leave out B")
    question.notes.append(
        f"grad_accum={steps}: {int(steps):,} micro-batches of {micro} on {dp} replicas, "
        f"B={dp * int(steps) * micro:,}"
    )


def _batch(size: object) -> int:
    """The only size in a text; 0: there are several [1]."""
    sizes = values_of(size, "B")
    return sizes[0] if len(sizes) == 1 else 0


def _is_whole(value: object) -> bool:
    return str(value).isdigit() and int(str(value)) > 0


def complete(
    question: Question, catalogues: QuestionCatalogues, options: Mapping[str, object] | None = None
) -> None:
    """Add missing sizes to a model, and a split where none is typed; notes say so.

    A rate of one user's tokens without B is a limit on the step time.

    Args:
        question: A model and its chips.
        catalogues: What can be named.
        options: Options of the command, besides those typed as words.
    """
    keys = {**question.options, **(options or {})}
    engine: Mapping[str, Any] = {
        key: value for key, value in (options or {}).items() if key in POOL_OPTIONS
    }
    sizes = missing_sizes(question, keys)
    is_step = not question.request and keys.get("phase") != PREFILL and "within" not in keys
    limit = _limit(question) if is_step else None
    if "B" in sizes and limit:
        typed = question.options.pop("measured")
        question.options["within"] = f"{limit!r}"
        text = f"{typed} without B is a limit: {seconds(limit)} a token"
        question.notes.append(text)
        sizes.pop("B")
    asks_batch = "B" in sizes and ("B" in question.open_sizes or asks_max_batch(question.tokens))
    seeks_context = "S" in sizes and asks_max_context(question)
    tokens = {token.lower() for token in question.tokens}
    fitting = seeks_context or tokens & FIT_WORDS or tokens >= RUN_WORDS
    fitting = fitting or asks_memory(tokens)
    if "B" in sizes and fitting:
        sizes["B"] = PROMPTS
    question.sizes |= {**sizes, **({"B": "1"} if asks_batch else {})}
    unstated = {"B"} if asks_batch else {"S"} if seeks_context else set()
    if stated := {letter: size for letter, size in sizes.items() if letter not in unstated}:
        text = " ".join(f"{letter}={size}" for letter, size in stated.items())
        question.notes.append(f"{text}, where none is typed")
    shared = question.splits or question.count or question.counts or question.ask_split
    if not shared and "split" not in keys:
        within = {**question.options, **(options or {})}.get("within")
        default = "B" in stated
        asks_batch |= _fitted(question, catalogues, within, engine, default_batch=default)
    elif "B" in stated and len(question.chips) == 1 and not question.ask_split:
        asks_batch |= _misfits(question, catalogues, engine)
    if asks_batch:
        _take_max_batch(question, catalogues, engine)
    elif seeks_context:
        _take_max_context(question, catalogues, engine)


def _fitted(
    question: Question,
    catalogues: QuestionCatalogues,
    within: object,
    engine: Mapping[str, Any],
    *,
    default_batch: bool,
) -> bool:
    """Add a split; True: none fits the usual batch, so that the largest one is sought."""
    is_added = _split(question, catalogues, engine, within)
    if is_added or not default_batch or len(question.chips) > 1:
        return False
    usual = question.sizes["B"]
    question.sizes["B"] = PROMPTS
    if usual == PROMPTS or not _split(question, catalogues, engine):
        question.sizes["B"] = usual
        return False
    question.notes.append(f"B={usual} fits on no split that was tried")
    return True


POOL_OPTIONS = ("engine", *ENGINE_OPTIONS)
"""Options that decide what fits."""


def _misfits(question: Question, catalogues: QuestionCatalogues, engine: Mapping[str, Any]) -> bool:
    """Check that the usual batch does not fit on the typed split, but a smaller one does."""
    usual = question.sizes["B"]
    if usual == PROMPTS or len(question.splits) > 1 or EVERY_SPLIT in question.splits:
        return False
    tried = replace(question, sizes={**question.sizes}, notes=[])
    try:
        answer = answered(tried, catalogues, **engine)
    except RooflinesError:  # said later, at its place
        return False
    if isinstance(answer, Cases) or answer.row.get("fits") is not False:
        return False
    if not answer.row.get("max_B"):
        return False
    question.notes.append(f"B={usual} does not fit on these chips")
    return True


FIT_WORDS = {"fit", "fits", "hold", "holds"}
"""Words that ask whether a model fits: with one sequence, where no B is typed."""

RUN_WORDS = {"can", "run"}
"""Words that together ask the same."""

USUAL_CHIP = "h100-sxm"
"""Chip of a question whose answer is that of every chip."""

MEMORY_WORDS = {"memory", "vram", "footprint", "ram", "states", "activations", "activation"}
"""Words that ask for the memory of a model."""

RATE_WORDS = {"bandwidth", "bw", "fast", "throughput", "latency"}
"""Words beside which the memory is that of a chip."""


def asks_memory(tokens: Iterable[str]) -> bool:
    """Check for a question about the memory that a model needs."""
    words = {token.lower() for token in tokens}
    return bool(words & MEMORY_WORDS) and not words & RATE_WORDS


def take_usual_chip(question: Question, *, trains: bool = False) -> None:
    """Take the usual chip for an intensity or a model's memory without one; a note says so.

    Args:
        question: What it names.
        trains: True for a step of training.
    """
    tokens = {token.lower() for token in question.tokens}
    if question.chips or any(mistake.error.where == "chip" for mistake in question.mistakes):
        return
    is_timed = bool(question.options.keys() & {"within", "measured"})
    if "intensity" in tokens:
        noun = "intensity"
    elif asks_memory(tokens) and question.model is not None and not is_timed:
        noun = "memory"
        if not (trains or question.splits or question.count):
            question.splits = [{"tp": "1"}]
    else:
        return
    question.chips.append(USUAL_CHIP)
    text = f"on {USUAL_CHIP}, where no chip is typed; the {noun} is that of every chip"
    question.notes.append(text)


MAX_WORDS = {"max", "maximum", "largest", "biggest", "many", "big"}
BATCH_NOUNS = {"batch", "concurrency", "users", "sequences", "seqs", "requests", "sessions"}
"""Words that together ask for the largest batch."""

CONTEXT_NOUNS = {"context", "ctx", "contexts"}
"""Words that ask for the longest context."""


def asks_max_batch(tokens: Sequence[str]) -> bool:
    """Check for a question about the largest batch that fits."""
    words = {key_name(token) for token in tokens}
    return "max_batch" in words or (bool(words & MAX_WORDS) and bool(words & BATCH_NOUNS))


def asks_max_context(question: Question) -> bool:
    """Check for a question about the longest context that fits."""
    words = {key_name(token) for token in question.tokens}
    named = bool(words & {*MAX_WORDS, "longest", "much"}) and bool(words & CONTEXT_NOUNS)
    return named or "S" in question.open_sizes


def _take_max_batch(
    question: Question, catalogues: QuestionCatalogues, engine: Mapping[str, Any]
) -> None:
    """Take the largest batch that fits as B, where one does."""
    tried = replace(question, sizes={**question.sizes}, notes=[])
    answer = answered(tried, catalogues, **engine)
    if not isinstance(answer, Cases) and (largest := answer.row.get("max_B")):
        question.sizes["B"] = str(largest)
        filling = largest_text(answer.usual_batch) if isinstance(answer, ServingAnswer) else ""
        question.notes.append(f"B={largest:,} is the largest batch that fits{filling}")


def _take_max_context(
    question: Question, catalogues: QuestionCatalogues, engine: Mapping[str, Any]
) -> None:
    """Take the longest context that fits as S, up to the one that the model is made for."""
    longest = _made_for(question) or MAX_CONTEXT

    def misfits(sizes: Sequence[int]) -> list[float]:
        tried = replace(question, sizes={**question.sizes, "S": [*sizes]}, notes=[])
        keys = typed_options(tried, catalogues.chips, engine)
        rows = rows_of(question_sweep(tried, catalogues, **keys))
        fits = {row["S"]: row["fits"] is not False for row in rows}
        return [float(not fits[size]) for size in sizes]

    try:
        size = largest_size(misfits, 0.0, range(1, longest + 1))
    except RooflinesError:  # none fits, which the answer says
        return
    question.sizes["S"] = str(size)
    bounds = "the model's context, which fits" if size == longest else "the longest that fits"
    question.notes.append(f"S={size:,} is {bounds}")


def _split(
    question: Question,
    catalogues: QuestionCatalogues,
    engine: Mapping[str, Any],
    limit: object = None,
) -> bool:
    """Add the first of a few splits that fits on all chips, and keeps a limit on the step time.

    Args:
        question: A model and its chips.
        catalogues: What can be named.
        engine: Options of an engine, whose pool decides; empty: the exact need.
        limit: Limit on the step time, as typed; None: none.
    """
    searched: dict[str, Any] = {**engine} if limit is None else {**engine, "within": limit}
    batch = {"B": "1"} if limit is None else {}
    for split in SPLITS:
        tried = replace(question, sizes={**batch, **question.sizes}, splits=[split], notes=[])
        tried.options = {
            key: value
            for key, value in question.options.items()
            if key not in ("within", "measured")
        }
        try:
            answer = answered(tried, catalogues, **searched)
        except RooflinesError as error:  # no experts, no network for as many chips, or too slow
            if split in SPLITS[:1] and error.where not in ("within", "engine"):
                raise
            continue
        rows = answer.rows if isinstance(answer, Cases) else [answer.row]
        chips = {row.get("chip") for row in rows}
        if len(chips) == len(question.chips) and all(row.get("fits") is not False for row in rows):
            question.splits = tried.splits
            name = "-".join(f"{key}{number}" for key, number in split.items() if number != "1")
            where = " on all of them" if len(question.chips) > 1 else ""
            verb = "fits" if limit is None else "keeps the limit"
            text = f"{name or 'tp1'} is the smallest that {verb}{where} of the splits tried"
            question.notes.append(text)
            return True
    return False


def _limit(question: Question) -> float | None:
    """Step time of a rate of one user's tokens that is typed as a word [s]; None: none is."""
    try:
        value = measured_value(question.options.get("measured"))
    except RooflinesError:
        return None
    return 1 / value.value if value.kind == PER_USER else None
