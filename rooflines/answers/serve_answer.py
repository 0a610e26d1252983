"""Answer to `rooflines serve`: deployments that keep TPOT and TTFT, the best first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflines.answers.any_routing import has_mean
from rooflines.answers.assumptions import as_note, assumptions_of
from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS, SERIALIZED_BASIS, Basis
from rooflines.answers.case_table import Cases, basis_notes, waiting_notes
from rooflines.answers.phrases import price_notes
from rooflines.answers.question import catalogues_in, model_question, question_sweep
from rooflines.answers.typed_options import split_names
from rooflines.basics.errors import RooflinesError, at_path, check_choice, quote
from rooflines.basics.numbers import number, whole
from rooflines.basics.quantities import quantity
from rooflines.basics.text import counted, percent, seconds, si, significant
from rooflines.config.model_fields import MAX_CHIPS
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.split import Split
from rooflines.serving.deployments import (
    COST,
    GOALS,
    MIXED,
    POOLS,
    THROUGHPUT,
    Deployment,
    Limits,
    Search,
    chips_for,
    handover,
    is_tie,
)
from rooflines.serving.front import front
from rooflines.serving.servers import ServerTable
from rooflines.sweep.step_sweep import ModelSweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from rooflines.answers.question import HasCatalogues, QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.models.model import Model
    from rooflines.serving.front import FrontPoint

DEPLOYMENT_KINDS = (MIXED, POOLS)
"""Deployment kinds, as `--only` names them."""

SHOWN_OF_KIND = 3
"""Deployments on a screen, by kind and chip [1]."""

SHOWN_LOST = 6
"""Servers on a screen that make no deployment, by chip [1]."""

MAX_GROWTH = 6
"""Chip doublings that are tried where no server fits [1]."""

SECONDS_PER_HOUR, TOKENS_PER_MTOK = 3600.0, 1e6

MAX_FEWEST = 128
"""Largest number of chips that is tried where none is typed [1]."""

LIMITED = ("chips", "tpot", "ttft")
"""Places of mistakes that more chips may mend."""

ENDS = {
    "memory": "memory",
    "pool": "engine's pool",
    "tpot": "TPOT",
    "tile": "whole tiles",
    "prefill": "prefill",
}
"""Reasons for a batch, in words."""

BY_BASIS = {
    ESTIMATE_BASIS.key: "by the estimate",
    SERIALIZED_BASIS.key: "if every kernel ran at its bound, one after another, as no run does",
    BOUND_BASIS.key: "by the bound",
}
"""Words for what a rank rests on, by basis."""

TTFT_TITLE = "prompt alone"

COLUMNS = {
    "chip": "chip",
    "tpot_limit_s": "TPOT within",
    "deployment": "deployment",
    "tie": "",
    "batch_text": "batch",
    "concurrency_text": "in flight",
    "tpot_s": "TPOT ({})",
    "tpot_band": "80% within",
    "output_tokens_per_s_per_chip": "output tok/s/chip",
    "output_tokens_per_s_per_chip_bound": "at most",
    "ttft_s": TTFT_TITLE,
    "usd_input_text": "$/M input",
    "usd_output_text": "$/M output",
    "memory_bytes": "memory",
    "ends": "ends by",
}
"""Column titles on a screen; the basis stands in one."""

TEXTS = ("batch_text", "concurrency_text", "tpot_band", "usd_input_text", "usd_output_text", "ends")
"""Columns on the screen alone."""


@dataclass(frozen=True)
class ServeRequest:
    """Service: lengths, chips, latencies and loads.

    Attributes:
        prompt, answer: Prompt and answer tokens, ISL and OSL [1].
        chips: Given chips, each kind [1].
        tpot_s: Limits on TPOT, one answer each [s]; empty: none.
        ttft_s: Limit on TTFT [s]; None: none.
        load: Requests a second that chips are counted for [1/s].
        users: Requests in flight that chips are counted for [1].
        kinds: Kinds that are wanted.
        goal: Rank: `throughput` or `cost`.
    """

    prompt: int
    answer: int
    chips: int
    tpot_s: tuple[float, ...] = ()
    ttft_s: float | None = None
    load: float | None = None
    users: float | None = None
    kinds: tuple[str, ...] = DEPLOYMENT_KINDS
    goal: str = THROUGHPUT


@dataclass(frozen=True)
class ServePlan(Cases):
    """Deployments as a table, and their fronts.

    Attributes:
        front: Points of every chip and kind that keep TTFT.
        limits: Limits on TPOT [s].
        sweeps: Sweep behind each chip's servers.
    """

    front: Sequence[FrontPoint] = ()
    limits: Sequence[float] = ()
    sweeps: Sequence[ModelSweep] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        points = [
            {**point._asdict(), "tokens_per_s_per_user": point.user_rate} for point in self.front
        ]
        return {**super().to_dict(), "front": points}


def serve(  # noqa: PLR0913, the parts of a question
    model: str | Model,
    on: str | Sequence[str],
    *,
    chips: int,
    isl: int,
    osl: int,
    tpot_s: float | Sequence[float] | None = None,
    ttft_s: float | None = None,
    dtypes: str | Mapping[str, object] | None = None,
    only: str | None = None,
    goal: str = THROUGHPUT,
    split: str | None = None,
    bound: bool = False,
    config: HasCatalogues | None = None,
    **options: object,
) -> pl.DataFrame:
    """Plan a served model: deployments on a number of chips that keep latencies, the best first.

    A server is one engine instance on tp * dp chips. Mixed servers read prompts between the steps
    of their batch; two pools have servers for prefill and for decode. Each server runs the largest
    batch that fits and keeps TPOT. With phi = batch / (dp * OSL) prompts a step, TPOT is by the
    bound max over resources of (decode step + phi * prompts), else the sum of both.

    Args:
        model: As in `explain_model`.
        on: Ids of chips, each an answer of its own.
        chips: Given chips of each kind; idle ones count [1].
        isl: Prompt tokens [1].
        osl: Answer tokens [1].
        tpot_s: Limit on the mean token time, or several [s]; None: none.
        ttft_s: Limit on a prompt's time on an idle server, held against its bound [s].
        dtypes: As in `explain_model`.
        only: `mixed` or `pools`; None: both.
        goal: `throughput`, output tokens a second and chip, or `cost`, USD a request.
        split: The only split of servers, such as `tp8`; None: all.
        bound: True to let the bound decide.
        config: As in `explain`.
        **options: Others of `explain_model`, such as `calibration`.

    Returns:
        A row for each deployment: `deployment` (`2 x tp8`, `4P tp2 + 1D tp8`), `batch`, `tpot_s`
        with `tpot_p10_s` and `tpot_p90_s`, `ttft_s`, both also by the bound (`_lower_s`), rates of
        requests and tokens, memory and money; times are those of `basis`.

    Raises:
        RooflinesError: Something is invalid, or nothing keeps the latencies.
    """
    limits = [] if tpot_s is None else [tpot_s] if isinstance(tpot_s, (int, float)) else [*tpot_s]
    request = ServeRequest(
        prompt=isl,
        answer=osl,
        chips=chips,
        tpot_s=tuple(limits),
        ttft_s=ttft_s,
        kinds=DEPLOYMENT_KINDS if only is None else (only,),
        goal=goal,
    )
    catalogues = catalogues_in(config)
    names = on.split(",") if isinstance(on, str) else [*on]
    question = model_question(names[0], model, {}, dtypes, catalogues)
    question.chips = names
    cases = serve_cases(question, catalogues, request, split=split, bound=bound, **options)

    import polars as pl  # noqa: PLC0415, loaded on use

    return pl.DataFrame(cases.rows, infer_schema_length=None).drop(TEXTS)


def fewest_chips_cases(
    question: Question,
    catalogues: QuestionCatalogues,
    request: ServeRequest,
    *,
    split: object = None,
    bound: bool = False,
    **options: object,
) -> ServePlan:
    """Deployments on the fewest chips of 1, 2, 4 and so on that keep the latencies.

    Args:
        question: As for `serve_cases`; a note says the number.
        catalogues: Likewise.
        request: Likewise; its chips are not read.
        split: Likewise.
        bound: Likewise.
        **options: Likewise.

    Raises:
        RooflinesError: As `serve`, for the largest number that is tried.
    """
    chips = 1
    while True:
        single = replace(question, notes=[])
        try:
            cases = serve_cases(
                single,
                catalogues,
                replace(request, chips=chips),
                split=split,
                bound=bound,
                **options,
            )
        except RooflinesError as error:
            if error.where not in LIMITED or chips >= MAX_FEWEST:
                raise
            chips *= 2
        else:
            text = f"{counted(chips, 'chip')}: the fewest of 1, 2, 4, ... that keep the limits"
            question.notes += [*single.notes, text]
            return cases


def serve_cases(
    question: Question,
    catalogues: QuestionCatalogues,
    request: ServeRequest,
    *,
    split: object = None,
    bound: bool = False,
    **options: object,
) -> ServePlan:
    """Deployments as a table for a screen.

    Args:
        question: A model and chips.
        catalogues: What can be named.
        request: What is asked for.
        split: The only split of servers; None: all.
        bound: True to let the bound decide.
        **options: Of `question_sweep`.

    Raises:
        RooflinesError: As `serve`.
    """
    _check(request)
    split_names(options)
    only = None if split is None else validate_entry(Split, split)
    if only is not None and only.pp > 1:
        problem = f"has {only.pp} pipeline stages (pp), which a plan does not search yet"
        raise RooflinesError("split", problem, "leave pp out, or ask rooflines explain")
    if only is not None and only.chips > request.chips:
        problem = f"takes {only.chips} chips, but {request.chips} are given"
        raise RooflinesError("split", problem, f"add --chips {only.chips}, or leave the split out")
    tables = [
        ServerTable(
            _sweep(
                replace(question, chips=[chip], notes=question.notes), catalogues, request, options
            ),
            request.chips,
            only,
        )
        for chip in question.chips
    ]
    basis = _basis(tables, bound=bound)
    limits = request.tpot_s or (math.inf,)
    rows, searches = list[dict[str, Any]](), list[Search]()
    best: Deployment | None = None
    for limit in limits:
        planned = []
        for table in tables:
            latencies = Limits(limit, math.inf if request.ttft_s is None else request.ttft_s)
            search = Search(table, basis.key, request.chips, latencies)
            searches.append(search)
            planned += [(search, deployment) for deployment in search.deployments(request.kinds)]
        chosen = _in_order(planned, request)
        if chosen and best is None:
            best = chosen[0][1]
        rows += _rows(chosen, request, limit, basis, several=len(limits) > 1)
    if best is None:
        raise _nothing(question, tables, searches, request, basis)
    head = _head(question, tables[0].sweep, request)
    mean_routing = has_mean([tables[0].sweep])
    answer = _best_sentence(rows, request, basis, mean_routing=mean_routing)
    columns = _columns(rows, basis, mean_routing=mean_routing)
    notes = [*_notes(tables, searches, rows, request, basis)]
    points = [point for search in searches[: len(tables)] for point in front(search, request.kinds)]
    return ServePlan(
        f"{head}\n{answer}",
        rows,
        columns,
        "B",
        basis,
        notes,
        front=points,
        limits=request.tpot_s,
        sweeps=[table.sweep for table in tables],
    )


# ---------------------------------------------------------------- the question


def _check(request: ServeRequest) -> None:
    """Check sizes and limits.

    Raises:
        RooflinesError: One is invalid.
    """
    for place, value in (("isl", request.prompt), ("osl", request.answer)):
        with at_path(place):
            whole(value)
    with at_path("chips"):
        whole(request.chips, maximum=MAX_CHIPS)
    times = [("tpot", limit) for limit in request.tpot_s]
    times += [("ttft", request.ttft_s)] if request.ttft_s is not None else []
    for place, limit in times:
        with at_path(place):
            number(limit)
    if request.load is not None and request.users is not None:
        problem = f"is {request.load:g} requests/s, and users are {request.users:g}: two loads"
        raise RooflinesError("load", problem, "give one of them")
    for place, amount in (("load", request.load), ("users", request.users)):
        if amount is not None:
            with at_path(place):
                number(amount)
    with at_path("only"):
        for kind in request.kinds:
            check_choice(kind, DEPLOYMENT_KINDS, "no kind of deployment")
    with at_path("goal"):
        check_choice(request.goal, GOALS, "no goal")


def _sweep(
    question: Question,
    catalogues: QuestionCatalogues,
    request: ServeRequest,
    options: Mapping[str, object],
) -> ModelSweep:
    """Sweep with one chip and one request."""
    lengths = [{"input": request.prompt, "output": request.answer}]
    single = replace(question, sizes={"B": 1})
    sweep = question_sweep(single, catalogues, requests=lengths, **options)
    if not isinstance(sweep, ModelSweep) or len(sweep.config.dtypes) > 1:
        raise RooflinesError("dtypes", "are several", "ask for one at a time")
    return sweep


def _basis(tables: Sequence[ServerTable], *, bound: bool) -> Basis:
    """Time that decides: one for all chips."""
    if bound:
        return BOUND_BASIS
    return ESTIMATE_BASIS if all(table.estimated for table in tables) else SERIALIZED_BASIS


def _in_order(
    planned: Sequence[tuple[Search, Deployment]], request: ServeRequest
) -> list[tuple[Search, Deployment]]:
    """Deployments by the goal to three digits, then TTFT, TPOT and memory."""

    def key(pair: tuple[Search, Deployment]) -> tuple[float, ...]:
        search, deployment = pair
        gain = deployment.output_per_chip
        if request.goal == COST:
            gain /= _usd_per_hour(search.table, deployment.chip)
        rounded = float(f"{gain:.3g}")
        return -rounded, deployment.ttft_s, deployment.tpot_s, deployment.memory_bytes

    return sorted(planned, key=key)


def _usd_per_hour(table: ServerTable, chip: str) -> float:
    """Lowest dated chip price.

    Raises:
        RooflinesError: It has none.
    """
    price = table.sweep.chips[chip].lowest_price()
    if price is None:
        problem = f"is cost, and {chip} has no dated price"
        raise RooflinesError("goal", problem, "add --price 2.5, dollars an hour of one chip")
    return price.usd_per_hour


# ---------------------------------------------------------------- rows


def _rows(
    chosen: Sequence[tuple[Search, Deployment]],
    request: ServeRequest,
    limit_s: float,
    basis: Basis,
    *,
    several: bool,
) -> Iterator[dict[str, Any]]:
    """Yield rows for one TPOT limit; `tie` compares within a chip."""
    best: dict[str, Deployment] = {}
    for rank, (search, deployment) in enumerate(chosen, start=1):
        first = best.setdefault(deployment.chip, deployment)
        is_first = first is deployment
        tied = basis is ESTIMATE_BASIS and not is_first and is_tie(first, deployment)
        row = _row(search, deployment, request, basis)
        row["rank"], row["tie"] = rank, "=" if tied else "best" if is_first else ""
        if several:
            row["tpot_limit_s"] = limit_s
        yield row


def _row(
    search: Search, deployment: Deployment, request: ServeRequest, basis: Basis
) -> dict[str, Any]:
    """Deployment row."""
    price = search.table.sweep.chips[deployment.chip].lowest_price()
    low, high = deployment.band or (None, None)
    req_per_s, tpot = deployment.req_per_s, deployment.tpot_s
    outputs = req_per_s * request.answer
    row: dict[str, Any] = {
        "rank": 0,
        "tie": "",
        "kind": deployment.kind,
        "chip": deployment.chip,
        "deployment": deployment.name,
        "basis": basis.key,
        "split": deployment.decode.name,
        "prefill_split": deployment.prefill.name,
        "chips": deployment.chips,
        "chips_used": deployment.chips_used,
        "servers": deployment.servers,
        "prefill_servers": deployment.prefill_servers,
        "input": request.prompt,
        "output": request.answer,
        "batch": float(deployment.batch),
        "concurrency": deployment.concurrency,
        "tpot_s": tpot,
        "tpot_p10_s": None if low is None else tpot * low,
        "tpot_p90_s": None if high is None else tpot * high,
        "tpot_lower_s": deployment.tpot_lower_s,
        "ttft_s": deployment.ttft_s,
        "ttft_lower_s": deployment.ttft_lower_s,
        "tokens_per_s_per_user": 1 / tpot,
        "output_tokens_per_s_per_chip": deployment.output_per_chip,
        "output_tokens_per_s_per_chip_bound": deployment.output_per_chip_bound,
        "total_tokens_per_s_per_chip": (
            req_per_s * (request.prompt + request.answer) / deployment.chips
        ),
        "req_per_s": req_per_s,
        "prompt_share": deployment.prompt_share,
        "prefill_busy": deployment.prefill_busy,
        "memory_bytes": deployment.memory_bytes,
        "keeps_ttft": request.ttft_s is None or deployment.ttft_s <= request.ttft_s,
        "limit": deployment.limit,
        "usd_per_hour": None,
        "usd_per_request": None,
        "usd_per_mtok_input": None,
        "usd_per_mtok_output": None,
    }
    sent = handover(search.table, deployment) if deployment.kind == POOLS else None
    row["handover_bytes"] = sent and sent.cache_bytes
    row["handover_s"] = sent and sent.time_s
    row["handover_busy"] = sent and sent.busy
    if price is not None:
        usd_per_hour = price.usd_per_hour * deployment.chips
        usd_per_s, share = usd_per_hour / SECONDS_PER_HOUR, deployment.prompt_share
        row["usd_per_hour"] = usd_per_hour
        row["usd_per_request"] = usd_per_s / req_per_s
        prompts = req_per_s * request.prompt
        row["usd_per_mtok_output"] = usd_per_s * (1 - share) / outputs * TOKENS_PER_MTOK
        row["usd_per_mtok_input"] = usd_per_s * share / prompts * TOKENS_PER_MTOK
        if basis is BOUND_BASIS:  # a bound does not say whose time it is
            row["usd_per_mtok_input"] = row["usd_per_mtok_output"] = None
    return row | _texts(row, deployment)


def _texts(row: Mapping[str, Any], deployment: Deployment) -> dict[str, str]:
    """Texts that the screen has in a row."""
    low, high = row["tpot_p10_s"], row["tpot_p90_s"]
    ends = ENDS[deployment.limit]
    if deployment.prefill_busy is not None:
        ends = "" if deployment.limit == "prefill" else f"{ends}, "
        ends += f"prefill {percent(deployment.prefill_busy)} busy"
    money = {
        f"usd_{name}_text": "-"
        if row[f"usd_per_mtok_{name}"] is None
        else f"{row[f'usd_per_mtok_{name}']:.2f}"
        for name in ("input", "output")
    }
    return {
        "batch_text": f"{deployment.batch:,.0f}",
        "concurrency_text": f"{deployment.concurrency:,.0f}",
        "tpot_band": "-" if low is None else f"{seconds(low)} to {seconds(high)}",
        "ends": ends,
        **money,
    }


# ---------------------------------------------------------------- the screen


def _head(question: Question, sweep: ModelSweep, request: ServeRequest) -> str:
    """Question in words."""
    (name,) = sweep.models
    parts = [
        name,
        f"isl = {request.prompt:,}",
        f"osl = {request.answer:,}",
        f"{request.chips:,} x {' or '.join(question.chips)}",
        sweep.config.dtypes[0].label,
    ]
    limits = [f"TPOT {' or '.join(map(seconds, request.tpot_s))}"] if request.tpot_s else []
    limits += [f"TTFT {seconds(request.ttft_s)}"] if request.ttft_s is not None else []
    return " · ".join([*parts, *([", ".join(limits)] if limits else [])])


def _best_sentence(
    rows: Sequence[Mapping[str, Any]], request: ServeRequest, basis: Basis, *, mean_routing: bool
) -> str:
    """The best deployment in a sentence, and whether another kind may equal it."""
    best = rows[0]
    rate = significant(best["output_tokens_per_s_per_chip"], 3)
    strict = basis is BOUND_BASIS and not mean_routing
    at_most = "at most " if strict else ""
    band = f" ({best['tpot_band']}, 80% of runs)" if best["tpot_band"] != "-" else ""
    within = f" within {seconds(best['tpot_limit_s'])}" if best.get("tpot_limit_s") else ""
    cost = f", ${best['usd_per_request']:.3g} a request" if request.goal == COST else ""
    at_least = "at least " if strict else ""
    text = (
        f"Best{within} {BY_BASIS[basis.key]}: {best['deployment']} on {best['chip']}: "
        f"{at_most}{rate} output tokens/s/chip, TPOT {at_least}{seconds(best['tpot_s'])}{band}, "
        f"{at_most}{significant(best['tokens_per_s_per_user'], 3)} tokens/s/user{cost}."
    )
    rival = next(
        (
            row
            for row in rows
            if row["kind"] != best["kind"]
            and row["chip"] == best["chip"]
            and row["tie"] == "="
            and row.get("tpot_limit_s") == best.get("tpot_limit_s")
        ),
        None,
    )
    if rival is not None:
        rate = significant(rival["output_tokens_per_s_per_chip"], 3)
        text += f" {rival['deployment']} ({rate}) is closer than estimates can tell: try both."
    return text


def _columns(
    rows: Sequence[Mapping[str, Any]], basis: Basis, *, mean_routing: bool
) -> dict[str, str]:
    """Screen columns: those in which rows differ or that say something.

    With uniform routing the bound is a mean over routings, and no "at most" is said of it.
    """
    columns = {name: title.format(basis.title) for name, title in COLUMNS.items()}
    if len({row["chip"] for row in rows}) == 1:
        columns.pop("chip")
    if "tpot_limit_s" not in rows[0]:
        columns.pop("tpot_limit_s")
    for name in ("tpot_band", "usd_input_text", "usd_output_text"):
        if all(row[name] == "-" for row in rows):
            columns.pop(name)
    if mean_routing:
        columns["output_tokens_per_s_per_chip_bound"] = "bound, mean routing"
    if basis is BOUND_BASIS:
        columns.pop("output_tokens_per_s_per_chip_bound")
        most, least = ("at mean routing",) * 2 if mean_routing else ("at most", "at least")
        columns["output_tokens_per_s_per_chip"] = f"output tok/s/chip {most}"
        columns["ttft_s"] = f"{TTFT_TITLE} {least}"
    return columns


def shown_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows on a screen: the first few of each kind, chip and limit."""
    counts: dict[tuple[object, ...], int] = {}
    shown = []
    for row in rows:
        key = row["chip"], row["kind"], row.get("tpot_limit_s")
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= SHOWN_OF_KIND:
            shown.append(row)
    return shown


def _notes(
    tables: Sequence[ServerTable],
    searches: Sequence[Search],
    rows: Sequence[Mapping[str, Any]],
    request: ServeRequest,
    basis: Basis,
) -> Iterator[str]:
    """Notes on the table: basis, load, transfers, what is left out."""
    (model,) = tables[0].sweep.models.values()
    context = model.shape.context
    if context is not None and request.prompt + request.answer > context:
        total = request.prompt + request.answer
        yield f"{total:,} tokens are beyond the model's context of {context:,}."
    sweeps = [table.sweep for table in tables]
    described = [
        {"chip": table.chip, "dtypes": table.sweep.config.dtypes[0].label} for table in tables
    ]
    yield from basis_notes(sweeps, described, basis)
    if engine := tables[0].engine:
        yield f"Batches fit the pool of caches of {engine}; prefill servers the exact need."
    if any(row["tie"] == "=" for row in rows):
        yield "= is closer to the chip's best than estimates can tell: try both."
    yield from _load_notes(searches, request)
    best_pools = next((row for row in rows if row["kind"] == POOLS and row["handover_s"]), None)
    if best_pools is not None:
        yield (
            f"KV cache from prefill to decode: {si(best_pools['handover_bytes'], 'B')} a request, "
            f"at least {seconds(best_pools['handover_s'])}; links of {best_pools['deployment']} "
            f"{percent(best_pools['handover_busy'])} busy; not in TTFT."
        )
    for search in searches[: len(tables)]:
        if search.lost:
            yield _lost_note(search, basis)
    replicated = any(server.split.dp > 1 for table in tables for server in table.servers.values())
    prompts = "a prompt on every replica" if replicated else "a prompt"
    late = [row["deployment"] for row in shown_rows(rows) if not row["keeps_ttft"]]
    if late and request.ttft_s is not None:
        names = ", ".join(dict.fromkeys(late))
        limit = seconds(request.ttft_s)
        kept_by = f"kept by the bound of a prompt alone, not by its {basis.noun}"
        yield f"TTFT {limit} is {kept_by}: {names}."
    yield f"Prompt alone: {prompts} on an idle server; waiting is not in it."
    for sweep in sweeps:
        yield from waiting_notes(sweep, basis)
    hidden = len(rows) - len(shown_rows(rows))
    if hidden:
        yield f"{counted(hidden, 'more deployment')}: --csv and --json have all."
    yield "Not searched: pipeline stages, drafts, cached prefixes."
    yield from map(as_note, assumptions_of(tables[0].sweep).items())
    yield from price_notes({table.chip: table.sweep.chips[table.chip] for table in tables})


def _load_notes(searches: Sequence[Search], request: ServeRequest) -> Iterator[str]:
    """Yield chips for the load, by chip and limit."""
    if request.load is None and request.users is None:
        return
    wanted = (
        f"{request.load:g} requests/s"
        if request.load is not None
        else f"{request.users:g} requests in flight"
    )
    for search in searches:
        options = chips_for(search, request.kinds, load=request.load, users=request.users)
        limit = search.limits.tpot_s
        within = f" within {seconds(limit)}" if len(request.tpot_s) > 1 else ""
        if not options:
            continue
        first = options[0]
        price = search.table.sweep.chips[search.table.chip].lowest_price()
        money = f", ${price.usd_per_hour * first.chips:,.0f} an hour" if price else ""
        yield f"{wanted}{within}: {first.chips:,} {search.table.chip} ({first.name}){money}."


def _lost_note(search: Search, basis: Basis) -> str:
    """Note on servers that make no deployment, and why."""
    texts = []
    for name, reason in search.lost.items():
        server = search.table.servers.get(name)
        if server is None:
            texts.append(f"{name} ({reason})")
        elif reason == "memory":
            texts.append(f"{name} (weights and the KV cache of a request do not fit)")
        elif reason == "ttft":
            texts.append(f"{name} (a prompt takes at least {seconds(server.ttft('bound'))})")
        else:
            least = server.tpot(basis.key, server.split.dp, mixed=True)
            texts.append(f"{name} (a token takes {seconds(least)} at the smallest batch)")
    rest = len(texts) - SHOWN_LOST
    more = [f"{rest} more"] if rest > 0 else []
    return f"No mixed server on {search.table.chip}: {', '.join([*texts[:SHOWN_LOST], *more])}."


# ---------------------------------------------------------------- nothing is possible


def _nothing(
    question: Question,
    tables: Sequence[ServerTable],
    searches: Sequence[Search],
    request: ServeRequest,
    basis: Basis,
) -> RooflinesError:
    """Error where no deployment keeps the latencies: the nearest that there is."""
    del question
    quickest: tuple[float, str] | None = None
    prompt: tuple[float, str] | None = None
    for search in searches:
        for name, server in search.table.servers.items():
            if search.lost.get(name) == "memory":
                continue
            place = f"{name} on {server.chip}"
            least = server.tpot(basis.key, server.split.dp, mixed=False), place
            alone = server.ttft("bound"), place
            quickest = least if quickest is None else min(quickest, least)
            prompt = alone if prompt is None else min(prompt, alone)
    if quickest is None or prompt is None:
        return _too_large(tables, request)
    if request.ttft_s is not None and prompt[0] > request.ttft_s:
        problem = (
            f"is {seconds(request.ttft_s)}, but a prompt of {request.prompt:,} tokens alone takes "
            f"at least {seconds(prompt[0])} on {prompt[1]}"
        )
        return RooflinesError("ttft", problem, "allow that, or use more or other chips")
    if not request.tpot_s:
        problem = f"are {request.chips}, on which two pools do not fit"
        return RooflinesError("chips", problem, "add chips, or leave out --only pools")
    limit = max(request.tpot_s)
    problem = (
        f"is {seconds(limit)}, which no deployment keeps by the {basis.noun}: the quickest token "
        f"takes {seconds(quickest[0])}, {quickest[1]} at its smallest batch"
    )
    return RooflinesError("tpot", problem, "allow that, or fewer bytes: fp8, or other chips")


def _too_large(tables: Sequence[ServerTable], request: ServeRequest) -> RooflinesError:
    """Error where no server fits; the fix names the fewest chips that were tried and do."""
    chips = request.chips
    for _ in range(MAX_GROWTH):
        chips *= 2
        for table in tables:
            try:
                larger = ServerTable(table.sweep, chips)
            except RooflinesError:
                continue
            fits = [
                server for server in larger.servers.values() if server.max_batch >= server.split.dp
            ]
            if fits:
                least = min(fits, key=lambda server: server.chips)
                problem = f"are {request.chips}, on which weights and a KV cache do not fit"
                fix = f"use at least {least.chips} {table.chip} ({least.name}), or fewer bytes: fp8"
                return RooflinesError("chips", problem, fix)
    problem = f"are {request.chips}, on which weights and a KV cache do not fit"
    return RooflinesError("chips", problem, "use larger chips, or fewer bytes such as fp8")


def load_of(text: str | None, place: str) -> float | None:
    """Load as typed, `50`, `50req/s` or `2k`.

    Args:
        text: As typed; None: none.
        place: Option, for messages.

    Raises:
        RooflinesError: It is no number above zero.
    """
    if text is None:
        return None
    bare = text.lower().removesuffix("/s").removesuffix("req").removesuffix("requests").strip()
    with at_path(place):
        try:
            return quantity(bare, "tokens")
        except RooflinesError:
            problem = f"is {quote(text)}, which is no number"
            raise RooflinesError("", problem, "write 50, requests a second") from None
