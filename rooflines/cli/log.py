"""`rooflines measured log`: the decode step in a serving engine's log beside its bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from rooflines.answers.corrections import CommandLine
from rooflines.answers.phrases import Line, Section
from rooflines.answers.screen import as_ascii, section_lines
from rooflines.answers.serving_answer import ServingAnswer
from rooflines.answers.word_forms import EXPLAIN
from rooflines.basics.errors import RooflinesError, at_path, printable
from rooflines.basics.text import count, counted, percent, seconds
from rooflines.cli import output
from rooflines.cli.explain import answer_line, screen_options
from rooflines.fits.calibration_files import AUTO_CALIBRATION, AUTO_COLLECTIVES
from rooflines.measured.engine_logs import read_engine_log
from rooflines.measured.log_question import log_question
from rooflines.measured.logged_steps import OTHER_LOAD, logged_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.measured.engine_logs import EngineLog
    from rooflines.measured.log_question import LogQuestion
    from rooflines.measured.logged_steps import LoggedStep

CALIBRATION = "calibration"
"""Option of `explain` for the software of an estimate."""

FULL_CACHE = 0.9
"""Share of the KV cache from which on it limits the running sequences [1]."""


@click.command("log", cls=output.WithExamples)
@click.argument("file")
@click.option("--chip", metavar="ID", required=True, help="The chip that ran it.")
@click.option("--model", metavar="MODEL", help="The model; default: that of the log's start.")
@click.option("--split", metavar="SPLIT", help="How chips share it, such as tp8 or tp8-dp2.")
@click.option("--dtypes", metavar="WORDS", help="Dtypes, such as fp8 or 'fp8 kv=fp8'.")
@click.option("--context", type=click.IntRange(1), help="Tokens per sequence, if not logged.")
@click.option("--running", type=click.IntRange(1), help="Sequences of the load to judge.")
@click.option("--draft", metavar="DRAFT", help="Speculative decoding: tokens=3,accepted=1.8.")
@output.config_option
@output.refuses_in_one_line
@output.prints_frame
def command(  # noqa: PLR0913, the options
    *,
    file: str,
    chip: str,
    model: str | None,
    split: str | None,
    dtypes: str | None,
    context: int | None,
    running: int | None,
    draft: str | None,
    config: str | None,
) -> output.Printed:
    """Judge the decode step in an engine's log by its bound and its estimate.

    FILE has the periodic lines of vLLM ("Avg generation throughput") or SGLang ("Decode batch"),
    or the iterations of TensorRT-LLM (print_iter_log). The step is that of the steady lines: as
    many sequences as in the line before, no prompts, at the commonest load. Its time is
    sequences / (tokens/s); its context the tokens in the KV cache / sequences. Model, split and
    dtypes are those of the log's start lines, where it has them.

    Examples:
        rooflines measured log server.log --chip h100
        rooflines measured log server.log --chip h100 --model qwen3-8b --split tp2 --context 2048
        rooflines measured log sglang.log --chip mi300x --model llama-3.1-70b --dtypes fp8
        rooflines measured log server.log --chip b200 --running 64
    """
    catalogues = output.catalogues_of(config)
    chip = output.one_chip("--chip", chip, catalogues.chips)
    log = read_engine_log(file)
    with at_path(file=file):
        step = logged_step(log, running)
    model = None if model is None else output.one_model(model)
    question = log_question(
        *(log, step, chip), model=model, split=split, dtypes=dtypes, context=context, draft=draft
    )
    line, notes, answer = _answered(question, log.engine, catalogues)
    row = {**_columns(log, step), **answer.table_row()}
    question.assumed += dict.fromkeys(notes)
    screen = answer.screen().text(**screen_options(), is_short=True)
    title = f"{printable(Path(file).name)} · {log.engine} · "
    title += f"{step.steady} steady of {counted(step.lines, 'line')}"
    text = "\n".join(
        section_lines(Section(title, [*_lines(log, step, question, is_given=context is not None)]))
    )
    more = f"The rest of the answer: {line.text(EXPLAIN)}"
    if screen_options()["ascii_only"]:
        text = as_ascii(text)
    whole = {"log": _columns(log, step) | {"left_out": step.left_out}, "answer": answer.to_dict()}
    return pl.DataFrame([row]), f"{text}\n\n{screen.rstrip()}\n\n{more}", whole


def _answered(
    question: LogQuestion, engine: str, catalogues: QuestionCatalogues
) -> tuple[CommandLine, Sequence[str], ServingAnswer]:
    """Line of `explain`, notes and answer, by the engine's own fits where the chip has them.

    Raises:
        RooflinesError: The chip cannot run it, or the model is not served.
    """
    for software in (f"{engine},{AUTO_COLLECTIVES}", engine, AUTO_CALIBRATION):
        line = CommandLine(question.words, {**question.options, CALIBRATION: software})
        try:
            asked_question, answer = answer_line(line, catalogues, (), bound=False)
        except RooflinesError as error:
            if error.where != CALIBRATION or software == AUTO_CALIBRATION:
                raise
            continue
        if isinstance(answer, ServingAnswer):
            return line, asked_question.notes, answer
        break
    raise RooflinesError("--model", "has no decode step", "name a served model")


def _shared(hit_share: float, *, is_given: bool) -> str:
    """Consequence of a prefix cache that hits.

    Args:
        hit_share: Share of the prompts' tokens that it had [1].
        is_given: Whether the context is the user's.
    """
    text = (
        f"the prefix cache had {percent(hit_share)} of the prompts' tokens, which cost no prefill"
    )
    if is_given:
        return text
    return (
        f"{text}; cache use counts a prefix once for all sequences that share it, and each reads "
        "it: the context is at least this; --context has another"
    )


def _lines(
    log: EngineLog, step: LoggedStep, question: LogQuestion, *, is_given: bool
) -> Iterator[Line]:
    """Statements on the lines of a log and their medians.

    Args:
        log: The log.
        step: The medians.
        question: Question about the step.
        is_given: Whether the context is the user's.
    """
    rest = [f"{number} {reason}" for reason, number in step.left_out.items()]
    if log.copies:
        rest.append(f"{log.copies} of further ranks")
    if rest:
        yield Line("left out", "", ", ".join(rest))
    if step.other_loads is not None and OTHER_LOAD in step.left_out:
        least, largest = step.other_loads
        loads = f"{least}" if least == largest else f"{least} to {largest}"
        yield Line("loads", "", f"{loads} sequences in other steady lines: --running has them")
    yield Line("median", "", ", ".join(_medians(step)))
    if step.with_prompts:
        text = "each steady line has prompts: their time is inside that of the step"
        yield Line("prompts", "", text)
    if step.waiting and (step.cache_share or 0.0) >= FULL_CACHE:
        yield Line("waiting", "", "the KV cache is full, so it limits the running sequences")
    if log.hit_share:
        yield Line("shared", "", _shared(log.hit_share, is_given=is_given))
    if question.read:
        yield Line("read", "", ", ".join(question.read))
    for sentence in question.assumed:
        yield Line("note", "", sentence)


def _medians(step: LoggedStep) -> Iterator[str]:
    """Medians of steady lines in words."""
    replicas = f" on {counted(step.replicas, 'replica')}" if step.replicas > 1 else ""
    yield counted(step.sequences, "sequence") + replicas
    spread = ""
    if step.spread_s is not None:
        low_s, high_s = step.spread_s
        spread = f" ({seconds(low_s)} to {seconds(high_s)} in 80% of lines)"
    yield f"{seconds(step.step_s)} a step{spread}"
    yield f"{count(step.tokens_per_s)} tokens/s"
    if step.accepted is not None:
        yield f"{step.accepted:.3g} tokens of a sequence a step"
    if step.context is not None:
        digit = f" (±{step.context_digit:,.0f})" if step.context_digit >= 1 else ""
        yield f"context {step.context:,.0f}{digit}"
    if step.cache_share is not None:
        yield f"KV cache {percent(step.cache_share)}"
    if step.waiting is not None:
        yield f"{step.waiting:,.0f} waiting"


def _columns(log: EngineLog, step: LoggedStep) -> dict[str, Any]:
    """Numbers of a logged step."""
    low_s, high_s = step.spread_s or (None, None)
    return {
        "engine": log.engine,
        "lines": step.lines,
        "steady_lines": step.steady,
        "replicas": step.replicas,
        "logged_sequences": step.sequences,
        "logged_step_s": step.step_s,
        "logged_step_p10_s": low_s,
        "logged_step_p90_s": high_s,
        "logged_tokens_per_s": step.tokens_per_s,
        "logged_tokens_per_step": step.accepted,
        "logged_context": step.context,
        "cache_share": step.cache_share,
        "prefix_hit_share": log.hit_share,
        "waiting": step.waiting,
    }
