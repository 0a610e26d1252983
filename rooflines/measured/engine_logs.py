"""Serving engines' logs: running sequences, tokens/s and KV cache use, line by line.

Three engines are read: vLLM's line every ten seconds, or for each iteration
(`--enable-logging-iteration-details`), SGLang's line every forty decode steps, and TensorRT-LLM's
line for each iteration (`print_iter_log`). What other tools put before a line, such as a
container's name, a process or a time, does not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import READ_ERRORS, open_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VLLM, SGLANG, TRTLLM = "vllm", "sglang", "trtllm"
"""Engines whose logs are read."""

MAX_LINE = 65_536
"""Characters of a line that are read [1]; a server's arguments have some thousands."""

ANSI_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours, and movements of the cursor, that a terminal's copy of a log has."""

MAX_PREFIX = 300
"""Characters at a line's begin that may name its process [1]."""

PROCESS = re.compile(r"^\s*([\w.-]+)\s+\| |\(([A-Za-z_][^()]*\bpid=[0-9]+[^()]*)\)")
"""Container's name of Docker Compose, or process of Ray or vLLM, before a line."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """Numbers in one line about decode steps.

    Attributes:
        stream: Server and data-parallel replica that wrote it.
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

    stream: tuple[str, int]
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
        hit_share: Share of the prompts' tokens that the prefix cache had [1]; None: not logged.
        restarts: Settings that a later start has otherwise.
    """

    engine: str
    lines: list[LogLine] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    cache_tokens: int | None = None
    copies: int = 0
    accepted: list[float] = field(default_factory=list)
    hit_share: float | None = None
    restarts: list[str] = field(default_factory=list)


NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"


def _field(before: str, after: str = "") -> re.Pattern[str]:
    """Pattern for a number between two texts."""
    return re.compile(f"{before}{NUMBER}{after}")


VLLM_MARK, ITERATION_MARK = "Avg generation throughput:", "iteration elapsed time:"
VLLM_FIELDS = {
    "stream": re.compile(r"\bEngine ([0-9]+):"),
    "prompt": _field(r"Avg prompt throughput: ", " tokens/s"),
    "rate": _field(r"Avg generation throughput: ", " tokens/s"),
    "running": re.compile(r"Running: ([0-9]+) reqs"),
    "waiting": re.compile(r"(?:Waiting|Pending): ([0-9]+) reqs"),
    "share": _field(r"(?:GPU|Device) KV cache usage: ", "%"),
}
VLLM_ITERATION = re.compile(
    r"Iteration\([0-9]+\): ([0-9]+) context requests, [0-9]+ context tokens, "
    r"([0-9]+) generation requests, [0-9]+ generation tokens, "
    rf"iteration elapsed time: {NUMBER} ms"
)
VLLM_ENGINE = re.compile(r"\bEngineCore_DP([0-9]+)\b")
VLLM_HITS = _field(r"(?<!External )\bPrefix cache hit rate: (?:GPU: )?", "%")
VLLM_ACCEPTED = _field(r"Mean acceptance length: ")
SGLANG_DECODE, SGLANG_PREFILL = "Decode batch", "Prefill batch"
SGLANG_FIELDS = {
    "stream": re.compile(r"^[^\]]*\bDP([0-9]+)\b"),
    "rank": re.compile(r"^[^\]]*\bTP([0-9]+)\b"),
    "running": re.compile(r"#running-req: ([0-9]+)"),
    "tokens": re.compile(r"#(?:full |cpu-)?token: ([0-9]+)"),
    "share": _field(r"(?<!gpu )(?<!cpu )(?<!swa )(?<!mamba )\btoken usage: "),
    "accepted": _field(r"accept[ -]len: "),
    "rate": _field(r"gen throughput \(token/s\): ", ","),
    "waiting": re.compile(r"#queue-req: ([0-9]+)"),
    "new": re.compile(r"#new-token: ([0-9]+)"),
    "cached": re.compile(r"#cached-token: ([0-9]+)"),
}
TRTLLM_MARK = "num_generation_tokens"
TRTLLM_FIELDS = {
    "stream": re.compile(r"(?:global_rank|\brank) = ([0-9]+)"),
    "scheduled": re.compile(r"num_scheduled_requests\s*[:=] ([0-9]+)"),
    "prompts": re.compile(r"'num_ctx_requests': ([0-9]+)"),
    "generated": re.compile(r"'num_generation_tokens': ([0-9]+)[,}]"),
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
    vllm, sglang = _VllmLines(logs[VLLM]), _SglangLines(logs[SGLANG])
    trtllm, start = _TrtllmLines(logs[TRTLLM]), _StartLines()
    is_binary = False
    for text_line in _text_lines(path):
        # Rotated logs have runs of zeros, and UTF-16 has one beside each letter.
        line = text_line.replace("\0", "")
        is_binary = is_binary or line != text_line
        if VLLM_MARK in line or ITERATION_MARK in line:
            vllm.add(line)
        elif SGLANG_DECODE in line or SGLANG_PREFILL in line:
            sglang.add(line)
        elif TRTLLM_MARK in line:
            trtllm.add(line)
        elif match := VLLM_ACCEPTED.search(line):
            vllm.log.accepted.append(float(match[1]))
        elif match := VLLM_HITS.search(line):
            vllm.log.hit_share = float(match[1]) / 100
        start.add(line)
    vllm.finish()
    sglang.finish()
    written = [log for log in logs.values() if log.lines]
    if len(written) != 1:
        raise _no_log(path, written, is_binary=is_binary)
    (log,) = written
    log.settings, log.cache_tokens = start.settings, start.cache_tokens or None
    log.restarts = start.restarts
    log.lines = _one_server_after_another(log.lines)
    return log


def _no_log(path: str, written: Sequence[EngineLog], *, is_binary: bool) -> RooflinesError:
    """Error about a file without lines about decode steps, or with those of two engines."""
    fix = "give the log of one engine"
    if written:
        problem = f"has lines of {' and '.join(log.engine for log in written)}"
    elif is_binary:
        problem, fix = "is no text", "give the log that the engine printed"
    else:
        problem = "has no line on decode steps"
        fix = (
            "give a log with lines of vLLM (Avg generation throughput), SGLang (Decode batch) or "
            "TensorRT-LLM (print_iter_log)"
        )
    return RooflinesError("", problem, fix, file=path)


class _StartLines:
    """Settings in start lines, the first of each counts, and the KV cache's size.

    Attributes:
        settings: Settings by the names in `SETTINGS`, as texts.
        restarts: Settings that a later line of the same kind has otherwise.
        cache_tokens: Tokens that the KV cache of a replica holds [1]; None: not logged.
    """

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.restarts: list[str] = []
        self.cache_tokens: int | None = None
        self._by_mark: dict[tuple[str, str], str] = {}

    def add(self, line: str) -> None:
        """Add a line, if it is one of the start."""
        mark = next((mark for mark in SETTING_MARKS if mark in line), None)
        if mark is not None:
            for name, text in _settings_in(line):
                self.settings.setdefault(name, text)
                differs = self._by_mark.setdefault((mark, name), text) != text
                if differs and name not in self.restarts:
                    self.restarts.append(name)
        if self.cache_tokens is None:
            sizes = (pattern.search(line) for pattern in CACHE_SIZES)
            size = next((match for match in sizes if match), None)
            self.cache_tokens = int(size[1].replace(",", "")) if size else None


def _process(line: str) -> str:
    """Process, or container, that wrote a line; empty: not said."""
    match = PROCESS.search(line[:MAX_PREFIX])
    return match[match.lastindex or 0] if match else ""


def _one_server_after_another(lines: Sequence[LogLine]) -> list[LogLine]:
    """Lines whose servers are replicas only where they write at the same time.

    A server that starts when the one before has ended is the same one, started again.
    """
    ranges: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        ranges.setdefault(line.stream[0], [place, place])[1] = place
    ends: list[int] = []
    servers: dict[str, str] = {}
    for process, (first, last) in ranges.items():
        server = next((n for n, end in enumerate(ends) if end < first), len(ends))
        ends[server : server + 1] = [last]
        servers[process] = str(server)
    return [replace(line, stream=(servers[line.stream[0]], line.stream[1])) for line in lines]


def _text_lines(path: str) -> Iterator[str]:
    """Lines of a file, cut at `MAX_LINE`, without colours; damaged characters are replaced.

    Raises:
        RooflinesError: It is missing, or no text.
    """
    try:
        with open_text(Path(path)) as file:
            while line := file.readline(MAX_LINE):
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


class _VllmLines:
    """vLLM's periodic lines, or those of its iterations, which have the step's time.

    Args:
        log: Receives the lines, and the last hit rate of the prefix cache.
    """

    def __init__(self, log: EngineLog) -> None:
        self.log = log
        self._iterations: list[LogLine] = []
        self._periodic: dict[int, LogLine] = {}

    def add(self, line: str) -> None:
        """Add a line; one that is cut is left out."""
        if match := VLLM_ITERATION.search(line):
            self._add_iteration(line, match)
            return
        if match := VLLM_HITS.search(line):
            self.log.hit_share = float(match[1]) / 100
        numbers = _numbers(line, VLLM_FIELDS)
        if not numbers.keys() >= {"rate", "running"}:
            return
        share, digit = _share(numbers.get("share"), 0.01)
        number = int(numbers.get("stream", 0))
        periodic = LogLine(
            stream=(_process(line), number),
            running=int(numbers["running"]),
            tokens_per_s=float(numbers["rate"]),
            prompts=float(numbers.get("prompt", 0)) > 0,
            waiting=_optional(numbers.get("waiting")),
            cache_share=share,
            cache_digit=digit,
        )
        self._periodic[number] = periodic
        self.log.lines.append(periodic)

    def _add_iteration(self, line: str, match: re.Match[str]) -> None:
        """Add an iteration; cache use and the queue are those of the periodic line before."""
        engine = VLLM_ENGINE.search(line)
        number = int(engine[1]) if engine else 0
        periodic = self._periodic.get(number)
        self._iterations.append(
            LogLine(
                stream=(_process(line), number),
                running=int(match[2]),
                step_s=float(match[3]) / 1e3,
                prompts=int(match[1]) > 0,
                waiting=periodic.waiting if periodic else None,
                cache_share=periodic.cache_share if periodic else None,
                cache_digit=periodic.cache_digit if periodic else 0.0,
            )
        )

    def finish(self) -> None:
        """Keep iterations alone where the log has them."""
        if self._iterations:
            self.log.lines = self._iterations


class _SglangLines:
    """SGLang's decode lines; prefill lines between them are noted.

    Args:
        log: Receives the lines.
    """

    def __init__(self, log: EngineLog) -> None:
        self.log = log
        self.ranks: dict[tuple[str, int], int] = {}
        self.prompts: set[tuple[str, int]] = set()
        self.tokens = self.hits = 0

    def finish(self) -> None:
        """Set the share of the prompts' tokens that the prefix cache had."""
        self.log.hit_share = self.hits / self.tokens if self.tokens else None

    def add(self, line: str) -> None:
        """Add a line; only the first tensor-parallel rank counts."""
        numbers = _numbers(line, SGLANG_FIELDS)
        stream = _process(line), int(numbers.get("stream", 0))
        rank = int(numbers.get("rank", 0))
        if self.ranks.setdefault(stream, rank) != rank:
            self.log.copies += SGLANG_DECODE in line
            return
        if SGLANG_PREFILL in line:
            self.prompts.add(stream)
            cached = int(numbers.get("cached", 0))
            self.hits += cached
            self.tokens += cached + int(numbers.get("new", 0))
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
                stream=(_process(line), int(numbers.get("stream", 0))),
                running=max(running, 0),
                step_s=step_s,
                prompts=prompts > 0,
                cached_tokens=_optional(numbers.get("tokens")),
                cache_share=share,
                cache_digit=digit,
            )
        )
