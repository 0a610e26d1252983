"""Serving engines' logs: running sequences, tokens/s and KV cache use, line by line.

Three engines are read: vLLM's line every ten seconds, SGLang's line every forty decode steps, and
TensorRT-LLM's line for each iteration (`print_iter_log`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import READ_ERRORS, open_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VLLM, SGLANG, TRTLLM = "vllm", "sglang", "trtllm"
"""Engines whose logs are read."""

MAX_LINE = 65_536
"""Characters of a line that are read [1]; a server's arguments have some thousands."""

ANSI_CODES = re.compile(r"\x1b\[[0-9;]*m")
"""Colours that a terminal's copy of a log has."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """Numbers in one line about decode steps.

    Attributes:
        stream: Data-parallel replica that wrote it.
        running: Sequences in a decode step [1].
        tokens_per_s: Output tokens per second over the line's interval [1/s]; None: it has a time.
        step_s: Step time [s]; None: it has a rate.
        prompts: True if prompts were read in the interval.
        waiting: Sequences in the queue [1]; None: not logged.
        accepted: Tokens that a step yields per sequence by speculative decoding [1]; None: not
            logged.
        cached_tokens: Tokens in the KV cache [1]; None: not logged.
        cache_share: Share of the KV cache in use [1]; None: not logged.
        cache_digit: Half a unit in the share's last digit [1].
    """

    stream: int
    running: int
    tokens_per_s: float | None = None
    step_s: float | None = None
    prompts: bool = False
    waiting: int | None = None
    accepted: float | None = None
    cached_tokens: int | None = None
    cache_share: float | None = None
    cache_digit: float = 0.0


@dataclass(kw_only=True)
class EngineLog:
    """A log's lines about decode steps, and what its start lines say.

    Attributes:
        engine: `vllm`, `sglang` or `trtllm`.
        lines: In order.
        settings: Start lines' settings by the names in `SETTINGS`, as texts.
        cache_tokens: Tokens that the KV cache of a replica holds [1]; None: not logged.
        copies: Lines by further tensor-parallel ranks, which repeat the first one's [1].
        accepted: Acceptance lengths in vLLM's lines on speculative decoding [1].
    """

    engine: str
    lines: list[LogLine] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    cache_tokens: int | None = None
    copies: int = 0
    accepted: list[float] = field(default_factory=list)


NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"


def _field(before: str, after: str = "") -> re.Pattern[str]:
    """Pattern for a number between two texts."""
    return re.compile(f"{before}{NUMBER}{after}")


VLLM_MARK = "Avg generation throughput:"
VLLM_FIELDS = {
    "stream": re.compile(r"\bEngine ([0-9]+):"),
    "prompt": _field(r"Avg prompt throughput: ", " tokens/s"),
    "rate": _field(r"Avg generation throughput: ", " tokens/s"),
    "running": re.compile(r"Running: ([0-9]+) reqs"),
    "waiting": re.compile(r"(?:Waiting|Pending): ([0-9]+) reqs"),
    "share": _field(r"(?:GPU|Device) KV cache usage: ", "%"),
}
VLLM_ACCEPTED = _field(r"Mean acceptance length: ")
SGLANG_DECODE, SGLANG_PREFILL = "Decode batch", "Prefill batch"
SGLANG_FIELDS = {
    "stream": re.compile(r"^[^\]]*\bDP([0-9]+)\b"),
    "rank": re.compile(r"^[^\]]*\bTP([0-9]+)\b"),
    "running": re.compile(r"#running-req: ([0-9]+)"),
    "tokens": re.compile(r"#(?:full )?token: ([0-9]+)"),
    "share": _field(r"(?:full )?token usage: "),
    "accepted": _field(r"accept[ -]len: "),
    "rate": _field(r"gen throughput \(token/s\): "),
    "waiting": re.compile(r"#queue-req: ([0-9]+)"),
}
TRTLLM_MARK = "num_generation_tokens"
TRTLLM_FIELDS = {
    "stream": re.compile(r"(?:global_rank|\brank) = ([0-9]+)"),
    "scheduled": re.compile(r"num_scheduled_requests\s*[:=] ([0-9]+)"),
    "prompts": re.compile(r"'num_ctx_requests': ([0-9]+)"),
    "generated": re.compile(r"'num_generation_tokens': ([0-9]+)"),
    "ms": _field(r"host_step_time = ", "ms"),
    "s": _field(r"elapsed_time = ", "s"),
    "tokens": re.compile(r"(?:cached_kv_len = |'cached_kv_tokens': )([0-9]+)"),
    "share": _field(r"kv_cache_util = "),
}
"""Patterns of the numbers in each engine's lines, and texts that mark the lines."""

CACHE_SIZES = (
    re.compile(r"(?:GPU|Device) KV cache size: ([0-9,]+) tokens"),
    re.compile(r"\bmax_total_num_tokens=([0-9]+)"),
    re.compile(r"max tokens in paged KV cache \(([0-9]+)\)"),
)
"""Start lines with the tokens that the KV cache of a replica holds: vLLM, SGLang, TensorRT-LLM."""

SETTINGS: Mapping[str, re.Pattern[str]] = {
    "model": re.compile(r"(?:\bmodel|\bmodel_path|'model'|'model_path')[=:] ?'([^']+)'"),
    "dtype": re.compile(r"\bdtype[=:] ?'?(?:torch\.)?([a-z0-9]+)"),
    "quantization": re.compile(r"\bquantization=(?:'([\w-]+)'|([\w-]+))"),
    "cache_dtype": re.compile(r"\bkv_cache_dtype='?([\w-]+)"),
    "tp": re.compile(r"\b(?:tensor_parallel_size|tp_size)=([0-9]+)"),
    "dp": re.compile(r"\b(?:data_parallel_size|dp_size)=([0-9]+)"),
    "pp": re.compile(r"\b(?:pipeline_parallel_size|pp_size)=([0-9]+)"),
    "dp_attention": re.compile(r"\benable_dp_attention=(True|False)"),
    "drafted": re.compile(r"\b(?:num_spec_tokens|num_speculative_tokens)'?[=:] ?([0-9]+)"),
    "verified": re.compile(r"\bspeculative_num_draft_tokens=([0-9]+)"),
}
"""Settings in vLLM's engine config and SGLang's server arguments."""

SETTING_MARKS = (" LLM engine ", "ServerArgs(", "server_args=", "non-default args:")
"""Texts of start lines that have settings."""


def read_engine_log(path: str) -> EngineLog:
    """Read a log, plain or gzip.

    Args:
        path: The file.

    Raises:
        RooflinesError: It is missing, no text, has no line about decode steps, or two engines'
            lines.
    """
    logs = {engine: EngineLog(engine=engine) for engine in (VLLM, SGLANG, TRTLLM)}
    settings: dict[str, str] = {}
    accepted: list[float] = []
    cache_tokens: int | None = None
    sglang, trtllm = _SglangLines(logs[SGLANG]), _TrtllmLines(logs[TRTLLM])
    for line in _text_lines(path):
        if VLLM_MARK in line:
            _add_vllm_line(logs[VLLM], line)
        elif SGLANG_DECODE in line or SGLANG_PREFILL in line:
            sglang.add(line)
        elif TRTLLM_MARK in line:
            trtllm.add(line)
        elif match := VLLM_ACCEPTED.search(line):
            accepted.append(float(match[1]))
        elif any(mark in line for mark in SETTING_MARKS):
            for name, text in _settings_in(line):
                settings.setdefault(name, text)
        if cache_tokens is None:
            sizes = (pattern.search(line) for pattern in CACHE_SIZES)
            size = next((match for match in sizes if match), None)
            cache_tokens = int(size[1].replace(",", "")) if size else None
    written = [log for log in logs.values() if log.lines]
    if not written:
        problem = "has no line on decode steps"
        fix = (
            "give a log with lines of vLLM (Avg generation throughput), SGLang (Decode batch) or "
            "TensorRT-LLM (print_iter_log)"
        )
        raise RooflinesError("", problem, fix, file=path)
    if len(written) > 1:
        problem = f"has lines of {' and '.join(log.engine for log in written)}"
        raise RooflinesError("", problem, "give the log of one engine", file=path)
    (log,) = written
    log.settings, log.accepted, log.cache_tokens = settings, accepted, cache_tokens or None
    return log


def _text_lines(path: str) -> Iterator[str]:
    """Lines of a file, cut at `MAX_LINE`, without colours; damaged characters are replaced.

    Raises:
        RooflinesError: It is missing, or no text.
    """
    try:
        with open_text(Path(path)) as file:
            while line := file.readline(MAX_LINE):
                if "\0" in line:
                    raise RooflinesError(
                        "", "is no text", "give the log that the engine printed", file=path
                    )
                yield ANSI_CODES.sub("", line)
    except FileNotFoundError:
        fix = "give the path of a file that does"
        raise RooflinesError("", "does not exist", fix, file=path) from None
    except IsADirectoryError:
        raise RooflinesError("", "is a directory", "give the path of a file", file=path) from None
    except (*READ_ERRORS, ValueError) as error:
        if isinstance(error, RooflinesError):
            raise
        if isinstance(error, UnicodeError):
            fix = "give the log that the engine printed, in UTF-8"
            raise RooflinesError("", "is no text in UTF-8", fix, file=path) from None
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot be read: {reason}"
        raise RooflinesError("", problem, "make it readable", file=path) from None


def _settings_in(line: str) -> Iterator[tuple[str, str]]:
    """Settings in a start line, by name."""
    for name, pattern in SETTINGS.items():
        if match := pattern.search(line):
            yield name, next(text for text in match.groups() if text is not None)


def _numbers(line: str, patterns: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """Numbers in a line as texts, by name."""
    matches = {name: pattern.search(line) for name, pattern in patterns.items()}
    return {name: match[1] for name, match in matches.items() if match}


def _optional(text: str | None) -> int | None:
    """Whole number in a text; None: there is none."""
    return None if text is None else int(text)


def _share(text: str | None, unit: float) -> tuple[float | None, float]:
    """Share in a text with half a unit in its last digit.

    Args:
        text: Digits; None: there are none.
        unit: 1, or 0.01 for percent [1].
    """
    if text is None:
        return None, 0.0
    decimals = len(text.partition(".")[2])
    return float(text) * unit, 0.5 * 10**-decimals * unit


def _add_vllm_line(log: EngineLog, line: str) -> None:
    """Add vLLM's periodic line; one that is cut is left out."""
    numbers = _numbers(line, VLLM_FIELDS)
    if not numbers.keys() >= {"rate", "running"}:
        return
    share, digit = _share(numbers.get("share"), 0.01)
    log.lines.append(
        LogLine(
            stream=int(numbers.get("stream", 0)),
            running=int(numbers["running"]),
            tokens_per_s=float(numbers["rate"]),
            prompts=float(numbers.get("prompt", 0)) > 0,
            waiting=_optional(numbers.get("waiting")),
            cache_share=share,
            cache_digit=digit,
        )
    )


class _SglangLines:
    """SGLang's decode lines; prefill lines between them are noted.

    Args:
        log: Receives the lines.
    """

    def __init__(self, log: EngineLog) -> None:
        self.log = log
        self.ranks: dict[int, int] = {}
        self.prompts: set[int] = set()

    def add(self, line: str) -> None:
        """Add a line; only the first tensor-parallel rank counts."""
        numbers = _numbers(line, SGLANG_FIELDS)
        stream, rank = int(numbers.get("stream", 0)), int(numbers.get("rank", 0))
        if self.ranks.setdefault(stream, rank) != rank:
            self.log.copies += SGLANG_DECODE in line
            return
        if SGLANG_PREFILL in line:
            self.prompts.add(stream)
            return
        if not numbers.keys() >= {"rate", "running"}:
            return
        accepted = numbers.get("accepted")
        share, digit = _share(numbers.get("share"), 1.0)
        self.log.lines.append(
            LogLine(
                stream=stream,
                running=int(numbers["running"]),
                tokens_per_s=float(numbers["rate"]),
                prompts=stream in self.prompts,
                waiting=_optional(numbers.get("waiting")),
                accepted=None if accepted is None else float(accepted),
                cached_tokens=_optional(numbers.get("tokens")),
                cache_share=share,
                cache_digit=digit,
            )
        )
        self.prompts.discard(stream)


class _TrtllmLines:
    """TensorRT-LLM's iterations.

    Args:
        log: Receives the lines.
    """

    def __init__(self, log: EngineLog) -> None:
        self.log = log

    def add(self, line: str) -> None:
        """Add an iteration, timed by the host's loop, which a user sees."""
        numbers = _numbers(line, TRTLLM_FIELDS)
        if "ms" in numbers:
            step_s = float(numbers["ms"]) / 1e3
        elif "s" in numbers:
            step_s = float(numbers["s"])
        else:
            return
        prompts = int(numbers.get("prompts", 0))
        scheduled = _optional(numbers.get("scheduled"))
        running = int(numbers.get("generated", 0)) if scheduled is None else scheduled - prompts
        share, digit = _share(numbers.get("share"), 1.0)
        self.log.lines.append(
            LogLine(
                stream=int(numbers.get("stream", 0)),
                running=max(running, 0),
                step_s=step_s,
                prompts=prompts > 0,
                cached_tokens=_optional(numbers.get("tokens")),
                cache_share=share,
                cache_digit=digit,
            )
        )
