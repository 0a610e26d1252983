"""`rooflines explain`: operations, layers and models on chips, explained in one screen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.explanation.answer import Explanation
    from rooflines.explanation.cases import Cases
    from rooflines.explanation.question import Known
    from rooflines.explanation.words import Question

SHARDINGS = {
    "batch": "every chip has a part of the rows B, and all weights; nothing is sent",
    "batch/gather-w": "the same, and the weights are stored in parts and gathered first",
    "column": "every chip has some columns F of the weights; nothing is sent",
    "column/gather-x": "the same, and the input is stored in parts and gathered first",
    "contracting/all-reduce": "every chip has a part of D; the sums of all are added everywhere",
    "contracting/reduce-scatter": "the same, and every chip keeps a part of the sum",
}
"""What the named shardings mean, of `BD,DF->BF`."""

EXAMPLES = """
\b
Examples:
  rooflines explain h100 128x8192x8192 bf16
  rooflines explain h100 b200 mi300x M=1..512 K=8192 N=8192 bf16
  rooflines explain h100 llama-3.1-70b B=64 S=8k --split tp=8
  rooflines explain h100 llama-3.1-70b S=8k --split auto --chips 16 --within 0.02
  rooflines explain tpu-v5e "BSD,DF->BSF" B=8 S=4096 D=8192 F=28672 int8
  rooflines explain h100 128x8192x28672 bf16 --split tp=8
  rooflines explain h100 64x8192x28672 w4a16 --shards 8 --sharding column/gather-x
  rooflines explain h100 128x8192x8192 bf16 --set memory.hbm.bytes_per_s=4.8e12
  rooflines explain b200 gpt-oss-120b B=256 S=4096 fp8 --split tp=4 --price 2.5 --json

\b
Shardings of BD,DF->BF:
""" + "\n".join(f"  {name:<27}{meaning}" for name, meaning in SHARDINGS.items())

OF_OPERATIONS = ("operation", "shards", "sharding", "unit", "flops")
OF_MODELS = ("phase", "routing", "cache_split", "price", "chips", "within", "draft")
"""Options of one kind of question only."""


def known_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Chips, models, dtypes and operations that start with a text, for shell completion."""
    from rooflines.catalogue.chips import chip_entries, dtype_entries  # noqa: PLC0415, as below
    from rooflines.model.operation import NAMED  # noqa: PLC0415, as below
    from rooflines.models.library import model_entries  # noqa: PLC0415, as below

    del ctx, param
    names = (*chip_entries(), *model_entries(), *dtype_entries().combinations, *NAMED)
    return [name for name in names if name.startswith(incomplete)]


@click.command(
    "explain", epilog=EXAMPLES, short_help="Explain operations, layers and models on chips."
)
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="CHIP... [MODEL] SIZES [DTYPES]",
    shell_complete=known_words,
)
@click.option(
    "--operation", metavar="NAME", help="A name or an einsum; by default matmul, BD,DF->BF."
)
@click.option("--shards", metavar="N", help="Chips that share it; 4x4 along axes of a torus.")
@click.option("--sharding", metavar="NAME", help="How they split it; see below.")
@click.option(
    "--split",
    metavar="SPLIT",
    help="How chips share a model: tp=8, or tp=2,dp=4,ep=8; of a matmul tp=8: up and down; "
    "auto: every split of --chips, the best first.",
)
@click.option("--chips", metavar="N", help="Chips of --split auto.")
@click.option(
    "--within",
    metavar="SECONDS",
    help="With --split auto and no B: the largest batch of each whose step takes at most this.",
)
@click.option("--phase", metavar="PHASE", help="Of a model: decode, the default, or prefill.")
@click.option(
    "--draft",
    metavar="DRAFT",
    help="Speculative decoding: tokens=3,accepted=1.8, tokens drafted and the mean accepted.",
)
@click.option(
    "--routing",
    metavar="HOW",
    help="Experts that tokens choose: uniform, the default, same or all.",
)
@click.option(
    "--cache-split",
    metavar="HOW",
    help="How tp chips share caches: heads, the default, or batch.",
)
@click.option(
    "--network",
    metavar="NAME",
    help="The interconnect, by default the chip's first; or two, such as nvlink,infiniband.",
)
@click.option(
    "--memory",
    metavar="NAME",
    help="The memory level that feeds the unit; default hbm. all: each, and which one binds.",
)
@click.option("--unit", metavar="UNIT", help="matrix or vector; by default the operation's.")
@click.option("--flops", metavar="COUNT", help="leading or exact; by default the operation's.")
@click.option(
    "--calibration",
    metavar="NAME",
    help="Software that the estimate is calibrated to, such as trtllm; or several in order.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=NUMBER",
    help="Another number of the chip, such as memory.hbm.bytes_per_s=4.8e12; several times.",
)
@click.option("--price", metavar="USD", help="Dollars an hour of one chip.")
@click.option(
    "--config", metavar="FILE", help="A config whose chips, prices and calibrations count too."
)
@click.option("--csv", "csv", is_flag=True, help="The rows of the table as CSV, all columns.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def command(  # noqa: PLR0913, the options
    words: tuple[str, ...],
    config: str | None,
    settings: tuple[str, ...],
    price: str | None,
    *,
    csv: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    """Explain one operation, or a step of a whole model, on a chip; of several cases, a table.

    Which resource binds it, how far it is from its peak, from which sizes on it is compute-bound,
    what else would make it so, and where every number comes from. Of a model also tokens per
    second, whether it fits, and the largest batch that does.

    SIZES of an operation are BxDxF in the order of its letters, or LETTER=SIZE words, of a matmul
    also M=, K= and N=; of a model B=, its sequences, and S=, the tokens of each. 8k is 8,192; a
    list 64,128, a range 1..512 (doubling) or 64..256+64, and several chips or DTYPES make a table.
    MODEL is an id, a published name, or the path of a config.json; its DTYPES are a format, or
    weights=fp8,cache=fp8,activations=bf16,compute=fp8, by default those that it is published in;
    of an operation bf16. The words may be in any order, names in any case; a family name such as
    h100 stands for its usual chip.
    """
    from rooflines.cli.output import known_of  # noqa: PLC0415, help does not wait for it
    from rooflines.explanation.explain import answered  # noqa: PLC0415, the same
    from rooflines.explanation.words import read_words  # noqa: PLC0415, the same

    known = known_of(config)
    asked = read_words(words, known.chips)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    priced = [*given, *(["price"] if price is not None else [])]
    if operation := given.pop("operation", None):
        asked.take("operation", operation)
    _check_options(priced, of_a_model=asked.model is not None)
    known = _with_own_numbers(asked, known, settings, price)
    if softwares := given.get("calibration"):
        given["calibration"] = softwares.split(",")
    if "sharding" in given:
        given["sharding"] = _long_form(given["sharding"])
    answer = answered(asked, known, **given)
    for note in asked.notes:
        click.echo(note, err=True)
    click.echo(_csv(answer) if csv else _json(answer) if as_json else _screen(answer))


def _check_options(given: Iterable[str], *, of_a_model: bool) -> None:
    """Refuse options of the other kind of question."""
    from rooflines.basics.errors import RooflinesError  # noqa: PLC0415, help does not wait for it

    refused = OF_OPERATIONS if of_a_model else OF_MODELS
    others = ", ".join(f"--{name.replace('_', '-')}" for name in given if name in refused)
    if others and of_a_model:
        fix = "leave that out; chips share a model as --split tp=8 says"
        raise RooflinesError(
            "the question", f"asks for a model, but has {others} of operations", fix
        )
    if others:
        fix = "leave that out, or name a model such as llama-3.1-70b"
        raise RooflinesError("the question", f"names no model, but has {others} of models", fix)


def _with_own_numbers(
    asked: Question, known: Known, settings: tuple[str, ...], price: str | None
) -> Known:
    """What can be named, with the variants that `--set` and `--price` make of the chips."""
    from rooflines.basics.errors import placed  # noqa: PLC0415, as above
    from rooflines.catalogue.chips import with_price  # noqa: PLC0415, as above
    from rooflines.explanation.changed import with_numbers  # noqa: PLC0415, as above

    chips = {name: known.chips[name] for name in asked.chips if name in known.chips}
    if settings and chips:
        chips, slips = with_numbers(list(chips), settings, known.chips)
        asked.notes += [*slips, *(f"{name}: {' '.join(settings)}" for name in chips)]
        asked.chips = [*chips]
    if price is not None:
        with placed("--price"):
            source = "typed with --price"
            chips = {name: with_price(chip, price, source) for name, chip in chips.items()}
    return known._replace(chips={**known.chips, **chips})


def _long_form(sharding: str | None) -> Any:  # noqa: ANN401, a name or any YAML value
    """A sharding: a name, or the long form {split: S, then: all-reduce}."""
    if sharding is None or not sharding.lstrip().startswith("{"):
        return sharding
    import yaml  # noqa: PLC0415, only where it is needed

    try:
        return yaml.safe_load(sharding)
    except (yaml.YAMLError, ValueError, RecursionError):
        return sharding


def _csv(answer: Explanation | Cases) -> str:
    import polars as pl  # noqa: PLC0415, help does not wait for it

    from rooflines.cli.output import as_csv  # noqa: PLC0415, help is fast
    from rooflines.explanation.cases import Cases  # noqa: PLC0415, as above

    rows = answer.rows if isinstance(answer, Cases) else [answer.row]
    return as_csv(pl.DataFrame(rows, infer_schema_length=None))


def _json(answer: Explanation | Cases) -> str:
    from rooflines.cli.output import as_json  # noqa: PLC0415, help is fast

    return as_json(answer.to_dict())


def _screen(answer: Explanation | Cases) -> str:
    """Coloured on a terminal unless NO_COLOR is set; ASCII where UTF-8 is not the encoding."""
    from rooflines.cli.output import as_table, width  # noqa: PLC0415, help is fast
    from rooflines.explanation.cases import Cases  # noqa: PLC0415, as above
    from rooflines.explanation.text import as_ascii, as_text  # noqa: PLC0415, as above

    colour = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    if not isinstance(answer, Cases):
        return as_text(answer, colour=colour, ascii_only=not utf8)
    text = "\n".join([answer.asked, "", as_table(*answer.table(), width()), *_notes(answer)])
    return text if utf8 else as_ascii(text)


def _notes(cases: Cases) -> list[str]:
    return ["", *cases.notes] if cases.notes else []
