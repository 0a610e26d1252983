"""`rooflines train`: a step of training on chips, or every way to split it, as `explain` has it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from rooflines.answers.completion import complete_training, take_usual_chip
from rooflines.answers.corrections import CommandLine
from rooflines.answers.explain import answered
from rooflines.answers.name_search import find_chip
from rooflines.answers.overrides import with_overrides
from rooflines.answers.question_words import all_mistakes, parse_words
from rooflines.answers.training_remedies import with_remedies
from rooflines.basics.errors import RooflinesError
from rooflines.cli.explain import (
    OF_BOTH,
    OF_MODELS,
    OF_PLANS,
    OF_TRAINING,
    QuestionCommand,
    answered_line,
    bound_option,
    options_of,
    printed_answer,
    set_option,
)
from rooflines.cli.output import catalogues_of, config_option, prints_frame
from rooflines.models.architecture import TRAIN

if TYPE_CHECKING:
    from rooflines.answers.answer import Answer
    from rooflines.answers.case_table import Cases
    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.cli.output import Printed

OPTIONS = {
    "split": (
        "SPLIT: tp2-pp4-dp8 or tp=2,pp=4,dp=8, also cp, ep and interleave, and as a word; or "
        "auto, the best plans of --chips."
    ),
    "chips": "N: Chips of --split auto.",
    "network": OF_BOTH["network"],
    "calibration": OF_BOTH["calibration"],
    "measured": (
        "NUMBER: A number that was measured, to judge: 9500tok/s/gpu (tokens trained), "
        "608000tok/s of all chips, 2.1s a step, 41%mfu, '41%mfu full' (all token pairs) or 41%hfu."
    ),
    **OF_TRAINING,
    **OF_PLANS,
    "host_link": (
        "RATE: When offloaded tensors and optimizer states hide: 64GB/s in one direction, or auto, "
        "the chip's own link."
    ),
    "pays": "NAMES: zero, recompute: sizes from which ZeRO hides and recomputing in full gains.",
    "slowdown": "FACTOR: Of levers: real time over the math at peak; default: the fit's.",
    "as": OF_MODELS["as"],
}
"""Options of a plan."""


@click.command("train", cls=QuestionCommand)
@click.argument("words", nargs=-1, required=True, metavar="CHIP MODEL B= S= [DTYPE]")
@options_of(OPTIONS)
@bound_option
@click.option("--all", "every", is_flag=True, help="With --split auto: every plan.")
@set_option
@config_option
@prints_frame
def command(
    words: tuple[str, ...],
    config: str | None,
    settings: tuple[str, ...],
    *,
    bound: bool,
    every: bool,
    **options: str | None,
) -> Printed:
    """A step of training of a model on chips: which resource binds it, and whether it fits.

    It is `rooflines explain` with `--phase train`. B is the sequences of a step over all replicas,
    S the tokens of each. Times are of one kernel after another on the busiest stage, with the
    bubble; the least time has everything overlapped and no bubble. Memory is states and saved
    tensors; working memory is not counted.

    Examples:
        rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --shard weights
        rooflines train 64xh100 llama-3.1-8b B=128 S=8k dp64 fsdp --measured 9500tok/s/gpu
        rooflines train b200 deepseek-v3 B=1024 S=4k --split pp=16,dp=64,ep=64
        rooflines train h100 llama-3.1-70b B=128 S=8k --split auto --chips 64
        rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --recompute full --json
        rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --set memory.hbm.capacity_bytes=7e10
    """
    catalogues = catalogues_of(config)
    given = {name: value for name, value in options.items() if value is not None}
    line = CommandLine(words, {**given, **({"every": "all"} if every else {})})
    answer = partial(_answer, settings=settings, bound=bound)
    return printed_answer(*answered_line(TRAIN, line, catalogues, answer))


def _answer(
    line: CommandLine, catalogues: QuestionCatalogues, settings: tuple[str, ...], *, bound: bool
) -> tuple[Question, Answer | Cases]:
    """Answer to a line."""
    question = parse_words(line.words, catalogues.chips, TRAIN)
    with all_mistakes(question):
        if question.model is None:
            raise RooflinesError("model", "is missing", "name one, such as llama-3.1-70b")
        take_usual_chip(question, trains=True)
        price = question.options.pop("price", None)
        catalogues = with_overrides(question, catalogues, settings, price)
        phase = question.options.pop("phase", TRAIN)
        if phase != TRAIN:
            problem = f"is {phase}, but `rooflines train` is a step of training"
            raise RooflinesError("phase", problem, "leave it out, or use `rooflines explain`")
        if not question.mistakes and all(
            find_chip(name, catalogues.chips) for name in question.chips
        ):
            complete_training(question, line.options)
        answer = answered(question, catalogues, bound=bound, phase=TRAIN, **line.options)
        return question, with_remedies(question, catalogues, answer, line.options)
