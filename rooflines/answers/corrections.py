"""Corrected line for a refused question: repairs, each tried until the question has an answer.

A repair follows from a mistake's place and close names; what is printed was answered.
"""

from __future__ import annotations

import math
import re
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from rooflines.answers.name_search import close_chips, find_chip, find_dtypes
from rooflines.answers.question import formats_on
from rooflines.answers.question_sizes import MODEL_SIZES, SIZE, TIMES_SIGN, values_of
from rooflines.answers.question_words import EVERY_SPLIT, PRODUCT, SIGNS, parse_words
from rooflines.answers.word_forms import (
    COMPARE,
    EXPLAIN,
    OPTION_KEYS,
    PHASE_WORDS,
    REQUEST_KEYS,
    SIZE_KEYS,
    TRAIN_COMMAND,
    key_name,
    says_nothing,
)
from rooflines.answers.word_groups import CHIPS, STOPS
from rooflines.basics.errors import RooflinesError
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import is_named
from rooflines.theory.operation import parse_operation
from rooflines.training.parallel_plan import TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.answers.question_words import Question
    from rooflines.hardware.entries import Chip

WRITTEN = re.compile(r"write (\S+)")
"""Fix that is one word to write."""

MAX_ROUNDS = 8
"""Repairs after which a line is given up [1]."""

MAX_WORD = 30
"""Longest word that is repeated in full [1]."""

PAIR = ["h100", "b200"]
"""Chips of a comparison without any."""

CHIP, MODEL, FORMAT = "h100", "llama-3.1-8b", "bf16"
"""Names in place of missing ones."""

SIZES = {"B": "B=64", "S": "S=8192", "T": "T=1"}
"""Sizes of a model in place of missing ones."""

OPERATION_SIZE = 8192
"""Size of an operation in place of a missing one [1]."""

SPLITS = ("tp8", "tp4", "tp2", "tp1")
"""Splits that are tried in place of one that is not possible."""


NO_PEAK = re.compile(r": no \S+ peak")
"""Problem of a format that a chip does not compute in."""

FEWER = re.compile(r"ask for (\d+)\b")
"""Number of chips in a fix."""


class CommandLine(NamedTuple):
    """A command's words and options."""

    words: tuple[str, ...]
    options: Mapping[str, str]

    def text(self, command: str) -> str:
        """Line to copy."""
        options = [
            part
            for key, value in self.options.items()
            for part in (f"--{key.replace('_', '-')}", value)
        ]
        return f"rooflines {command} {shlex.join([*self.words, *options])}"


def corrected_line(
    command: str,
    line: CommandLine,
    chips: Mapping[str, Chip],
    answer: Callable[[CommandLine], object],
) -> str | None:
    """Corrected line, which has an answer; None: no repair is enough.

    Args:
        command: Command that asks.
        line: Words and options as typed.
        chips: Chips by id.
        answer: Function that answers a line, or raises its mistakes.
    """
    tried: list[CommandLine] = []
    while line not in tried and len(tried) < MAX_ROUNDS:
        try:
            answer(line)
        except RooflinesError as error:
            tried.append(line)
            line = _Repair(command, line, chips).after(error)
        except Exception:  # noqa: BLE001, a line that fails is not offered
            return None
        else:
            keeps = tried and _keeps_meaning(tried[0], line, command, chips)
            return line.text(command) if keeps else None
    return None


LIMITS = ("within", "tpot", "ttft", "load", "users", "busy", "measured", "price", "goal")
"""Options whose numbers a corrected line keeps: limits, measurements and money."""


def _keeps_meaning(
    typed: CommandLine, corrected: CommandLine, command: str, chips: Mapping[str, Chip]
) -> bool:
    """Check that a corrected line has every chip, limit, measurement and price that was typed.

    A name that is no chip may give way to a close one; a number with a unit to none.
    """
    before = parse_words(typed.words, chips, command)
    after = parse_words(corrected.words, chips, command)
    chip_mistakes = [mistake for mistake in before.mistakes if mistake.error.where == "chip"]
    unknown = [name for name in before.chips if name not in chips]
    unknown += [mistake.word for mistake in chip_mistakes if not mistake.instead]
    typed_chips = {name for name in before.chips if name in chips}
    if not typed_chips <= {*after.chips} or not all(close_chips(name, chips) for name in unknown):
        return False
    typed_options, options_left = (
        {**q.options, **line.options} for q, line in ((before, typed), (after, corrected))
    )
    numbers, rest = ({*options} & {*LIMITS} for options in (typed_options, options_left))
    is_judged = {"within", "measured"}  # a time is either
    if not numbers - is_judged <= rest or len(numbers & is_judged) > len(rest & is_judged):
        return False
    words = {part for word in corrected.words for part in (word, *word.split("="))}
    return not any(
        mistake.word not in words
        and not mistake.instead
        and any(map(WITH_UNIT.match, mistake.word.split("=")))
        for mistake in before.mistakes
    )


WITH_UNIT = re.compile(
    r"[$€]|\d[\d.,]*\s*(?:[A-Za-zµμ%$€/]*[/%$€]|[mµun]?s\b)|\d[\d.,]*[A-Za-z]{2,}"
)
"""Beginning of a number with a unit: a time, a rate, a share, a price."""


class _Repair:
    """Line repair by its mistakes.

    Args:
        command: Command that asks.
        line: Words and options.
        chips: Chips by id.
    """

    def __init__(self, command: str, line: CommandLine, chips: Mapping[str, Chip]) -> None:
        self.chips, self.trains = chips, command == TRAIN_COMMAND
        self.question: Question = parse_words(line.words, chips, command)
        self.words = [
            word
            for word in self.question.tokens
            if not says_nothing(word) and not (self.trains and PHASE_WORDS.get(word.lower()))
        ]
        self.options = dict(line.options)
        self.explains, self.compares = command == EXPLAIN, command == COMPARE

    def after(self, error: RooflinesError) -> CommandLine:
        """Line without the mistakes that have a repair."""
        words = {mistake.word for mistake in self.question.mistakes}
        for mistake in self.question.mistakes:
            instead = mistake.instead or mistake.error.close[:1]
            self.replace(mistake.word, *instead)
        replaced = {
            str(mistake.error)
            for mistake in self.question.mistakes
            if mistake.instead or mistake.error.close
        }
        for single in error.errors:
            if str(single) in replaced:
                continue
            self.repair(single, after_words=bool(words))
        return CommandLine(tuple(self.words), self.options)

    def replace(self, word: str, *instead: str) -> None:
        """Replace a word, or leave it out; likewise in a list."""
        if word in self.words:
            at = self.words.index(word)
            self.words[at : at + 1] = instead
            return
        for at, listed in enumerate(self.words):
            parts = listed.split(",")
            if word in parts:
                rest = [part for part in parts if part != word]
                self.words[at] = ",".join([*rest, *instead])
                return

    def repair(self, error: RooflinesError, *, after_words: bool) -> None:
        """Repair a mistake by its place."""
        place = error.where
        names = [name.strip() for name in place.split(",")]
        if names[0].startswith("--") or key_name(place) in OPTION_KEYS:
            self.option(error, names)
        elif place in ("chip", "chips"):
            self.chip(error)
        elif place == "model":
            if not after_words:
                self.model(error)
        elif place == "dtypes":
            self.dtypes(error)
        elif place in self.chips:
            self.fewer(error, place)
        elif place == "the question" and self.question.model and self.question.product:
            self.sizes()
        elif isinstance(self.question.model, str) and ", " in place:
            self.split()
        elif place.startswith("size") or place in MODEL_SIZES:
            self.sizes()
        elif place.startswith(("split", "tp", "dp", "ep", "pp", "cp")):
            self.split()
        elif not after_words:
            self.drop(place)

    def chip(self, error: RooflinesError) -> None:
        """Name a chip, or another one; two in a comparison."""
        unknown = [name for name in self.question.chips if name not in self.chips]
        if self.question.counts:
            counted = {word: CHIPS.fullmatch(word) for word in self.words}
            self.words = [
                (match[2] or match[3]) if (match := counted[word]) else word for word in self.words
            ]
            return
        named, missing = self.question.chips, len(PAIR) - len(self.question.chips)
        if not unknown and self.compares:
            self.words += [name for name in PAIR if _id(name, self.chips) not in named][:missing]
        elif not unknown:
            self.words.insert(0, next(iter(error.close), CHIP))
        for name in unknown:
            if close := close_chips(name, self.chips):
                self.replace(name, close[0])

    def fewer(self, error: RooflinesError, place: str) -> None:
        """Name as many chips as a fix says; a split or format that they have without one."""
        number = FEWER.search(error.fix or "")
        words = [word for word in self.words if CHIPS.fullmatch(word)]
        if number is None or len(words) != 1:
            if NO_PEAK.search(error.problem):
                self.computed(place)
            else:
                self.supported(place)
            return
        self.replace(words[0], f"{number[1]}x{place}")

    def model(self, error: RooflinesError) -> None:
        """Name another model."""
        typed = self.question.model
        if isinstance(typed, str) and not is_named(typed) and error.close:
            self.replace(typed, error.close[0])

    def dtypes(self, error: RooflinesError) -> None:
        """Leave out dtypes that are none, or name close ones."""
        instead = error.close[:1]
        for form in self.question.dtypes:
            if isinstance(form, str) and (f"'{form}'" in error.problem or not instead):
                self.replace(form, *instead)

    def supported(self, chip: str) -> None:
        """Name a memory level, a split, or a format that a chip has."""
        if self.options.pop("memory", None) or self.options.pop("shards", None):
            self.options.pop("sharding", None)
        elif self.question.splits or "split" in self.options:
            self.split()
        else:
            self.computed(chip)

    def computed(self, chip: str) -> None:
        """Name a format that a chip computes in."""
        formats = formats_on(self.chips[chip])
        named = [form for form in self.question.dtypes if form in dtype_entries().formats]
        is_stored = len(named) == 1 and self.question.model and not self.trains
        self.words = [word for word in self.words if not all(map(find_dtypes, word.split(",")))]
        wide = FORMAT if FORMAT in formats else next(iter(formats), FORMAT)
        self.words += [f"weights={named[0]}", f"compute={wide}"] if is_stored else [wide]

    def sizes(self) -> None:
        """Name all sizes, and no others."""
        question = self.question
        if question.model is not None:
            sizes = {
                SIZE_KEYS.get(key_name(key), key.upper()): word
                for word in self.words
                for key, equals, _ in [word.partition("=")]
                if equals and (SIZE.fullmatch(word) or key_name(key) in SIZE_KEYS)
            }
            requests = bool(question.request) and self.explains
            letters = ("B",) if requests else ("B", "S")
            for letter, word in sizes.items():
                if (
                    letter not in MODEL_SIZES
                    or (requests and letter != "B")
                    or (letter == "B" and "within" in {**self.options, **question.options})
                ):
                    self.replace(word)
                elif not _is_size(word.partition("=")[2]):
                    self.replace(word, SIZES[letter])
            self.words = [word for word in self.words if not PRODUCT.fullmatch(word)]
            searched = "within" in {**self.options, **question.options}
            self.words += [
                SIZES[letter]
                for letter in letters
                if letter not in sizes and not (searched and letter == "B")
            ]
            self.request()
            return
        if "phase" in question.options and not question.operation and not question.product:
            self.words += [MODEL]
            return
        try:
            dims = parse_operation(question.operation or "matmul").dims
        except RooflinesError:
            dims = ()
        typed = {key.upper(): word for key, word in self._typed_sizes().items()}
        product = str(question.product or "").lstrip(SIGNS)
        parts = zip(dims, TIMES_SIGN.split(product), strict=False)
        typed |= {dim: f"{dim}={part}" for dim, part in parts if product}
        self.words = [
            word for word in self.words if not PRODUCT.fullmatch(word) and not SIZE.fullmatch(word)
        ]
        for dim in dims:
            word = typed.get(dim, "")
            size_word = word if _is_size(word.partition("=")[2]) else f"{dim}={OPERATION_SIZE}"
            self.words.append(size_word)

    def request(self) -> None:
        """Complete a request."""
        keys = {REQUEST_KEYS.get(key_name(word.partition("=")[0])) for word in self.words}
        if {"input", "output"} & keys and self.question.options.get("phase") is None:
            self.words += [] if "output" in keys else ["osl=1024"]
            self.words += [] if "input" in keys else ["isl=8192"]

    def _typed_sizes(self) -> dict[str, str]:
        """Size words by letter."""
        return {match[1]: word for word in self.words for match in [SIZE.fullmatch(word)] if match}

    def split(self) -> None:
        """Name another split: a smaller tensor parallelism."""
        current = [
            word
            for word in self.words
            if not find_chip(word, self.chips)
            if TrainingPlan.keys_of(word)
            or all(TrainingPlan.keys_of(part) for part in word.split(","))
            or key_name(word.partition("=")[0]) in TrainingPlan.model_fields
            or word.lower() == EVERY_SPLIT
        ]
        self.words = [word for word in self.words if word not in current]
        typed = [*current, self.options.pop("split", "")]
        keys = [TrainingPlan.keys_of(word) or {} for word in typed]
        plan = {key: value for part in keys for key, value in part.items()}
        if not self.trains and plan.keys() & {"pp", "cp"} and all(map(str.isdigit, plan.values())):
            chips = math.prod(int(plan.get(key, 1)) for key in ("tp", "pp", "cp"))
            rest = [f"{key}{plan[key]}" for key in ("dp", "ep") if key in plan]
            self.words += [f"tp{chips}", *rest]
            return
        if typed[-1].isdigit():
            self.words.append(f"tp{typed[-1]}")
            return
        later = [name for name in SPLITS if name not in typed]
        if SPLITS[-1] not in typed:
            after = max((SPLITS.index(name) for name in typed if name in SPLITS), default=-1)
            later = list(SPLITS[after + 1 :])
            self.words += later[:1]

    def option(self, error: RooflinesError, names: Sequence[str]) -> None:
        """Write what the fix says in an option, where it is one word, or leave the option out."""
        written = WRITTEN.fullmatch(error.fix)
        for name in names:
            key = OPTION_KEYS.get(key_name(name), key_name(name))
            if written and name.startswith("--") and key_name(name) in self.options:
                self.options[key_name(name)] = written[1]
            elif written and self.question.options.get(key) in self.words:
                self.replace(self.question.options[key], written[1])
            else:
                self.drop(name)

    def drop(self, place: str) -> None:
        """Leave out an option, and its words."""
        key = key_name(place)
        self.options.pop(key, None)
        if key == "split":
            self.options.pop("chips", None)
        value = self.question.options.get(key)
        self.words = [
            word
            for word in self.words
            if OPTION_KEYS.get(key_name(word.partition("=")[0])) != key and word != value
        ]


def _id(word: str, chips: Mapping[str, Chip]) -> str:
    """Id of a chip; the word itself where it names none."""
    match = find_chip(word, chips)
    return word if match is None else match.name


def _is_size(text: str) -> bool:
    """Check for sizes above zero."""
    try:
        return bool(values_of(text, "B"))
    except RooflinesError:
        return False


def with_correction(
    error: RooflinesError, line: str | None, typed: Sequence[str] = ()
) -> RooflinesError:
    """Error with the line to type as its note, and the typed words that it lacks.

    Args:
        error: The mistakes.
        line: Corrected line; None: there is none.
        typed: Words as typed.
    """
    if line is not None:
        parts = [*shlex.split(line), *shlex.split(line.replace("=", " "))]
        present = {word for part in parts for word in (part, *part.split())}
        words = [word for typed_words in typed for word in typed_words.split()]
        left_out = [
            word if len(word) <= MAX_WORD else f"{word[:MAX_WORD]}..."
            for word in words
            if word not in present and not get_close_matches(word, present)
            if not says_nothing(word.rstrip(STOPS))
        ]
        lacks = f" (without {', '.join(dict.fromkeys(left_out))})" if left_out else ""
        error.add_note(f"try{lacks}: {line}")
    return error
