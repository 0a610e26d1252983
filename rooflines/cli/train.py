"""`rooflines train`: a step of training on chips, or every way to split it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from rooflines.basics.errors import RooflinesError, one_of, placed
from rooflines.basics.numbers import number, whole
from rooflines.basics.text import counted, seconds, si, significant
from rooflines.cli.explain import options_of
from rooflines.cli.output import as_table, config_option, examples, known_of, prints_frame
from rooflines.explanation.question import by_key
from rooflines.explanation.sizes import values_of
from rooflines.explanation.words import read_words
from rooflines.model.resources import MATH, OTHERS, RESOURCES
from rooflines.training import limits
from rooflines.training.question import AUTO, frame_of, training_row, training_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.cli.output import Printed
    from rooflines.explanation.words import Question
    from rooflines.training.step import TrainingStep

MOST_PLANS = 12
"""Plans that are shown [1]; CSV and JSON have all."""

HIDDEN = (1, 10)
"""The share of a step for which stages may wait, of a threshold [1]."""

DAY_S = 86_400


HOW = "write one chip, one model, B= and S=, as in `rooflines train -h`"

OPTIONS = {
    "split": (
        "SPLIT",
        "tp=2,pp=4,dp=8, also cp=, ep= and interleave=; or auto, every split of --chips.",
    ),
    "chips": ("N", "Chips of --split auto."),
    "shard": (
        "WHAT",
        "What replicas share: none, optimizer (the default, ZeRO 1), gradients, weights (FSDP).",
    ),
    "recompute": (
        "WHAT",
        "What is computed again: none, the default, selective (norms, activations), or full.",
    ),
    "micro_batch": ("N", "Sequences that a replica computes at once; 1."),
    "network": ("NAME", "The interconnect, or two: nvlink,infiniband."),
}
"""Options of a plan."""


@click.command(
    "train",
    epilog=examples(
        "rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --shard weights",
        "rooflines train b200 deepseek-v3 B=1024 S=4k --split pp=16,dp=64,ep=64",
        "rooflines train h100 llama-3.1-70b B=128 S=8k --split auto --chips 64",
        "rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --recompute full --json",
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="CHIP MODEL B= S= [DTYPE]")
@options_of(OPTIONS)
@click.option("--tokens", metavar="N", help="Tokens of the whole training, such as 15e12: days.")
@config_option
@prints_frame
def command(
    words: tuple[str, ...],
    tokens: str | None,
    config: str | None,
    **options: str | None,
) -> Printed:
    """A step of training of a model on chips: which resource binds it, and whether it fits.

    B is the sequences of a step over all replicas, S the tokens of each. The least time has
    everything overlapped and no bubble; then kernels one after another, on the busiest stage; then
    nothing overlapped. Memory is states and saved tensors; working memory is not counted.
    """
    known = known_of(config)
    asked = read_words(words, known.chips)
    steps = _steps(asked, {key: value for key, value in options.items() if value}, known.chips)
    for note in asked.notes:
        click.echo(note, err=True)
    whole_training = None
    if tokens is not None:
        with placed("--tokens"):
            whole_training = float(number(tokens))
            if whole_training <= 0:
                problem = f"is {tokens}, which is not above zero"
                raise RooflinesError("", problem, "write tokens, such as 15e12")
    name = f"{asked.model}, training on {asked.chips[0]}"
    several = len(steps) > 1
    text = _plans(name, steps) if several else "\n".join(_sheet(name, steps[0], whole_training))
    return frame_of(steps), text


def _steps(
    asked: Question, options: dict[str, str], chips: Mapping[str, Chip]
) -> list[TrainingStep]:
    """The steps that a question asks for."""
    if len(asked.chips) != 1 or asked.model is None or asked.operation or asked.product:
        raise RooflinesError("the question", "asks for no single chip and model", HOW)
    if {*asked.sizes} != {"B", "S"}:
        problem = f"has sizes {', '.join(asked.sizes) or 'of none'}, not B and S"
        raise RooflinesError("the question", problem, HOW)
    if len(asked.dtypes) > 1:
        raise RooflinesError("dtypes", "are several", "name one format, such as bf16 or fp8")
    (name,) = asked.chips
    with placed("chip"):
        one_of(name, chips, "no chip", "see `rooflines list chips`")
    split, network = options.pop("split", ""), options.pop("network", None)
    with placed("--chips"):
        count = whole(options.pop("chips")) if "chips" in options else None
    with placed("--split"):
        plan = by_key(split, "write tp=2,pp=4,dp=8, or auto") if split not in ("", AUTO) else {}
    return training_steps(
        asked.model,
        chips[name],
        (_size(asked, "B"), _size(asked, "S")),
        AUTO if split == AUTO else plan,
        chips=count,
        dtypes=asked.dtypes[0] if asked.dtypes else "bf16",
        network=network.split(",") if network else None,
        options=options,
    )


def _size(asked: Question, letter: str) -> int:
    """The one size of a letter."""
    values = values_of(asked.sizes[letter], letter)
    if len(values) > 1:
        raise RooflinesError(letter, "has several sizes", "ask for one at a time")
    return values[0]


def _sheet(name: str, step: TrainingStep, tokens: float | None) -> Iterator[str]:
    """One step, in lines."""
    row, plan = training_row(step), step.setting.plan
    yield f"{name}: {row['plan']} on {counted(plan.chips, 'chip')}, B={row['B']} S={row['S']}"
    yield _verdict(step)
    yield ""
    for resource in RESOURCES:
        work = si(row[resource.work], "FLOP" if resource.work == "flops" else "B")
        time_s = seconds(row[f"t_{resource.name}_s"])
        yield f"  {resource.name:<10}{time_s:>10}  {work} on a chip"
    yield ""
    peak = f"mfu {row['mfu']:.1%}, with all pairs {row['mfu_full']:.1%}, hfu {row['hfu']:.1%}"
    states, saved = si(row["state_bytes"], "B"), si(row["saved_bytes"], "B")
    for label, value in (
        ("step", f"{seconds(row['t_ops_s'])} one kernel after another; {peak}"),
        ("", f"{seconds(row['t_lower_s'])} at least, {seconds(row['t_upper_s'])} without overlap"),
        ("tokens", f"{row['tokens_per_s_per_chip']:,.0f} tokens/s per chip"),
        ("pipeline", f"waits {row['bubble']:.1%} of a step" if plan.pp > 1 else ""),
        ("memory", f"{states} states + {saved} saved of the fullest chip"),
        *_limits(step),
        ("training", _days(step, tokens) if tokens else ""),
    ):
        if value:
            yield f"{label:<10}{value}"


def _verdict(step: TrainingStep) -> str:
    """What the question is answered by: whether it fits, then what takes longest."""
    if step.fits is False:
        held, has = step.footprint.total, step.machine.level.capacity_bytes or 0
        sizes = (
            f"{si(float(held), 'B')} of states and saved tensors, {si(float(has), 'B')} of memory"
        )
        return f"Does not fit: {sizes}."
    longest, *others = sorted(step.seconds, key=step.seconds.__getitem__, reverse=True)
    other = MATH.bound if longest != MATH.bound else others[0]
    names = {resource.bound: resource.name for resource in RESOURCES}
    if not step.seconds[other]:
        return f"{longest}-bound."
    factor = significant(float(step.seconds[longest] / step.seconds[other]), 3)
    return f"{longest}-bound: {names[longest]} takes {factor} times as long as {names[other]}."


def _limits(step: TrainingStep) -> Iterator[tuple[str, str]]:
    """Sizes at which the answer changes."""
    label = "compute"
    for resource in OTHERS:
        if step.seconds[resource.bound]:
            least = limits.least_tokens(step, resource.bound)
            found = "never" if least is None else f"from S = {least:,} on"
            yield label, f"{found}, against {resource.bound}"
            label = ""
    if step.machine.level.capacity_bytes is not None:
        longest, most = limits.longest_context(step), limits.largest_micro_batch(step)
        yield "largest", f"S = {longest:,}; micro-batch {most:,}"
    if step.setting.plan.pp > 1:
        least = limits.hiding_micro_batches(step.setting.plan, Fraction(*HIDDEN))
        yield "bubble", f"at most {HIDDEN[0] / HIDDEN[1]:.0%} from {least:,} micro-batches on"


def _days(step: TrainingStep, tokens: float) -> str:
    """How long all tokens take."""
    steps = tokens / (step.sequences * step.tokens)
    return f"{steps * float(step.t_ops_s) / DAY_S:,.1f} days of {steps:,.0f} such steps"


def _plans(name: str, steps: Sequence[TrainingStep]) -> str:
    """The best plans as a table, and how many more there are."""
    fitting = sum(step.fits is not False for step in steps)
    first = steps[0]
    head = f"{name}: {len(steps)} splits of {first.setting.plan.chips:,} chips, {fitting} fit"
    rows = [
        (
            step.setting.plan.name,
            seconds(float(step.t_upper_s)),
            seconds(float(step.t_ops_s)),
            seconds(float(step.t_lower_s)),
            step.bound,
            f"{float(step.bubble):.1%}",
            si(float(step.footprint.total), "B"),
            {True: "yes", False: "no", None: "?"}[step.fits],
        )
        for step in steps[:MOST_PLANS]
    ]
    names = ("split", "no overlap", "in turn", "at least", "bound", "bubble", "memory", "fits")
    more = [f"... {len(steps) - len(rows)} more: --csv"] if len(steps) > len(rows) else []
    return "\n".join([head, "", as_table(names, rows), *more])
