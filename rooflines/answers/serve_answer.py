"""Answer to `rooflines serve`: deployments that keep TPOT and TTFT, the best first."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflines.answers.any_routing import has_mean
from rooflines.answers.assumptions import as_note, assumptions_of
from rooflines.answers.basis import (
    BOUND_BASIS,
    ESTIMATE_BASIS,
    MIXED_BASIS,
    SERIALIZED_BASIS,
    Basis,
)
from rooflines.answers.case_answer import softwares_of
from rooflines.answers.case_table import Cases, basis_notes, waiting_notes
from rooflines.answers.head_room import NOTHING_SET_ASIDE
from rooflines.answers.phrases import price_notes
from rooflines.answers.question import catalogues_in, model_question, question_sweep
from rooflines.answers.typed_options import split_names
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, quote
from rooflines.basics.numbers import number, whole
from rooflines.basics.quantities import quantity
from rooflines.basics.text import counted, percent, seconds, si, significant
from rooflines.config.model_fields import MAX_CHIPS, cached_share
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.split import Split
from rooflines.serving.deployments import (
    COST,
    GOALS,
    MIN_CHIPS,
    MIXED,
    NEARLY,
    POOLS,
    THROUGHPUT,
    TIE_BY_CHIPS,
    TIE_BY_DIVISION,
    TIE_BY_KIND,
    Deployment,
    Limits,
    Search,
    handover,
    is_tie,
)
from rooflines.serving.front import front
from rooflines.serving.servers import MAX_STAGES, ServerTable
from rooflines.sweep.prompt_times import LongestStep, longest_step
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

SERVER_CHIPS = 16
"""Chips of the largest servers where the fewest chips are asked for, and none are typed [1]."""

MAX_ROWS = 12
"""Deployments by fewest chips, at most [1]."""

LOAD_UNIT = re.compile(r" ?(?:(?:req(?:uests)?)? ?/ ?s(?:ec(?:ond)?)?|rps|qps|req(?:uests)?)$")
"""Units of a load, as in 50req/s and 10rps."""

GOALS_FIX = "write throughput, min-chips or cost; the lowest TPOT ends the front: add --tpot"

MORE: tuple[tuple[str, Mapping[str, Any], Mapping[str, object]], ...] = (
    ("half of the prompt cached", {"cached": 0.5}, {}),
    ("a draft of 3 with 1.8 accepted", {}, {"draft": {"tokens": 3, "accepted": 1.8}}),
)
"""Changes that the last line prices: parts of a request, and options."""

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
    "load": "load",
}
"""Reasons for a batch, in words."""

BASES = {basis.key: basis for basis in (ESTIMATE_BASIS, SERIALIZED_BASIS, BOUND_BASIS)}
"""Bases by their keys."""

BY_BASIS = {
    ESTIMATE_BASIS.key: "by the estimate",
    SERIALIZED_BASIS.key: "if every kernel ran at its bound, one after another, as no run does",
    BOUND_BASIS.key: "by the bound",
}
"""Words for what a rank rests on, by basis."""

TTFT_TITLE = "prompt alone"

LATE = "over"
"""Mark of a prompt alone that takes longer than TTFT may, though its bound does not."""

CROWDED = 0.95
"""Time share of prefill servers from which on a note says that prompts queue [1]."""

TIE = "="
"""Mark of deployments closer to the best one than estimates can tell."""

UNSUPPORTED = "unsupported"
"""Reason of splits without rows: the chip or the model does not have them."""

NO_STAGED_RUN = "no run with pp"
"""Text in place of a band: no published run has pipeline stages."""

COLUMNS = {
    "chip": "chip",
    "tpot_limit_s": "TPOT within",
    "deployment": "deployment",
    "tie": "",
    "basis": "basis",
    "batch_text": "batch",
    "concurrency_text": "in flight",
    "tpot_s": "TPOT ({})",
    "tpot_band": "80% within",
    "output_tokens_per_s_per_chip": "output tok/s/chip",
    "output_tokens_per_s_per_chip_bound": "at most",
    "ttft_text": TTFT_TITLE,
    "usd_request_text": "$ a request",
    "usd_input_text": "$/M input",
    "usd_output_text": "$/M output",
    "footprint_bytes": "memory",
    "ends": "ends by",
}
"""Column titles on a screen; the basis stands in one."""

TEXTS = (
    *("batch_text", "concurrency_text", "tpot_band", "ttft_text"),
    *("usd_request_text", "usd_input_text", "usd_output_text", "ends"),
)
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
        goal: Rank: `throughput`, `cost` or `min-chips`.
        cached: Share of every prompt in a prefix cache, to below 1 [1].
        max_batched_tokens: Tokens of a step at most; None: the engine's, if one is asked for [1].
        busy: Largest time share in which servers of a prefill pool read prompts [1].
        sure: True if TPOT's p90 keeps its limit, not the estimate alone.
        max_stages: Pipeline stages of a server, at most [1].
        more: True to say what fp8, a cached half and a draft would yield.
        counts_chips: True to count chips for the load, in place of given chips.
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
    cached: float = 0.0
    max_batched_tokens: int | None = None
    busy: float = 1.0
    sure: bool = False
    max_stages: int = MAX_STAGES
    more: bool = False
    counts_chips: bool = False

    @property
    def load_text(self) -> str:
        """Load in words; empty: none is asked for."""
        if self.load is not None:
            return f"{self.load:g} requests/s"
        return "" if self.users is None else f"{self.users:g} requests in flight"

    @property
    def limits(self) -> Limits:
        """Latencies to keep, without TPOT."""
        return Limits(
            ttft_s=math.inf if self.ttft_s is None else self.ttft_s,
            busy=self.busy,
            sure=self.sure,
            load=None if self.counts_chips else self.load,
            users=None if self.counts_chips else self.users,
        )


LOST_COLUMNS = ("chip", "split", "reason", "text")
"""Columns of servers that make no deployment."""


@dataclass(frozen=True, repr=False)
class ServePlan(Cases):
    """Deployments of a served model, their fronts, and what makes none.

    Attributes:
        points: Points of every chip and kind that keep TTFT, on the basis of the best.
        front_rows: The same as rows.
        lost_rows: Servers that make no deployment, with their reasons.
        limits: Limits on TPOT [s].
        sweeps: Sweep behind each chip's servers.
    """

    points: Sequence[FrontPoint] = ()
    front_rows: Sequence[Mapping[str, Any]] = ()
    lost_rows: Sequence[Mapping[str, str]] = ()
    limits: Sequence[float] = ()
    sweeps: Sequence[ModelSweep] = ()

    @property
    def deployments(self) -> pl.DataFrame:
        """Deployments that keep the limits, a row each, the best first."""
        return _frame(self.rows).drop(TEXTS)

    @property
    def points_basis(self) -> Basis:
        """Basis of the best deployment, and of `points`."""
        return BASES[self.rows[0]["basis"]]

    @property
    def best(self) -> dict[str, Any]:
        """First row of `deployments`."""
        return {name: value for name, value in self.rows[0].items() if name not in TEXTS}

    @property
    def ties(self) -> pl.DataFrame:
        """Deployments that estimates cannot tell from the best one of their chip."""
        return self.deployments.filter(tie=TIE)

    @property
    def front(self) -> pl.DataFrame:
        """Deployments on the front of a chip and kind, the most tokens/s/user first.

        They keep TTFT, not TPOT: `chip`, `split`, `batch`, `tpot_s`, `ttft_s`, rates and money as
        in `deployments`.
        """
        return _frame(self.front_rows)

    @property
    def not_possible(self) -> pl.DataFrame:
        """Servers that make no deployment: `chip`, `split`, `reason`, and `text` in words.

        Reasons are `memory`, `ttft`, `tpot` and `unsupported`.
        """
        return _frame(self.lost_rows or [dict.fromkeys(LOST_COLUMNS, "")])[: len(self.lost_rows)]

    def __repr__(self) -> str:
        """Question and its answer in a sentence."""
        return self.question

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            **super().to_dict(),
            "front": [dict(row) for row in self.front_rows],
            "not_possible": [dict(row) for row in self.lost_rows],
        }


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a frame; types are those of all rows."""
    import polars as pl  # noqa: PLC0415, loaded on use

    return pl.DataFrame(rows, infer_schema_length=None)


def serve(  # noqa: PLR0913, the parts of a question
    model: str | Model,
    on: str | Sequence[str],
    *,
    isl: int,
    osl: int,
    chips: int | None = None,
    tpot_s: float | Sequence[float] | None = None,
    ttft_s: float | None = None,
    load: float | None = None,
    users: float | None = None,
    dtypes: str | Mapping[str, object] | None = None,
    cached: float = 0.0,
    draft: Mapping[str, float] | None = None,
    max_batched_tokens: int | None = None,
    only: str | None = None,
    goal: str = THROUGHPUT,
    busy: float = 1.0,
    sure: bool = False,
    split: str | None = None,
    pp: int = MAX_STAGES,
    bound: bool = False,
    config: HasCatalogues | None = None,
    **options: object,
) -> ServePlan:
    """Plan a served model: deployments on a number of chips that keep latencies, the best first.

    A server is one engine instance on tp * pp * dp chips. Mixed servers read prompts between the
    steps of their batch; two pools have servers for prefill and for decode. Each server runs the
    largest batch that fits and keeps TPOT. With phi = batch / (dp * OSL) prompts a step, TPOT is by
    the bound max over resources of (decode step + phi * prompts), else the sum of both. Pipeline
    stages are tried where memory or TTFT ends servers with fewer; they never shorten a token.

    Args:
        model: As in `explain_model`.
        on: Ids of chips, each an answer of its own; `h100+b200` reads prompts on the first and
            writes answers on the second.
        isl: Prompt tokens [1].
        osl: Answer tokens [1].
        chips: Given chips of each kind, idle ones too; None: as many as `load` or `users` need,
            else the fewest of 1, 2, 4, ... that keep the limits [1].
        tpot_s: Limit on the mean token time, or several [s]; None: none.
        ttft_s: Limit on a prompt's time on an idle server [s]. No deployment is planned whose
            bound exceeds it; those whose time on the basis keeps it come first.
        load: Requests a second: batches fall to what it needs [1/s]; None: as many as possible.
        users: Requests in flight: batches fall to what they need [1]; None: as many as fit.
        dtypes: As in `explain_model`.
        cached: Share of every prompt in a prefix cache, to below 1 [1].
        draft: Speculative decoding, `{"tokens": 3, "accepted": 1.8}`; None: none.
        max_batched_tokens: Tokens of a step at most, for the longest gap between tokens; None:
            the engine's, if one is asked for [1].
        only: `mixed` or `pools`; None: both.
        goal: `throughput`, output tokens a second and chip; `cost`, USD a request; or
            `min-chips`, the fewest chips for `load` or `users`, else that keep the limits.
        busy: Largest time share in which servers of a prefill pool read prompts [1].
        sure: True to let TPOT's p90 keep the limit, not the estimate alone.
        split: The only split of servers, such as `tp8-pp2`; None: all.
        pp: Pipeline stages of a server, at most, where a plan chooses the split [1].
        bound: True to let the bound decide.
        config: As in `explain`.
        **options: Others of `explain_model`, such as `calibration`.

    Returns:
        A plan. `deployments` has a row for each: `deployment` (`2 x tp8`, `4P tp2 + 1D tp8`),
        `batch`, `tpot_s` with `tpot_p10_s` and `tpot_p90_s`, `ttft_s`, both also by the bound
        (`_lower_s`), rates of requests and tokens, memory, money and energy; times are those of
        `basis`. `best` is the first one, `ties` are those that estimates cannot tell from it,
        `front` are all on a front, `not_possible` the servers that make none, with their reasons.

    Raises:
        RooflinesError: Something is invalid, or nothing keeps the latencies.
    """
    limits = [] if tpot_s is None else [tpot_s] if isinstance(tpot_s, (int, float)) else [*tpot_s]
    request = ServeRequest(
        prompt=isl,
        answer=osl,
        chips=1 if chips is None else chips,
        tpot_s=tuple(limits),
        ttft_s=ttft_s,
        load=load,
        users=users,
        kinds=DEPLOYMENT_KINDS if only is None else (only,),
        goal=goal,
        cached=cached_share(cached),
        max_batched_tokens=max_batched_tokens,
        busy=busy,
        sure=sure,
        max_stages=pp,
    )
    catalogues = catalogues_in(config)
    names = on.split(",") if isinstance(on, str) else [*on]
    question = model_question(names[0].split("+")[0], model, {}, dtypes, catalogues)
    question.chips = names
    plan = fewest_chips_cases if chips is None else serve_cases
    return plan(question, catalogues, request, split=split, bound=bound, draft=draft, **options)


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

    With a load, deployments on as many chips as it needs.

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
    counts_chips = request.goal == MIN_CHIPS or bool(request.load_text)
    if counts_chips and request.goal == THROUGHPUT:
        request = replace(request, goal=MIN_CHIPS)
    chips = SERVER_CHIPS if counts_chips else 1
    while True:
        single = replace(question, notes=[])
        try:
            cases = serve_cases(
                single,
                catalogues,
                replace(request, chips=chips, counts_chips=counts_chips),
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
            if counts_chips:
                text = f"servers of up to {counted(chips, 'chip')}: --chips for larger ones"
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
    if request.goal == MIN_CHIPS:
        request = replace(request, counts_chips=True)
    split_names(options)
    only = None if split is None else validate_entry(Split, split)
    if only is not None and only.chips > request.chips:
        problem = f"takes {only.chips} chips, but {request.chips} are given"
        raise RooflinesError("split", problem, f"add --chips {only.chips}, or leave the split out")
    if request.max_batched_tokens is not None and "engine" in options:
        options["max_batched_tokens"] = request.max_batched_tokens
    by_chip = {
        chip: ServerTable(
            _sweep(
                replace(question, chips=[chip], notes=question.notes), catalogues, request, options
            ),
            request.chips,
            only,
            request.max_stages,
        )
        for chip in dict.fromkeys("+".join(question.chips).split("+"))
    }
    tables = [*by_chip.values()]
    basis_of = _bases(question.chips, by_chip, bound=bound)
    limits = request.tpot_s or (math.inf,)
    rows, searches = list[dict[str, Any]](), list[Search]()
    best: Deployment | None = None
    for limit in limits:
        planned = []
        latencies = request.limits._replace(tpot_s=limit)
        searched: dict[tuple[str, str], Search] = {}
        for name in question.chips:
            first, *second = name.split("+")
            pair = []
            for chip in (first, *second):
                key = chip, basis_of[name].key
                if key not in searched:
                    searched[key] = Search(by_chip[chip], key[1], request.chips, latencies)
                pair.append(searched[key])
            search = pair[-1].reading_on(pair[0]) if second else pair[0]
            searches.append(search)
            planned += _most(_deployments(search, request), search, request)
        chosen = _in_order(planned, request)
        if chosen and best is None:
            best = chosen[0][1]
        rows += _rows(chosen, request, limit, several=len(limits) > 1)
    if best is None:
        raise _nothing(tables, searches, request)
    bases = {row["basis"] for row in rows}
    basis = MIXED_BASIS if len(bases) > 1 else BASES[bases.pop()]
    head = _head(question, tables[0].sweep, request)
    mean_routing = has_mean([tables[0].sweep])
    answer = _best_sentence(rows, request, mean_routing=mean_routing)
    columns = _columns(rows, basis, request.goal, mean_routing=mean_routing)
    notes = [*_notes(tables, searches, rows, request, basis)]
    if request.more:
        notes.append(_more_note(question, catalogues, request, best, split, options, bound=bound))
    points = [
        (search, point)
        for search in searches[: len(question.chips)]
        for point in front(search, (POOLS,) if search.prefill else request.kinds)
    ]
    return ServePlan(
        f"{head}\n{answer}",
        rows,
        columns,
        "B",
        basis,
        notes,
        points=[point for search, point in points if search.basis == rows[0]["basis"]],
        front_rows=[_front_row(search, point, request) for search, point in points],
        lost_rows=[*_lost_rows(searches, request)],
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
    with at_path("pp"):
        whole(request.max_stages)
    times = [("tpot", limit) for limit in request.tpot_s]
    times += [("ttft", request.ttft_s)] if request.ttft_s is not None else []
    for place, limit in times:
        with at_path(place):
            number(limit)
    with Mistakes() as mistakes:
        _check_goal(request, mistakes)


def _check_goal(request: ServeRequest, mistakes: Mistakes) -> None:
    """Check loads, kinds and the goal."""
    if request.load is not None and request.users is not None:
        problem = f"is {request.load:g} requests/s, and users are {request.users:g}: two loads"
        mistakes.add(RooflinesError("load", problem, "give one of them"))
    for place, amount in (("load", request.load), ("users", request.users)):
        if amount is not None:
            with mistakes.at(place):
                number(amount)
    with mistakes.at("only"):
        for kind in request.kinds:
            check_choice(kind, DEPLOYMENT_KINDS, "no kind of deployment")
    with mistakes.at("goal"):
        check_choice(request.goal, GOALS, "no goal", GOALS_FIX)
    with mistakes.at("busy"):
        if not 0 < number(request.busy) <= 1:
            problem = f"is {request.busy:g}, which is no share of the time"
            raise RooflinesError("", problem, "write a share to 1, such as 0.9")
    if request.max_batched_tokens is not None:
        with mistakes.at("max_batched_tokens"):
            whole(request.max_batched_tokens)


def _sweep(
    question: Question,
    catalogues: QuestionCatalogues,
    request: ServeRequest,
    options: Mapping[str, object],
) -> ModelSweep:
    """Sweep with one chip and one request."""
    lengths = [{"input": request.prompt, "output": request.answer, "cached": request.cached}]
    single = replace(question, sizes={"B": 1})
    sweep = question_sweep(single, catalogues, requests=lengths, **options)
    if not isinstance(sweep, ModelSweep) or len(sweep.config.dtypes) > 1:
        raise RooflinesError("dtypes", "are several", "ask for one at a time")
    return sweep


def _bases(
    names: Sequence[str], tables: Mapping[str, ServerTable], *, bound: bool
) -> dict[str, Basis]:
    """Basis of each chip, or of two that serve together: the estimate where all servers have one.

    Args:
        names: Chips, or two of one service as `h100+b200`.
        tables: Servers by chip.
        bound: True to let the bound decide.
    """
    by_name = {}
    for name in names:
        estimated = all(tables[chip].estimated for chip in name.split("+"))
        by_name[name] = ESTIMATE_BASIS if estimated else SERIALIZED_BASIS
    return dict.fromkeys(names, BOUND_BASIS) if bound else by_name


def _most(
    deployments: Sequence[Deployment], search: Search, request: ServeRequest
) -> list[tuple[Search, Deployment]]:
    """Deployments with their search; of those counted for a load the first ones."""
    planned = [(search, deployment) for deployment in deployments]
    return _in_order(planned, request)[:MAX_ROWS] if request.counts_chips else planned


def _in_order(
    planned: Sequence[tuple[Search, Deployment]], request: ServeRequest
) -> list[tuple[Search, Deployment]]:
    """Deployments by the goal to three digits, then stages, TTFT, TPOT and memory.

    Estimates come first, and those that keep TTFT on their basis.
    """

    def key(pair: tuple[Search, Deployment]) -> tuple[float, ...]:
        search, deployment = pair
        gain = deployment.output_per_chip
        first = search.basis == SERIALIZED_BASIS.key, deployment.ttft_s > request.limits.ttft_s
        if request.goal == COST:
            usd, _ = _usd_per_hour(search, deployment)
            gain *= deployment.chips / usd
        fewest = (deployment.chips,) if request.goal == MIN_CHIPS else ()
        times = deployment.ttft_s, deployment.tpot_s
        rounded = float(f"{gain:.3g}")
        return *first, *fewest, -rounded, deployment.stages, *times, deployment.memory_bytes

    return sorted(planned, key=key)


def _deployments(search: Search, request: ServeRequest) -> list[Deployment]:
    """Deployments on all chips, or on as many as a load needs."""
    if not request.counts_chips:
        return search.deployments(request.kinds)
    return search.needed(request.kinds, load=request.load, users=request.users)


def _priced_chip(search: Search, chip: str) -> float | None:
    """Lowest dated price of a chip in a search [USD/h]; None without one."""
    tables = [search.table, *([search.prefill.table] if search.prefill else [])]
    (entry, *_) = (table.sweep.chips[chip] for table in tables if table.chip == chip)
    price = entry.lowest_price()
    return None if price is None else price.usd_per_hour


def _usd_per_hour(search: Search, deployment: Deployment | FrontPoint) -> tuple[float, float]:
    """Price of all chips, idle ones too, and the share of it that prompts take [USD/h, 1].

    Raises:
        RooflinesError: A chip has no dated price.
    """
    prices = []
    for chip in (deployment.prefill.chip, deployment.decode.chip):
        price = _priced_chip(search, chip)
        if price is None:
            problem = f"is cost, and {chip} has no dated price"
            raise RooflinesError("goal", problem, "add --price 2.5, dollars an hour of one chip")
        prices.append(price)
    chips = deployment.chips if isinstance(deployment, Deployment) else search.chips
    if prices[0] == prices[1]:
        return prices[0] * chips, deployment.prompt_share
    readers = deployment.prefill_servers * deployment.prefill.chips
    writers = deployment.servers * deployment.decode.chips
    reading, writing = readers * prices[0], writers * prices[1]
    idle = (chips - readers - writers) * min(prices)
    return reading + writing + idle, reading / (reading + writing)


MONEY = (
    "usd_per_hour",
    "usd_per_request",
    "usd_per_mtok_input",
    "usd_per_mtok_output",
    "usd_per_mtok_total",
)
"""Columns with money."""


def _prices(
    search: Search,
    deployment: Deployment | FrontPoint,
    req_per_s: float,
    request: ServeRequest,
    basis: Basis,
) -> dict[str, float | None]:
    """Price of all chips by hour, request and million tokens; None without a dated price [USD]."""
    servers = deployment.prefill, deployment.decode
    if not all(_priced_chip(search, server.chip) for server in servers):
        return dict.fromkeys(MONEY)
    usd_per_hour, share = _usd_per_hour(search, deployment)
    usd_per_s = usd_per_hour / SECONDS_PER_HOUR
    inputs, outputs = req_per_s * request.prompt, req_per_s * request.answer
    of_inputs: float | None = usd_per_s * share / inputs * TOKENS_PER_MTOK
    of_outputs: float | None = usd_per_s * (1 - share) / outputs * TOKENS_PER_MTOK
    if basis is BOUND_BASIS:  # a bound does not say whose time it is
        of_inputs = of_outputs = None
    total = usd_per_s / (inputs + outputs) * TOKENS_PER_MTOK
    values = usd_per_hour, usd_per_s / req_per_s, of_inputs, of_outputs, total
    return dict(zip(MONEY, values, strict=True))


# ---------------------------------------------------------------- rows


def _rows(
    chosen: Sequence[tuple[Search, Deployment]],
    request: ServeRequest,
    limit_s: float,
    *,
    several: bool,
) -> Iterator[dict[str, Any]]:
    """Yield rows for one TPOT limit; `tie` compares within a chip.

    What keeps TTFT, or carries the load, is no tie with what does not.
    """
    best: dict[str, tuple[Deployment, Mapping[str, Any]]] = {}
    for rank, (search, deployment) in enumerate(chosen, start=1):
        basis = BASES[search.basis]
        row = _row(search, deployment, request, basis)
        first, first_row = best.setdefault(deployment.chip, (deployment, row))
        is_first = first is deployment
        is_alike = row["keeps_ttft"] == first_row["keeps_ttft"] and (
            bool(_shortage(row, request)) == bool(_shortage(first_row, request))
        )
        tied = basis is ESTIMATE_BASIS and not is_first and is_alike and is_tie(first, deployment)
        row["rank"], row["tie"] = rank, TIE if tied else "best" if is_first else ""
        if several:
            row["tpot_limit_s"] = limit_s
        yield row


def _row(
    search: Search, deployment: Deployment, request: ServeRequest, basis: Basis
) -> dict[str, Any]:
    """Deployment row."""
    entry = search.table.sweep.chips[deployment.chip]
    price, power = entry.lowest_price(), entry.power
    gap = _longest_gap(search, deployment, request)
    keeps_ttft = request.ttft_s is None or deployment.ttft_s <= request.ttft_s
    low, high = deployment.band or (None, None)
    req_per_s, tpot = deployment.req_per_s, deployment.tpot_s
    outputs = req_per_s * request.answer
    row: dict[str, Any] = {
        "rank": 0,
        "tie": "",
        "kind": deployment.kind,
        "chip": deployment.chip,
        "dtypes": deployment.decode.case.dtypes.label,
        "engine": search.table.engine or None,
        "calibration": ", ".join(softwares_of(deployment.decode.case))
        if basis is ESTIMATE_BASIS
        else None,
        "deployment": deployment.name,
        "basis": basis.key,
        "split": deployment.decode.name,
        "prefill_chip": deployment.prefill_chip,
        "prefill_split": deployment.prefill.name,
        "chips": deployment.chips,
        "chips_used": deployment.chips_used,
        "servers": deployment.servers,
        "prefill_servers": deployment.prefill_servers,
        "tp": deployment.decode.split.shards,
        "pp": deployment.decode.split.stages,
        "dp": deployment.decode.split.dp,
        "ep": deployment.decode.split.parts,
        "input": request.prompt,
        "output": request.answer,
        "cached": request.cached,
        "batch": float(deployment.batch),
        "micro_batches": deployment.micro_batches,
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
        "goodput_req_per_s": req_per_s if keeps_ttft else 0.0,
        "prompts_per_s": deployment.prompts_per_s(basis.key),
        "prompt_share": deployment.prompt_share,
        "prefill_busy": deployment.prefill_busy,
        **_footprint(deployment),
        "itl_mixed_s": gap and gap.seconds_on(basis.key),
        "itl_mixed_share": gap and gap.share,
        "hop_s": deployment.hop_s,
        "keeps_ttft": keeps_ttft,
        "keeps_tpot": True,
        "fits": True,
        "limit": deployment.limit,
        **_prices(search, deployment, req_per_s, request, basis),
        "j_per_output_token": power and power.watts * deployment.chips / outputs,
        "price_provider": price and price.provider,
        "price_date": price and str(price.date),
    }
    sent = handover(search, deployment) if deployment.kind == POOLS else None
    row["handover_bytes"] = sent and sent.cache_bytes
    row["handover_s"] = sent and sent.time_s
    row["handover_busy"] = sent and sent.busy
    return row | _texts(row, deployment)


def _footprint(deployment: Deployment) -> dict[str, float | None]:
    """Memory on the fullest chip of a server when answers end, as columns of tables [byte]."""
    case, total = deployment.decode.case, deployment.memory_bytes
    capacity = case.machine.level.capacity_bytes
    weights = deployment.decode.fullest_weights(deployment.batch)
    return {
        "weights_footprint_bytes": weights,
        "kv_cache_footprint_bytes": total - weights,
        "footprint_bytes": total,
        "footprint_share": None if capacity is None else total / float(capacity),
    }


def _front_row(search: Search, point: FrontPoint, request: ServeRequest) -> dict[str, Any]:
    """Row of a point on a front."""
    basis = BASES[search.basis]
    req_per_s = point.output_per_chip * search.chips / request.answer
    return {
        "chip": point.chip,
        "prefill_chip": point.prefill.chip,
        "kind": point.kind,
        "deployment": point.deployment,
        "basis": basis.key,
        "split": point.decode.name,
        "prefill_split": point.prefill.name,
        "servers": point.servers,
        "prefill_servers": point.prefill_servers,
        "chips": search.chips,
        "batch": point.batch,
        "tpot_s": point.tpot_s,
        "ttft_s": point.ttft_s,
        "tokens_per_s_per_user": point.user_rate,
        "output_tokens_per_s_per_chip": point.output_per_chip,
        "req_per_s": req_per_s,
        **_prices(search, point, req_per_s, request, basis),
    }


def _lost_rows(searches: Sequence[Search], request: ServeRequest) -> Iterator[dict[str, Any]]:
    """Yield servers that make no deployment, by limit and chip, with their reasons."""
    for search in searches:
        limit = search.limits.tpot_s
        for name, reason, text in _reasons(search) if search.prefill is None else ():
            yield {
                **({"tpot_limit_s": limit} if len(request.tpot_s) > 1 else {}),
                "chip": search.table.chip,
                "split": name,
                "reason": reason,
                "text": text,
            }


def _longest_gap(
    search: Search, deployment: Deployment, request: ServeRequest
) -> LongestStep | None:
    """Longest step of a mixed server; None: two pools, or no number of tokens is known."""
    case, tokens = deployment.decode.case, request.max_batched_tokens
    if tokens is None and case.started is not None:
        capacity = case.machine.level.capacity_bytes or 0
        tokens = case.started.settings(case.chip, capacity, case.split).max_batched_tokens
    if tokens is None or deployment.kind == POOLS or deployment.stages > 1:
        return None
    draft = search.table.sweep.config.draft
    batch = max(deployment.decode.split.dp, math.floor(deployment.batch))
    return longest_step(case, deployment.decode.request, batch, tokens, draft)


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
        else money_text(row[f"usd_per_mtok_{name}"])
        for name in ("input", "output")
    }
    usd = row["usd_per_request"]
    return {
        "batch_text": f"{deployment.batch:,.0f}",
        "concurrency_text": f"{deployment.concurrency:,.0f}",
        "tpot_band": NO_STAGED_RUN
        if deployment.stages > 1 and row["basis"] == ESTIMATE_BASIS.key
        else "-"
        if low is None
        else f"{seconds(low)} to {seconds(high)}",
        "ttft_text": seconds(row["ttft_s"]) + ("" if row["keeps_ttft"] else f", {LATE}"),
        "usd_request_text": "-" if usd is None else f"{usd:.3g}",
        "ends": ends,
        **money,
    }


def money_text(usd: float) -> str:
    """Dollars to a cent; below ten cents to two digits."""
    return f"{usd:.2f}" if usd >= 0.1 else f"{usd:.2g}"  # noqa: PLR2004, ten cents


# ---------------------------------------------------------------- the screen


def _head(question: Question, sweep: ModelSweep, request: ServeRequest) -> str:
    """Question in words."""
    (name,) = sweep.models
    servers = "servers of up to " if request.counts_chips else ""
    parts = [
        name,
        f"isl = {request.prompt:,}",
        f"osl = {request.answer:,}",
        f"{servers}{request.chips:,} x {' or '.join(question.chips)}",
        sweep.config.dtypes[0].label,
    ]
    parts += [request.load_text] if request.load_text else []
    parts += [f"{percent(request.cached)} of prompts cached"] if request.cached else []
    if sweep.config.draft is not None:
        draft = sweep.config.draft
        parts.append(f"a draft of {draft.tokens} with {draft.accepted:g} accepted")
    p90 = " at p90" if request.sure else ""
    limits = [f"TPOT {' or '.join(map(seconds, request.tpot_s))}{p90}"] if request.tpot_s else []
    limits += [f"TTFT {seconds(request.ttft_s)}"] if request.ttft_s is not None else []
    return " · ".join([*parts, *([", ".join(limits)] if limits else [])])


def _best_sentence(
    rows: Sequence[Mapping[str, Any]], request: ServeRequest, *, mean_routing: bool
) -> str:
    """The best deployment in a sentence, and whether another kind may equal it."""
    best, basis = rows[0], BASES[rows[0]["basis"]]
    rate = significant(best["output_tokens_per_s_per_chip"], 3)
    strict = basis is BOUND_BASIS and not mean_routing
    chips = " and ".join(dict.fromkeys((best["prefill_chip"], best["chip"])))
    at_most = "at most " if strict else ""
    band = {"-": "", NO_STAGED_RUN: f" ({NO_STAGED_RUN})"}.get(
        best["tpot_band"], f" ({best['tpot_band']}, 80% of runs)"
    )
    within = f" within {seconds(best['tpot_limit_s'])}" if best.get("tpot_limit_s") else ""
    at_least = "at least " if strict else ""
    user_rate = significant(best["tokens_per_s_per_user"], 3)
    facts = [
        f"TPOT {at_least}{seconds(best['tpot_s'])}{band}",
        f"{at_most}{user_rate} tokens/s/user",
    ]
    rate_text, money = f"{at_most}{rate} output tokens/s/chip", _money(best)
    subject, place = f"Best{within}", f"{best['deployment']} on {chips}"
    if request.load_text:
        subject = subject if _shortage(best, request) else f"For {request.load_text}{within}"
        place += f", {_chips_and_hour(best)}"
        facts.append(rate_text)
        facts += [money] if money and request.goal != COST else []
    else:
        facts.insert(0, rate_text)
    if request.goal == COST:
        facts.insert(0, money)
    text = (
        f"{subject} {BY_BASIS[basis.key]}: {place}: {', '.join(facts)}{_shortage(best, request)}."
    )
    rival = next(
        (
            row
            for row in rows
            if row["kind"] != best["kind"]
            and row["chip"] == best["chip"]
            and row["tie"] == TIE
            and row.get("tpot_limit_s") == best.get("tpot_limit_s")
        ),
        None,
    )
    if rival is not None:
        rate = significant(rival["output_tokens_per_s_per_chip"], 3)
        text += (
            f" {rival['deployment']} ({rate}) is within {TIE_BY_KIND:g}x, closer than estimates "
            "can tell mixed servers from pools: try both."
        )
    if request.ttft_s is not None and not best["keeps_ttft"]:
        text += (
            f" No deployment keeps TTFT {seconds(request.ttft_s)} by the {basis.noun} of a prompt "
            f"alone: {seconds(best['ttft_s'])} here, at least {seconds(best['ttft_lower_s'])}."
        )
    return text


def _money(row: Mapping[str, Any]) -> str:
    """Money for tokens and for a request; empty without a price, or by the bound."""
    if row["usd_per_request"] is None:
        return ""
    request_text = f"${row['usd_per_request']:.3g} a request"
    if row["usd_per_mtok_output"] is None:
        return request_text
    prices = ", ".join(
        f"${money_text(row[f'usd_per_mtok_{name}'])}/M {name} tokens"
        for name in ("output", "input")
    )
    return f"{prices}, {request_text}"


def _chips_and_hour(row: Mapping[str, Any]) -> str:
    """Number of chips, and their price an hour."""
    chips = counted(row["chips"], "chip")
    hour = row["usd_per_hour"]
    return chips if hour is None else f"{chips}, ${hour:,.4g} an hour"


def _shortage(row: Mapping[str, Any], request: ServeRequest) -> str:
    """Clause on a deployment that carries a part of the load; empty where it carries it all."""
    carried, load = row["req_per_s"], request.load
    if request.users is not None:
        carried, load = row["concurrency"], request.users
    if load is None or carried > NEARLY * load:
        return ""
    return f"; it carries only {significant(carried, 3)} of {request.load_text}"


def _columns(
    rows: Sequence[Mapping[str, Any]], basis: Basis, goal: str, *, mean_routing: bool
) -> dict[str, str]:
    """Screen columns: those in which rows differ or that say something.

    With uniform routing the bound is a mean over routings, and no "at most" is said of it.
    """
    columns = {name: title.format(basis.title) for name, title in COLUMNS.items()}
    if len({row["chip"] for row in rows}) == 1:
        columns.pop("chip")
    if "tpot_limit_s" not in rows[0]:
        columns.pop("tpot_limit_s")
    if basis is MIXED_BASIS:
        columns["tpot_s"] = "TPOT"
    else:
        columns.pop("basis")
    if goal != COST:
        columns.pop("usd_request_text")
    for name in ("tpot_band", "usd_request_text", "usd_input_text", "usd_output_text"):
        if name in columns and all(row[name] == "-" for row in rows):
            columns.pop(name)
    if mean_routing:
        columns["output_tokens_per_s_per_chip_bound"] = "bound, mean routing"
    if basis is BOUND_BASIS:
        columns.pop("output_tokens_per_s_per_chip_bound")
        most, least = ("at mean routing",) * 2 if mean_routing else ("at most", "at least")
        columns["output_tokens_per_s_per_chip"] = f"output tok/s/chip {most}"
        columns["ttft_text"] = f"{TTFT_TITLE} {least}"
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
    sweeps = [table.sweep for table in tables]
    described = [
        {
            "chip": table.chip,
            "dtypes": table.sweep.config.dtypes[0].label,
            ESTIMATE_BASIS.column: 0.0 if table.estimated else None,
        }
        for table in tables
    ]
    yield from basis_notes(sweeps, described, basis)
    if engine := tables[0].engine:
        has_pools = any(row["kind"] == POOLS for row in rows)
        exact = "; prefill servers the exact need" if has_pools else ""
        yield f"Batches fit the pool of caches of {engine}{exact}."
    else:
        yield f"Batches may fill the memory, {NOTHING_SET_ASIDE}."
    if any(row["tie"] == TIE for row in rows):
        yield (
            "= is closer to the chip's best than estimates can tell, try both: within "
            f"{TIE_BY_CHIPS:g}x, {TIE_BY_DIVISION:g}x where servers have as many chips, "
            f"{TIE_BY_KIND:g}x between mixed servers and pools."
        )
    yield from _load_notes(searches, request)
    best_pools = next((row for row in rows if row["kind"] == POOLS and row["handover_s"]), None)
    if best_pools is not None:
        yield (
            f"KV cache from prefill to decode: {si(best_pools['handover_bytes'], 'B')} a request, "
            f"at least {seconds(best_pools['handover_s'])}; links of {best_pools['deployment']} "
            f"{percent(best_pools['handover_busy'])} busy; not in TTFT."
        )
    for search in searches[: len(searches) // max(1, len(request.tpot_s))]:
        if search.lost and search.prefill is None:
            yield _lost_note(search)
    late = [row for row in shown_rows(rows) if not row["keeps_ttft"]]
    if late and request.ttft_s is not None:
        nouns = " or ".join(dict.fromkeys(BASES[row["basis"]].noun for row in late))
        kept_by = f"kept by the bound of a prompt alone, not by its {nouns}"
        yield f"{LATE}: TTFT {seconds(request.ttft_s)} is {kept_by}."
    busiest = max((row["prefill_busy"] or 0.0 for row in shown_rows(rows)), default=0.0)
    if request.busy == 1 and busiest >= CROWDED:
        yield f"Prefill {percent(busiest)} busy leaves no room for bursts: --busy 0.8 does."
    yield "Prompt alone: a prompt on an idle server; waiting is not in it."
    for table in (table for table in tables if table.estimated):
        yield from waiting_notes(table.sweep, basis)
    hidden = len(rows) - len(shown_rows(rows))
    if hidden:
        yield f"{counted(hidden, 'more deployment')}: --csv and --json have all."
    gaps = [row for row in shown_rows(rows) if row["itl_mixed_s"]]
    if gaps:
        texts = (
            f"{row['deployment']} {seconds(row['itl_mixed_s'])}, {percent(row['itl_mixed_share'])}"
            for row in gaps
        )
        yield f"Longest gap between tokens, and share of steps: {'; '.join(texts)}."
    yield from _stage_notes(tables, searches, rows)
    yield from _request_notes(tables, searches, rows, request)
    left_out = ["drafts"] if tables[0].sweep.config.draft is None else []
    left_out += [] if request.cached else ["cached prefixes"]
    if left_out:
        yield f"Not searched: {', '.join(left_out)}."
    yield from map(as_note, assumptions_of(tables[0].sweep).items())
    yield from price_notes({table.chip: table.sweep.chips[table.chip] for table in tables})


def _request_notes(
    tables: Sequence[ServerTable],
    searches: Sequence[Search],
    rows: Sequence[Mapping[str, Any]],
    request: ServeRequest,
) -> Iterator[str]:
    """Yield notes on what requests assume, and on chips that have no deployment."""
    sweep = tables[0].sweep
    (model,) = sweep.models.values()
    context, total = model.shape.context, request.prompt + request.answer
    if context is not None and total > context:
        yield f"{total:,} tokens are beyond the model's context of {context:,}."
    if request.cached:
        yield "Input tokens are all tokens of a prompt, cached ones too; each batch has them whole."
    if sweep.config.draft is not None:
        yield "The draft takes no time of its own."
    served = {(row["prefill_chip"], row["chip"]) for row in rows}
    for search in searches[: len(searches) // max(1, len(request.tpot_s))]:
        chip = search.table.chip
        first = search.prefill.table.chip if search.prefill else chip
        if (first, chip) not in served:
            place = chip if first == chip else f"{first} and {chip}"
            yield f"No deployment on {place} keeps the limits with {counted(search.chips, 'chip')}."


def _stage_notes(
    tables: Sequence[ServerTable],
    searches: Sequence[Search],
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield notes on pipeline stages: what is searched, and what no run says."""
    most = max((stages for table in tables for stages in table.stages), default=1)
    if most > 1 and not any(search.limits.sure for search in searches):
        yield (
            f"Pipeline stages (pp, to {most}) are searched where memory or TTFT ends servers with "
            "fewer: they free memory, and read prompts sooner, but never shorten a token."
        )
    if any(row["tpot_band"] == NO_STAGED_RUN for row in rows):
        yield "No published run has pipeline stages: estimates with pp have no band."


def _load_notes(searches: Sequence[Search], request: ServeRequest) -> Iterator[str]:
    """Yield chips for the load, by chip and limit."""
    wanted = request.load_text
    for search in searches if wanted and not request.counts_chips else ():
        needed = search.needed(request.kinds, load=request.load, users=request.users)
        limit = search.limits.tpot_s
        within = f" within {seconds(limit)}" if len(request.tpot_s) > 1 else ""
        if not needed:
            continue
        first = needed[0]
        chips, money = search.table.chip, ""
        if search.prefill is not None:
            chips = f"{search.prefill.table.chip} and {chips}"
        if _priced_chip(search, first.chip) and _priced_chip(search, first.prefill_chip):
            money = f", ${_usd_per_hour(search, first)[0]:,.0f} an hour"
        rest = first.chips - search.chips
        beyond = f", {rest:,} more than are given" if rest > 0 else ""
        yield f"{wanted}{within}: {first.chips:,} {chips} ({first.name}){beyond}{money}."


def _more_note(  # noqa: PLR0913, PLR0917, the parts of a plan
    question: Question,
    catalogues: QuestionCatalogues,
    request: ServeRequest,
    best: Deployment,
    split: object,
    options: Mapping[str, object],
    *,
    bound: bool,
) -> str:
    """Note on fp8, a cached half and a draft on the best chip, one at a time."""
    chips = best.chip if best.chip == best.prefill_chip else f"{best.prefill_chip}+{best.chip}"
    plain = replace(request, more=False, load=None, users=None, tpot_s=request.tpot_s[:1])
    texts = []
    labels = {form.lower() for form in question.dtypes} or {"bf16"}
    changes = [*([] if "fp8" in labels else [("fp8", {}, {})]), *MORE]
    for name, parts, added in changes:
        dtypes = ["fp8"] if name == "fp8" else question.dtypes
        changed = replace(question, chips=[chips], notes=[], dtypes=dtypes)
        if any(options.get(key) is not None for key in added) or (parts and request.cached):
            continue
        try:
            cases = serve_cases(
                changed,
                catalogues,
                replace(plain, **parts),
                split=split,
                bound=bound,
                **{**options, **added},
            )
        except RooflinesError:
            continue
        rate = significant(cases.rows[0]["output_tokens_per_s_per_chip"], 3)
        texts.append(f"{name}: {rate}")
    return f"More: {'; '.join(texts)} output tokens/s/chip on {chips}."


def _lost_note(search: Search) -> str:
    """Note on servers that make no deployment, and why."""
    by_text: dict[str, list[str]] = {}
    for name, _, text in _reasons(search):
        by_text.setdefault(text, []).append(name)
    shown, rest = list[str](), 0
    for text, names in by_text.items():
        rest += len(names[SHOWN_LOST:]) if len(shown) < SHOWN_LOST else len(names)
        if len(shown) < SHOWN_LOST:
            shown.append(f"{', '.join(names[:SHOWN_LOST])} ({text})")
    more = [f"{rest} more"] if rest > 0 else []
    return f"No mixed server on {search.table.chip}: {'; '.join([*shown, *more])}."


def _reasons(search: Search) -> Iterator[tuple[str, str, str]]:
    """Yield servers that make no deployment: name, reason, and text in words."""
    for name, reason in search.lost.items():
        server = search.table.servers.get(name)
        if server is None:
            yield name, UNSUPPORTED, reason
        elif reason == "memory":
            yield name, reason, "weights and the KV cache of a request do not fit"
        elif reason == "ttft":
            yield name, reason, f"a prompt takes at least {seconds(server.ttft('bound'))}"
        else:
            least = server.tpot(search.basis, server.split.dp, mixed=True)
            yield name, reason, f"a token takes {seconds(least)} at the smallest batch"


# ---------------------------------------------------------------- nothing is possible


def _nothing(
    tables: Sequence[ServerTable], searches: Sequence[Search], request: ServeRequest
) -> RooflinesError:
    """Error where no deployment keeps the latencies: the nearest that there is."""
    quickest: tuple[float, str, str] | None = None
    prompt: tuple[float, str] | None = None
    for search in searches:
        search.table.add_every_stage(search.chips)
        servers = search.table.servers.items()
        fitting = [pair for pair in servers if pair[1].max_batch >= pair[1].split.dp]
        smallest = min((server.chips for _, server in fitting), default=0)
        for name, server in fitting:
            place = f"{name} on {server.chip}"
            alone = server.ttft("bound"), place
            prompt = alone if prompt is None else min(prompt, alone)
            if server.steps:  # with stages a token takes no less
                has_pools = POOLS in request.kinds and server.chips + smallest <= search.chips
                tpot_s = server.tpot(search.basis, server.split.dp, mixed=not has_pools)
                least = tpot_s, place, BASES[search.basis].noun
                quickest = least if quickest is None else min(quickest, least)
    for table in tables:
        if table.refused and not table.servers:
            (name, reason) = next(iter(table.refused.items()))
            problem = f"is {name}, which {table.chip} does not support: {reason}"
            return RooflinesError("split", problem, "leave the split out, or choose another one")
    if quickest is None or prompt is None:
        return _too_large(tables, request)
    if request.ttft_s is not None and prompt[0] > request.ttft_s:
        problem = (
            f"is {seconds(request.ttft_s)}, but a prompt of {request.prompt:,} tokens alone takes "
            f"at least {seconds(prompt[0])} on {prompt[1]}"
        )
        return RooflinesError("ttft", problem, "allow that, --cached 0.5, or more or other chips")
    if not request.tpot_s:
        problem = f"are {request.chips}, on which two pools do not fit"
        return RooflinesError("chips", problem, "add chips, or leave out --only pools")
    limit = max(request.tpot_s)
    problem = (
        f"is {seconds(limit)}, which no deployment keeps by the {quickest[2]}: the quickest token "
        f"takes {seconds(quickest[0])}, {quickest[1]} at its smallest batch"
    )
    return RooflinesError("tpot", problem, "allow that, --draft, fewer bytes: fp8, or other chips")


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


def load_of(text: str) -> float:
    """Load as typed, `50`, `50req/s` or `2k`.

    Args:
        text: As typed.

    Raises:
        RooflinesError: It is no number above zero.
    """
    bare = LOAD_UNIT.sub("", text.lower()).strip()
    try:
        return quantity(bare, "tokens")
    except RooflinesError:
        problem = f"is {quote(text)}, which is no number"
        raise RooflinesError("", problem, "write 50, requests a second") from None
