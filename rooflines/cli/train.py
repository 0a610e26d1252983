"""`rooflines train`: a step of training on chips, or every way to split it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflines.cli.output import frame_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.explanation.words import Question
    from rooflines.training.step import TrainingStep

EXAMPLES = """
\b
Examples:
  rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --shard weights
  rooflines train b200 deepseek-v3 B=1024 S=4k --split pp=16,dp=64,ep=64
  rooflines train h100 llama-3.1-70b B=128 S=8k --split auto --chips 64
  rooflines train h100 llama-3.1-8b B=8 S=8k --split dp=8 --recompute full --json
"""

MOST_PLANS = 12
"""Plans that are shown [1]; CSV and JSON have all."""

HIDDEN = (1, 10)
"""The share of a step for which stages may wait, of a threshold [1]."""

DAY_S = 86_400


@click.command(
    "train", epilog=EXAMPLES, short_help="A step of training: times, memory, the best split."
)
@click.argument("words", nargs=-1, required=True, metavar="CHIP MODEL B= S= [DTYPE]")
@click.option(
    "--split",
    metavar="SPLIT",
    help="tp=2,pp=4,dp=8, also cp=, ep= and interleave=; or auto, every split of --chips.",
)
@click.option("--chips", metavar="N", help="Chips of --split auto.")
@click.option(
    "--shard",
    metavar="WHAT",
    help="What replicas share: none, optimizer (the default, ZeRO 1), gradients, weights (FSDP).",
)
@click.option(
    "--recompute",
    metavar="WHAT",
    help="What is computed again: none, the default, selective (norms, activations), or full.",
)
@click.option("--micro-batch", metavar="N", help="Sequences that a replica computes at once; 1.")
@click.option("--network", metavar="NAME", help="The interconnect, or two: nvlink,infiniband.")
@click.option("--tokens", metavar="N", help="Tokens of the whole training, such as 15e12: days.")
@click.option("--config", metavar="FILE", help="A config whose own chips can be named too.")
@frame_options
def command(
    words: tuple[str, ...],
    tokens: str | None,
    config: str | None,
    *,
    csv: bool,
    json_: bool,
    **options: str | None,
) -> None:
    """A step of training of a model on chips: which resource binds it, and whether it fits.

    B is the sequences of a step over all replicas, S the tokens of each. The least time has
    everything overlapped and no bubble; then kernels one after another, on the busiest stage; then
    nothing overlapped. Memory is states and saved tensors; working memory is not counted.
    """
    from rooflines.basics.errors import (  # noqa: PLC0415, help does not wait for it
        RooflinesError,
        placed,
    )
    from rooflines.basics.numbers import number  # noqa: PLC0415, the same
    from rooflines.cli.output import known_of, print_frame  # noqa: PLC0415, the same
    from rooflines.explanation.words import read_words  # noqa: PLC0415, the same
    from rooflines.training import question  # noqa: PLC0415, the same

    known = known_of(config)
    asked = read_words(words, known.chips)
    steps = _steps(asked, {key: value for key, value in options.items() if value}, known.chips)
    for note in asked.notes:
        click.echo(note, err=True)
    if csv or json_:
        print_frame(question.frame_of(steps), "", csv=csv, json_=json_)
        return
    whole = None
    if tokens is not None:
        with placed("--tokens"):
            whole = float(number(tokens))
            if whole <= 0:
                problem = f"is {tokens}, which is not above zero"
                raise RooflinesError("", problem, "write tokens, such as 15e12")
    name = f"{asked.model}, training on {asked.chips[0]}"
    click.echo(_plans(name, steps) if len(steps) > 1 else "\n".join(_sheet(name, steps[0], whole)))


def _steps(
    asked: Question, options: dict[str, str], chips: Mapping[str, Chip]
) -> list[TrainingStep]:
    """The steps that a question asks for."""
    from rooflines.basics.errors import RooflinesError, one_of, placed  # noqa: PLC0415, as above
    from rooflines.basics.numbers import whole  # noqa: PLC0415, the same
    from rooflines.explanation.sizes import values_of  # noqa: PLC0415, the same
    from rooflines.training.question import AUTO, training_steps  # noqa: PLC0415, the same

    how = "write one chip, one model, B= and S=, as in `rooflines train -h`"
    if len(asked.chips) != 1 or asked.model is None or asked.operation or asked.product:
        raise RooflinesError("the question", "asks for no single chip and model", how)
    if {*asked.sizes} != {"B", "S"}:
        problem = f"has sizes {', '.join(asked.sizes) or 'of none'}, not B and S"
        raise RooflinesError("the question", problem, how)
    sizes = []
    for letter in ("B", "S"):
        values = values_of(asked.sizes[letter], letter)
        if len(values) > 1:
            raise RooflinesError(letter, "has several sizes", "ask for one at a time")
        sizes += values
    if len(asked.dtypes) > 1:
        raise RooflinesError("dtypes", "are several", "name one format, such as bf16 or fp8")
    split, network = options.pop("split", None), options.pop("network", None)
    number = options.pop("chips", None)
    with placed("--chips"):
        count = None if number is None else whole(number)
    (name,) = asked.chips
    with placed("chip"):
        one_of(name, chips, "no chip", "see `rooflines list chips`")
    return training_steps(
        asked.model,
        chips[name],
        (sizes[0], sizes[1]),
        AUTO if split == AUTO else _parts(split),
        chips=count,
        dtypes=asked.dtypes[0] if asked.dtypes else "bf16",
        network=network.split(",") if network else None,
        options=options,
    )


def _parts(split: str | None) -> dict[str, str]:
    """The values of a split by key."""
    from rooflines.basics.errors import placed  # noqa: PLC0415, as above
    from rooflines.explanation.question import by_key  # noqa: PLC0415, the same

    with placed("--split"):
        return by_key(split, "write tp=2,pp=4,dp=8, or auto") if split else {}


def _sheet(name: str, step: TrainingStep, tokens: float | None) -> Iterator[str]:
    """One step, in lines."""
    from rooflines.basics.text import counted, seconds, si  # noqa: PLC0415, as above
    from rooflines.model.resources import RESOURCES  # noqa: PLC0415, the same
    from rooflines.training.question import training_row  # noqa: PLC0415, the same

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
    for label, value in (
        ("step", f"{seconds(row['t_ops_s'])} one kernel after another; {peak}"),
        ("", f"{seconds(row['t_lower_s'])} at least, {seconds(row['t_upper_s'])} without overlap"),
        ("tokens", f"{row['tokens_per_s_per_chip']:,.0f} tokens/s per chip"),
        ("pipeline", f"waits {row['bubble']:.1%} of a step" if plan.pp > 1 else ""),
        ("memory", " + ".join((si(row["state_bytes"], "B") + " states", _saved(row)))),
        *_limits(step),
        ("training", _days(step, tokens) if tokens else ""),
    ):
        if value:
            yield f"{label:<10}{value}"


def _verdict(step: TrainingStep) -> str:
    """What the question is answered by: whether it fits, then what takes longest."""
    from rooflines.basics.text import si, significant  # noqa: PLC0415, as above
    from rooflines.model.resources import MATH, RESOURCES  # noqa: PLC0415, the same

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


def _saved(row: dict[str, object]) -> str:
    from rooflines.basics.text import si  # noqa: PLC0415, as above

    return f"{si(float(str(row['saved_bytes'])), 'B')} saved of the fullest chip"


def _limits(step: TrainingStep) -> Iterator[tuple[str, str]]:
    """Sizes at which the answer changes."""
    from fractions import Fraction  # noqa: PLC0415, as above

    from rooflines.model.resources import OTHERS  # noqa: PLC0415, the same
    from rooflines.training import limits  # noqa: PLC0415, the same

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
    from rooflines.basics.text import seconds, si  # noqa: PLC0415, as above
    from rooflines.cli.output import as_table, width  # noqa: PLC0415, the same

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
    return "\n".join([head, "", as_table(names, rows, width()), *more])
