"""Parsed command-line words in a question: chips, a model or an operation, sizes, dtypes.

`word_forms` lists the words; `read_words` reads them in any order into a `Question`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers import name_search
from rooflines.answers.question_sizes import (
    SIZE,
    SUFFIXED,
    TIMES_SIGN,
    check_once,
    values_of,
)
from rooflines.answers.word_forms import (
    AUTO_WORDS,
    COMPARE,
    COUNT_KEYS,
    COUNTED_SIZES,
    DTYPE_KEYS,
    ENGINES,
    EXPLAIN,
    NETWORK_SOFTWARE,
    NO_LIMITS,
    NODES,
    OPTION_KEYS,
    PHASE_WORDS,
    REQUEST_KEYS,
    RESULTS,
    ROLE_KEYS,
    SIZE_KEYS,
    TRAIN_COMMAND,
    UNIT_NOUNS,
    VERSUS,
    is_key,
    key_name,
    says_nothing,
)
from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.basics.file_kinds import check_kind
from rooflines.basics.quantities import MFU, SCALES_BY_KIND, is_measured_rate, quantity_kind
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.architecture import TRAIN
from rooflines.models.library import close_models, is_named, is_path, model_entries
from rooflines.theory.operation import NAMED_OPERATIONS
from rooflines.training.parallel_plan import ZERO_STAGES, TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.models.model import Model

PRODUCT = re.compile(r"[xX×*._,]*\d[\dxX×*._,kKmMgG]*")
"""Sizes, even where one is missing."""

WRITTEN_OUT = re.compile(r"([\w-]+),([\w-]+)->([\w-]+)@([\w-]+)")
"""A dtype combination that has no name: x,w->out@compute."""

SIGNS = "xX×*"
"""Separators that can end one sizes word, or begin the next."""

CHIPS = re.compile(r"(\d+) ?[xX×*] ?([A-Za-z].*)|([A-Za-z].*?) ?[xX×*] ?(\d+)")
"""A number of chips beside their name: 8xh100 or h100x8."""

CHIP_NUMBER = re.compile(r"\d{4}")
"""A number that may stand for the only chip whose name has it, such as 4090."""

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

FULL_STOP = "."
"""End of a sentence after a word; numbers and files have it inside."""

TPU_SLICE = re.compile(r"(v\d+[a-z]*)-(\d+)", re.IGNORECASE)
"""A slice of TPUs by the cloud's name, such as v6e-8."""

TENSOR_CORES = {"v2": 2, "v3": 2, "v4": 2, "v5p": 2}
"""TensorCores of a chip, which the number in a slice's name counts [1]."""

LETTERS = ("B", "S", "T", "M", "N", "K", "D", "F")
"""Sizes whose letter may stand apart: M 4096."""

WHOLE = re.compile(r"\d+")
"""A whole number."""

LIKE_A_NUMBER = re.compile(r"[\d$.][\w.,/%$+-]*")
"""A word that follows a key: batch 32, within 50ms, ctx 8k."""

KV_WORDS = ("kv", "kv-cache", "kvcache")
"""Words after a dtype of the KV cache: fp8 kv cache."""

FULL = "full"
"""Word after an MFU that counts all token pairs."""

MATMUL_ROWS = "64"
"""B of a matmul whose D and F are typed alone."""

FSDP = "fsdp"
"""Word for replicas that share weights, gradients and states."""

BATCH_TOKENS_KEY = "batch_tokens"
"""Key of a step's tokens."""

MAX_NAME_WORDS = 6
"""Words in the longest name that is typed unquoted [1]."""

BY_LETTER = "write sizes by their letters, such as B=64 S=8192; dtypes by name, such as fp8"

FIX = "leave it out, or correct it; write sizes as 128x8192x8192, those of a model as B=64 S=8192"

EVERY_SPLIT = "auto"
"""Every split."""


class Mistake(NamedTuple):
    """Mistake in a word, and the words that would do in its place.

    Attributes:
        error: The mistake.
        word: The word.
        instead: Words in its place; empty: none.
    """

    error: RooflinesError
    word: str
    instead: tuple[str, ...] = ()


@dataclass
class Question:
    """Parts named in a question; None or empty: not named.

    Attributes:
        chips: Ids, or what stands in their place.
        operation, model: A name; at most one of the two.
        dtypes: Combination or format names, or those by tensor as a config has them.
        roles: Formats by tensor class, besides `dtypes`.
        splits: Split or plan keys, several for a table; or `auto`.
        other_models: Further models of a comparison.
        count: Chips that share the model, typed beside them [1].
        product: Sizes in order, such as 128x8192x8192; also typed as several words.
        sizes: Sizes by letter.
        request: Prompt tokens, `input`, and answer tokens, `output`, as typed.
        options: Command options that were typed as words.
        notes: What was taken for what.
        mistakes: Mistakes in words, for one message with those found later.
        tokens: Words as they were read.
    """

    chips: list[str] = field(default_factory=list)
    operation: str | None = None
    model: str | Model | None = None
    dtypes: list[Any] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    splits: list[Any] = field(default_factory=list)
    other_models: list[str | Model] = field(default_factory=list)
    count: int | None = None
    product: Any = None
    sizes: dict[str, Any] = field(default_factory=dict)
    request: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def take(self, kind: str, word: str) -> None:
        """Keep an operation or model word.

        Raises:
            RooflinesError: This kind is given already.
        """
        current = getattr(self, kind)
        if current is not None and current != word:
            twice = f"is given twice, {quote(current)} and {quote(word)}"
            raise RooflinesError(kind, twice, "ask for one at a time")
        setattr(self, kind, word)

    def add(self, kind: str, word: str) -> None:
        """Keep a word that can have several neighbours, each once."""
        current: list[str] = getattr(self, kind)
        if word not in current:
            current.append(word)

    def find(self, kind: str, match: name_search.Match) -> None:
        """Keep a name that a word stands for, and say so."""
        self.add(kind, match.name)
        self.notes += [match.note] if match.note else []

    def keep(self, kind: str, key: str, value: str) -> None:
        """Keep a value by key.

        Raises:
            RooflinesError: The key has another value already.
        """
        values: dict[str, str] = getattr(self, kind)
        if values.get(key, value) != value:
            twice = f"is given twice, {quote(values[key])} and {quote(value)}"
            raise RooflinesError(key, twice, "leave out one of them")
        values[key] = value

    def check(self, later: Sequence[RooflinesError] = ()) -> None:
        """Raise the mistakes in words, and later ones, in one message.

        Args:
            later: Mistakes in what the words ask for; those at a place of the former are left out.
        """
        errors = [mistake.error for mistake in self.mistakes]
        if in_files := [error for error in errors if error.file]:
            raise RooflinesError.combine(in_files)
        places = {error.where for error in errors}
        errors += [error for error in later if error.where not in places]
        if errors:
            raise RooflinesError.combine(errors)


@contextmanager
def all_mistakes(question: Question) -> Iterator[None]:
    """Raise the mistakes in words with those of the block.

    Raises:
        RooflinesError: There are any.
    """
    try:
        yield
    except RooflinesError as error:
        question.check(error.errors)
    question.check()


def read_words(words: Iterable[str], chips: Mapping[str, Chip], command: str = EXPLAIN) -> Question:
    """Words in any order, as `word_forms` lists them.

    Args:
        words: Such as `h100 128x8192x8192 bf16`, or `h100 llama-3.1-70b B=64 S=8k`; an operation
            is a name or an einsum.
        chips: Catalogue entries by id.
        command: Command that asks.

    Raises:
        RooflinesError: A word is nothing known, or something is given twice.
    """
    question = parse_words(words, chips, command)
    question.check()
    return question


def parse_words(
    words: Iterable[str], chips: Mapping[str, Chip], command: str = EXPLAIN
) -> Question:
    """Parse as `read_words`; mistakes are in the question."""
    question = Question()
    texts = [text for word in words for text in _words(word, chips)]
    question.tokens = [text for text in _joined(texts, chips) if text not in (*STOPS,)]
    parts = [part for text in question.tokens for part in _listed(text, chips)]
    reader = _Reader(question, chips, command)
    if (
        parts
        and CHIP_NUMBER.fullmatch(parts[0])
        and not any(name_search.find_chip(word, chips) for word in parts)
    ):
        if match := name_search.search_chip(parts[0], chips):
            parts[0], question.notes = match.name, [match.note]
        elif any(re.search(r"\d[xX×*]|=", word) for word in parts[1:]):  # with sizes of their own
            question.chips.append(parts.pop(0))
    unknown = [word for word in parts if not (TIMES_SIGN.fullmatch(word) or reader.read(word))]
    for word in unknown:
        reader.guess(word)
    reader.finish()
    return question


# ---------------------------------------------------------------- words


def _words(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Split quoted words; einsums, sizes with spaces around `=`, paths and chips stay whole."""
    whole = (SIZE.fullmatch(word) and word.count("=") == 1) or name_search.find_chip(word, chips)
    if whole or "->" in word or is_path(word):
        return [word]
    return [part for text in word.split() for part in _without_stops(text)]


def _without_stops(text: str) -> list[str]:
    """A word, and the punctuation after it as another."""
    bare = text.rstrip(STOPS)
    if text.endswith(FULL_STOP) and text.rstrip(FULL_STOP).isalpha() and text.lower() not in VERSUS:
        return [text.rstrip(FULL_STOP)]
    return [bare, text[-1]] if bare and bare != text else [text]


def _joined(words: Sequence[str], chips: Mapping[str, Chip]) -> list[str]:
    """Words that belong together as one: names with spaces, `batch 32`, `M = 128`, `8 x h100`."""
    joined: list[str] = []
    at = 0
    while at < len(words):
        length, text = _longest(words[at:], chips)
        joined.append(text)
        at += length
    return joined


def _longest(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """Count and text: words that belong to the first [1]."""
    first = words[0]
    for length in range(min(MAX_NAME_WORDS, len(words)), 1, -1):
        text = " ".join(words[:length])
        if is_named(text) or _is_new_chip(words[:length], text, chips):
            return length, text
        if name_search.SIZED.fullmatch(words[length - 1].lower()) and _is_model(text):
            return length, text
    length, text = _keyed(words)
    if length == 1 and first[:1].isdigit():
        return _numbered(words, chips)
    return _phrase(words) or (length, text)


def _phrase(words: Sequence[str]) -> tuple[int, str] | None:
    """A phrase of two or three words, as for `_longest`: `fp8 KV cache`, `compute bound`."""
    first, second, third = (word.lower() for word in [*words, "", ""][:3])
    if second in KV_WORDS and name_search.find_dtypes(first):
        return (3 if second == "kv" and third == "cache" else 2), f"kv={first}"
    if first == "per" and second in UNIT_NOUNS:
        return 2, "per"
    return (2, f"{first}-bound") if second == "bound" and f"{first}-bound" in RESULTS else None


def _numbered(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """A number with what follows, as for `_longest`: `650 TFLOPS`, `8x h100`, `15T tokens`."""
    first, second, third, *_ = [*words, "", ""]
    taken = 1, first
    if cube := CUBE.fullmatch(first):
        taken = 1, "x".join([cube[1]] * 3)
    elif not second:
        pass
    elif is_measured_rate(f"{first}{second}") or _is_time(first, second):
        taken = 2, f"{first}{second}"
    elif count := COUNT.fullmatch(first):
        if _chip(second, chips):
            taken = 2, f"{count[1]}x{second}"
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
    """A key with its value, `batch 32` or `M = 128`, as for `_longest`."""
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
    if not (is_size or (is_key(first) and LIKE_A_NUMBER.fullmatch(second))):
        return 1, first
    in_units = bool(third) and (_is_time(second, third) or is_measured_rate(f"{second}{third}"))
    return (3, f"{first}={second}{third}") if in_units else (2, f"{first}={second}")


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
    if noun in COUNT_KEYS or (
        noun in COUNTED_SIZES and not any(LIKE_A_NUMBER.fullmatch(word) for word in rest[:1])
    ):
        return 2, f"{noun}={first}"
    if not WHOLE.fullmatch(first):
        return 1, first
    if noun in NODES:
        return _nodes(words, chips)
    if TIMES_SIGN.fullmatch(second) and rest and _chip(rest[0], chips):
        return 3, f"{first}x{rest[0]}"
    followed = any(WHOLE.fullmatch(word) for word in rest[:1])
    if int(first) > 1 and not followed and _chip(second, chips):
        return 2, f"{first}x{second}"
    return 1, first


def _nodes(words: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """Nodes with the chips in each: `2 nodes of 8xh100`."""
    skipped = 1 if len(words) > 2 and words[2].lower() in ("of", "with", "x") else 0  # noqa: PLR2004
    length, text = _longest(words[2 + skipped :], chips) if len(words) > 2 + skipped else (0, "")
    match = CHIPS.fullmatch(text)
    if match is None or _chip(match[2] or match[3], chips) is None:
        return 1, words[0]
    count = int(words[0]) * int(match[1] or match[4])
    return 2 + skipped + length, f"{count}x{match[2] or match[3]}"


def _chip(word: str, chips: Mapping[str, Chip]) -> name_search.Match | None:
    """Chip that a word names, or the only one that contains it."""
    if match := name_search.find_chip(word, chips):
        return match
    try:
        return name_search.search_chip(word, chips)
    except RooflinesError:
        return None


def _listed(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Chips, dtypes or splits in a list such as `h100,b200`; else the word itself."""
    parts = word.split(",")
    listed = all(
        name_search.find_dtypes(part) or _chip(part, chips) or TrainingPlan.keys_of(part)
        for part in parts
    )
    return parts if len(parts) > 1 and listed else [word]


# ---------------------------------------------------------------- reading


class _Reader:
    """Reader of words into a question.

    Args:
        question: What is read so far.
        chips: Catalogue entries by id.
        command: Command that asks.
    """

    def __init__(self, question: Question, chips: Mapping[str, Chip], command: str) -> None:
        self.question, self.chips, self.command = question, chips, command
        self.single_keys: dict[str, list[str]] = {}
        self.whole_splits: list[dict[str, str]] = []
        self.checkpoint: name_search.Checkpoint | None = None
        self.batch_tokens: str | None = None
        self.bare_time: str | None = None
        self.readers = (
            self._phase,
            self._chips,
            self._dtypes,
            self._operation,
            self._path,
            self._size,
            self._key,
            self._split,
            self._count,
            self._quantity,
            self._sized_model,
            self._product,
            self._model,
            self._engine,
            self._group,
            self._spoken,
            self._part_of_a_chip,
        )

    def read(self, word: str) -> bool:
        """Take a word as what it is; False: it is nothing known."""
        try:
            return any(reader(word) for reader in self.readers)
        except RooflinesError as error:
            self.mistake(error, word)
            return True

    def mistake(self, error: RooflinesError, word: str, *instead: str) -> None:
        """Keep a mistake in a word."""
        self.question.mistakes.append(Mistake(error, word, instead))

    def _phase(self, word: str) -> bool:
        phase = PHASE_WORDS.get(word.lower())
        if phase is not None:
            self.question.keep("options", "phase", phase)
        return phase is not None

    def _chips(self, word: str) -> bool:
        match = name_search.find_chip(word, self.chips)
        if match:
            self.question.find("chips", match)
        return match is not None

    def _dtypes(self, word: str) -> bool:
        dtypes = word if WRITTEN_OUT.fullmatch(word) else name_search.find_dtypes(word)
        if dtypes:
            self.question.add("dtypes", dtypes)
        return bool(dtypes)

    def _operation(self, word: str) -> bool:
        operation = name_search.find_operation(word)
        if operation:
            self.question.take("operation", operation)
        return bool(operation)

    def _path(self, word: str) -> bool:
        if is_path(word):
            self._take_model(word)
        return is_path(word)

    def _take_model(self, word: str) -> None:
        """Keep a model, in a comparison also several."""
        question = self.question
        if self.command == COMPARE and question.model not in (None, word):
            question.add("other_models", word)
        else:
            question.take("model", word)

    def _size(self, word: str) -> bool:
        match = SIZE.fullmatch(word)
        if match:
            self._keep_size(match[1], match[2])
        return match is not None

    def _keep_size(self, letter: str, size: str) -> None:
        check_once(letter, size, self.question.sizes)
        self.question.sizes[letter] = size

    def _key(self, word: str) -> bool:
        """Take KEY=VALUE: a size, tokens of a request, a dtype by role, a split, an option."""
        key, equals, value = word.partition("=")
        name = key_name(key)
        if not equals:
            return False
        if name in SIZE_KEYS:
            self._keep_size(SIZE_KEYS[name], value.strip())
        elif name in REQUEST_KEYS:
            self.question.keep("request", REQUEST_KEYS[name], value.strip())
        elif name in COUNT_KEYS:
            self._keep_count(value)
        elif name in DTYPE_KEYS and self._dtypes(value):
            pass
        elif name in ROLE_KEYS:
            self._roles(word)
        elif name in TrainingPlan.model_fields:
            self._split_keys(word)
        elif name in OPTION_KEYS:
            self.question.keep("options", OPTION_KEYS[name], value.strip())
        elif name in NO_LIMITS:
            text = f"{word}: no limit on {NO_LIMITS[name]} is solved for, compare it below"
            self.question.notes.append(text)
        elif name == FSDP:
            self._keep_split({"dp": value.strip(), "shard": ZERO_STAGES[FSDP]})
        elif name == BATCH_TOKENS_KEY:
            self.batch_tokens = value.strip()
        else:
            problem = f"has {quote(word)}, which is neither a size, dtypes nor a split"
            close = close_to(name, (*SIZE_KEYS, *REQUEST_KEYS, *ROLE_KEYS, *OPTION_KEYS))[:1]
            instead = [f"{close[0]}={value}"] if close else []
            self.mistake(RooflinesError("the question", problem, BY_LETTER), word, *instead)
        return True

    def _roles(self, word: str) -> None:
        """Take dtypes by tensor class: several in one word are a choice, else one by one."""
        if "," in word:
            self.question.add("dtypes", word)
            return
        key, _, form = word.partition("=")
        self.question.keep(
            "roles", ROLE_KEYS[key_name(key)], name_search.find_dtypes(form) or form.strip()
        )

    def _split_keys(self, word: str) -> None:
        for part in word.split(","):
            key, equals, value = part.partition("=")
            name = key_name(key)
            if not equals or name not in TrainingPlan.model_fields:
                problem = f"has {quote(part)}, which is no part of a split"
                raise RooflinesError("split", problem, "write tp=4,dp=2, or tp4-dp2")
            self._keep_split({name: value.strip()})

    def _split(self, word: str) -> bool:
        if word.lower() in AUTO_WORDS:
            self.question.add("splits", EVERY_SPLIT)
            return True
        keys = TrainingPlan.keys_of(word)
        if keys:
            self._keep_split(keys)
        return bool(keys)

    def _keep_split(self, keys: dict[str, str]) -> None:
        if len(keys) > 1:
            self.whole_splits.append(keys)
        else:
            ((key, value),) = keys.items()
            values = self.single_keys.setdefault(key, [])
            values += [] if value in values else [value]

    def _keep_count(self, count: str) -> None:
        value = count.strip()
        if not WHOLE.fullmatch(value) or not int(value):
            raise RooflinesError("chips", f"are {quote(count)}, which is no number", "write 8xh100")
        if self.question.count not in (None, int(value)):
            twice = f"are given twice, {self.question.count} and {value}"
            raise RooflinesError("chips", twice, "leave out one of them")
        self.question.count = int(value)

    def _count(self, word: str) -> bool:
        """Take a number of chips: 8xh100, h100x8."""
        if self._slice(word):
            return True
        match = CHIPS.fullmatch(word)
        if match is None:
            return False
        name, number = match[2] or match[3], match[1] or match[4]
        chip = _chip(name, self.chips)
        if chip is None:
            return False
        self.question.find("chips", chip)
        self._keep_count(number)
        return True

    def _slice(self, word: str) -> bool:
        """Take a slice of TPUs: v6e-8."""
        match = TPU_SLICE.fullmatch(word.removeprefix("tpu-"))
        if match is None:
            return False
        name = match[1].lower().replace("litepod", "e")
        chip = name_search.find_chip(f"tpu-{name}", self.chips)
        count, rest = divmod(int(match[2]), TENSOR_CORES.get(name, 1))
        if chip is None or rest or not count:
            return False
        self.question.notes.append(f"{word} is taken as {count} {chip.name}")
        self.question.add("chips", chip.name)
        self._keep_count(str(count))
        return True

    def _quantity(self, word: str) -> bool:
        """Take 50ms as the limit on the step time, in training as measured; a rate as measured."""
        if not word[:1].isdigit():
            return False
        if is_measured_rate(word):
            self.question.keep("options", "measured", word)
            return True
        is_time = quantity_kind(word) == "time"
        if is_time:
            self.bare_time = word
            key = "measured" if self.command == TRAIN else "within"
            self.question.keep("options", key, word)
        return is_time

    def _product(self, word: str) -> bool:
        question = self.question
        typed = PRODUCT.fullmatch(word) or word[:1] in "+-." or word[:1].isdigit()
        if typed:
            before = "" if question.product is None else f"{question.product.rstrip(SIGNS)}x"
            question.product = f"{before}{word.lstrip(SIGNS) if before else word}"
        return bool(typed)

    def _model(self, word: str) -> bool:
        if is_named(word):
            self._take_model(word)
            note = name_search.renamed(word)
            self.question.notes += [note] if note else []
            return True
        checkpoint = name_search.find_checkpoint(word)
        if checkpoint is None:
            return False
        self.question.take("model", checkpoint.model)
        self.question.notes.append(checkpoint.note)
        self.checkpoint = checkpoint
        return True

    def _sized_model(self, word: str) -> bool:
        """Take 8b or 70b alone as a model of this size."""
        match = name_search.search_size(word)
        if match is None or self.question.operation or self.question.model:
            return False
        self.question.take("model", match.name)
        self.question.notes.append(match.note)
        return True

    def _engine(self, word: str) -> bool:
        engine = word.lower()
        if engine in ENGINES:
            softwares = f"{ENGINES[engine] or engine},{NETWORK_SOFTWARE}"
            self.question.keep("options", "calibration", softwares)
        return engine in ENGINES

    def _group(self, word: str) -> bool:
        """Take a maker or a generation as all of its chips."""
        group = name_search.find_group(word, self.chips)
        for name in group:
            self.question.add("chips", name)
        if group:
            self.question.notes.append(f"{word} is taken as {', '.join(group)}")
        return bool(group)

    def _spoken(self, word: str) -> bool:
        return says_nothing(word)

    def _part_of_a_chip(self, word: str) -> bool:
        match = name_search.search_chip(word, self.chips)
        if match:
            self.question.find("chips", match)
        return match is not None

    # ------------------------------------------------------------ what is left

    def guess(self, word: str) -> None:
        """Take a word as a model by part of its name, or as what is missing."""
        question = self.question
        try:
            near = (
                None
                if question.operation
                or question.product
                or (question.model and self.command != COMPARE)
                else name_search.search_model(word)
            )
            if near is None:
                self._place_misspelt(word)
            else:
                self._take_model(near.name)
                question.notes.append(near.note)
        except RooflinesError as error:
            self.mistake(error, word, *error.close[:1])

    def _place_misspelt(self, word: str) -> None:
        """Take a word as what is missing, by which names are close; it is refused later."""
        question = self.question
        if self.command == COMPARE and close_to(word, self.chips):
            question.add("chips", word)
            return
        check_kind(word, "model")
        dtypes = (*dtype_entries().combinations, *dtype_entries().formats)
        close_names = {
            "chips": close_to(word, self.chips),
            "dtypes": close_to(word, dict.fromkeys(dtypes)),
            "model": close_models(word) if not question.operation and not question.product else [],
        }
        missing = [kind for kind in close_names if not getattr(question, kind)]
        close = [kind for kind in missing if close_names[kind]]
        if not close and "chips" in missing:
            close = ["chips"]
        if not close:
            all_names = [*NAMED_OPERATIONS, *self.chips, *dtypes, *model_entries()]
            problem = "which is no operation, model, size, chip or dtype combination"
            raise RooflinesError(
                "the question",
                f"has {quote(word)}, {problem}",
                FIX,
                close=close_to(word, all_names),
            )
        (question.take if close[0] == "model" else question.add)(close[0], word)

    def _divide_batch(self, tokens: str) -> None:
        """Give a step's tokens as B sequences of S."""
        sizes = {letter.upper(): size for letter, size in self.question.sizes.items()}
        word = f"{BATCH_TOKENS_KEY}={tokens}"
        try:
            (total,), (length,) = values_of(tokens, "B"), values_of(sizes.get("S", "8k"), "S")
            check_once("B", f"{tokens} tokens", sizes)
        except (RooflinesError, ValueError):
            problem = f"are {quote(tokens)} in a batch, beside other sizes"
            self.mistake(RooflinesError("tokens", problem, "write B=64 S=8192"), word)
            return
        if total % length:
            problem = f"are {total:,} in a batch, which is no multiple of S={length:,}"
            self.mistake(RooflinesError("tokens", problem, "write B=64 S=8192"), word)
            return
        self.question.sizes |= {"B": str(total // length)}
        if "S" not in sizes:
            self.question.sizes["S"] = str(length)
        sequences = f"B={total // length:,} sequences of S={length:,}"
        self.question.notes.append(f"{tokens} tokens a batch are {sequences}")

    def _fill(self) -> None:
        """Place what a word leaves open: a time or two sizes of a matmul, a context, fp4."""
        question, options = self.question, self.question.options
        fp4 = name_search.FP4
        if fp4 in (*question.dtypes, *question.roles.values()):
            makers = {self.chips[name].vendor for name in question.chips if name in self.chips}
            instead = {fp4: "mxfp4" if makers == {"AMD"} else "nvfp4"}
            question.dtypes = [instead.get(form, form) for form in question.dtypes]
            question.roles = {key: instead.get(form, form) for key, form in question.roles.items()}
            question.notes.append(f"{fp4} is taken as {instead[fp4]}")
        if question.model is None and self.bare_time and options.get("within") == self.bare_time:
            options.pop("within")
            question.keep("options", "measured", self.bare_time)
        product = str(question.product or "")
        if question.model is not None and SUFFIXED.fullmatch(product) and "S" not in question.sizes:
            question.sizes["S"], question.product = product, None
            question.notes.append(f"{product} is taken as S={product}")
        sizes = TIMES_SIGN.split(product)
        is_matmul = question.operation in (None, "matmul") and question.model is None
        if is_matmul and len(sizes) == len("DF") and all(map(str.isdigit, sizes)):
            question.product = None
            question.sizes |= {"B": MATMUL_ROWS, **question.sizes, "D": sizes[0], "F": sizes[1]}
            question.notes.append(f"{product} is taken as D x F, with B={question.sizes['B']}")

    def finish(self) -> None:
        """Combine the parts of splits, and check parts that exclude each other."""
        question = self.question
        singles = [
            dict(zip(self.single_keys, values, strict=True))
            for values in product(*self.single_keys.values())
        ]
        for whole in self.whole_splits or [{}]:
            for single in singles:
                if shared := whole.keys() & single.keys():
                    key = min(shared)
                    twice = f"has {key} twice, {whole[key]} and {single[key]}"
                    error = RooflinesError("split", twice, "leave out one of them")
                    self.mistake(error, f"{key}{single[key]}")
                elif keys := {**whole, **single}:
                    question.splits.append(keys)
        if self.checkpoint and not question.dtypes and "weights" not in question.roles:
            stored = {"weights": self.checkpoint.dtypes, **self.checkpoint.roles}
            if self.checkpoint.dtypes in dtype_entries().formats:
                question.roles = {**stored, **question.roles}
            else:
                question.dtypes = [self.checkpoint.dtypes]
        if self.batch_tokens is not None:
            self._divide_batch(self.batch_tokens)
        self._fill()
        if question.product is not None and question.sizes:
            letter, size = next(iter(question.sizes.items()))
            twice = f"are given twice, {quote(question.product)} and {quote(f'{letter}={size}')}"
            fix = f"leave one of them out, {quote(question.product)} or all with ="
            self.mistake(RooflinesError("sizes", twice, fix), question.product)
        trains = self.command == TRAIN_COMMAND or question.options.get("phase") == TRAIN
        if (
            any("shard" in keys for keys in question.splits if isinstance(keys, dict))
            and not trains
        ):
            named = next(keys["shard"] for keys in question.splits if "shard" in keys)
            words = [name for name, shard in ZERO_STAGES.items() if shard == named]
            question.notes.append(f"{' or '.join(words)} is of training: the phase is train")
            question.options["phase"] = TRAIN
