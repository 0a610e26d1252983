"""Question about the decode step in an engine's log: `explain` words by log and options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.text import counted
from rooflines.models.architecture import DECODE
from rooflines.models.library import catalogue_id, find_model, is_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.measured.engine_logs import EngineLog
    from rooflines.measured.logged_steps import LoggedStep

CACHE_FOLDER = "models--"
"""First letters of a model's folder in the cache of Hugging Face, before publisher--name."""

FORMATS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}
"""Words for dtypes of engines without quantization."""

UNSET = ("none", "auto")
"""Values of settings that leave a choice to the engine."""


@dataclass(kw_only=True)
class LogQuestion:
    """Question about a logged step.

    Attributes:
        words: Words for `explain`.
        options: Options for `explain`.
        read: Statements on what the log's start lines decided.
        assumed: Statements on what is assumed.
    """

    words: tuple[str, ...]
    options: Mapping[str, str]
    read: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)


def log_question(  # noqa: PLR0913, the options
    log: EngineLog,
    step: LoggedStep,
    chip: str,
    *,
    model: str | None = None,
    split: str | None = None,
    dtypes: str | None = None,
    context: int | None = None,
    draft: str | None = None,
) -> LogQuestion:
    """Question about a step: sequences B, context S, measured time.

    Args:
        log: Lines and start lines.
        step: Medians over steady lines.
        chip: Chip that ran it.
        model: Model; None: the start lines' one.
        split: Split such as tp8; None: the start lines' one.
        dtypes: Dtypes as words; None: the start lines' ones, or those that the model is published
            in.
        context: Tokens per sequence [1]; None: those in the KV cache.
        draft: Tokens drafted and accepted as `explain` has them; None: the log's.

    Raises:
        RooflinesError: The log does not say the model, the context, or the tokens drafted.
    """
    question = LogQuestion(words=(), options={})
    model_word = model or _logged_model(log, question)
    model_entry = find_model(model_word)
    has_experts = model_entry.shape.moe is not None
    split_word = split or _logged_split(log, step, question, has_experts=has_experts)
    dtype_words = (dtypes or _logged_dtypes(log, question)).split()
    size = context or _logged_context(log, step, question)
    if context is None and any(group.window for group in model_entry.groups(DECODE)):
        text = "layers with a window: cache use is no exact count of tokens; --context has one"
        question.assumed.append(text)
    if log.restarts:
        text = (
            f"the log has starts with other settings: {', '.join(log.restarts)}; the first counts"
        )
        question.assumed.append(text)
    replicas = _replicas(split_word)
    sequences = step.sequences
    if step.replicas < replicas:
        sequences = round(sequences * replicas / step.replicas)
        logged = "1 logs" if step.replicas == 1 else f"{step.replicas} log"
        question.assumed.append(f"of {replicas} replicas {logged}; the others take as many")
    question.words = (
        chip,
        model_word,
        f"B={sequences}",
        f"S={max(size, 1)}",
        *dtype_words,
    )
    drafted = draft or _logged_draft(log, step, question)
    options = {"split": split_word, "measured": f"{step.step_s * 1e3:.6g}ms", "draft": drafted}
    question.options = {name: text for name, text in options.items() if text}
    return question


def _logged_model(log: EngineLog, question: LogQuestion) -> str:
    """Catalogue model that the start lines name by path or published name."""
    fix = "name it with --model, an id such as qwen3-8b or the path of a config.json"
    path = log.settings.get("model")
    if path is None:
        raise RooflinesError("--model", "is needed, the log does not name the model", fix)
    parts = [part for part in path.split("/") if part]
    folders = [part for part in parts if part.startswith(CACHE_FOLDER)]
    if folders:
        parts = folders[-1].removeprefix(CACHE_FOLDER).split("--")
    for name in ("/".join(parts[-2:]), parts[-1] if parts else ""):
        if is_named(name):
            model = catalogue_id(name)
            question.read.append(f"model {model}")
            return model
    problem = f"is needed: the log names {quote(path)}, no model of the catalogue"
    raise RooflinesError("--model", problem, fix)


def _logged_split(
    log: EngineLog, step: LoggedStep, question: LogQuestion, *, has_experts: bool
) -> str:
    """Split by the start lines; empty: one chip.

    An engine's replicas share experts: ep = tp dp. With SGLang's data-parallel attention tp
    counts all chips.
    """
    tp, dp, pp = (int(log.settings.get(key, 1)) for key in ("tp", "dp", "pp"))
    if pp > 1:
        problem = f"is needed: the log has {pp} pipeline stages"
        raise RooflinesError("--split", problem, "write it, such as tp8 or tp4-pp2")
    if log.settings.get("dp_attention") == "True":
        tp //= dp
    dp = max(dp, step.replicas)
    sizes = {"tp": tp, "dp": dp, "ep": tp * dp if has_experts and dp > 1 else 1}
    word = "-".join(f"{key}{size}" for key, size in sizes.items() if size > 1)
    if word:
        question.read.append(word)
    elif "tp" not in log.settings:
        question.assumed.append("one chip, as the log names no split; --split has another")
    return word


def _replicas(split: str) -> int:
    """Data-parallel replicas in a split such as tp8-dp2 or tp=8,dp=2 [1]."""
    parts = split.lower().replace("=", "").replace(",", "-").split("-")
    sizes = [part.removeprefix("dp") for part in parts if part.startswith("dp")]
    return next((int(size) for size in sizes if size.isdecimal()), 1)


def _logged_dtypes(log: EngineLog, question: LogQuestion) -> str:
    """Words for dtypes by the start lines; empty: those that the model is published in."""
    settings = {name: text.lower() for name, text in log.settings.items()}
    quantization = settings.get("quantization", "none")
    word = ""
    if "quantization" in settings and quantization in UNSET:
        word = FORMATS.get(settings.get("dtype", ""), "")
    elif quantization == "fp8":
        word = quantization
    elif quantization not in UNSET:
        text = f"quantization {quantization}: the dtypes that the model is published in"
        question.assumed.append(f"{text}; --dtypes has others")
    words = [word] if word else []
    if settings.get("cache_dtype", "").startswith("fp8"):
        words.append("kv=fp8")
    question.read += words
    return " ".join(words)


def _logged_context(log: EngineLog, step: LoggedStep, question: LogQuestion) -> int:
    """Tokens per sequence in the KV cache."""
    if step.context is None:
        problem = "is needed: the log does not say how many tokens the KV cache holds"
        if log.cache_tokens:
            problem = "is needed: the KV cache is used by less than the log's digits"
        fix = "give the tokens of a sequence, half of the output included: --context 2048"
        raise RooflinesError("--context", problem, fix)
    if log.cache_tokens and all(line.cached_tokens is None for line in log.lines):
        question.read.append(f"KV cache of {log.cache_tokens:,} tokens")
    return round(step.context)


def _logged_draft(log: EngineLog, step: LoggedStep, question: LogQuestion) -> str:
    """Speculative decoding by the log; empty: none."""
    if step.accepted is None or step.accepted <= 1:
        return ""
    drafted = int(log.settings.get("drafted", 0)) or int(log.settings.get("verified", 1)) - 1
    if drafted < 1:
        problem = f"is needed: a step yields {step.accepted:.3g} tokens of a sequence, and the log "
        problem += "does not say how many are drafted"
        fix = f"write --draft tokens=3,accepted={step.accepted - 1:.3g} with their number"
        raise RooflinesError("--draft", problem, fix)
    question.read.append(f"{counted(drafted, 'token')} drafted")
    return f"tokens={drafted},accepted={step.accepted - 1:.4g}"
