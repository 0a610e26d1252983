"""Explain an operation, or a step of a model, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.answers.basis import BOUND_BASIS
from rooflines.answers.best_plans import PLAN_OPTIONS
from rooflines.answers.best_split import split_cases, with_largest_batch
from rooflines.answers.case_answer import answer_of
from rooflines.answers.case_table import Cases, cases_of, layer_cases, request_cases
from rooflines.answers.lever_options import asked_levers
from rooflines.answers.measured_number import several_measured
from rooflines.answers.operation_answer import OperationAnswer
from rooflines.answers.question import (
    NO_ESTIMATE,
    catalogues_in,
    model_question,
    question_sweep,
)
from rooflines.answers.question_parts import (
    at_critical_size,
    limit_at_batch,
    limit_verdict,
    parts_cases,
    step_verdict,
)
from rooflines.answers.question_sizes import BLAS
from rooflines.answers.question_words import Question
from rooflines.answers.serving_answer import ServingAnswer
from rooflines.answers.typed_options import typed_options
from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.basics.quantities import MeasuredValue, measured_value
from rooflines.config.model_fields import AUTO
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.training.parallel_plan import TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.answers.answer import Answer
    from rooflines.answers.question import HasCatalogues, QuestionCatalogues
    from rooflines.models.model import Model

Kind = TypeVar("Kind", bound="Answer")


def explain(  # noqa: PLR0913, the parts of a question
    chip: str,
    sizes: str | Mapping[str, int] | Mapping[str, str] | Sequence[int],
    dtypes: str | Mapping[str, str] | None = None,
    *,
    operation: str | None = None,
    shards: int | str = 1,
    sharding: str | Mapping[str, str] | None = None,
    unit: str | None = None,
    flops: str | None = None,
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    calibration: str | Sequence[str] | None = AUTO_CALIBRATION,
    bound: bool = False,
    measured: str | None = None,
    config: HasCatalogues | None = None,
) -> OperationAnswer:
    """Explain one operation on one chip: what binds it, and what would make it compute-bound.

    Args:
        chip: Its id, such as `h100-sxm`, or a name that the command line takes, such as `H100`.
        sizes: `128x8192x8192`, `B=128 D=8192 F=8192`, or the sizes by letter or in order [1].
        dtypes: A name of the dtype catalogue, `x,w->out@compute`, or a mapping; None: bf16.
        operation: A name or an einsum; None: matmul.
        shards: Number of chips that share it [1].
        sharding: How they split it: a name or the long form; None: not at all.
        unit: `matrix` or `vector`; None: the operation's.
        flops: `leading` or `exact`; None: the operation's.
        network: The interconnect; None: the chip's first.
        memory: The memory level that feeds the unit; None: hbm.
        calibration: Software that the estimate is calibrated to, or several in order; `auto`: the
            chip's own calibration, else the first engine with a fit; None: no estimate.
        bound: True to lead with the bound where there is an estimate, too.
        measured: Measured number to judge, such as `250us` or `41%mfu`; None: none.
        config: Chips and calibrations, such as `load_config(path)`; None: those of the package.

    Raises:
        RooflinesError: Something is invalid, several sizes are given, or the chip cannot do it.
    """
    question = Question([chip], operation, dtypes=[] if dtypes is None else [dtypes])
    if isinstance(sizes, Mapping):
        question.sizes = {**sizes}
    else:
        question.product = sizes
    return single_answer(
        OperationAnswer,
        question,
        catalogues_in(config),
        shards=shards,
        sharding=sharding,
        unit=unit,
        flops=flops,
        network=network,
        memory=memory,
        calibration=NO_ESTIMATE if calibration is None else calibration,
        bound=bound,
        measured=measured,
    )


def explain_model(  # noqa: PLR0913, the parts of a question
    chip: str,
    model: str | Model,
    *,
    B: int,  # noqa: N803, the letters of the docs
    S: int,  # noqa: N803, the same
    T: int | None = None,  # noqa: N803, the same
    dtypes: str | Mapping[str, str] | None = None,
    split: str | Mapping[str, int | str] | None = None,
    phase: str = "decode",
    draft: Mapping[str, float] | str | None = None,
    pull: str | None = None,
    chunk: str | None = None,
    slowdown: float | None = None,
    engine: str | Mapping[str, object] | None = None,
    routing: str = "uniform",
    cache_split: str = "heads",
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    calibration: str | Sequence[str] | None = AUTO_CALIBRATION,
    bound: bool = False,
    measured: str | None = None,
    config: HasCatalogues | None = None,
) -> ServingAnswer:
    """Explain a serving step of a model on chips: its time, what binds it, and whether it fits.

    Args:
        chip: As in `explain`.
        model: Its id, such as `llama-3.1-70b`, a name that it is published under, the path of a
            config.json, or a model of `rooflines.models`.
        B: Sequences, of all replicas together [1].
        S: Tokens of each sequence after the step; in prefill of the prompt [1].
        T: New tokens of each sequence, in decode; None: 1 [1].
        dtypes: A format for all tensors and products, or `weights`, `cache`, `activations` and
            `compute`, and perhaps `experts`, `head`, `combine` and `attention`; None: as the
            model is published, or bf16.
        split: `{"tp": 8}`, also `dp` and `ep`, or its name, `tp8-dp2`; None: one chip.
        phase: `decode` or `prefill`.
        draft: `{"tokens": 3, "accepted": 1.8}` in place of T, proposed and accepted; None: none.
        pull: Link over which a prefix's KV cache could be pulled, `12.5GB/s` or
            `12.5GB/s,latency=28ms`, for `payoffs`; None: not asked.
        chunk: Step time for tokens of a prompt in the step, `20ms`, `free` or `20ms,after=4096`,
            for `payoffs`; None: not asked.
        slowdown: Estimate over bound for `payoffs`; None: by the calibration [1].
        engine: Serving engine whose pool stands beside the exact need, in `.engine`: `vllm`,
            `sglang` or `trtllm`, or with options, `{"name": "vllm", "utilization": 0.95}`, as in a
            config; alone it also picks the engine's fit. None: none.
        routing: Which experts tokens choose: `uniform`, `same` or `all`.
        cache_split: `heads` or `batch`.
        network: The interconnect, or two, inner first; None: the chip's first.
        memory: The memory level of weights and caches; None: hbm.
        calibration: As in `explain`.
        bound: As in `explain`.
        measured: A number such as `30ms`, `1397tok/s` of all chips, `175tok/s/gpu`,
            `45tok/s/user` or `41%mfu`; None: none.
        config: As in `explain`.

    Raises:
        RooflinesError: Something is invalid, several sizes are given, or the chips cannot do it.
    """
    catalogues = catalogues_in(config)
    return single_answer(
        ServingAnswer,
        model_question(chip, model, {"B": B, "S": S, "T": T}, dtypes, catalogues),
        catalogues,
        split=split,
        phase=phase,
        draft=draft,
        pull=pull,
        chunk=chunk,
        slowdown=slowdown,
        engine=engine,
        routing=routing,
        cache_split=cache_split,
        network=network,
        memory=memory,
        calibration=NO_ESTIMATE if calibration is None else calibration,
        bound=bound,
        measured=measured,
    )


def answered(
    question: Question, catalogues: QuestionCatalogues, *, bound: bool = False, **options: object
) -> Answer | Cases:
    """Explain a question with one case; tabulate several cases.

    Args:
        question: What it names.
        catalogues: What can be named.
        bound: True to lead with the bound where there is an estimate, too.
        **options: As of `question_sweep`. `split` of an operation asks for a layer of two
            matmuls; of a model `auto` asks for every split of `chips`, see `best_splits`.

    Raises:
        RooflinesError: Something is invalid, the chips cannot do it, or there are too many cases.
    """
    by_parts = parts_cases(question, catalogues, bound=bound, **options)
    if by_parts is not None:
        return by_parts
    options = typed_options(question, catalogues.chips, options)
    limit_s = limit_at_batch(question, options)
    answer = _answered(question, catalogues, options, bound=bound)
    if limit_s is None:
        return answer
    if isinstance(answer, Cases):
        verdict = limit_verdict(answer, limit_s)
        return replace(answer, notes=[verdict, *answer.notes])
    question.notes.append(step_verdict(answer.row, limit_s, bound=bound))
    return answer


def _answered(
    question: Question, catalogues: QuestionCatalogues, options: dict[str, Any], *, bound: bool
) -> Answer | Cases:
    """Answer to a question with options as `typed_options` has them."""
    typed = options.pop("measured", None)
    measured = typed if isinstance(typed, MeasuredValue) else None
    if measured is not None:
        if "chips" in options and not options.keys() & {"within", "requests"}:
            options = _with_best_split(question, catalogues, options, bound=bound)
        _check_one_case(measured, question, options)
    if question.model is None and "split" in options:
        split = options.pop("split")
        question = at_critical_size(question, catalogues, options)
        return layer_cases(question, catalogues, split=split, bound=bound, **options)
    levers = asked_levers(options)
    if options.get("split") == AUTO or "chips" in options:
        _check_one_lever_case(levers, "every split is compared")
        return split_cases(question, catalogues, bound=bound, **options)
    for name in [name for name in PLAN_OPTIONS if name in options]:
        problem, fix = "ranks plans of --split auto", "add --split auto, or leave it out"
        raise RooflinesError(f"--{PLAN_OPTIONS[name]}", problem, fix)
    if "within" in options:
        basis = BOUND_BASIS if bound else None
        question, options = with_largest_batch(question, catalogues, options, basis=basis)
    question = at_critical_size(question, catalogues, options)
    sweep = question_sweep(question, catalogues, **options)
    if "requests" in options:
        return request_cases([sweep], bound=bound, measured=measured)
    if sweep.rows == 1 and not sweep.skipped:
        return answer_of(sweep, bound=bound, measured=measured)
    if measured is not None:
        raise several_measured(measured, f"the question has {sweep.rows} cases")
    _check_one_lever_case(levers, f"the question has {sweep.rows} cases")
    axis = next(iter(question.open_sizes), None) if question.model is None else None
    return cases_of(sweep, axis=axis and BLAS.get(axis, axis), bound=bound)


def _with_best_split(
    question: Question, catalogues: QuestionCatalogues, options: dict[str, Any], *, bound: bool
) -> dict[str, Any]:
    """Options with the best split in place of every split, for a measured number; a note says so.

    Raises:
        RooflinesError: As `split_cases`, or no split fits.
    """
    tried = replace(question, notes=[], sizes={**question.sizes})
    cases = split_cases(tried, catalogues, bound=bound, **options)
    best = cases.rows[0]
    if best.get("fits") is False:
        problem = f"do not hold the model by any of {len(cases.rows)} splits"
        raise RooflinesError("chips", problem, "leave out the measured number to see them")
    name = str(best["split"])
    keys = TrainingPlan.keys_of(name) or {}
    best_of = f"the best of {len(cases.rows)} splits by the {cases.basis.noun}"
    if "t_rank_s" in best:
        best_of = "the best plan that was searched"
    text = f"{name} is {best_of}; name the one that was measured to judge by it"
    question.notes.append(text)
    searched = {"chips", "split", "layout", *PLAN_OPTIONS, *keys}
    rest = {key: value for key, value in options.items() if key not in searched}
    return {**rest, "split": keys}


def _check_one_lever_case(levers: Sequence[str], reason: str) -> None:
    """Refuse levers in a question with several cases."""
    if levers:
        fix = "ask about one case, or list the lever in the thresholds of a config"
        verb = "needs" if len(levers) == 1 else "need"
        raise RooflinesError(", ".join(levers), f"{verb} one case, but {reason}", fix)


def _check_one_case(
    measured: MeasuredValue, question: Question, options: Mapping[str, object]
) -> None:
    """Refuse a measured number beside a search over splits, batches or a layer's two matmuls."""
    if options.get("split") == AUTO or "chips" in options:
        raise several_measured(measured, "`auto` compares every split")
    if "within" in options:
        raise several_measured(measured, "a limit on the time asks for the largest batch")
    if question.model is None and "split" in options:
        raise several_measured(measured, "a layer has two matmuls")


def single_answer(
    kind: type[Kind],
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    bound: bool = False,
    measured: str | None = None,
    **options: object,
) -> Kind:
    """Answer to a question with one case.

    Args:
        kind: Type of the answer.
        question: What it names.
        catalogues: What can be named.
        bound: True to lead with the bound where there is an estimate, too.
        measured: Measured number to judge; None: none.
        **options: As of `question_sweep`.

    Raises:
        RooflinesError: Something is invalid, there are several cases, or their answer is of another
            kind.
    """
    if options.get("split") == AUTO:
        fix = "call `rooflines.best_splits` with the number of chips, for training phase='train'"
        raise RooflinesError("split", "is 'auto', which is many splits", fix, value=AUTO)
    value = None
    if measured is not None:
        with at_path("measured"):
            value = measured_value(measured)
    sweep = question_sweep(question, catalogues, **options)
    if sweep.rows != 1:
        fix = "explain one at a time, or compute `rooflines.rows` of a config"
        raise RooflinesError("the question", f"has {sweep.rows} cases", fix)
    answer = answer_of(sweep, bound=bound, measured=value)
    if not isinstance(answer, kind):
        phase = answer.row.get("phase")
        problem = f"is {quote(phase)}, which is not served"
        raise RooflinesError("phase", problem, "call `rooflines.train`", value=phase)
    return answer
