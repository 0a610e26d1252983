"""Parsed command-line words in a question: chips, a model or an operation, sizes, dtypes.

`word_forms` lists the words; `read_words` reads them in any order into a `Question`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers import name_search
from rooflines.answers.question_sizes import (
    BLAS,
    SIZE,
    SUFFIXED,
    TIMES_SIGN,
    check_once,
    values_of,
)
from rooflines.answers.word_forms import (
    ACCEPTANCE_RATES,
    AUTO_WORDS,
    COMPARE,
    COUNT_KEYS,
    DRAFT_KEYS,
    DTYPE_KEYS,
    ENGINES,
    EXPLAIN,
    NETWORK_SOFTWARE,
    NO_LIMITS,
    OPTION_KEYS,
    PHASE_WORDS,
    REQUEST_KEYS,
    ROLE_KEYS,
    SERVE_COMMAND,
    SIZE_KEYS,
    SPLIT_WORDS,
    TRAIN_COMMAND,
    UTILIZATIONS,
    VERSUS,
    key_name,
    says_nothing,
)
from rooflines.answers.word_groups import (
    BATCH_TOKENS_KEY,
    CHIPS,
    STEP_TIME,
    chip_match,
    is_count,
    joined_words,
    parts_of_list,
)
from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.basics.file_kinds import check_kind
from rooflines.basics.quantities import is_measured_rate, quantity_kind
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.support import default_route
from rooflines.kinds.kind_names import find_kind
from rooflines.models.architecture import TRAIN
from rooflines.models.layer_matrices import LAYERS, layers_of
from rooflines.models.library import (
    catalogue_id,
    close_models,
    find_model,
    is_named,
    is_path,
    model_entries,
)
from rooflines.theory.operation import NAMED_OPERATIONS
from rooflines.training.optimizers import OPTIMIZERS
from rooflines.training.parallel_plan import ZERO_STAGES, TrainingPlan, sharded_replicas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.models.model import Model

PRODUCT = re.compile(r"[xX×*._,]*\d[\dxX×*._,kKmMgG]*")
"""Sizes, even where one is missing."""

LIKE_SIZES = re.compile(r"\d[\d.,_]*(?:[eE][-+]?\d+$|[xX×*]+\d|\.\.|-\d|[:/+]|$)")
"""Beginning of what is meant as sizes, though it has none of their forms."""

OPEN_PRODUCT = re.compile(
    r"(?=.*[A-Za-z](?:[xX×*]|$))(?=.*\d)(?:[A-Za-wyzA-WYZ]|\d[\d.]*[kKmMgG]?)"
    r"(?:[xX×*](?:[A-Za-wyzA-WYZ]|\d[\d.]*[kKmMgG]?))+"
)
"""Sizes, one of which is a letter: Mx8192x28672."""

OPEN = "?"
"""Size that is asked for: M=?."""

MAX_SIZES = ("max", "maximum")
"""Sizes that are asked for, the largest: B=max."""

WRITTEN_OUT = re.compile(r"([\w-]+),([\w-]+)->([\w-]+)@([\w-]+)")
"""A dtype combination that has no name: x,w->out@compute."""

SIGNS = "xX×*"
"""Separators that can end one sizes word, or begin the next."""

CHIP_NUMBER = re.compile(r"\d{4}")
"""A number that may stand for the only chip whose name has it, such as 4090."""

BEFORE_A_CHIP = ("on", "a", "an", "single")
"""Words before a number that is a chip: on a 4090."""

COUNTED_NUMBER = re.compile(r"(\d+)[xX×](\d{4})")
"""The same with how many: 8x4090."""

TPU_SLICE = re.compile(r"(v\d+[a-z]*)-(\d+)", re.IGNORECASE)
"""A slice of TPUs by the cloud's name, such as v6e-8."""

TENSOR_CORES = {"v2": 2, "v3": 2, "v4": 2, "v5p": 2}
"""TensorCores of a chip, which the number in a slice's name counts [1]."""

GGUF = re.compile(r"q([48])_[0k1](?:_[sml])?", re.IGNORECASE)
"""A quantization of llama.cpp: q4_k_m, q8_0."""

GGUF_WEIGHTS = {"4": "w4a16-g128", "8": "w8a16"}
"""Dtypes in place of such a quantization, by its bits."""

INT8_PAIR = "w8a8"
"""Weights and activations in int8; checkpoints in fp8 are called so, too."""

GEMV = "gemv"
"""A matrix times one vector."""

MODEL_LIKE = re.compile(r"[A-Za-z][\w./]*-[\w.-]+|[A-Za-z]+[\d.]+[A-Za-z]?")
"""A name that may be a model's: bert-large, gpt2."""

GEMV_SIZES = re.compile(r"1[xX×*].*[xX×*]")
"""All sizes of a matrix times one vector: 1x4096x14336."""

LAYER_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("qkv", "qkv_proj", "qkv_projection"), "qkv"),
    **dict.fromkeys(("q_proj", "q_projection"), "q"),
    **dict.fromkeys(("k_proj", "v_proj", "k_projection", "v_projection"), "k"),
    **dict.fromkeys(("o_proj", "out_proj", "o_projection", "output_projection"), "o"),
    **dict.fromkeys(("gate_up", "gate_up_proj", "gate_up_projection"), "gate-up"),
    **dict.fromkeys(("up_proj", "gate_proj", "up_projection", "gate_projection"), "up"),
    **dict.fromkeys(("down_proj", "down_projection"), "down"),
    **dict.fromkeys(("lm_head", "lmhead", "unembed", "unembedding"), "unembed"),
    **dict.fromkeys(("mlp", "ffn"), "mlp"),
    **{name.replace("-", "_"): name for name in LAYERS if "-" in name},
}
"""Weight matrices by their names in libraries."""

NEAR_LAYERS = {"mlp": ("gate-up", "expert-gate-up", "up"), "qkv": ("q-a", "q")}
"""Matrices in place of a name that stands for several."""

LAYER_NOUNS = ("projection", "proj", "gemm", "matmul", "matrix", "weights")
"""Nouns after such a name."""

MATMUL, BATCHED_MATMUL = "matmul", "batched-matmul"
"""A matrix product, and one of each of several pairs."""

MATMUL_ROWS = "64"
"""B of a matmul whose D and F are typed alone."""

FSDP = "fsdp"
"""Word for replicas that share weights, gradients and states."""

OPEN_SPLIT = re.compile(
    r"(?:[td]p|pp|ep|cp|split|parallelism|tensor_parallel_size)=\?*", re.IGNORECASE
)
"""A split that is asked for: tp=?."""

SENTENCE = 2
"""Words that say nothing, unknown ones too, from which on a question is a sentence [1]."""

PAIR = 2
"""Fewest chips of a comparison [1]."""

BY_UNIT = "write sizes as B=64 S=8192, a limit as within=50ms, a measured number as measured=30ms"

LIST_CHIPS = "use a chip of the catalogue, such as h100-sxm or tpu-v5e; `rooflines list chips`"

OWN_CHIP = "see `rooflines list chips`, or describe your own chip in --config"

BY_LETTER = "write sizes by their letters, such as B=64 S=8192; dtypes by name, such as fp8"

FIX = "leave it out, or correct it; write sizes as 128x8192x8192, those of a model as B=64 S=8192"

OPTIMIZER_NAMES = {"adamw": "adam", "adamw-8bit": "adam-8bit", "adam8bit": "adam-8bit"}
"""Optimizers by other names."""

DRAFT_WORDS = ("speculative", "speculation", "spec", "eagle", "eagle3", "mtp", "draft", "drafting")
"""Words of speculative decoding."""

FRACTION = re.compile(r"0?\.\d+")
"""A share below one: 0.7."""

DRAFTED, ACCEPTED = "3", "1.8"
"""Drafted tokens of a step and those accepted in the mean, in place of missing ones [1]."""

ADAPTER_RANK, QUANTIZED_BASE = "16", "nf4"
"""Rank of adapters that none is typed for, and the frozen weights' format of qlora."""

EVERY_SPLIT = "auto"
"""Every split."""


class Mistake(NamedTuple):
    """Mistake in a word, and the words that would do in its place.

    Attributes:
        error: The mistake.
        word: The word.
        instead: Words in its place; empty: none.
        repeated: Whether the error is that of another word, too.
    """

    error: RooflinesError
    word: str
    instead: tuple[str, ...] = ()
    repeated: bool = False


@dataclass
class Question:
    """Parts named in a question; None or empty: not named.

    Attributes:
        chips: Ids, or what stands in their place.
        operation, model: A name; at most one of the two.
        dtypes: Combination or format names, or those by tensor as a config has them.
        roles: Formats by tensor class, besides `dtypes`.
        splits: Split or plan keys, several for a table; or `auto`.
        ask_split: Whether it asks which split.
        other_models: Further models of a comparison.
        count: Chips that share the model, typed beside them [1].
        counts: Chips that share the model, by chip, where they differ [1].
        product: Sizes in order, such as 128x8192x8192; also typed as several words.
        sizes: Sizes by letter.
        open_sizes: Letters of sizes that are asked for.
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
    ask_split: bool = False
    other_models: list[str | Model] = field(default_factory=list)
    count: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    product: Any = None
    sizes: dict[str, Any] = field(default_factory=dict)
    open_sizes: list[str] = field(default_factory=list)
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
        errors = [mistake.error for mistake in self.mistakes if not mistake.repeated]
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
    question.tokens = joined_words(words, chips)
    parts = [part for text in question.tokens for part in parts_of_list(text, chips)]
    reader = _Reader(question, chips, command)
    if not any(name_search.find_chip(word, chips) for word in parts):
        _take_number(parts, question, chips)
    reader.unknown = [
        word for word in parts if not (TIMES_SIGN.fullmatch(word) or reader.read(word))
    ]
    for word in reader.unknown:
        reader.guess(word)
    reader.finish()
    return question


def _is_whole_size(text: str) -> bool:
    return text.isdigit() or SUFFIXED.fullmatch(text) is not None


def _take_number(parts: list[str], question: Question, chips: Mapping[str, Chip]) -> None:
    """Take a number as the only chip whose name has it: first, or anywhere beside a model."""
    beside_model = any(is_named(word) or name_search.SIZED.search(word) for word in parts)
    for at, word in enumerate(parts):
        if at and not (beside_model or parts[at - 1].lower() in BEFORE_A_CHIP):
            continue
        if counted := COUNTED_NUMBER.fullmatch(word):
            match = name_search.search_chip(counted[2], chips)
            parts[at] = f"{counted[1]}x{match.name}" if match and beside_model else word
            question.tokens = [parts[at] if token == word else token for token in question.tokens]
            continue
        if not CHIP_NUMBER.fullmatch(word):
            continue
        if name_search.near_chip(f"rtx{word}") and not name_search.search_chip(word, chips):
            parts[at] = f"rtx-{word}"  # refused with a near one
            question.tokens = [parts[at] if token == word else token for token in question.tokens]
            return
        if match := name_search.search_chip(word, chips):
            parts[at] = match.name
            question.notes.append(match.note)
            if {token.lower() for token in parts[at + 1 : at + 2]} & {*VERSUS, "or", "and"}:
                continue  # 5090 vs 4090
        elif not at and any(re.search(r"\d[xX×*]|=", later) for later in parts[1:]):  # with sizes
            question.chips.append(parts.pop(0))
        return


NEAR_NAME = 0.75
"""Likeness from which on a word is a misspelt name, not a word of a sentence [1]."""


def _is_near_name(word: str, chips: Mapping[str, Chip]) -> bool:
    """Check for a word like the letters of a name that a question may have."""
    entries = dtype_entries()
    names = (*model_entries(), *chips, *entries.combinations, *entries.formats, *ENGINES)
    words = (*NAMED_OPERATIONS, *PHASE_WORDS, *SIZE_KEYS, *ROLE_KEYS, *DRAFT_WORDS)
    letters = {piece for name in (*names, *words) for piece in re.findall(r"[a-z]{3,}", name)}
    return bool(get_close_matches(word, letters, n=1, cutoff=NEAR_NAME))


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
        self.counted_chips: list[tuple[str, str]] = []
        self.whole_splits: list[dict[str, str]] = []
        self.checkpoint: name_search.Checkpoint | None = None
        self.batch_tokens: str | None = None
        self.adapter_word: str | None = None
        self.limits_ttft = False
        self.bare_time: str | None = None
        self.step_times: list[str] = []
        self.draft: dict[str, str] = {}
        self.draft_word: str | None = None
        self.network: str | None = None
        self.layer: str | None = None
        self.layer_word = ""
        self.unknown: list[str] = []
        self.unread: list[str] = []
        self.readers = (
            self._phase,
            self._chips,
            self._dtypes,
            self._layer,
            self._operation,
            self._path,
            self._size,
            self._split,
            self._key,
            self._count,
            self._quantity,
            self._sized_model,
            self._open_product,
            self._product,
            self._model,
            self._engine,
            self._speculative,
            self._optimizer,
            self._adapters,
            self._group,
            self._spoken,
            self._part_of_a_chip,
            self._network,
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
        if match := GGUF.fullmatch(word):
            dtypes = name_search.find_dtypes(GGUF_WEIGHTS[match[1]])
            note = f"{word} is taken as {dtypes}, though its blocks are of another size"
            self.question.notes.append(note)
        if dtypes:
            self.question.add("dtypes", dtypes)
        return bool(dtypes)

    def _layer(self, word: str) -> bool:
        """Take a weight matrix of a model by name: qkv, o_proj, lm-head."""
        layer = LAYER_WORDS.get(key_name(word))
        if layer is not None:
            self.layer, self.layer_word = layer, word
        return layer is not None or (self.layer is not None and word.lower() in LAYER_NOUNS)

    def _fill_layer(self) -> None:
        """Take a model's weight matrix as a matmul of its sizes; a note says so."""
        question = self.question
        if self.layer is None or not isinstance(question.model, str):
            return
        model = find_model(question.model)
        layers = layers_of(model.shape)
        if self.layer not in layers:
            problem = f"is {quote(self.layer_word)}, which is no single matrix of {model.name}"
            close = [name for name in NEAR_LAYERS.get(self.layer, ()) if name in layers]
            close = close or close_to(self.layer, layers) or [*layers]
            fix = f"use one of {', '.join(layers)}"
            error = RooflinesError("layer", problem, fix, close=close)
            self.mistake(error, self.layer_word, *close[:1])
            return
        width, outputs = layers[self.layer]
        question.model, question.operation = None, MATMUL
        typed = {letter.upper(): size for letter, size in question.sizes.items()}
        question.sizes = {"B": MATMUL_ROWS, **typed, "D": str(width), "F": str(outputs)}
        rows = "" if "B" in typed else f", with B={MATMUL_ROWS}"
        text = f"{self.layer} of {model.name} is a matmul with D={width} F={outputs}{rows}"
        question.notes.append(text)

    def _operation(self, word: str) -> bool:
        if word.lower() == GEMV:
            self.question.take("operation", "matmul")
            self._keep_size("B", "1")
            self.question.notes.append(f"{word} is taken as a matmul with B=1")
            return True
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
        if size.strip().lower() in (OPEN, "", *MAX_SIZES):
            self.question.add("open_sizes", letter.upper())
            return
        check_once(letter, size, self.question.sizes)
        self.question.sizes[letter] = size

    def _key(self, word: str) -> bool:
        """Take KEY=VALUE: a size, tokens of a request, a dtype by role, a split, an option."""
        key, equals, value = word.partition("=")
        name = key_name(key)
        if not equals:
            return False
        if self._measured_or_draft(name, value.strip()) or (
            name in DTYPE_KEYS and self._dtypes(value)
        ):
            pass
        elif name in SIZE_KEYS:
            self._keep_size(SIZE_KEYS[name], value.strip())
        elif name in REQUEST_KEYS:
            self.question.keep("request", REQUEST_KEYS[name], value.strip())
        elif name in COUNT_KEYS:
            self._keep_count(value)
        elif name in ROLE_KEYS:
            self._roles(word)
        elif name in TrainingPlan.model_fields:
            self._split_keys(word)
        elif name in OPTION_KEYS:
            self.question.keep("options", OPTION_KEYS[name], value.strip())
        elif name in NO_LIMITS:
            self.limits_ttft = True
            text = f"{word}: no limit on {NO_LIMITS[name]} is solved for, compare it below"
            self.question.notes.append(text)
        elif name == FSDP:
            self._keep_split(sharded_replicas(value.strip()))
        elif name == BATCH_TOKENS_KEY:
            self.batch_tokens = value.strip()
        else:
            problem = f"has {quote(word)}, which is neither a size, dtypes nor a split"
            close = close_to(name, (*SIZE_KEYS, *REQUEST_KEYS, *ROLE_KEYS, *OPTION_KEYS))[:1]
            instead = [f"{close[0]}={value}"] if close else []
            self.mistake(RooflinesError("the question", problem, BY_LETTER), word, *instead)
        return True

    def _measured_or_draft(self, name: str, value: str) -> bool:
        """Take drafted or accepted tokens of speculative decoding, or a measured utilization."""
        if name in UTILIZATIONS:
            self.question.keep("options", "measured", f"{value}{name}")
            return True
        key = "tokens" if name == "draft" and value.isdigit() else DRAFT_KEYS.get(name)
        if name in ACCEPTANCE_RATES and (share := FRACTION.fullmatch(value)):
            value = f"{float(share[0]):.4%}"
        if key is not None:
            self.draft[key] = value
        return key is not None

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
        if word.lower() in SPLIT_WORDS or OPEN_SPLIT.fullmatch(word):
            self.question.ask_split = True
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
        if not is_count(value):
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
        chip = chip_match(name, self.chips)
        if chip is None:
            return False
        self.question.find("chips", chip)
        self.counted_chips.append((chip.name, number))
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
        self.counted_chips.append((chip.name, str(count)))
        return True

    def _quantity(self, word: str) -> bool:
        """Take 50ms as the limit on the step time, in training as measured; a rate as measured."""
        if not word[:1].isdigit():
            return False
        if is_measured_rate(word):
            self.question.keep("options", "measured", word)
            return True
        if step := STEP_TIME.fullmatch(word):
            self.step_times.append(step[1])
            return True
        is_time = quantity_kind(word) == "time"
        if is_time:
            self.bare_time = word
            key = "measured" if self.command == TRAIN else "within"
            self.question.keep("options", key, word)
        return is_time

    def _product(self, word: str) -> bool:
        question = self.question
        typed = PRODUCT.fullmatch(word) or word[:1] in "+-." or LIKE_SIZES.match(word)
        if not typed and word[:1].isdigit():
            self._refuse_number(word)
            return True
        if typed:
            before = "" if question.product is None else f"{question.product.rstrip(SIGNS)}x"
            question.product = f"{before}{word.lstrip(SIGNS) if before else word}"
        return bool(typed)

    def _refuse_number(self, word: str) -> None:
        """Keep the mistake of a number beside an unknown chip, or with an unknown unit."""
        counted = CHIPS.fullmatch(word)
        if counted and counted[1]:
            self._refuse_chip(counted[2], f"{counted[1]}x")
            return
        problem = f"has {quote(word)}, a number that is no size, and whose unit is unknown"
        self.mistake(RooflinesError("the question", problem, BY_UNIT), word)

    def _refuse_chip(self, name: str, count: str = "") -> None:
        """Keep the mistake of a name that is no chip, with the closest one in its place."""
        close = name_search.close_chips(name, self.chips)
        word = f"{count}{name}"
        error = RooflinesError("chip", f"is {quote(name)}, which is no chip", LIST_CHIPS)
        if kind := name_search.absent_kind(name):
            problem = f"is {quote(name)}, and the catalogue has no {kind}"
            error = RooflinesError("chip", problem, OWN_CHIP)
        elif lacking := name_search.near_chip(name):
            near_id, relation = lacking
            problem = f"is {quote(name)}, which the catalogue lacks"
            fix = f"use {near_id} ({relation}), or describe your own chip in --config"
            error, close = RooflinesError("chip", problem, fix), [near_id]
        else:
            error = error.changed(close=close)
        self.mistake(error, word, *(f"{count}{instead}" for instead in close[:1]))
        for instead in close[:1]:
            self.question.add("chips", instead)

    def _open_product(self, word: str) -> bool:
        """Take sizes with a letter for one that is asked for: Mx8192x28672."""
        if not OPEN_PRODUCT.fullmatch(word) or self.question.operation not in (None, "matmul"):
            return False
        parts = TIMES_SIGN.split(word)
        letters = [BLAS.get(part.upper(), part.upper()) for part in parts if part.isalpha()]
        if not letters:  # 128x8k is sizes alone
            return False
        dims = NAMED_OPERATIONS["matmul"].dims
        if len(parts) != len(dims) or len(letters) > 1 or letters[0] not in dims:
            problem = f"have {quote(word)}, which is no size for {', '.join(dims)} but one"
            self.mistake(RooflinesError("sizes", problem, "write Mx8192x8192, or all sizes"), word)
            return True
        rest = (dim for dim in dims if dim not in letters)
        self.question.sizes |= dict(
            zip(rest, (part for part in parts if part[0].isdigit()), strict=True)
        )
        self.question.add("open_sizes", letters[0])
        return True

    def _model(self, word: str) -> bool:
        if is_named(word):
            self._take_model(word)
            note = name_search.renamed(word)
            self.question.notes += [note] if note else []
            return True
        if (released := name_search.released_model(word)) is not None:
            self.question.take("model", released)
            self.question.notes.append(f"{word} is taken as {catalogue_id(released)}")
            return True
        checkpoint = name_search.find_checkpoint(word)
        if checkpoint is None:
            return False
        self.question.take("model", checkpoint.model)
        self.question.notes.append(checkpoint.note)
        self.checkpoint = checkpoint
        return True

    def _sized_model(self, word: str) -> bool:
        """Take 8b or 70b alone as a model of this size, and llama 3 8b as a model."""
        match = name_search.search_size(word)
        if match is None and " " in word and not is_named(word):
            match = name_search.search_model(word)
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

    def _speculative(self, word: str) -> bool:
        """Take a word of speculative decoding; the numbers follow from other words."""
        if word.lower() in DRAFT_WORDS:
            self.draft_word = word
        return word.lower() in DRAFT_WORDS

    def _optimizer(self, word: str) -> bool:
        """Take an optimizer by name in training: adamw, muon."""
        name = OPTIMIZER_NAMES.get(word.lower(), word.lower())
        is_optimizer = self.command == TRAIN_COMMAND and name in OPTIMIZERS
        if is_optimizer:
            self.question.keep("options", "optimizer", name)
        return is_optimizer

    def _adapters(self, word: str) -> bool:
        """Take lora or qlora without a rank in training; a note says which rank."""
        is_adapter = word.lower() in ("lora", "qlora") and self.command == TRAIN_COMMAND
        if is_adapter:
            self.adapter_word = word.lower()
        return is_adapter

    def _fill_adapters(self) -> None:
        """Add a rank where none is typed, and the base of qlora."""
        if self.adapter_word is None:
            return
        texts = []
        if "lora" not in self.single_keys:
            self._keep_split({"lora": ADAPTER_RANK})
            texts.append(f"lora{ADAPTER_RANK}, where no rank is typed")
        if self.adapter_word == "qlora" and "base" not in self.single_keys:
            self._keep_split({"base": QUANTIZED_BASE})
            texts.append(f"on weights in {QUANTIZED_BASE}")
        self.question.notes += [", ".join(texts)] if texts else []

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
        for name in self.question.chips:
            chip = self.chips.get(name)
            sibling = f"{(chip.usual if chip else None) or name.partition('-')[0]}-{word.lower()}"
            if word.isalpha() and sibling in self.chips:
                self.question.add("chips", sibling)
                return True
        match = name_search.search_chip(word, self.chips)
        if match:
            self.question.find("chips", match)
        return match is not None

    def _network(self, word: str) -> bool:
        """Take an interconnect by name: nvlink."""
        is_network = any(word.lower() in chip.networks for chip in self.chips.values())
        if is_network:
            self.network = word.lower()
        return is_network

    def _fill_network(self) -> None:
        """Take an interconnect that its chips would not take of themselves."""
        question = self.question
        if self.network is None or "network" in question.options:
            return
        numbers = [int(number) for _, number in self.counted_chips if is_count(number)]
        named = [self.chips[name] for name in question.chips if name in self.chips]
        count = max([question.count or 1, *numbers])
        if all(self.network not in default_route(chip, count) for chip in named):
            question.keep("options", "network", self.network)

    # ------------------------------------------------------------ what is left

    def guess(self, word: str) -> None:
        """Take a word as a model by part of its name, or as what is missing."""
        question = self.question
        if name_search.near_chip(word) or name_search.absent_kind(word):
            self._refuse_chip(word)
            return
        try:
            near = (
                None
                if question.operation
                or (question.product and not name_search.is_sized(word))
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
            if error.where == "model" and error.close:  # another mistake is said
                question.model = question.model or error.close[0]

    def _place_misspelt(self, word: str) -> None:
        """Take a word as what is missing, by which names are close; it is refused later."""
        question = self.question
        if self.command == COMPARE and close_to(word, self.chips):
            question.add("chips", word)
            return
        check_kind(word, "model")
        if self.command == COMPARE and len(question.chips) < PAIR:
            question.add("chips", word)
            return
        dtypes = (*dtype_entries().combinations, *dtype_entries().formats)
        close_names = {
            "chips": close_to(word, self.chips),
            "dtypes": close_to(word, dict.fromkeys(dtypes)),
            "model": close_models(word) if not question.operation and not question.product else [],
        }
        missing = [kind for kind in close_names if not getattr(question, kind)]
        if self._is_small_talk(word):
            self.unread.append(word)
            return
        close = [kind for kind in missing if close_names[kind]]
        if not close and MODEL_LIKE.fullmatch(word) and self._asks_model():
            close = ["model"]
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

    def _is_small_talk(self, word: str) -> bool:
        """Check for an unknown word in a sentence whose subject is known, and near no name."""
        question = self.question
        subject = question.model or question.operation or question.product or question.sizes
        is_word = word.isalpha() and word.islower() and find_kind(word) is None
        fillers = sum(says_nothing(token) or token in self.unknown for token in question.tokens)
        is_sentence = is_word and bool(subject) and fillers >= SENTENCE
        is_sentence = is_sentence and self.command != COMPARE
        return is_sentence and not _is_near_name(word, self.chips)

    def _asks_model(self) -> bool:
        """Check for a question that needs a model and names none."""
        question = self.question
        asks = self.command in (TRAIN_COMMAND, SERVE_COMMAND) or "phase" in question.options
        return asks and not (question.model or question.operation or question.product)

    def _combine_draft(self) -> None:
        """Combine drafted and accepted tokens; a rate of acceptance is independent by token."""
        question, draft = self.question, self.draft
        if not (draft or self.draft_word) or "draft" in question.options:
            return
        missing = [key for key in ("tokens", "accepted") if key not in draft]
        if missing:
            texts = {"tokens": "how many tokens are drafted", "accepted": "how many are accepted"}
            problem = f"does not say {' nor '.join(texts[key] for key in missing)}"
            typed = draft.get("accepted", "")
            at_least = typed if typed.isdigit() else DRAFTED
            drafted = draft.get("tokens", max(DRAFTED, at_least, key=int))
            accepted = draft.get("accepted", min(ACCEPTED, drafted, key=float))
            fix = f"write drafted={drafted} accepted={accepted}, in the mean of a step"
            words = [token for token in question.tokens if self._is_of_draft(token)]
            error = RooflinesError("speculative decoding", problem, fix)
            self.mistake(error, words[0], f"drafted={drafted}", f"accepted={accepted}")
            for word in words[1:]:
                question.mistakes.append(Mistake(error, word, (), repeated=True))
            return
        drafted, accepted = draft["tokens"], draft["accepted"]
        if accepted.endswith("%") and drafted.isdigit():
            rate = float(accepted.removesuffix("%")) / 100
            mean = sum(rate**count for count in range(1, int(drafted) + 1))
            accepted = f"{mean:.4g}"
            text = f"{rate:.4g} a token, independently: {accepted} of {drafted} accepted"
            question.notes.append(text)
        question.options["draft"] = f"tokens={drafted},accepted={accepted}"

    def _is_of_draft(self, token: str) -> bool:
        key = key_name(token.partition("=")[0])
        return token == self.draft_word or ("=" in token and (key in DRAFT_KEYS or key == "draft"))

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
        if INT8_PAIR in question.dtypes and self.checkpoint is None:
            text = "is taken as int8 weights and activations; fp8 is the pair in 8-bit floats"
            question.notes.append(f"{INT8_PAIR} {text}")
        if self.limits_ttft and question.request.keys() == {"input"}:
            options.setdefault("phase", PHASE_WORDS["ttft"])
        for step_time in self.step_times:
            is_judged = self._has_size("B") or question.model is None or self.command == TRAIN
            is_judged = is_judged and len(question.chips) < PAIR and self.command != COMPARE
            try:
                question.keep("options", "measured" if is_judged else "within", step_time)
            except RooflinesError as error:
                self.mistake(error, step_time)
        if question.model is None and self.bare_time and options.get("within") == self.bare_time:
            options.pop("within")
            question.keep("options", "measured", self.bare_time)
        if self.bare_time and options.get("within") == self.bare_time and self._has_size("B"):
            text = (
                f"{self.bare_time} is taken as a limit; write measured={self.bare_time} if it was"
            )
            question.notes.append(f"{text} measured")
        product = str(question.product or "")
        if question.model is not None and product == "1" and question.count is None:
            product, question.product = "", None  # 1 h100
        if question.model is not None and SUFFIXED.fullmatch(product) and "S" not in question.sizes:
            question.sizes["S"], question.product = product, None
            question.notes.append(f"{product} is taken as S={product}")
        sizes = TIMES_SIGN.split(product)
        batched = NAMED_OPERATIONS[BATCHED_MATMUL]
        is_product = question.operation in (None, MATMUL) and question.model is None
        if is_product and len(sizes) == len(batched.dims) and all(map(_is_whole_size, sizes)):
            question.operation = BATCHED_MATMUL
            letters = " x ".join(batched.dims)
            question.notes.append(f"{product} is taken as {letters} of a {BATCHED_MATMUL}")
        is_matmul = question.operation in (None, "matmul") and question.model is None
        if is_matmul and len(sizes) == len("DF") and all(map(str.isdigit, sizes)):
            question.product = None
            question.sizes |= {"B": MATMUL_ROWS, **question.sizes, "D": sizes[0], "F": sizes[1]}
            question.notes.append(f"{product} is taken as D x F, with B={question.sizes['B']}")

    def _has_size(self, letter: str) -> bool:
        return letter in {typed.upper() for typed in self.question.sizes}

    def _combine_counts(self) -> None:
        """Combine numbers of chips: one for all, one for each chip, or of one chip several."""
        question = self.question
        numbers = dict.fromkeys(number for _, number in self.counted_chips)
        names = dict.fromkeys(name for name, _ in self.counted_chips)
        several = len(numbers) > 1 and question.count is None and all(map(is_count, numbers))
        if several and len(names) == len(self.counted_chips):
            question.counts = dict.fromkeys(question.chips, 1)
            question.counts |= {name: int(number) for name, number in self.counted_chips}
        elif several and len(names) == len(question.chips) == 1 and not self.single_keys:
            self.single_keys["tp"] = [*numbers]
        else:
            for number in numbers:
                try:
                    self._keep_count(number)
                except RooflinesError as error:
                    self.mistake(error, number)

    def _note_unread(self) -> None:
        """Say which words of a sentence are not read."""
        if self.unread:
            verb = "is" if len(self.unread) == 1 else "are"
            self.question.notes.append(f"{', '.join(self.unread)} {verb} not read")

    def finish(self) -> None:
        """Combine the parts of splits, and check parts that exclude each other."""
        question = self.question
        self._note_unread()
        self._fill_adapters()
        self._combine_counts()
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
        self._combine_draft()
        self._fill_layer()
        self._fill()
        self._fill_network()
        if GEMV in map(str.lower, question.tokens) and GEMV_SIZES.match(str(question.product)):
            question.sizes.pop("B", None)
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
