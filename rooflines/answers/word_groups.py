"""Words of a question that belong together as one: names with spaces, `batch 32`, `8 x h100`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rooflines.answers import name_search
from rooflines.answers.question_sizes import SIZE, SUFFIXED, TIMES_SIGN
from rooflines.answers.word_forms import (
    COUNT_KEYS,
    COUNTED_SIZES,
    GLOBAL_BATCHES,
    NODES,
    PARALLELISM_KEYS,
    RESULTS,
    UNIT_NOUNS,
    VERSUS,
    is_key,
    key_name,
)
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import MFU, SCALES_BY_KIND, is_measured_rate, quantity_kind
from rooflines.models.library import is_named, is_path
from rooflines.training.parallel_plan import TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.hardware.entries import Chip

CHIPS = re.compile(r"(\d+) ?[xX×*] ?([A-Za-z].*)|([A-Za-z].*?) ?[xX×*] ?(\d+)")
"""A number of chips beside their name: 8xh100 or h100x8."""

COUNT = re.compile(r"(\d+)[xX×]")
"""A number of chips before their name: 8x h100."""

CUBE = re.compile(r"(\d+[kK]?)\^3")
"""Three equal sizes: 8192^3."""

TOKENS_TRAINED = re.compile(r"\d+(?:\.\d+)?[TtBb]")
"""A number of tokens too large for a context."""

BATCH_TOKENS = re.compile(r"tokens? ?(?:/ ?|per |a |in a )?(?:batch|step)\b|token batch\b")
"""Words after the tokens of a step of training: tokens per batch."""

STOPS = ",?;!"
"""Punctuation that may follow a word."""

COLON = ":"
"""End of a heading: mfu: 7b."""

FULL_STOP = "."
"""End of a sentence after a word; numbers and files have it inside."""

LETTERS = ("B", "S", "T", "M", "N", "K", "D", "F")
"""Sizes whose letter may stand apart: M 4096."""

WHOLE = re.compile(r"\d+")
"""A whole number."""

LIKE_A_NUMBER = re.compile(r"[\d$.][\w.,/%$+-]*")
"""A word that follows a key: batch 32, within 50ms, ctx 8k."""

GLUED = re.compile(r"(bs|batch|ctx|seq|isl|osl)(\d+[kKmM]?)", re.IGNORECASE)
"""A key with its number: bs64, ctx8k."""

EINSUM_ARROW = re.compile(r"[A-Za-z]\s*->")
"""Arrow after a letter, in an einsum."""

WIDTHS = re.compile(r"(\d+[kK]?)->(\d+[kK]?)")
"""Widths of a linear layer: 4096->14336."""

GLUED_AFTER = re.compile(r"(\d+[kK]?)(ctx|isl|osl|seq)", re.IGNORECASE)
"""A number with its key behind: 8192ctx."""

PRICE = re.compile(
    r"\$?(\d+(?:\.\d+)?)\$?(?:/|per)(?:h|hr|hour|gpu-?h|gpuh|gpu-?hour)", re.IGNORECASE
)
"""A price of one chip: 2.5$/h."""

STEP_TIME = re.compile(
    r"(\d[\d.]*(?:ms|us|µs|s|sec))/(?:tok(?:en)?s?|step|iter(?:ation)?)", re.IGNORECASE
)
"""A time of a step with its noun: 95ms/tok."""

LIMIT = re.compile(r"(tpot|itl|ttft|latency|time)(?:<=?|≤)(.+)", re.IGNORECASE)
"""A limit: TPOT<30ms."""

KV_WORDS = ("kv", "kv-cache", "kvcache")
"""Words after a dtype of the KV cache: fp8 kv cache."""

ROLE_BEFORE = ("kv", "kv_cache", "kvcache", "weights")
"""Words before a dtype of theirs: kv fp8."""

NUMBERS = dict(
    zip(
        ("one", "two", "three", "four", "six", "eight", "sixteen"),
        (1, 2, 3, 4, 6, 8, 16),
        strict=True,
    )
)
"""Numbers in letters."""

MACHINES = ("dgx", "hgx")
"""Servers with eight chips, before the chip's name."""

RACK = re.compile(r"nvl(\d+)", re.IGNORECASE)
"""A rack by its number of chips: NVL72."""

RACK_CHIP = "gb200"
"""Chip of a rack that names none."""

GIGABYTES = re.compile(r"(\d+)\s?gb?", re.IGNORECASE)
"""Memory in a chip's name."""

MAX_NODE = 16
"""Most chips of a server [1]."""

MAX_NAME_WORDS = 6
"""Words in the longest name that is typed unquoted [1]."""

FULL = "full"
"""Word after an MFU that counts all token pairs."""

BATCH_TOKENS_KEY = "batch_tokens"
"""Key of a step's tokens."""


def joined_words(words: Iterable[str], chips: Mapping[str, Chip]) -> list[str]:
    """Words as they are read: quoted ones apart, those that belong together as one, without stops.

    Args:
        words: As typed.
        chips: Entries by id.
    """
    texts = [rewritten_word(text) for word in words for text in _words(word, chips)]
    return [text for text in _joined(texts, chips) if text not in (*STOPS,)]


def rewritten_word(text: str) -> str:
    """A word with its key and value apart: bs64, TPOT<30ms, 2.5$/h."""
    if match := WIDTHS.fullmatch(text):
        return f"{match[1]}x{match[2]}"
    if match := GLUED.fullmatch(text):
        return f"{match[1].lower()}={match[2]}"
    if match := GLUED_AFTER.fullmatch(text):
        return f"{match[2].lower()}={match[1]}"
    if match := PRICE.fullmatch(text):
        return f"price={match[1]}"
    if match := LIMIT.fullmatch(text):
        key = "within" if match[1].lower() in ("latency", "time") else match[1].lower()
        return f"{key}={_without_step(match[2])}"
    return text


def _without_step(text: str) -> str:
    """A time without its noun: 95ms of 95ms/tok; other texts as they are."""
    match = STEP_TIME.fullmatch(text)
    return match[1] if match else text


def _words(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Split quoted words; einsums, sizes with spaces around `=`, paths and chips stay whole."""
    whole = (SIZE.fullmatch(word) and word.count("=") == 1) or name_search.find_chip(word, chips)
    if whole or EINSUM_ARROW.search(word) or is_path(word):
        return [word]
    return [part for text in word.split() for part in _without_stops(text)]


def _without_stops(text: str) -> list[str]:
    """A word, and the punctuation after it as another."""
    bare = text.rstrip(STOPS)
    if text.endswith(COLON) and text.rstrip(COLON):
        return [text.rstrip(COLON)]
    if text.endswith(FULL_STOP) and text.rstrip(FULL_STOP).isalpha() and text.lower() not in VERSUS:
        return [text.rstrip(FULL_STOP)]
    return [bare, text[-1]] if bare and bare != text else [text]


def _joined(words: Sequence[str], chips: Mapping[str, Chip]) -> list[str]:
    """Words that belong together as one: names with spaces, `batch 32`, `M = 128`, `8 x h100`."""
    joined: list[str] = []
    at = 0
    while at < len(words):
        length, text = longest_words(words[at:], chips)
        joined.append(text)
        at += length
    return joined


def longest_words(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """Count and text: words that belong to the first [1].

    Args:
        words: As typed, without those before.
        chips: Entries by id.
    """
    taken = _name(words, chips) or _machine(words, chips) or _batch_of_tokens(words)
    if taken or (taken := _spoken_phrase(words)):
        return taken
    length, text = _keyed(words)
    if length == 1 and words[0][:1].isdigit():
        return _numbered(words, chips)
    return _role(words) or _phrase(words) or (length, text)


def _name(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str] | None:
    """A model's or chip's name in several words, as for `longest_words`."""
    for length in range(min(MAX_NAME_WORDS, len(words)), 1, -1):
        text = " ".join(words[:length])
        sized = name_search.SIZED.fullmatch(words[length - 1].lower()) and _is_model(text)
        if sized or is_named(text) or _is_new_chip(words[:length], text, chips):
            return length, text
    return None


def _machine(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str] | None:
    """Chips in words, as for `longest_words`: `two h100`, `DGX H100`, `GB200 NVL72`."""
    first, second, third, *_ = (word.lower() for word in [*words, "", ""])
    taken = None
    if second and first in NUMBERS:
        taken = _as_number(words, chips)
    elif second and first in MACHINES:
        length, text = longest_words(words[1:], chips)
        if CHIPS.fullmatch(text) or chip_match(text, chips):
            taken = 1 + length, text if CHIPS.fullmatch(text) else f"8x{text}"
    elif alone := RACK.fullmatch(first):
        taken = 1, f"{alone[1]}x{RACK_CHIP}"
    elif name_search.find_chip(words[0], chips):
        if rack := RACK.fullmatch(second):
            taken = 2, f"{rack[1]}x{words[0]}"
        elif second in NODES and (count := _chips_in_node(words[0], chips)):
            taken = 2, f"{count}x{words[0]}"
        for length, text in ((2, second), (3, f"{second}{third}")):
            memory = GIGABYTES.fullmatch(text)
            named = memory and name_search.find_with_memory(words[0], int(memory[1]), chips)
            taken = taken or ((length, named) if named else None)
    return taken


def _as_number(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str] | None:
    """A number in letters before chips or their nouns: `two RTX 4090`, `one node of H100`."""
    digits = str(NUMBERS[words[0].lower()])
    noun = key_name(words[1])
    if noun in (*NODES, *COUNT_KEYS, *COUNTED_SIZES):
        return _counted([digits, *words[1:]], chips)
    length, text = longest_words(words[1:], chips)
    if chip_match(text, chips):
        return 1 + length, f"{digits}x{text}"
    match = CHIPS.fullmatch(text)  # a machine
    match = match if match and chip_match(match[2] or match[3], chips) else None
    count = int(digits) * int(match[1] or match[4]) if match else 0
    return (1 + length, f"{count}x{match[2] or match[3]}") if match else None


def _chips_in_node(word: str, chips: Mapping[str, Chip]) -> int:
    """Chips of a usual server: those that the first interconnect joins; 0: not known [1]."""
    match = name_search.find_chip(word, chips)
    networks = chips[match.name].networks if match else {}
    domain = next((network.domain for network in networks.values()), None)
    return domain if isinstance(domain, int) and domain <= MAX_NODE else 0


class SpokenPhrase(NamedTuple):
    """A phrase of several words, and the word that it stands for.

    Attributes:
        marker: Letters that the phrase has; without them its pattern is not compiled.
        pattern: Regular expression of the whole phrase, in any case.
        word: Template of the word.
    """

    marker: str
    pattern: str
    word: str


AT_MOST = "less than|no more than|at most|max|<=?|≤"
"""Words before a limit."""

SPOKEN_PHRASES = tuple(
    SpokenPhrase(*phrase)
    for phrase in (
        ("/h", r"\$?(\d+(?:\.\d+)?) ?(?:usd|dollars?|\$)?/(?:h|hr|hour)", r"price=\1"),
        ("per ", r"(\d[\d.]*) ?(ms|us|s|sec) per (?:token|step|iter(?:ation)?)", r"\1\2/step"),
        ("/", r"(\d[\d.]*) (ms|us|s|sec)/(?:tok(?:en)?|step|iter(?:ation)?)", r"\1\2/step"),
        (
            " ",
            rf"(tpot|itl|ttft) (?:is )?(?:under|below|within|of|{AT_MOST}) ?(\d[\d.]*) ?(ms|us|s)",
            r"\1=\2\3",
        ),
        (
            " ",
            rf"(?:{AT_MOST}) (\d[\d.]*) ?(ms|us|s)(?:(?:/| per )tok(?:en)?)?",
            r"within=\1\2",
        ),
        (" ", r"(?:under|below|within) (\d[\d.]*) ?(ms|us|s)(?:/| per )tok(?:en)?", r"within=\1\2"),
        ("bit", r"(?:in )?(4|8)[- ]bits?(?: quanti[sz](?:ed|ation))?", r"\1bit"),
        ("bit", r"(?:in )?16[- ]bits?", "bf16"),
        ("m", r"(?:apple )?(m[1-5])[ -](pro|max|ultra)", r"\1-\2"),
        ("lora", r"lora(?: rank| r)?[ =](\d+)", r"lora\1"),
        ("lora", r"lora r(?:ank)?=(\d+)", r"lora\1"),
        ("rank", r"rank[ =](\d+)", r"lora\1"),
        ("time to", r"time to first token\b", "prefill"),
        ("fine", r"full (?:fine-?tun(?:e|ing)|fine tun(?:e|ing))", "finetune"),
        ("recomp", r"(full|selective)(?: activation)? recomput(?:e|ation)", r"recompute=\1"),
        ("recomp", r"recomput(?:e|ation) (full|selective|none)", r"recompute=\1"),
        ("recomp", r"(?:no|without) recomput(?:e|ation)", "recompute=none"),
        ("checkpointing", r"(?:full )?(?:activation|gradient) checkpointing", "recompute=full"),
        ("selective", r"selective (?:activation )?checkpointing", "recompute=selective"),
        (
            "/h",
            r"(?:usd|\$|dollars?|price)(?:/| per )(?:h|hr|hour)[ =]\$?(\d+(?:\.\d+)?)",
            r"price=\1",
        ),
        ("rtx", r"(rtx|gtx) (\d{4})", r"\1-\2"),
        ("spec", r"spec(?:ulative)? decod(?:e|ing)", "speculative"),
        ("token", r"(\d+) (?:draft(?:ed)?|speculative) tokens?", r"drafted=\1"),
        ("draft", r"draft(?: of| length)? (\d+)(?: tokens?)?", r"drafted=\1"),
        ("spec", r"spec(?:ulative)? (\d+)(?: tokens?)?", r"drafted=\1"),
        ("gamma", r"gamma (\d+)", r"drafted=\1"),
        ("accept", r"accept(?:ance)?(?: rate)?(?: of)? 0?(\.\d+)", r"acceptance=0\1"),
        (
            "tok",
            r"(?:per|/|for|a) (?:1 ?m|(?:1 |one )?million|m) ?(?:input |output )?tok(?:en)?s?",
            "per",
        ),
        ("->", r"(\d+[kK]?) ?-> ?(\d+[kK]?)", r"\1x\2"),
        ("flop", r"(\d[\d.,]*) ?([tTpP])flops?(?:/s)? ?(?:/|per )(?:gpu|chip)", r"\1\2FLOP/s"),
        ("eagle", r"eagle (\d+)(?: tokens?)?", r"drafted=\1"),
        ("mtp", r"mtp (\d+)(?: tokens?)?", r"drafted=\1"),
        ("accept", r"([\d.]+%?)(?: tokens?)? accept(?:ed|ance)(?: rate)?", r"accepted=\1"),
        (
            "accept",
            r"(?:mean )?accept(?:ed|ance)(?: tokens| length| rate)?(?: of)? ([\d.]+%?)",
            r"accepted=\1",
        ),
        ("%", r"(mfu|hfu|mbu)(?: of| is)? ([\d.]+%)", r"\2\1"),
        ("tpu", r"tpu (v\d\w*(?:-\d+)?)", r"tpu-\1"),
        (
            "user",
            r"(\d[\d.,]*) tok(?:en)?s?(?:/s| per s(?:ec(?:ond)?)?)(?: per |/)user",
            r"\1tok/s/user",
        ),
        (
            "tok",
            r"(\d[\d.,]*) tok(?:en)?s?(?:/s| per s(?:ec(?:ond)?)?)(?: per |/)(?:gpu|chip)",
            r"\1tok/s/gpu",
        ),
        ("tok", r"(\d[\d.,]*) tok(?:en)?s?(?:/s| per s(?:ec(?:ond)?)?)", r"\1tok/s"),
        ("lm head", r"lm head", "lm-head"),
        ("proj", r"(q|k|v|o|qkv|up|down|gate|output) proj(?:ection)?", r"\1-projection"),
        ("batched", r"(?:strided )?batched[ -](?:gemm|matmul|mm)s?", "batched-matmul"),
        (
            "concurrent",
            r"(\d+) concurrent(?: (?:requests|users|sequences))?",
            r"concurrency=\1",
        ),
        (" in", r"(?![2-5]0[6-9]0 in)(\d+[kK]|\d{3,}) (?:tokens? )?(?:in|inputs?)", r"isl=\1"),
        (" prompt", r"(\d+[kK]|\d{3,})[ -]?(?:tok(?:en)?s?)? ?prompts?", r"isl=\1"),
        ("generat", r"generat(?:e|ing) (\d+[kK]?) tok(?:en)?s?", r"osl=\1"),
        ("of ", r"(?:prompts?|inputs?) of (\d+[kK]?)(?: tok(?:en)?s?)?", r"isl=\1"),
        ("of ", r"(?:answers?|outputs?|completions?) of (\d+[kK]?)(?: tok(?:en)?s?)?", r"osl=\1"),
        (" out", r"(\d+[kK]|\d{3,}) (?:tokens? )?(?:out|outputs?)", r"osl=\1"),
        (" ", r"(\d+[kK]|\d{2,}) (?:tokens? )?(?:answers?|completions?|generated)", r"osl=\1"),
        (" len", r"(?:seq|sequence) len(?:gth)? (\d\w*)", r"seq_len=\1"),
        (" len", r"context len(?:gth)? (\d\w*)", r"ctx=\1"),
        (
            "global",
            r"global batch(?: size)?(?: of)? (\d[\d.]*[kKmMgG]?) tok(?:en)?s?",
            rf"{BATCH_TOKENS_KEY}=\1",
        ),
        ("global", r"global batch(?: size)? (\d\w*)(?! ?tok)", r"gbs=\1"),
        ("micro", r"micro[- ]batch(?: size)? (\d+)", r"micro_batch=\1"),
        ("accum", r"(?:gradient|grad) accum(?:ulation)?(?: steps)? (\d+)", r"grad_accum=\1"),
    )
)
"""Phrases, the first that matches counts."""


def _spoken_phrase(words: Sequence[str]) -> tuple[int, str] | None:
    """A phrase of the table above, as for `longest_words`."""
    for length in range(min(MAX_NAME_WORDS, len(words)), 1, -1):
        text = " ".join(words[:length])
        lower = text.lower()
        for marker, pattern, word in SPOKEN_PHRASES:
            if marker in lower and (match := re.fullmatch(pattern, text, re.IGNORECASE)):
                return length, match.expand(word)
    return None


def _role(words: Sequence[str]) -> tuple[int, str] | None:
    """A dtype and its tensors, as for `longest_words`: `fp8 KV cache`, `kv fp8`, `weights int4`."""
    first, second, third = (word.lower() for word in [*words, "", ""][:3])
    if key_name(first) in ROLE_BEFORE and name_search.find_dtypes(second):
        return 2, f"{first}={second}"
    if (first, second) == ("kv", "cache") and name_search.find_dtypes(third):
        return 3, f"kv={third}"
    if second in KV_WORDS and name_search.find_dtypes(first) and not name_search.find_dtypes(third):
        return (3 if second == "kv" and third == "cache" else 2), f"kv={first}"
    return None


def _phrase(words: Sequence[str]) -> tuple[int, str] | None:
    """A phrase of two or three words, as for `longest_words`: `tp 8`, `compute bound`."""
    first, second, third = (word.lower() for word in [*words, "", ""][:3])
    if first == "tensor" and second.startswith("parallel"):
        return (3, f"tp={third}") if WHOLE.fullmatch(third) else (2, "tp")
    if first in PARALLELISM_KEYS and WHOLE.fullmatch(second):
        return 2, f"{first}={second}"
    if first == "per" and second in UNIT_NOUNS:
        return 2, "per"
    return (2, f"{first}-bound") if second == "bound" and f"{first}-bound" in RESULTS else None


def _numbered(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """A number with what follows, as for `longest_words`: `650 TFLOPS`, `8x h100`, `15T tokens`."""
    first, second, third, *_ = [*words, "", ""]
    taken = 1, first
    if cube := CUBE.fullmatch(first):
        taken = 1, "x".join([cube[1]] * 3)
    elif not second:
        pass
    elif is_measured_rate(f"{first}{second}") or _is_time(first, second):
        taken = 2, f"{first}{second}"
    elif count := COUNT.fullmatch(first):
        length, text = longest_words(words[1:], chips)
        if chip_match(text, chips):
            taken = 1 + length, f"{count[1]}x{text}"
        elif not second[0].isdigit() and second[0] != "=":
            taken = 1, f"{COUNT_KEYS[0]}={count[1]}"
    elif TOKENS_TRAINED.fullmatch(first):
        if second.lower() == "tokens" and third != "per":
            taken = 2, f"tokens={first}"
    elif match := BATCH_TOKENS.match(" ".join(words[1:4]).lower()):
        taken = 1 + len(match[0].split()), f"{BATCH_TOKENS_KEY}={first}"
    elif WHOLE.fullmatch(first) or SUFFIXED.fullmatch(first):
        taken = _counted(words, chips)
    return taken


def _keyed(words: Sequence[str]) -> tuple[int, str]:
    """A key with its value, `batch 32` or `M = 128`, as for `longest_words`."""
    first, second, third, *_ = [*words, "", ""]
    if second.lower() == FULL and first.lower().endswith(MFU):
        return 2, f"{first} {second}"
    if second == "=" and third:
        return 3, f"{first}={third}"
    if second and (first.endswith("=") or (second.startswith("=") and len(second) > 1)):
        return 2, f"{first}{second}"
    if key_name(first) == "batch" and second.lower() == "size" and third:
        return (3, f"batch={third}") if LIKE_A_NUMBER.fullmatch(third) else (2, first)
    is_size = first.upper() in LETTERS and (WHOLE.fullmatch(second) or SUFFIXED.fullmatch(second))
    is_keyed = is_size or (is_key(first) and LIKE_A_NUMBER.fullmatch(second))
    if not is_keyed or (key_name(first) == "in" and quantity_kind(second) == "time"):
        return 1, first  # in 300us
    second = _without_step(second)
    in_units = bool(third) and (_is_time(second, third) or is_measured_rate(f"{second}{third}"))
    return (3, f"{first}={second}{third}") if in_units else (2, f"{first}={second}")


def _batch_of_tokens(words: Sequence[str]) -> tuple[int, str] | None:
    """A batch in tokens, as for `longest_words`: `global_batch=4M tokens`, `batch of 4M tokens`."""
    key, equals, value = words[0].partition("=")
    if key_name(key) not in (*GLOBAL_BATCHES, "batch", "batch_size"):
        return None
    skipped = 1 if not equals and words[1:2] in (["of"], ["="]) else 0
    size, noun, *_ = [*([value] if equals else []), *words[1 + skipped :], "", ""]
    match = SUFFIXED.fullmatch(size)
    length = 1 + skipped + (not equals)
    if match and noun.lower() in ("tokens", "token"):
        return length + 1, f"{BATCH_TOKENS_KEY}={size}"
    if match and match[2].lower() in "mg" and key_name(key) in GLOBAL_BATCHES:
        return length, f"{BATCH_TOKENS_KEY}={size}"
    return None


def _is_time(digits: str, unit: str) -> bool:
    """Check for a time whose unit is a word of its own."""
    return unit.lower() in SCALES_BY_KIND["time"] and quantity_kind(f"{digits}{unit}") == "time"


def _is_new_chip(words: Sequence[str], text: str, chips: Mapping[str, Chip]) -> bool:
    """Check for a chip's name in several words, not all of which name a chip."""
    return name_search.find_chip(text, chips) is not None and not all(
        name_search.find_chip(word, chips) for word in words
    )


def _is_model(text: str) -> bool:
    """Check for a part of a model's name."""
    try:
        return name_search.search_model(text) is not None
    except RooflinesError:
        return False


def _counted(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """A number with its noun: `32 users`, `8 gpus`, `8 x h100`, `4 mi300x`."""
    first, second, *rest = words
    noun = key_name(second)
    is_next = any(LIKE_A_NUMBER.fullmatch(word) for word in rest[:1])
    has_noun = key_name(" ".join(rest[1:2])) in (*COUNTED_SIZES, "prompts", "input", "output")
    has_noun = has_noun or (bool(rest[1:]) and is_measured_rate(f"{rest[0]}{rest[1]}"))
    if noun in COUNT_KEYS or (noun in COUNTED_SIZES and (has_noun or not is_next)):
        return 2, f"{noun}={first}"
    if not WHOLE.fullmatch(first):
        return 1, first
    if noun in NODES:
        return _nodes(words, chips)
    skipped = 1 if TIMES_SIGN.fullmatch(second) and rest else 0
    length, text = longest_words(words[1 + skipped :], chips)
    several = int(first) > 1 and not any(WHOLE.fullmatch(word) for word in words[1 + length :][:1])
    if chip_match(text, chips) and (skipped or length > 1 or several):
        return 1 + skipped + length, f"{first}x{text}"
    machine = CHIPS.fullmatch(text) if length > 1 else None  # 2 DGX H100
    if machine and chip_match(machine[2] or machine[3], chips):
        count = int(first) * int(machine[1] or machine[4])
        return 1 + skipped + length, f"{count}x{machine[2] or machine[3]}"
    return 1, first


def _nodes(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """Nodes with the chips in each: `2 nodes of 8xh100`."""
    skipped = 1 if len(words) > 2 and words[2].lower() in ("of", "with", "x") else 0  # noqa: PLR2004
    length, text = (
        longest_words(words[2 + skipped :], chips) if len(words) > 2 + skipped else (0, "")
    )
    match = CHIPS.fullmatch(text)
    if match is None and (in_node := _chips_in_node(text, chips)):
        return 2 + skipped + length, f"{int(words[0]) * in_node}x{text}"
    if match is None or chip_match(match[2] or match[3], chips) is None:
        return 1, words[0]
    count = int(words[0]) * int(match[1] or match[4])
    return 2 + skipped + length, f"{count}x{match[2] or match[3]}"


def chip_match(word: str, chips: Mapping[str, Chip]) -> name_search.Match | None:
    """Find the chip that a word names, or the only one that contains it; None: no chip."""
    if match := name_search.find_chip(word, chips):
        return match
    try:
        return name_search.search_chip(word, chips)
    except RooflinesError:
        return None


def is_count(text: str) -> bool:
    """Check for a number of chips."""
    return bool(WHOLE.fullmatch(text)) and int(text) > 0


def parts_of_list(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Chips, dtypes or splits in a list such as `h100,b200`; else the word itself."""
    parts = word.split(",")
    is_list = all(
        name_search.find_dtypes(part) or chip_match(part, chips) or TrainingPlan.keys_of(part)
        for part in parts
    )
    return parts if len(parts) > 1 and is_list else [word]
