"""Questions typed without a command, or in place of one: the command that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.answers.question_words import parse_words
from rooflines.answers.word_forms import COMPARE, EXPLAIN, OPTION_KEYS, TRAIN_COMMAND, VERSUS
from rooflines.answers.word_groups import FULL
from rooflines.basics.quantities import quantity_kind
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import TRAIN
from rooflines.models.library import is_named

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_command(words: Sequence[str]) -> list[str] | None:
    """Words with the command that answers them in front; None: they name no chip and no model.

    Args:
        words: A question, perhaps as one quoted argument.
    """
    chips = chip_entries()
    typed_words = [word for word in words if not word.startswith("-")]
    question = parse_words(typed_words, chips)
    chip_names = [name for name in question.chips if name in chips]
    if not chip_names and not (isinstance(question.model, str) and is_named(question.model)):
        return None
    compared = {token.lower() for token in question.tokens} & {*VERSUS}
    sized = question.sizes or question.product or question.request or question.operation
    utilization = question.options.get("measured", "").lower().removesuffix(FULL).strip()
    judges_mfu = utilization.endswith(("mfu", "hfu")) and bool(question.model) and not sized
    if question.options.get("phase") == TRAIN or (judges_mfu and "phase" not in question.options):
        return [TRAIN_COMMAND, *words]
    if len(chip_names) > 1 and (compared or not sized):
        return [COMPARE, *words]
    return [EXPLAIN, *words]


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
