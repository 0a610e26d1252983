"""`rooflines serve`: deployments of a model that keep TPOT and TTFT on a number of chips."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflines.answers.corrections import CommandLine
from rooflines.answers.overrides import typed_prices, with_overrides
from rooflines.answers.plain_question import asks_best_chip
from rooflines.answers.question_words import all_mistakes, parse_words
from rooflines.answers.serve_answer import (
    DEPLOYMENT_KINDS,
    ServeRequest,
    fewest_chips_cases,
    load_of,
    serve_cases,
    shown_rows,
)
from rooflines.answers.serve_config import OwnNumbers, plan_config
from rooflines.answers.serve_front import drawn_front
from rooflines.answers.typed_options import ENGINE_OPTIONS
from rooflines.answers.word_forms import SERVE_COMMAND, key_name
from rooflines.answers.word_groups import rewritten_word
from rooflines.basics.errors import Mistakes, RooflinesError
from rooflines.basics.numbers import number, whole
from rooflines.basics.quantities import measured_value, quantity
from rooflines.basics.text import seconds
from rooflines.cli.explain import (
    OF_BOTH,
    OF_MODELS,
    QuestionCommand,
    answered_line,
    bound_option,
    echo_notes,
    options_of,
    set_option,
)
from rooflines.cli.output import catalogues_of, config_option, prints_frame, table
from rooflines.config.model_fields import cached_share
from rooflines.models.architecture import DECODE
from rooflines.serving.deployments import COST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.answers.serve_answer import ServePlan
    from rooflines.cli.output import Printed

OPTIONS = {
    "on": (
        "CHIPS: Chips, each an answer of its own, such as h100,b200; also as words, 16xh100; "
        "h100+b200 reads prompts on the first and writes answers on the second."
    ),
    "chips": (
        "N: Chips of each kind, idle ones too; by default as many as the load needs, or the fewest "
        "that keep the limits."
    ),
    "tpot": "TIME: Limit on the mean time of a token, such as 30ms; several with a comma.",
    "ttft": (
        "TIME: Limit on the time of a prompt on an idle server; deployments whose estimate keeps "
        "it come first, then those whose bound does."
    ),
    "load": (
        "N: Requests a second, such as 50: how many chips they need; where --chips do more, "
        "batches fall to what the load needs."
    ),
    "users": "N: Requests in flight, in place of --load.",
    "cached": "SHARE: Share of every prompt in a prefix cache, such as 0.5 or 50%.",
    "draft": OF_MODELS["draft"],
    "only": "KIND: mixed or pools; by default both.",
    "goal": (
        "GOAL: throughput, output tokens/s/chip, the default; cost, USD a request; or min-chips, "
        "the fewest for --load or --users, else that keep the limits."
    ),
    "busy": "SHARE: Largest time share of prefill servers, such as 0.9; default 1.",
    "split": "SPLIT: The only split of servers, such as tp8 or tp8-pp2; by default all.",
    "pp": "N: Pipeline stages of a server, at most; default 8.",
    "calibration": OF_BOTH["calibration"],
    **{name: OF_MODELS[name] for name in ("engine", *ENGINE_OPTIONS) if name in OF_MODELS},
    **{name: OF_MODELS[name] for name in ("routing", "price", "as")},
}
"""Options of a plan."""

SWEEP_OPTIONS = ("calibration", "routing", "as", "engine", "draft", *ENGINE_OPTIONS)
"""Options that reach the sweep as they are."""

RATE = re.compile(
    r"(?<![\w=.])(\d+(?:\.\d+)?) ?(?:req(?:uests)?(?:/s(?:ec)?| per second)|rps|qps)(?![\w=])",
    re.IGNORECASE,
)
"""Requests a second: 20 req/s, 10rps."""

RATE_BY_PERIOD = re.compile(
    r"(?<![\w=.])(\d+(?:\.\d+)?)([kM]?) ?(?:req(?:uests)?|queries)(?: ?/ ?| per | an? )"
    r"(min(?:ute)?|hour|h|day)\b",
    re.IGNORECASE,
)
"""Requests in a longer period: 1000 requests per minute."""

PERIODS = {"m": 60, "h": 3600, "d": 86400}
"""Seconds of a period by its first letter [s]."""

THOUSANDS = {"": 1, "k": 10**3, "m": 10**6}
"""Factor of a suffix [1]."""

RATE_KEY = re.compile(r"(?<![\w-])(?:qps|rps|rate)[ =]+(\d+(?:\.\d+)?)\b", re.IGNORECASE)
"""The same by a key: qps=20."""

IN_FLIGHT = re.compile(
    r"(?<![\w=.])(\d+) (?:concurrent )?(?:users|requests|sessions|in flight)(?![\w/=])|"
    r"(?<![\w-])(?:users|concurrency|conc|in[-_]flight)[ =]+(\d+)\b",
    re.IGNORECASE,
)
"""Requests in flight: 100 users, concurrency=64."""

CHEAPEST = re.compile(
    r"(?<![\w=-])(?:cheapest|(?:lowest |least )?cost(?: per (?:million )?tokens?)?|"
    r"(?:\$|usd|dollars?)(?: ?/ ?| per )(?:1?m|million)(?: ?tok(?:en)?s?)?)(?![\w=/])",
    re.IGNORECASE,
)
"""The goal of the least cost: cheapest, $/Mtok, cost per token."""

LIMIT_APART = re.compile(r"(?<![\w-])(tpot|ttft) +(?:of |under |below |< ?)?(?=\d)", re.IGNORECASE)
"""A limit apart from its time: ttft 300ms."""

TIME_APART = re.compile(r"((?:tpot|ttft)=\d+(?:\.\d+)?) (ms|s)\b", re.IGNORECASE)
"""A limit whose unit stands apart: ttft=300 ms."""

LIMIT_KEYS = ("ttft", "tpot", "load", "users", "cached", "busy")
"""Options that may be typed as words with `=`."""


OTHER_NAMES = {
    **dict.fromkeys(("--qps", "--rps"), "--load"),
    **dict.fromkeys(("--concurrency", "--in-flight"), "--users"),
    **dict.fromkeys(("--gpus", "--num-gpus"), "--chips"),
}
"""Options by other names."""


UNKNOWN_LIMIT = re.compile(
    r"--(?:(?:ttft|tpot|itl|e2e|latency)[-_]?p\d+|p\d+[-_]?(?:ttft|tpot|itl|e2e|latency)|"
    r"(?:max[-_])?(?:cost|budget)|(?:e2e|itl|latency))(?:=|$)"
)
"""Options of limits that no plan keeps: percentiles of requests, and cost."""


def _unknown_limit(option: str) -> RooflinesError:
    """Error for a limit that no plan keeps."""
    if "cost" in option or "budget" in option:
        problem, fix = "is no limit of a plan", "rank by cost: --goal cost"
    else:
        problem = "is no limit of a plan: percentiles and waiting of requests are not known"
        fix = "limit the mean time of a token, --tpot, and a prompt on an idle server, --ttft"
    return RooflinesError(option, problem, fix)


class ServeCommand(QuestionCommand):
    """Command with options by other names, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, `--qps 50` as `--load 50`."""
        for arg in args:
            if UNKNOWN_LIMIT.match(arg):
                raise _unknown_limit(arg.split("=")[0])
        renamed = [
            "=".join([OTHER_NAMES.get(name, name), *value])
            for name, *value in (arg.split("=", 1) for arg in args)
        ]
        return super().parse_args(ctx, renamed)


@click.command("serve", cls=ServeCommand)
@click.argument("words", nargs=-1, required=True, metavar="MODEL CHIPS ISL= OSL= [DTYPE]")
@options_of(OPTIONS)
@click.option(
    "--write-config",
    "config_file",
    metavar="FILE",
    help="Write a config whose sweeps have the rows of these deployments, and their fronts.",
)
@click.option("--sure", is_flag=True, help="TPOT's p90 keeps the limit, not the estimate alone.")
@click.option("--more", is_flag=True, help="Say what fp8, a cached half and a draft would yield.")
@bound_option
@set_option
@config_option
@prints_frame
def command(  # noqa: PLR0913, flags
    words: tuple[str, ...],
    config: str | None,
    settings: tuple[str, ...],
    config_file: str | None,
    *,
    bound: bool,
    sure: bool,
    more: bool,
    **options: str | None,
) -> Printed:
    """Deployments of a served model on a number of chips, the best first.

    ISL and OSL are tokens of a prompt and of an answer. A server is one engine instance on the
    chips of one split; mixed servers read prompts between steps (N x tp8), two pools have servers
    for prefill and for decode (4P tp2 + 1D tp8). Each runs the largest batch that fits and keeps
    TPOT. Times are estimates where all servers have a calibration, else kernels one after another;
    the bound stands beside them. Pipeline stages (tp8-pp2) are tried where memory or TTFT ends
    servers without; waiting is left out.

    Examples:
        rooflines serve llama-3.1-70b --on h100,b200 --chips 16 --isl 8192 --osl 1024 --tpot 30ms
        rooflines serve llama-3.1-70b 16xh100 isl=8k osl=1k --ttft 2s --tpot 20ms,30ms,50ms
        rooflines serve qwen3-32b fp8 8xh200 isl=4000 osl=500 --tpot 20ms --load 50
        rooflines serve llama-3.1-8b 8xh100 isl=1k osl=1k --tpot 10ms --goal cost --json
        rooflines serve llama-3.1-70b --on h100+b200 --chips 16 isl=8k osl=1k --tpot 30ms --sure
        rooflines serve llama-3.1-70b --on b200 isl=8k osl=1k --tpot 30ms --goal min-chips --load 50
    """
    catalogues = catalogues_of(config)
    typed = {name: value for name, value in options.items() if value is not None}
    rest, limits = _limits_of(words)
    for name, value in limits.items():
        if typed.get(name, value) != value:
            raise RooflinesError(
                name, f"is given twice, {value} and {typed[name]}", "leave one out"
            )
    line = CommandLine(tuple(rest), typed | limits)
    answer = partial(_answer, settings=settings, bound=bound, flags={"sure": sure, "more": more})
    question, cases, price = answered_line(SERVE_COMMAND, line, catalogues, answer)
    if config_file is not None:
        _write_new(config_file, plan_config(cases, OwnNumbers(settings, price, config)))
    echo_notes(question)
    shown = table(cases.columns, shown_rows(cases.rows))
    frame = cases.deployments
    drawing = drawn_front(cases.points, cases.limits, cases.points_basis.title)
    between = [""] if drawing else []
    text = "\n".join([cases.question, "", shown, "", *drawing, *between, *cases.notes])
    return frame, text, {**cases.to_dict(), "rows": frame.to_dicts()}


def _write_new(path: str, text: str) -> None:
    """Write a file that does not exist yet.

    Raises:
        RooflinesError: It exists, or cannot be written.
    """
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise RooflinesError("--write-config", problem, "choose another name", file=path) from None
    click.echo(f"{path} written; `rooflines run {path}` makes its table and its chart", err=True)


def _limits_of(words: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Words without `ttft=2s` and others of these, which are options here."""
    rest, limits = [], {}
    text = RATE_BY_PERIOD.sub(_load_of_period, " ".join(words))
    text = RATE_KEY.sub(r"load=\1", RATE.sub(r"load=\1", text))
    text = IN_FLIGHT.sub(lambda match: f"users={match[1] or match[2]}", text)
    if CHEAPEST.search(text):
        limits["goal"], text = COST, CHEAPEST.sub(" ", text)
    text = TIME_APART.sub(r"\1\2", LIMIT_APART.sub(r"\1=", text))
    for typed in text.split():
        word = rewritten_word(typed)
        key, equals, value = word.partition("=")
        if equals and key_name(key) in LIMIT_KEYS:
            limits[key_name(key)] = value
        else:
            rest.append(word)
    return rest, limits


def _load_of_period(match: re.Match[str]) -> str:
    """Requests a second of those in a minute, an hour or a day, as a word."""
    requests = float(match[1]) * THOUSANDS[match[2].lower()]
    return f"load={requests / PERIODS[match[3][0].lower()]:.4g}"


def _answer(
    line: CommandLine,
    catalogues: QuestionCatalogues,
    settings: tuple[str, ...],
    *,
    bound: bool,
    flags: Mapping[str, bool],
) -> tuple[Question, ServePlan, str | None]:
    """Answer to a line, with the price that it names."""
    options: dict[str, Any] = dict(line.options)
    on = options.pop("on", None)
    words = [*line.words, *(on.split(",") if on else ())]
    question = parse_words(words, catalogues.chips, SERVE_COMMAND)
    with all_mistakes(question):
        for key in (*SWEEP_OPTIONS, "price"):  # typed as words
            if key in question.options:
                options.setdefault(key, question.options.pop(key))
        _fill(question, options, catalogues)
        with Mistakes() as mistakes:
            for check in (_check_model, _check_chips, _check_lengths, _check_parts):
                with mistakes.at():
                    check(question, options)
        price = options.pop("price", None)
        catalogues = with_overrides(question, catalogues, settings, price)
        is_open = "chips" not in options and question.count is None
        request = replace(_request(question, options), sure=flags["sure"], more=flags["more"])
        split = options.pop("split", None) or (question.splits[0] if question.splits else None)
        question.splits, question.count, question.request = [], None, {}
        sweep_options = {key: value for key, value in options.items() if key in SWEEP_OPTIONS}
        plan = fewest_chips_cases if is_open else serve_cases
        cases = plan(question, catalogues, request, split=split, bound=bound, **sweep_options)
        return question, cases, price


LENGTHS = {"input": ("isl", "8192"), "output": ("osl", "1024")}
"""Tokens of a request that none are typed for, and their keys."""

NODE = "8"
"""Chips of each kind where the cheapest deployment is sought among all kinds [1]."""


def _fill(question: Question, options: dict[str, Any], catalogues: QuestionCatalogues) -> None:
    """Add what a question leaves open; notes say so: lengths, and chips of the cheapest."""
    if question.mistakes or question.sizes or question.model is None:
        return
    limit = question.options.get("measured", "")
    if "tpot" not in options and "within" not in question.options and limit.endswith("/user"):
        tpot_s = 1 / measured_value(question.options.pop("measured")).value
        options["tpot"] = f"{tpot_s!r}s"
        question.notes.append(f"{limit} is a limit: TPOT {seconds(tpot_s)}")
    missing = {key: LENGTHS[key] for key in LENGTHS if key not in question.request}
    asks_all = options.get("goal") == COST or asks_best_chip(question)
    if len(missing) == len(LENGTHS) and not question.chips and not asks_all:
        return
    question.request |= {key: size for key, (_, size) in missing.items()}
    if missing:
        text = " ".join(f"{word}={size}" for word, size in missing.values())
        question.notes.append(f"{text}, where none is typed")
    if not asks_all:
        return
    if question.chips:
        _leave_out_unpriced(question, options, catalogues)
        return
    chips = {name: chip for name, chip in catalogues.chips.items() if chip.base is None}
    question.chips = [name for name, chip in chips.items() if chip.lowest_price()]
    if "chips" not in options and question.count is None:
        options["chips"] = NODE
    ranked = "" if options.get("goal") == COST else ", by output tokens/s of a chip"
    question.notes.append(f"all chips with a dated price are compared{ranked}")


def _leave_out_unpriced(
    question: Question, options: Mapping[str, Any], catalogues: QuestionCatalogues
) -> None:
    """Leave out chips without a price where others have one; a note says so."""
    chips = {name: catalogues.chips.get(name) for name in question.chips}
    price = options.get("price", question.options.get("price"))
    names = "+".join(question.chips).split("+")
    typed = {} if price is None else typed_prices(price, names, catalogues.chips)
    unpriced = [
        name
        for name, chip in chips.items()
        if chip and not chip.lowest_price() and name not in typed
    ]
    if not 0 < len(unpriced) < len(chips):
        return
    question.chips = [name for name in question.chips if name not in unpriced]
    example = f"--price {unpriced[0]}=2.5"
    question.notes.append(f"{', '.join(unpriced)}: no dated price, left out; add {example}")


def _check_model(question: Question, options: Mapping[str, Any]) -> None:
    """Refuse a question without a model."""
    del options
    if question.model is None:
        raise RooflinesError("model", "is missing", "name one, such as llama-3.1-70b")


def _check_chips(question: Question, options: Mapping[str, Any]) -> None:
    """Refuse a question without chips."""
    del options
    if not question.chips:
        raise RooflinesError("chip", "is missing", "add --on h100, or several: --on h100,b200")


def _check_lengths(question: Question, options: Mapping[str, Any]) -> None:
    """Refuse a question without the tokens of prompt and answer."""
    del options
    with Mistakes() as mistakes:
        for key, word, example in (("input", "isl", 8192), ("output", "osl", 1024)):
            with mistakes.at(word):
                if key not in question.request:
                    raise RooflinesError("", "is missing", f"add {word}={example}")
                whole(_binary(question.request[key]))


def _check_parts(question: Question, options: Mapping[str, Any]) -> None:
    """Refuse parts of a question that a plan does not take."""
    del options
    if question.sizes or question.product is not None:
        problem = "are given, but a plan searches the batch of requests of isl and osl"
        raise RooflinesError("sizes", problem, "leave them out, and write isl=8192 osl=1024")
    if len(question.splits) > 1 or question.other_models or len(question.dtypes) > 1:
        raise RooflinesError("the question", "has several splits, models or dtypes", "ask for one")
    if unread := sorted(question.options.keys() - {"within", "phase"}):
        problem = f"has {', '.join(unread)}, which a plan does not take"
        raise RooflinesError("the question", problem, "leave it out; `rooflines serve -h` has all")
    if question.options.pop("phase", DECODE) != DECODE:
        raise RooflinesError("phase", "is no part of a plan", "leave it out")


def _request(question: Question, options: dict[str, Any]) -> ServeRequest:
    """Service request, from words and options.

    Raises:
        RooflinesError: Something is missing, or no such quantity.
    """
    lengths = {key: whole(_binary(text)) for key, text in question.request.items()}
    typed, batched = options.pop("chips", None), options.pop("max_batched_tokens", None)
    limits = options.pop("tpot", None) or question.options.pop("within", None)
    only = options.pop("only", None)
    request = ServeRequest(
        prompt=lengths["input"],
        answer=lengths["output"],
        chips=question.count or 1,
        kinds=DEPLOYMENT_KINDS if only is None else (only,),
        goal=options.pop("goal", "throughput"),
    )
    readers: dict[str, tuple[str | None, Callable[[str], object]]] = {
        "chips": (typed, whole),
        "tpot_s": (limits, lambda text: tuple(map(_time, text.split(",")))),
        "ttft_s": (options.pop("ttft", None), _time),
        "load": (options.pop("load", None), load_of),
        "users": (options.pop("users", None), load_of),
        "cached": (options.pop("cached", None), cached_share),
        "busy": (options.pop("busy", None), _busy),
        "max_stages": (options.pop("pp", None), whole),
        "max_batched_tokens": (batched, lambda text: whole(_binary(text))),
    }
    read = dict[str, Any]()
    with Mistakes() as mistakes:
        for key, (text, reader) in readers.items():
            if text is not None:
                name = "pp" if key == "max_stages" else key.removesuffix("_s").replace("_", "-")
                with mistakes.at(f"--{name}"):
                    read[key] = reader(text)
        with mistakes.at("--draft"):
            _check_draft(options.get("draft"))
    return replace(request, **read)


def _check_draft(draft: object) -> None:
    """Refuse a draft without its accepted tokens.

    Raises:
        RooflinesError: They are missing.
    """
    if isinstance(draft, str) and "accepted" not in draft:
        problem = f"is {draft}, without the mean number of accepted tokens"
        fix = "write tokens=3,accepted=1.8, with the mean number that your draft gets accepted"
        raise RooflinesError("", problem, fix)


def _busy(text: str) -> float:
    """Share of the time as typed, 0.9 or 90%, to 1 [1].

    Raises:
        RooflinesError: It is none.
    """
    percents = text.strip().removesuffix("%")
    share = number(percents) / (1 if percents == text.strip() else 100)
    if not 0 < share <= 1:
        problem = f"is {text}, which is no share of the time"
        raise RooflinesError("", problem, "write a share to 1, such as 0.9")
    return share


def _binary(text: str) -> object:
    """Tokens as typed; 8k is 8,192."""
    lower = text.lower()
    if lower.endswith("k") and lower[:-1].isdigit():
        return int(lower[:-1]) * 1024
    return text


MIN_LIMIT_S, MAX_LIMIT_S = 1e-3, 10.0
"""Limits without a unit that are taken as seconds [s]."""


def _time(text: str) -> float:
    """Limit on a latency [s].

    Raises:
        RooflinesError: It is none, or a number without unit that is no likely one.
    """
    value = quantity(text, "time")
    is_bare = text.strip().replace(".", "", 1).isdigit()
    if is_bare and not MIN_LIMIT_S <= value <= MAX_LIMIT_S:
        raise RooflinesError("", f"is {text} seconds", f"write {text}ms")
    return float(value)
