"""`rooflines explain`: one operation, or one model, on a chip, explained in one screen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.explanation.answer import Explanation
    from rooflines.explanation.model_answer import ModelExplanation
    from rooflines.fits.entries import Calibrations

EXAMPLES = """
\b
Examples:
  rooflines explain h100-sxm 128x8192x8192 bf16
  rooflines explain h100-sxm llama-3.1-70b B=64 S=8192 --split tp=8
  rooflines explain tpu-v5e "BSD,DF->BSF" B=8 S=4096 D=8192 F=28672 int8
  rooflines explain h100-sxm 64x8192x28672 w4a16 --shards 8 --sharding column/gather-x
  rooflines explain tpu-v5e dot 1048576 bf16-compute-fp32
  rooflines explain b200 128x8192x8192 fp8 --json
  rooflines explain b200 gpt-oss-120b B=256 S=4096 fp8 --split tp=4 --json
"""

OF_OPERATIONS = ("operation", "shards", "sharding", "unit", "flops")
OF_MODELS = ("split", "phase", "routing", "cache_split")
"""Options of one kind of question only."""


class Known(NamedTuple):
    """What a question can name.

    Attributes:
        chips: By id.
        calibrations: By chip and software.
    """

    chips: Mapping[str, Chip]
    calibrations: Calibrations


def known_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Chips, models, dtypes and operations that start with a text, for shell completion."""
    from rooflines.catalogue.chips import chip_entries, dtype_entries  # noqa: PLC0415, as below
    from rooflines.model.operation import NAMED  # noqa: PLC0415, as below
    from rooflines.models.library import model_entries  # noqa: PLC0415, as below

    del ctx, param
    names = (*chip_entries(), *model_entries(), *dtype_entries().combinations, *NAMED)
    return [name for name in names if name.startswith(incomplete)]


@click.command("explain", epilog=EXAMPLES)
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="CHIP [MODEL] SIZES [DTYPES]",
    shell_complete=known_words,
)
@click.option(
    "--operation", metavar="NAME", help="A name or an einsum; by default matmul, BD,DF->BF."
)
@click.option("--shards", metavar="N", help="Chips that share it; 4x4 along axes of a torus.")
@click.option(
    "--sharding", metavar="NAME", help="How they split it, such as batch or column/gather-x."
)
@click.option("--split", metavar="SPLIT", help="How chips share a model: tp=8, or tp=2,dp=4,ep=8.")
@click.option("--phase", metavar="PHASE", help="Of a model: decode, the default, or prefill.")
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
@click.option("--memory", metavar="NAME", help="The memory level that feeds the unit; default hbm.")
@click.option("--unit", metavar="UNIT", help="matrix or vector; by default the operation's.")
@click.option("--flops", metavar="COUNT", help="leading or exact; by default the operation's.")
@click.option(
    "--calibration",
    metavar="NAME",
    help="Software that the estimate is calibrated to, such as trtllm; or several in order.",
)
@click.option(
    "--config", metavar="FILE", help="A config whose own chips and calibrations can be named too."
)
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def command(
    words: tuple[str, ...],
    config: str | None,
    *,
    as_json: bool,
    **options: str | None,
) -> None:
    """Explain one operation, or a step of a whole model, on a chip.

    Which resource binds it, how far it is from its peak, from which sizes on it is compute-bound,
    what else would make it so, and where every number comes from. Of a model also tokens per
    second, whether it fits, and the largest batch that does.

    SIZES of an operation are BxDxF in the order of its letters, or LETTER=SIZE words; of a model
    B=, its sequences, and S=, the tokens of each. MODEL is an id, a published name, or the path of
    a config.json; its DTYPES are a format, by default bf16, or
    weights=fp8,cache=fp8,activations=bf16,compute=fp8. The words may be in any order.
    """
    from rooflines.catalogue.chips import chip_entries  # noqa: PLC0415, help does not wait for it
    from rooflines.explanation.model_question import asks_for_a_model  # noqa: PLC0415, the same
    from rooflines.fits.entries import shipped_calibrations  # noqa: PLC0415, as below

    if config is None:
        known = Known(chip_entries(), shipped_calibrations())
    else:
        from rooflines.config import load_config  # noqa: PLC0415, only where it is needed

        own = load_config(config, needs_sweeps=False)
        known = Known(own.chips, own.calibrations)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    of_a_model = asks_for_a_model(words, known.chips)
    _check_options(given, of_a_model=of_a_model)
    if softwares := options.get("calibration"):
        given["calibration"] = softwares.split(",")
    answer = (_model if of_a_model else _operation)(words, known, given)
    click.echo(_json(answer) if as_json else _screen(answer))


def _check_options(given: Iterable[str], *, of_a_model: bool) -> None:
    """Refuse options of the other kind of question."""
    from rooflines.basics.errors import RooflinesError  # noqa: PLC0415, help does not wait for it

    refused = OF_OPERATIONS if of_a_model else OF_MODELS
    others = ", ".join(f"--{name.replace('_', '-')}" for name in given if name in refused)
    if others and of_a_model:
        fix = "leave that out; chips share a model as --split says"
        raise RooflinesError(
            "the question", f"asks for a model, but has {others} of operations", fix
        )
    if others:
        fix = "leave that out, or name a model such as llama-3.1-70b"
        raise RooflinesError("the question", f"names no model, but has {others} of models", fix)


def _operation(words: Sequence[str], known: Known, options: Mapping[str, Any]) -> Explanation:
    """The explanation of an operation."""
    from rooflines.explanation.answer import explain  # noqa: PLC0415, help does not wait for it
    from rooflines.explanation.question import read_words  # noqa: PLC0415, the same

    asked = read_words(words, known.chips)
    if operation := options.get("operation"):
        asked.take("operation", operation)
    return explain(
        asked.chip or "",
        {**asked.sizes} or asked.product or "",
        asked.dtypes or "",
        chips=known.chips,
        calibrations=known.calibrations,
        **{
            **options,
            "operation": asked.operation,
            "sharding": _long_form(options.get("sharding")),
        },
    )


def _model(words: Sequence[str], known: Known, options: Mapping[str, Any]) -> ModelExplanation:
    """The explanation of a model."""
    from rooflines.explanation.model_answer import explained_model  # noqa: PLC0415, as above
    from rooflines.explanation.model_question import (  # noqa: PLC0415, as above
        model_sweep_of,
        read_model_words,
    )

    asked = read_model_words(words, known.chips)
    return explained_model(
        model_sweep_of(
            asked.chip or "",
            asked.model or "",
            asked.sizes,
            chips=known.chips,
            calibrations=known.calibrations,
            dtypes=asked.dtypes,
            **options,
        )
    )


def _long_form(sharding: str | None) -> Any:  # noqa: ANN401, a name or any YAML value
    """A sharding: a name, or the long form {split: S, then: all-reduce}."""
    if sharding is None or not sharding.lstrip().startswith("{"):
        return sharding
    import yaml  # noqa: PLC0415, only where it is needed

    try:
        return yaml.safe_load(sharding)
    except (yaml.YAMLError, ValueError, RecursionError):
        return sharding


def _json(answer: Explanation | ModelExplanation) -> str:
    from rooflines.cli.output import as_json  # noqa: PLC0415, help is fast

    return as_json(answer.to_dict())


def _screen(answer: Explanation | ModelExplanation) -> str:
    """Coloured on a terminal unless NO_COLOR is set; ASCII where UTF-8 is not the encoding."""
    from rooflines.explanation.text import as_text  # noqa: PLC0415, as above

    colour = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return as_text(answer.sheet, colour=colour, ascii_only=not utf8)
