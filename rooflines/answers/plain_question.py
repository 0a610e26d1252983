"""Questions typed without a command, or in place of one: the command that answers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflines.answers.name_search import find_chip
from rooflines.answers.question_words import parse_words
from rooflines.answers.word_forms import (
    CHEAPEST,
    COMPARE,
    EXPLAIN,
    OPTION_KEYS,
    SERVE_COMMAND,
    TRAIN_COMMAND,
    VERSUS,
)
from rooflines.answers.word_groups import FULL
from rooflines.basics.quantities import quantity_kind
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import TRAIN
from rooflines.models.library import is_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.answers.question_words import Question

RATE = re.compile(r"\d ?(?:req(?:uests)?/s(?:ec)?|rps|qps)\b|\b(?:rps|qps)=", re.IGNORECASE)
"""Requests a second, which only a plan of servers takes."""

UTILIZED = ("mfu", "hfu")
"""Utilizations that training runs are judged by."""

TRAINING_WORDS = {"lora", "qlora", "adamw", "adam", "muon", "fsdp", "zero3", "backward", "epoch"}
"""Words of training alone."""


def with_command(words: Sequence[str]) -> list[str] | None:
    """Words with the command that answers them in front; None: they name no chip and no model.

    Args:
        words: A question, perhaps as one quoted argument.
    """
    chips = chip_entries()
    typed_words = [word for word in words if not word.startswith("-")]
    question = parse_words(typed_words, chips)
    chip_names = [name for name in question.chips if name in chips]
    names_model = isinstance(question.model, str) and is_named(question.model)
    if not chip_names and not names_model:
        computes = bool(question.operation or question.product)
        return [EXPLAIN, *words] if computes and len(question.tokens) > 1 else None
    tokens = {token.lower() for token in question.tokens}
    asks_rate = bool(question.request) and RATE.search(" ".join(typed_words))
    plans = CHEAPEST in tokens or asks_rate or _asks_chips(question)
    if plans and names_model and question.options.get("phase") != TRAIN:
        return [SERVE_COMMAND, *words]
    compared = tokens & {*VERSUS}
    sized = question.sizes or question.product or question.request or question.operation
    utilization = question.options.get("measured", "").lower().removesuffix(FULL).strip()
    asks_mfu = utilization.endswith(UTILIZED) or bool(tokens & {*UTILIZED})
    judges_mfu = asks_mfu and bool(utilization and question.model) and not sized
    trains = bool(tokens & TRAINING_WORDS) or any(
        isinstance(keys, dict) and {"pp", "cp", "shard"} & keys.keys() for keys in question.splits
    )
    if question.options.get("phase") == TRAIN or (
        (judges_mfu or (trains and names_model)) and "phase" not in question.options
    ):
        return [TRAIN_COMMAND, *words]
    if len(chip_names) > 1 and (compared or not sized):
        return [COMPARE, *words]
    return [EXPLAIN, *words]


BEST_WORDS = {"fastest", "best"}
CHIP_NOUNS = {"gpu", "gpus", "chip", "chips", "accelerator", "accelerators", "card", "hardware"}
"""Words that together ask for a chip."""


def asks_best_chip(question: Question) -> bool:
    """Check for a question which chip serves a model best, of all with a price."""
    tokens = {token.lower() for token in question.tokens}
    return bool(tokens & BEST_WORDS and tokens & CHIP_NOUNS) and not question.chips


def _asks_chips(question: Question) -> bool:
    """Check for a question which chips, or how many of them, serve a model's requests."""
    tokens = [token.lower() for token in question.tokens]
    chips = chip_entries()
    counts = any(
        word == "many" and (noun in CHIP_NOUNS or find_chip(noun, chips))
        for word, noun in pairwise(tokens)
    )
    loaded = question.request or any(map(USERS.search, tokens))
    return asks_best_chip(question) or bool(counts and loaded)


USERS = re.compile(r"(?:users|requests|sessions|concurrency)=")
"""Requests in flight."""


def judging_line(words: Sequence[str]) -> list[str] | None:
    """A question with a measured number, whose time is measured and no limit.

    Args:
        words: Those after `rooflines measured`.
    """
    text = [part for word in words for part in word.split()]
    joined = list[str]()
    for word in parse_words(text, chip_entries()).tokens:
        key = OPTION_KEYS.get(word.partition("=")[0])
        is_time = word[:1].isdigit() and quantity_kind(word) == "time" and not word.isdigit()
        joined.append(f"measured={word}" if is_time and key is None else word)
    return with_command(joined)
