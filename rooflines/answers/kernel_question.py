"""Questions about kernels: a kind, a fused chain, a sequence or a collective, with its sizes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers import name_search
from rooflines.answers.model_kernels import MODEL_KINDS, model_sizes
from rooflines.answers.question_sizes import values_of
from rooflines.answers.word_forms import says_nothing
from rooflines.answers.word_groups import chip_match, longest_words
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, quote
from rooflines.basics.quantities import is_measured_rate, quantity, quantity_kind
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.support import default_route
from rooflines.kinds.collectives import (
    COLLECTIVE_MEANINGS,
    PAYLOAD,
    find_collective,
    payload_bytes,
)
from rooflines.kinds.kind_names import chain_sign, checked_kind, find_kind
from rooflines.kinds.kind_table import BY_NAME
from rooflines.models.library import catalogue_id, find_model, is_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.kinds.kinds import KernelKind

PARAMETERS = "parameters"
"""Letter with a quantity: the parameters of an optimizer."""

COMMON_WORDS = {
    *("add", "mul", "multiply", "bias", "copy", "cast", "fill", "sum", "transpose", "reduction"),
    *("gather", "scatter", "reduce", "send", "broadcast", "permute", "experts"),
}
"""Names that are also words of other questions: kinds only before all words but chips."""

LETTER_NAMES = {
    **dict.fromkeys(("batch", "bs", "batch_size", "sequences", "rows", "tokens"), "B"),
    **dict.fromkeys(("seq", "seq_len", "seqlen", "ctx", "context", "isl", "kv_len"), "S"),
    **dict.fromkeys(("heads", "num_heads", "q_heads", "query_heads"), "N"),
    **dict.fromkeys(("kv_heads", "num_kv_heads", "key_heads"), "K"),
    **dict.fromkeys(("head_dim", "head_size", "d_head", "hd", "headdim", "dim_head"), "H"),
    **dict.fromkeys(("hidden", "width", "d_model", "hidden_size"), "D"),
    **dict.fromkeys(("ffn", "intermediate", "intermediate_size", "d_ff"), "F"),
    **dict.fromkeys(("num_experts",), "E"),
    **dict.fromkeys(("topk", "top_k", "experts_per_token"), "k"),
    **dict.fromkeys(("vocab", "vocabulary", "vocab_size"), "V"),
    **dict.fromkeys(("q_len", "new_tokens"), "T"),
    **dict.fromkeys(("params", "n_params"), PARAMETERS),
    **dict.fromkeys(("size", "payload", "message"), PAYLOAD),
}
"""Letter by a library's name."""

ROLE_NAMES = {
    **dict.fromkeys(("kv", "kv_cache", "cache"), "cache"),
    **dict.fromkeys(("w", "weights", "weight"), "w"),
    **dict.fromkeys(("x", "input", "activations", "in"), "x"),
    **dict.fromkeys(("out", "output"), "out"),
    "compute": "compute",
}
"""Dtype role by typed name."""

NUMBERED_ATTENTION = re.compile(r"(flash[- ]?attention|flash[- ]?attn|fa)[- ]?[234]", re.IGNORECASE)
"""A version of flash attention: flash attention 2, fa3."""

SPOKEN_COLLECTIVES = re.compile(
    r"\b(all) (reduce|gather|to all|to-all)\b|\b(reduce) (scatter)\b", re.IGNORECASE
)
"""A collective in several words: all reduce."""

GROUPED_GEMM = re.compile(
    r"\b(?:grouped?|moe|batched expert)[- _]?(?:gemm|matmul|mm)s?\b", re.IGNORECASE
)
"""A matmul of each of several groups of rows."""

SPACED_SIZES = re.compile(r"(?<=\d) ?[xX×] ?(?=\d)")
"""Sign between sizes, perhaps with spaces."""

GROUPED_WORDS = "experts gate-up ungated spread"
"""The same as routed experts: one matrix of each, without a gate, rows on all."""

CONVOLUTION = "conv2d"

MOE, EXPERTS = "moe", "experts"
"""Routed experts beside a model, and their kind."""

CONVOLUTION_LETTERS = {
    **dict.fromkeys(("N", "batch", "images", "batch_size"), "B"),
    **dict.fromkeys(("K", "out_channels", "filters", "O", "Cout", "C_out"), "F"),
    **dict.fromkeys(("in_channels", "channels", "Cin", "C_in"), "C"),
    **dict.fromkeys(("H", "W", "size", "image"), "HW"),
    **dict.fromkeys(("R", "S", "kernel", "kernel_size"), "k"),
    **dict.fromkeys(("padding", "p"), "pad"),
    **dict.fromkeys(("s", "strides"), "stride"),
}
"""Letters of a convolution by those of cuDNN and PyTorch."""

GROUPED_LETTERS = {"M": "B", "K": "D", "N": "F", "groups": "E", "G": "E", "experts": "E"}
"""Letters of routed experts by those of a grouped matmul."""

ONE_EXPERT = "k"
"""Letter for experts per token: 1 in a grouped matmul."""

MAX_KERNEL = 11
"""Largest side of a convolution's kernel that is typed as 3x3 [1]."""

WORD_CHOICES = {
    **dict.fromkeys(("bwd", "backwards"), "backward"),
    **dict.fromkeys(("non-causal", "noncausal", "bidirectional", "cross"), "full"),
    "decoding": "decode",
}
"""Options by further words."""

SAID_NOTHING = {
    *("forward", "fwd", "kernel", "fused", "chips", "gpus", "flash", "paged", "op", "nccl"),
    *("layer", "step", "optimizer", "update", "latency", "network"),
    *("over", "across", "among", "between", "elements", "length", "len"),
    *("busbw", "algbw", "lookup", "table"),
    *("arithmetic", "intensity", "kernels", "convolution", "image", "images", "layers"),
}
"""Words that ask for nothing in particular."""

SPOKEN_LETTERS = (
    (r"(?:kv|key) heads? (\d+)", r"kv_heads=\1"),
    (r"(\d+) (?:kv|key) heads?", r"kv_heads=\1"),
    (r"(?:query|q|attention) heads? (\d+)", r"heads=\1"),
    (r"(\d+) (?:(?:query|q|attention) )?heads", r"heads=\1"),
    (r"(?:head )?dim(?:ension)? (\d+)", r"head_dim=\1"),
    (r"head size (\d+)", r"head_dim=\1"),
    (r"(?:hidden(?: size| dim)?|d model) (\d\w*)", r"hidden=\1"),
    (r"(?:seq(?:uence)?|context)(?: len(?:gth)?)? (\d\w*)", r"seq=\1"),
    (r"batch size (\d\w*)", r"batch=\1"),
    (r"top[- ]?(?:k )?(\d+)", r"top_k=\1"),
    (r"(\d+) experts", r"num_experts=\1"),
    (r"(\d\w*) vocab(?:ulary)?", r"vocab=\1"),
    (r"(\d[\d.]*[kKmMbB]?) param(?:eter)?s", r"params=\1"),
    (r"(\d+[kKmM]?) (?:rows|tokens|sequences)", r"B=\1"),
    (r"(\d+[kKmM]?) (?:hidden|wide|features)", r"hidden=\1"),
    (r"(\d[\d.]*) ?([kKMGT]i?B|bytes) ?(?:per|/) ?(?:gpu|chip|rank|device)", r"part=\1\2"),
    (r"(\d[\d.]*) ([kKMGT]i?B|bytes)", r"payload=\1\2"),
    (r"(\d+) (?:input )?channels", r"in_channels=\1"),
    (r"(\d+) (?:filters|output channels)", r"out_channels=\1"),
    (r"(stride|padding|pad|filters|channels) (\d+)", r"\1=\2"),
    (r"(\d+) (?:groups)", r"groups=\1"),
)
"""Sizes in several words, and the letter or payload that each stands for."""

PART = "part"
"""Key of the bytes of one chip."""

WIDTH_LETTERS = ("D", "F")
"""Letters of an expert's width and inner width."""

ROW_LETTERS = ["B", "D"]
"""Letters of a kernel on rows."""

OF_PARTS = ("all-gather", "gather", "scatter")
"""Collectives whose payload is the parts of all chips."""

PER = "per"
"""Word before a unit: per gpu."""

MAX_PHRASE = 4
"""Words in the longest of them [1]."""

SHARED = re.compile(r"[tdec]p(\d+)", re.IGNORECASE)
"""Chips that share a model, among which a collective runs: tp8."""

COUNTED_CHIPS = re.compile(r"(\d+) ?[xX×*] ?([A-Za-z].*)|([A-Za-z].*?)[xX×*](\d+)")
"""Chips with their number, 8xh100."""

STOPS = ",;?"
"""Punctuation after a word."""

MODEL_SIZE = re.compile(r"(?:^|[A-Za-z -])\d+(?:\.\d+)?[bB]$")
"""Size that ends a model's name: llama 70b."""

COUNT_AFTER = re.compile(r"[xX×*](\d+)")
"""A number of chips after their name: h100 x8."""

WIDTHS = re.compile(r"\d+->\d+")
"""Widths of a matmul in a chain."""


KV_HEADS = "KV heads"
"""Meaning of a letter: heads of keys and values that query heads share."""


class AskedCase(NamedTuple):
    """One case of a question.

    Attributes:
        chip: Id of the chip.
        sizes: Size by letter; of a collective its `bytes` [1].
        dtypes: Format by role, with `compute`; under "" the format of all others.
    """

    chip: str
    sizes: Mapping[str, int]
    dtypes: Mapping[str, str]


@dataclass
class KernelQuestion:
    """A question about a kernel.

    Attributes:
        subject: Kind, chain as text, or collective.
        kind: The kind; None: a chain or a collective.
        chips: Ids.
        sizes: Sizes by letter, several for a table [1].
        dtypes: Formats of all roles, several for a table.
        roles: Format by role.
        options: Choices and flags.
        shards: Chips of a collective, several for a table.
        network: Interconnect that is named; None: the default one.
        notes: What was taken for what.
        measured: Measured number, as typed.
    """

    subject: str
    kind: KernelKind | None
    chips: list[str] = field(default_factory=list)
    sizes: dict[str, list[int]] = field(default_factory=dict)
    dtypes: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    shards: list[str] = field(default_factory=list)
    network: str | None = None
    notes: list[str] = field(default_factory=list)
    measured: str | None = None

    @property
    def collective(self) -> bool:
        """Tell whether this is about a collective."""
        return self.subject in COLLECTIVE_MEANINGS

    @property
    def option_names(self) -> tuple[str, ...]:
        """Options of the command that this subject reads."""
        if self.collective:
            return ("shards", "chips", "network")
        if self.kind is None:
            return ("memory",)
        return ("memory", "resource", "shards", *self.kind.choices)

    def cases(self) -> Iterator[AskedCase]:
        """Yield all cases: chips, dtypes and sizes, the last letter fastest."""
        letters = [*self.sizes]
        for chip, dtypes in product(self.chips, self.dtypes or [""]):
            formats = {**_formats_in(dtypes, self.kind), **self.roles}
            for sizes in product(*(self.sizes[letter] for letter in letters)):
                yield AskedCase(chip, dict(zip(letters, sizes, strict=True)), formats)


def _formats_in(dtypes: str, kind: KernelKind | None) -> dict[str, str]:
    """Format by role in a format's name, or in a combination's such as w4a16."""
    catalogue = dtype_entries()
    if not dtypes or dtypes in catalogue.formats:
        return {"": dtypes} if dtypes else {}
    combination = catalogue.combinations[dtypes].dtypes
    roles = (*kind.roles, "compute") if kind else ("x", "w", "out", "compute")
    return {role: name for role, name in combination.items() if role in roles}


def find_subject(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Kind, chain or collective that words name, and the other words; None: they name none."""
    tokens = _tokens(_spelt(words))
    if {token.lower() for token in tokens} & {*TRAINING} and any(map(_names_model, tokens)):
        return None
    if any(map(_names_model, tokens)) and not any(map(_counts_parameters, tokens)):
        tokens = [EXPERTS if token.lower() == MOE else token for token in tokens]
        kinds = [token.lower() for token in tokens if token.lower() in MODEL_KINDS]
        rest = [token for token in tokens if token.lower() not in MODEL_KINDS]
        return (kinds[0], rest) if len(kinds) == 1 else None
    for index, token in enumerate(tokens):
        rest = [*tokens[:index], *tokens[index + 1 :]]
        if chain_sign(token):
            return token, rest
        name = _subject_name(token)
        early = not any("=" in word or word[0].isdigit() for word in tokens[:index])
        if name and (token.lower() not in COMMON_WORDS or early):
            return name, rest
    return None


TRAINING = ("train", "training", "finetune", "finetuning", "fine-tune", "lora", "qlora", "memory")
"""Words beside a model that ask for its step of training, not for a kernel."""


def _spelt(words: Sequence[str]) -> list[str]:
    """Words with names of kernels in one word: all reduce, flash attention 2, grouped gemm."""
    spelt = []
    for text in [" ".join(words)] if not any(map(chain_sign, words)) else words:
        joined = NUMBERED_ATTENTION.sub("attention", text)
        joined = SPOKEN_COLLECTIVES.sub(lambda match: match[0].replace(" ", "-"), joined)
        joined = SPACED_SIZES.sub("x", joined)
        spelt += GROUPED_GEMM.sub(GROUPED_WORDS, joined).split()
    return spelt


def _names_model(token: str) -> bool:
    is_sized = MODEL_SIZE.search(token.rstrip(STOPS)) is not None
    return find_kind(token) is None and (is_named(token) or is_sized)


def _counts_parameters(token: str) -> bool:
    """Check for an optimizer, beside which 8b is a number of parameters."""
    kind = find_kind(token)
    return kind is not None and PARAMETERS in kind.letters


def _subject_name(token: str) -> str | None:
    kind = find_kind(token)
    return kind.name if kind else find_collective(token)


def _tokens(words: Sequence[str]) -> list[str]:
    """Words apart; kinds with `+` or `,` between them together."""
    if chain := next((word for word in words if chain_sign(word)), None):
        at = [*words].index(chain)
        return [*_tokens(words[:at]), chain, *_tokens(words[at + 1 :])]
    tokens = [token for word in words for token in word.split()]
    for sign in ("+", ","):
        joined = _joined(tokens, sign)
        if joined is not None:
            return joined
    return tokens


def _joined(tokens: Sequence[str], sign: str) -> list[str] | None:
    """Tokens with a chain that was typed as several words as one of them; None: there is none."""
    spaced = " ".join(tokens).replace(sign, f" {sign} ").split()
    places = [index for index, token in enumerate(spaced) if token == sign]
    if not places:
        return None
    first, last = places[0] - 1, places[-1] + 1
    while last + 1 < len(spaced) and (
        spaced[last + 1] in ("residual", "backward") or WIDTHS.fullmatch(spaced[last + 1])
    ):
        last += 1
    for start in range(max(first - 1, 0), first + 1):
        text = " ".join(spaced[start : last + 1])
        if chain_sign(text):
            return [*spaced[:start], text, *spaced[last + 1 :]]
    return None


def parse_kernel_words(
    words: Sequence[str], chips: Mapping[str, Chip], options: Mapping[str, Any]
) -> KernelQuestion | None:
    """Question about a kernel; None: the words name none.

    Args:
        words: Words in any order.
        chips: Chips by id.
        options: Options of the command that were given.

    Raises:
        RooflinesError: A word is nothing known, or something is missing.
    """
    typed = options.get("operation")
    if typed is not None:
        named = chain_sign(typed) or _subject_name(typed)
        subject = (typed if chain_sign(typed) else _subject_name(typed)) if named else None
        rest = _tokens(words)
    else:
        subject, rest = find_subject(words) or (None, [])
    if subject is None:
        _check_spelling(words, chips)
        return None
    kind = None if chain_sign(subject) or subject in COLLECTIVE_MEANINGS else checked_kind(subject)
    question = KernelQuestion(subject, kind)
    reader = _Words(question, chips)
    reader.grouped = GROUPED_GEMM.search(" ".join(words)) is not None
    with Mistakes() as mistakes:
        for text in _grouped(rest, chips):
            with mistakes.at():
                reader.read(text.rstrip(STOPS))
        for key in ("phase", "routing"):
            if (value := options.get(key)) is not None:
                question.options[key] = value.lower()
        given = ("shards", "chips") if question.collective else ("shards",)
        question.shards += [str(options[key]) for key in given if options.get(key) is not None]
        question.measured = options.get("measured") or question.measured
        with mistakes.at():
            reader.finish()
    return question


def missing_letters(question: KernelQuestion) -> list[str]:
    """Sizes that a question about a kind lacks, as in the kind's example."""
    kind = question.kind
    if kind is None:
        return []
    example = dict(re.findall(r"(\w+)=(\S+)", kind.example))
    needed = (letter for letter in kind.letters if letter not in (*kind.defaults, *kind.optional))
    return [
        f"{letter}={example[letter]}"
        for letter in needed
        if letter not in question.sizes and letter in example
    ]


def _grouped(tokens: Sequence[str], chips: Mapping[str, Chip]) -> Iterator[str]:
    """Words with those that belong together as one: `heads 32`, `64 MB`, `8 h100`, `B 4096`."""
    at = 0
    while at < len(tokens):
        length, text = _phrase(tokens[at:], chips)
        yield text
        at += length


def _phrase(tokens: Sequence[str], chips: Mapping[str, Chip]) -> tuple[int, str]:
    """Count and text: words that belong to the first [1]."""
    words = [token.rstrip(STOPS) for token in tokens[:MAX_PHRASE]]
    for length in range(len(words), 0, -1):
        for form, word in SPOKEN_LETTERS:
            if match := re.fullmatch(form, " ".join(words[:length]), re.IGNORECASE):
                return length, match.expand(word)
    first, second, *_ = [*words, ""]
    is_letter = len(first) == 1 and first.isalpha()
    if (is_letter or first.lower() in LETTER_NAMES) and second[:1].isdigit():
        return 2, f"{first}={second}"
    if len(words) > 1 and (counted := COUNT_AFTER.fullmatch(second)) and _is_chip(first, chips):
        return 2, f"{counted[1]}x{first}"
    length, text = longest_words(tokens, chips)
    return (length, text) if length > 1 else (1, tokens[0])


def _is_chip(word: str, chips: Mapping[str, Chip]) -> bool:
    return name_search.find_chip(word, chips) is not None


def _check_spelling(words: Sequence[str], chips: Mapping[str, Chip]) -> None:
    """Refuse a word that is nothing but nearly the name of a kind.

    Raises:
        RooflinesError: There is one, beside letters that only kinds have.
    """
    tokens = [token for word in words for token in word.split()]
    letters = {token.partition("=")[0] for token in tokens if "=" in token}
    if any(map(name_search.find_operation, tokens)):
        return
    if not letters & {"H", "E", "k", PARAMETERS, PAYLOAD}:
        return
    for token in tokens:
        close = close_to(token.lower(), [*BY_NAME, *COLLECTIVE_MEANINGS])
        is_word = token.isalpha() and not says_nothing(token)
        if not close or not is_word or name_search.find_chip(token, chips):
            continue
        if name_search.find_operation(token) or name_search.find_dtypes(token):
            continue
        problem = f"is {quote(token)}, no kind of kernel"
        raise RooflinesError("operation", problem, f"close to it: {', '.join(close)}")


class _Words:
    """Reader of words into a question.

    Args:
        question: The question.
        chips: Chips by id.
    """

    def __init__(self, question: KernelQuestion, chips: Mapping[str, Chip]) -> None:
        self.question, self.chips = question, chips
        self.grouped = False
        self.head_dim: str | None = None
        self.part: str | None = None
        self.model_sizes: Mapping[str, int] = {}
        self.tp = 1

    def read(self, token: str) -> None:
        """Take a word as what it is.

        Raises:
            RooflinesError: It is nothing known.
        """
        if not token or token.lower() in (*SAID_NOTHING, PER) or self._repeats_kind(token):
            return
        if self.question.collective and token.lower() in PHASES:
            return
        readers = (
            self._key,
            self._chip,
            self._model,
            self._option,
            self._dtypes,
            self._sizes,
            self._quantity,
            self._network,
        )
        if not any(reader(token) for reader in readers) and not says_nothing(token):
            names = [*self._option_names(), *self._letters()]
            close = close_to(token.lower(), names)
            fix = f"close to it: {', '.join(close)}" if close else "leave it out, or correct it"
            problem = f"has {quote(token)}, which is no part of {self.question.subject}"
            raise RooflinesError("the question", problem, fix)

    def _repeats_kind(self, token: str) -> bool:
        """Check for another name of the question's kind: gqa attention."""
        kind = find_kind(token)
        return kind is not None and kind is self.question.kind

    def _letters(self) -> tuple[str, ...]:
        question = self.question
        if question.kind is not None:
            return (*question.kind.letters,)
        return (PAYLOAD,) if question.collective else ("B", "D", "F", "V", "k")

    def _option_names(self) -> list[str]:
        kind = self.question.kind
        if kind is None:
            return []
        values = [value for choice in kind.choices.values() for value in choice]
        return [*values, *(flag for flag in kind.flags if flag not in kind.letters)]

    def _key(self, token: str) -> bool:
        shared = SHARED.fullmatch(token)
        shared = shared or SHARED.fullmatch(token.replace("=", ""))
        if shared and self.question.collective:
            self.question.shards.append(shared[1])
            return True
        if shared and token.lower().startswith("tp") and self._divided():
            self.tp = int(shared[1])
            return True
        key, equals, value = (part.strip() for part in token.partition("="))
        if not equals:
            return False
        question, name = self.question, key.lower().replace("-", "_").lstrip("_")
        letter = self._letter(key)
        if name == PART and question.collective:
            self._keep(PAYLOAD, value)
            self.part = value
        elif letter:
            self._keep(letter, value)
        elif key.upper() == "D" and {"N", "H"} <= {*self._letters()}:
            self.head_dim = value
        elif name in ROLE_NAMES and name_search.find_dtypes(value):
            question.roles[ROLE_NAMES[name]] = str(name_search.find_dtypes(value))
        elif question.kind and name in question.kind.choices:
            question.options[name] = value.lower()
        elif name in ("measured", "took", "takes", "time"):
            question.measured = value
        elif name in ("shards", "chips", "gpus", "n", "world", "ranks", "tp", "ep", "dp") and (
            question.collective
        ):
            question.shards.append(value)
        else:
            letters = ", ".join(self._letters())
            problem = f"has no {key}: its letters are {letters}"
            if question.subject == "mla" and key == "K":
                problem = "has one cache entry for all heads"
                raise RooflinesError("mla", problem, "leave out K")
            raise RooflinesError(question.subject, problem, "leave it out, or correct the letter")
        return True

    def _divided(self) -> tuple[str, ...]:
        """Letters that tensor parallelism divides: heads, or the inner width."""
        letters = self._letters()
        return tuple(letter for letter in ("N", "K", "F") if letter in letters)

    def _divide(self) -> None:
        """Divide heads or the inner width by the chips that share them; a note says so.

        Raises:
            RooflinesError: They do not divide evenly.
        """
        sizes, texts = self.question.sizes, list[str]()
        for letter in self._divided():
            whole = sizes.get(letter, [])
            if letter != "K" and any(size % self.tp for size in whole):
                problem = f"is {self.tp}, which does not divide {letter}={whole[0]}"
                raise RooflinesError("tp", problem, "ask for another tp")
            if self.tp > 1 and whole:
                sizes[letter] = [max(1, size // self.tp) for size in whole]
                texts.append(f"{letter}={','.join(map(str, sizes[letter]))}")
        if texts:
            self.question.notes.append(f"{' '.join(texts)} on each chip of tp{self.tp}")

    def _letter(self, key: str) -> str | None:
        """Letter that a key means: as typed, in the other case, or by a library's name."""
        letters = self._letters()
        library_letters: Mapping[str, str] = GROUPED_LETTERS if self.grouped else {}
        if self.question.subject == CONVOLUTION:
            library_letters = CONVOLUTION_LETTERS
        if key in letters or key in library_letters:
            return key if key in letters else library_letters[key]
        if key.lower() == "dim":
            return next((letter for letter in ("H", "D") if letter in letters), None)
        if key.upper() == "S" and "T" in letters and "S" not in letters:
            return "T"
        alike = [letter for letter in letters if letter.lower() == key.lower()]
        if len(alike) == 1:
            return alike[0]
        named = LETTER_NAMES.get(key.lower().replace("-", "_"))
        return named if named in letters else None

    def _keep(self, letter: str, text: str) -> None:
        sizes = self.question.sizes
        if letter in sizes and sizes[letter] == [int(text) if text.isdigit() else 0]:
            return  # H=56 W=56
        if letter in sizes:
            raise RooflinesError(f"size {letter}", "is given twice", f"write {letter}=64,128")
        if letter == PAYLOAD:
            with at_path(PAYLOAD):
                sizes[letter] = [*map(payload_bytes, text.split(","))]
        elif letter == PARAMETERS:
            sizes[letter] = [int(quantity(part, "tokens")) for part in text.split(",")]
        else:
            sizes[letter] = values_of(text, letter) if text != "0" else [0]

    def _chip(self, token: str) -> bool:
        counted = COUNTED_CHIPS.fullmatch(token)
        if counted and (found_chip := name_search.find_chip(counted[2] or counted[3], self.chips)):
            self._keep_chip(found_chip)
            self.question.shards.append(counted[1] or counted[4])
            return True
        parts = token.split(",")
        matches = [chip_match(part, self.chips) for part in parts if part[:1].isalpha()]
        if len(matches) < len(parts) or not all(matches):
            return False
        for match in matches:
            if match:
                self._keep_chip(match)
        return True

    def _model(self, token: str) -> bool:
        """Take the letters of a model's kernel."""
        kind = self.question.kind
        if kind is None or not _names_model(token) or PARAMETERS in kind.letters:
            return False
        match = None if is_named(token) else name_search.search_model(token)
        if match is None and not is_named(token):
            return False
        name = match.name if match else catalogue_id(token)
        sizes = model_sizes(kind.name, name, find_model(name).shape)
        self.model_sizes = {
            letter: size for letter, size in sizes.items() if letter in kind.letters
        }
        text = " ".join(f"{letter}={size}" for letter, size in self.model_sizes.items())
        self.question.notes.append(f"{text}, as in {name}")
        return True

    def _keep_chip(self, match: name_search.Match) -> None:
        question = self.question
        question.chips += [] if match.name in question.chips else [match.name]
        question.notes += [match.note] if match.note else []

    def _option(self, token: str) -> bool:
        kind = self.question.kind
        word = WORD_CHOICES.get(token.lower(), token.lower()).replace("_", "-")
        if kind is None:
            return False
        for name, values in kind.choices.items():
            if word in values:
                self.question.options[name] = word
                return True
        if word in kind.flags and word not in kind.letters:
            self.question.options[word] = True
            return True
        if kind.name == "mla" and word in ("expanded", "absorbed"):
            if word == "expanded":
                self.question.kind = checked_kind("mla-expanded")
            return True
        if word == "all" or word not in (*PHASES, "full", "causal", "backward"):
            return False
        problem = f"{kind.name} has no {word}"
        options = ", ".join(self._option_names()) or "none"
        raise RooflinesError("", problem, f"leave it out; its options are {options}")

    def _dtypes(self, token: str) -> bool:
        parts = [name_search.find_dtypes(part) for part in token.split(",")]
        if not all(parts):
            return False
        self.question.dtypes += [part for part in parts if part]
        return True

    def _sizes(self, token: str) -> bool:
        """Take 4096x8192, sizes in the order of the letters."""
        parts = re.split(r"[xX×*]", token)
        if len(parts) < 2 or not all(part[:1].isdigit() for part in parts):  # noqa: PLR2004
            return False
        question = self.question
        kind = question.kind
        if question.subject == CONVOLUTION and len(parts) == len("HW") and len({*parts}) == 1:
            self._keep("k" if int(parts[0]) <= MAX_KERNEL else "HW", parts[0])
            return True
        letters = [
            letter
            for letter in (kind.letters if kind else ("B", "D"))
            if kind is None or letter not in (*kind.defaults, *kind.optional)
        ]
        if question.subject == EXPERTS and len(parts) == len(WIDTH_LETTERS):
            letters = [*WIDTH_LETTERS]
        if letters == ROW_LETTERS and len(parts) > len(letters) and all(map(str.isdigit, parts)):
            rows = math.prod(map(int, parts[:-1]))
            question.notes.append(f"{token} are {rows:,} rows of {parts[-1]}")
            parts = [str(rows), parts[-1]]
        if len(parts) != len(letters):
            named = " ".join(
                f"{letter}={part}" for letter, part in zip(letters, parts, strict=False)
            )
            problem = f"has {quote(token)}, {len(parts)} sizes for {len(letters)} letters"
            raise RooflinesError("the question", problem, f"write them by letter, such as {named}")
        for letter, part in zip(letters, parts, strict=True):
            self._keep(letter, part)
        return True

    def _network(self, token: str) -> bool:
        """Take an interconnect by name: nvlink."""
        is_network = any(token.lower() in chip.networks for chip in self.chips.values())
        if is_network and self.question.collective:
            self.question.network = token.lower()
        return is_network

    def _fill_network(self) -> None:
        """Leave out an interconnect that its chips take of themselves."""
        question = self.question
        numbers = [int(number) for number in question.shards if number.isdigit()]
        chips = [self.chips[name] for name in question.chips]
        routes = [default_route(chip, number) for chip in chips for number in numbers]
        if any(question.network in route for route in routes):
            question.network = None

    def _quantity(self, token: str) -> bool:
        """Take the payload of a collective, parameters of an optimizer, or the rows of a chain."""
        question = self.question
        if not token[0].isdigit():
            return False
        is_rate = is_measured_rate(token) or token.lower().endswith("b/s")
        is_time = quantity_kind(token) == "time" and not token.isdigit()
        if (is_time or is_rate) and question.measured is None:
            question.measured = token
            return True
        if question.collective and PAYLOAD not in question.sizes:
            self._keep(PAYLOAD, token)
            return True
        if question.kind and PARAMETERS in question.kind.letters and not question.sizes:
            self._keep(PARAMETERS, token)
            return True
        return False

    def finish(self) -> None:
        """Check that the question is whole.

        Raises:
            RooflinesError: Something is missing.
        """
        question = self.question
        for letter, size in self.model_sizes.items():
            question.sizes.setdefault(letter, [size])
        if self.grouped and ONE_EXPERT not in question.sizes:
            question.sizes[ONE_EXPERT] = [1]
            question.notes.append("a grouped matmul is taken as experts with k=1: B rows in all")
        self._take_heads_and_dim()
        self._add_kv_heads()
        self._divide()
        if not question.chips:
            raise RooflinesError("chip", "is missing", "name one, such as h100")
        if question.collective and (question.dtypes or question.roles):
            question.dtypes, question.roles = [], {}
            question.notes.append("a payload in bytes is the same in every dtype")
        if question.collective and PAYLOAD not in question.sizes:
            raise RooflinesError("bytes", "are missing", "write a payload such as 64MiB")
        self._add_parts()
        self._fill_network()
        if question.collective and not question.shards:
            problem = f"are missing: {question.subject} needs several"
            raise RooflinesError("chips", problem, "write --shards 8, or 8xh100")
        if question.shards and not question.collective and set(question.shards) != {"1"}:
            problem = f"is one chip's kernel, but {question.shards[0]} chips are named"
            fix = "ask one chip's part, such as N and K divided by tp"
            raise RooflinesError(question.subject, problem, fix)

    def _add_parts(self) -> None:
        """Take one chip's part times the chips where a payload is all parts; a note says so."""
        question = self.question
        shards = [int(number) for number in question.shards if number.isdigit()]
        if self.part is None or question.subject not in OF_PARTS or len(shards) != 1:
            return
        question.sizes[PAYLOAD] = [shards[0] * size for size in question.sizes[PAYLOAD]]
        text = f"{self.part} a chip are {question.sizes[PAYLOAD][0]:,} bytes on {shards[0]} chips"
        question.notes.append(text)

    def _take_heads_and_dim(self) -> None:
        """Take H and D without N as heads and their dimension, as in B, H, S, D; a note says so.

        Raises:
            RooflinesError: D stands beside N, or without H.
        """
        if self.head_dim is None:
            return
        sizes, subject = self.question.sizes, self.question.subject
        if "N" in sizes and "H" not in sizes:
            sizes["H"] = values_of(self.head_dim, "D")
            self.question.notes.append(f"D={self.head_dim} is taken as H, the dimension of a head")
            return
        if "N" in sizes or "H" not in sizes:
            letters = ", ".join(self._letters())
            problem = f"has no D: its letters are {letters}"
            raise RooflinesError(subject, problem, "write H, the dimension of a head")
        sizes["N"], sizes["H"] = sizes["H"], values_of(self.head_dim, "D")
        heads, dims = ",".join(map(str, sizes["N"])), ",".join(map(str, sizes["H"]))
        note = f"H={heads} and D={dims} are taken as N={heads} heads of H={dims}"
        self.question.notes.append(note)

    def _add_kv_heads(self) -> None:
        """Add as many KV heads as query heads, where none are typed; a note says so."""
        question, heads = self.question, self.question.sizes.get("N", [])
        has_cache = question.kind is not None and question.kind.letters.get("K") == KV_HEADS
        if has_cache and len(heads) == 1 and "K" not in question.sizes:
            question.sizes["K"] = heads
            question.notes.append(f"K={heads[0]}, as many KV heads as query heads")


PHASES = ("decode", "prefill")
"""Phases, as words."""
