"""`rooflines explain`: operations, layers and models on chips, explained in one screen."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
import polars as pl

from rooflines.answers.cache_answer import asks_cache, cache_cases
from rooflines.answers.case_table import Cases
from rooflines.answers.chip_answer import chip_cases, names_chips_alone
from rooflines.answers.completion import (
    complete,
    complete_training,
    missing_sizes,
    take_usual_chip,
)
from rooflines.answers.corrections import CommandLine, corrected_line, with_correction
from rooflines.answers.explain import answered
from rooflines.answers.kernel_question import missing_letters, parse_kernel_words
from rooflines.answers.name_search import find_chip
from rooflines.answers.overrides import with_overrides
from rooflines.answers.question_words import all_mistakes, parse_words
from rooflines.answers.screen import as_ascii, section_lines
from rooflines.answers.word_forms import EXPLAIN, options_as_words
from rooflines.basics.errors import RooflinesError
from rooflines.cli.output import WithExamples, catalogues_of, config_option, prints_frame, table
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.architecture import TRAIN
from rooflines.models.library import model_entries
from rooflines.theory.operation import NAMED_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rooflines.answers.answer import Answer
    from rooflines.answers.kernel_answer import KernelAnswer
    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.cli.output import Printed

SHARDINGS = {
    "batch": "each chip has some rows B and all weights; no communication",
    "batch/gather-w": "the same, but weights are sharded and all-gathered first",
    "column": "each chip has some columns F of the weights; no communication",
    "column/gather-x": "the same, but the input is sharded and all-gathered first",
    "contracting/all-reduce": "each chip has a part of D; partial sums are all-reduced",
    "contracting/reduce-scatter": "the same, but partial sums are reduce-scattered",
}
"""Meanings of named shardings for `BD,DF->BF`."""

EPILOG = "\n\n\b\nShardings of BD,DF->BF:\n" + "\n".join(
    f"  {name:<27}{meaning}" for name, meaning in SHARDINGS.items()
)

OF_OPERATIONS = {
    "operation": "NAME: A name or an einsum; by default matmul, BD,DF->BF.",
    "shards": "N: Chips that share it; 4x4 along axes of a torus.",
    "sharding": "NAME: How they split it; see below.",
    "unit": "UNIT: matrix or vector; by default the operation's.",
    "flops": "COUNT: leading or exact; by default the operation's.",
    "resource": "NAME: Of a kernel: exp counts exponentials in its bound.",
}
OF_TRAINING = {
    "shard": (
        "WHAT: In training: states sharded over replicas, none, optimizer (the default), "
        "gradients or weights; also zero0 to zero3, or fsdp."
    ),
    "recompute": (
        "WHAT: In training: recomputation, none (the default), selective (norms, "
        "activations), or full."
    ),
    "micro_batch": "N: In training: sequences per micro-batch; default 1.",
    "optimizer": (
        "NAME: In training: adam (the default), adam-bf16, adam-8bit, adafactor, muon, sgd, "
        "sgd-momentum, or bytes per parameter."
    ),
    "gradients": "HOW: In training: kept (the default), or freed, the optimizer in backward.",
    "loss": "HOW: In training: logits (the default), fused, or chunked=8, one chunk at a time.",
    "lora": "RANK: In training: adapters with this rank, on frozen weights.",
    "lora_on": "NAMES: Their projections: all (the default), attention, mlp, experts, q,v.",
    "base": "FORMAT: With --lora: format of frozen weights, bf16, fp8, int8, nf4 or nf4-single.",
    "offload": "WHAT: In training: saved, states or saved,states in the memory of the host.",
    "topology": "SHAPE: In training on a torus: the slice, such as 4x8x16; default: the first.",
    "group": "N: In training: chips per group on the inner network; default: the most that divide.",
    "stage_layers": "LIST: In training: layers per chunk, such as 4x15,1; pp * interleave numbers.",
    "first": "N: In training: layers in the first stage, the rest even.",
    "last": "N: In training: layers in the last stage, the rest even.",
    "stack": "NAME: In training: megatron, or a factor; its working memory counts in fits.",
    "tokens": "N: In training: total training tokens, such as 15T; gives days.",
}
OF_PLANS = {
    "by": "TIME: Of --split auto: t_rank_s (the default), t_serial_s or t_upper_s ranks plans.",
    "search": "KEYS: Of --split auto, what else is searched: loss, offload, cp (short sequences).",
}
OF_MODELS = {
    "chips": "N: Chips of --split auto.",
    "within": (
        "TIME: Without B: limit on the step time, such as 50ms; the answer has the largest batch "
        "that keeps it, with --split auto for every split."
    ),
    "phase": "PHASE: Of a model: decode, the default, prefill, or train.",
    **OF_TRAINING,
    "draft": (
        "DRAFT: Speculative decoding: tokens=3,accepted=1.8, drafted and mean accepted tokens."
    ),
    "as": "FAMILY: Of a config.json: the family that it is read as, whatever its model_type.",
    "pull": (
        "LINK: When to pull a prefix's KV cache: 12.5GB/s, or 12.5GB/s,latency=28ms to its server."
    ),
    "chunk": (
        "TIME: Tokens of a prompt in the step: free, or within a step time, 20ms; 20ms,after=4096 "
        "after others of the prompt."
    ),
    "pools": "TIME: With isl and osl: when separate prefill servers keep a TPOT, such as 20ms.",
    "slowdown": "FACTOR: Of levers: estimate over bound; default: by the calibration.",
    "engine": (
        "NAME: Serving engine whose pool of caches decides what fits: vllm, sglang or "
        "trtllm; vllm:0.21 for a version. Alone it also picks the engine's fit."
    ),
    "utilization": "SHARE: Of an engine: memory that it takes, such as 0.95.",
    "max_batched_tokens": "N: Of an engine: tokens of a step.",
    "max_seqs": "N: Of an engine: sequences of a step.",
    "engine_reserve": "BYTES: Of an engine: kept besides weights and caches, such as 4.25GiB.",
    "peak": "BYTES: Of TensorRT-LLM: peak of its trial step, weights included.",
    "full_windows": "yes: Of an engine: layers with a window keep every token.",
    "standalone_draft": "yes: Of an engine: a model of its own drafts; SGLang keeps 4 GiB more.",
    "routing": "HOW: Expert routing: uniform, the default, same or all.",
    "cache_split": "HOW: How tp chips share the KV cache: heads, the default, or batch.",
    "price": "USD: Dollars an hour of one chip; by chip as h100=2.5,b200=5.",
}
OF_KERNELS = ("operation", "measured", "calibration")
"""Options of all questions about kernels, besides those of their subject."""

OF_BOTH = {
    "split": (
        "SPLIT: How chips share a model: tp8, tp2-dp4-ep8 or tp=2,dp=4,ep=8, also as a word of "
        "the question; auto: every split of --chips, the best first. Of a matmul tp8: up and "
        "down."
    ),
    "network": (
        "NAME: The interconnect, by default the chip's first; or two, such as nvlink,infiniband."
    ),
    "memory": (
        "NAME: The memory level that feeds the unit; default hbm. all: each, and the bottleneck."
    ),
    "calibration": (
        "NAME: Software that the estimate is calibrated to, such as trtllm, or several in order; "
        "auto, the default: the first engine with a fit; none: no estimate."
    ),
    "measured": (
        "NUMBER: A number that was measured, to judge: 30ms, 250us, 1397tok/s (all chips), "
        "175tok/s/gpu, 45tok/s/user, 41%mfu, '41%mfu full' (all token pairs) or 41%hfu."
    ),
}
"""Options of questions about operations, about models, and about either: metavar, then help."""


def options_of(table: Mapping[str, str]) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Add the options in a table, in its order."""

    def add(function: click.decorators.FC) -> click.decorators.FC:
        for name, description in reversed([*table.items()]):
            metavar, _, text = description.partition(": ")
            option = click.option(f"--{name.replace('_', '-')}", metavar=metavar, help=text)
            function = option(function)
        return function

    return add


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=NUMBER",
    help="Another number of the chip, such as memory.hbm.bytes_per_s=4.8e12; several times.",
)


bound_option = click.option(
    "--bound", is_flag=True, help="Lead with the bound, which no run can beat, not the estimate."
)


def known_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Chips, models, dtypes and operations that start with a text, for shell completion."""
    del ctx, param
    names = (*chip_entries(), *model_entries(), *dtype_entries().combinations, *NAMED_OPERATIONS)
    return [name for name in names if name.startswith(incomplete)]


A = TypeVar("A")

FIRST = """Type a question, such as:
  rooflines explain h100 128x8192x8192 bf16
  rooflines explain 8xh100 llama-3.1-70b B=64 S=8k
  rooflines explain h100 llama-3.1-70b isl=8192 osl=1024 concurrency=64 tp8
Its words: `rooflines list words`; its options: `rooflines explain -h`"""
"""Printed for a command without words."""


class QuestionCommand(WithExamples):
    """A command whose words are a question; keys typed as options are words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, `--tp 8` as the word `tp=8`."""
        options = {name for param in self.get_params(ctx) for name in param.opts}
        return super().parse_args(ctx, options_as_words(args, options))


@click.command("explain", cls=QuestionCommand, epilog=EPILOG)
@click.argument(
    "words",
    nargs=-1,
    metavar="CHIP... [MODEL] SIZES [DTYPES]",
    shell_complete=known_words,
)
@options_of({**OF_BOTH, **OF_OPERATIONS, **OF_MODELS})
@bound_option
@set_option
@config_option
@prints_frame
def command(
    words: tuple[str, ...],
    config: str | None,
    settings: tuple[str, ...],
    *,
    bound: bool,
    **options: str | None,
) -> Printed:
    """Explain one operation, or a step of a whole model, on a chip; of several cases, a table.

    Which resource binds it, how far it is from its peak, from which sizes on it is compute-bound,
    what else would make it so, and where every number comes from. Of a model also tokens per
    second, whether it fits, and the largest batch that does.

    SIZES of an operation are BxDxF in the order of its letters, or LETTER=SIZE words, of a matmul
    also M=, K= and N=; of a model B=, its sequences, and S=, the tokens of each. 8k is 8,192; a
    list 64,128, a range 1..512 (doubling) or 64..256+64, and several chips or DTYPES make a table.
    Kernels such as attention, experts, norms, optimizers and collectives are asked by their kind,
    `rooflines list kernels`. MODEL is an id, a published name, or the path of a config.json; its
    DTYPES are a format, a combination such as w4a16, or
    weights=fp8,cache=fp8,activations=bf16,compute=fp8, by default those that it is published in; of
    an operation bf16. The words may be in any order, names in any case; a family name such as h100
    stands for its usual chip.

    Examples:
        rooflines explain h100 128x8192x8192 bf16
        rooflines explain h100 b200 mi300x M=1..512 K=8192 N=8192 bf16
        rooflines explain h100 llama-3.1-70b B=64 S=8k --split tp=8
        rooflines explain h100 llama-3.1-70b S=8k --split auto --chips 16 --within 0.02
        rooflines explain tpu-v5e "BSD,DF->BSF" B=8 S=4096 D=8192 F=28672 int8
        rooflines explain h100 128x8192x28672 bf16 --split tp=8
        rooflines explain h100 64x8192x28672 w4a16 --shards 8 --sharding column/gather-x
        rooflines explain h100 gemma-3-27b B=4 S=8192 --engine vllm --utilization 0.95
        rooflines explain h100 128x8192x8192 bf16 --set memory.hbm.bytes_per_s=4.8e12
        rooflines explain h100 128x8192x8192 bf16 --memory all
        rooflines explain h100 128x8192x8192 bf16 --measured 250us
        rooflines explain h100 attention B=8 S=8192 N=32 K=8 H=128 bf16 decode
        rooflines explain h100 all-reduce 64MiB --shards 8
        rooflines explain b200 gpt-oss-120b B=256 S=4096 fp8 --split tp=4 --price 2.5 --json
    """
    if not words:
        click.echo(FIRST)
        raise click.exceptions.Exit(0)
    catalogues = catalogues_of(config)
    if (kernel := _kernel_answer(words, options, catalogues, settings, bound=bound)) is not None:
        return kernel
    line = CommandLine(words, {name: value for name, value in options.items() if value is not None})
    answer = partial(answer_line, settings=settings, bound=bound)
    return printed_answer(*answered_line(EXPLAIN, line, catalogues, answer))


def _kernel_answer(
    words: tuple[str, ...],
    options: Mapping[str, str | None],
    catalogues: QuestionCatalogues,
    settings: tuple[str, ...],
    *,
    bound: bool,
) -> Printed | None:
    """Answer to a question about a kernel; None: it is about something else."""
    question = parse_kernel_words(words, catalogues.chips, options)
    if question is None:
        return None
    from rooflines.answers.kernel_cases import kernel_cases  # noqa: PLC0415, loaded on use

    allowed = {*OF_KERNELS, *question.option_names}
    refused = [name for name, value in options.items() if value and name not in allowed]
    if refused:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in refused)
        problem = f"is no option of a kernel such as {question.subject}"
        raise RooflinesError(names, problem, "leave it out")
    merged = with_overrides(question, catalogues, settings, None)
    options = {**options, "network": options.get("network") or question.network}
    try:
        answer = kernel_cases(question, merged, options, bound=bound)
    except RooflinesError as error:
        given = {name: value for name, value in options.items() if value is not None}
        whole = CommandLine((*words, *missing_letters(question)), given)
        retried = parse_kernel_words(whole.words, catalogues.chips, options)
        if whole.words != words and retried is not None:
            with suppress(RooflinesError):
                kernel_cases(retried, merged, options, bound=bound)
                with_correction(error, whole.text(EXPLAIN))
        raise
    for note in dict.fromkeys(question.notes):
        click.echo(note, err=True)
    return answer_output(answer)


def answered_line(
    command_name: str,
    line: CommandLine,
    catalogues: QuestionCatalogues,
    answer: Callable[[CommandLine, QuestionCatalogues], A],
) -> A:
    """Answer to a line.

    Raises:
        RooflinesError: It has mistakes; a note has the corrected line, where there is one.
    """
    try:
        return answer(line, catalogues)
    except RooflinesError as error:
        if error.file:
            raise
        correction = corrected_line(
            command_name, line, catalogues.chips, lambda repaired: answer(repaired, catalogues)
        )
        raise with_correction(error, correction, line.words) from None


def answer_line(
    line: CommandLine, catalogues: QuestionCatalogues, settings: tuple[str, ...], *, bound: bool
) -> tuple[Question, Answer | Cases]:
    """Answer to a line."""
    question = parse_words(line.words, catalogues.chips)
    keys: dict[str, Any] = dict(line.options)
    with all_mistakes(question):
        if "operation" in keys:
            question.take("operation", keys["operation"])
        take_usual_chip(question, trains=_trains(question, keys))
        typed = question.options.keys() - {"phase", "calibration"}
        _check_options({**keys, **dict.fromkeys(typed)}, of_a_model=question.model is not None)
        keys.pop("operation", None)
        if "resource" in keys:
            fix = "name a kernel such as attention, or leave it out"
            raise RooflinesError("--resource", "is for kernels alone", fix)
        price = keys.pop("price", question.options.pop("price", None))
        catalogues = with_overrides(question, catalogues, settings, price)
        if "sharding" in keys:
            keys["sharding"] = _long_form(keys["sharding"])
        if not keys and names_chips_alone(question):
            return question, chip_cases(question, catalogues)
        if asks_cache(question) and not keys:
            return question, cache_cases(question)
        if _is_open(question, keys):
            complete(question, catalogues, keys)
        elif question.model is not None and _trains(question, keys) and not question.mistakes:
            complete_training(question, keys)
        elif question.model is not None and not question.product:  # another mistake is said
            question.sizes |= missing_sizes(question, {**question.options, **keys})
        return question, answered(question, catalogues, bound=bound, **keys)


def _is_open(question: Question, keys: Mapping[str, Any]) -> bool:
    """Check for a served model that lacks a size, on chips that are known or missing."""
    return (
        question.model is not None
        and bool(missing_sizes(question, {**question.options, **keys}))
        and not (question.mistakes or question.product)
        and not _trains(question, keys)
        and all(find_chip(name, chip_entries()) for name in question.chips)
    )


def _trains(question: Question, keys: Mapping[str, Any]) -> bool:
    """Check for a step of training."""
    return TRAIN in (keys.get("phase"), question.options.get("phase"))


def printed_answer(question: Question, answer: Answer | Cases) -> Printed:
    """An answer as rows, a screen and JSON; what was taken for what is printed apart."""
    echo_notes(question)
    return answer_output(answer)


def echo_notes(question: Question) -> None:
    """Print what was taken for what on stderr."""
    for note in dict.fromkeys(question.notes):
        click.echo(note, err=True)


def answer_output(answer: Answer | KernelAnswer | Cases) -> Printed:
    """An answer as rows, a screen and JSON."""
    rows = answer.rows if isinstance(answer, Cases) else [answer.table_row()]
    return pl.DataFrame(rows, infer_schema_length=None), _screen(answer), answer.to_dict()


def _check_options(names_given: Collection[str], *, of_a_model: bool) -> None:
    """Refuse options for the other kind of question."""
    refused, problem = OF_MODELS, "for models only, and no model is named"
    fix = "leave that out, or name a model such as llama-3.1-70b"
    if of_a_model:
        refused, problem = OF_OPERATIONS, "for single operations only"
        fix = "leave that out; chips share a model by --split, such as tp=8"
    if names := [f"--{name.replace('_', '-')}" for name in names_given if name in refused]:
        verb = "are" if len(names) > 1 else "is"
        raise RooflinesError(", ".join(names), f"{verb} {problem}", fix)


def _long_form(sharding: str) -> object:
    """A sharding: a name, or the long form {split: S, then: all-reduce}."""
    if not sharding.lstrip().startswith("{"):
        return sharding
    import yaml  # noqa: PLC0415, few questions need it

    try:
        return yaml.safe_load(sharding)
    except (yaml.YAMLError, ValueError, RecursionError):
        return sharding


def screen_options() -> dict[str, bool]:
    """Options of a screen: coloured on a terminal unless NO_COLOR is set, ASCII without UTF-8."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return {"colour": sys.stdout.isatty() and not plain, "ascii_only": not utf8}


def _screen(answer: Answer | KernelAnswer | Cases) -> str:
    """Text of an answer for this terminal."""
    options = screen_options()
    if not isinstance(answer, Cases):
        return answer.screen().text(**options)
    notes = ["", *answer.notes] if answer.notes else []
    if (measured := answer.measured()) is not None:
        notes += ["", *section_lines(measured)]
    shown = table(answer.columns, answer.rows[: answer.shown])
    text = "\n".join([answer.question, "", shown, *notes])
    return as_ascii(text) if options["ascii_only"] else text
