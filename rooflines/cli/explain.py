"""`rooflines explain`: one operation on one chip, explained in one screen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rooflines.explanation.answer import Explanation

__all__ = ["command"]

EXAMPLES = """
\b
Examples:
  rooflines explain h100-sxm 128x8192x8192 bf16
  rooflines explain tpu-v5e "BSD,DF->BSF" B=8 S=4096 D=8192 F=28672 int8
  rooflines explain h100-sxm 64x8192x28672 w4a16 --shards 8 --sharding column/gather-x
  rooflines explain tpu-v5e dot 1048576 bf16-compute-fp32
  rooflines explain b200 128x8192x8192 fp8 --json
"""


def known_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Chips, dtype combinations and operations that start with a text, for shell completion."""
    from rooflines.catalogue.chips import chip_entries, dtype_entries  # noqa: PLC0415, as below
    from rooflines.model.operation import NAMED  # noqa: PLC0415, as below

    del ctx, param
    names = (*chip_entries(), *dtype_entries().combinations, *NAMED)
    return [name for name in names if name.startswith(incomplete)]


@click.command("explain", epilog=EXAMPLES)
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="CHIP SIZES DTYPES",
    shell_complete=known_words,
)
@click.option(
    "--operation", metavar="NAME", help="A name or an einsum; by default matmul, BD,DF->BF."
)
@click.option(
    "--shards", metavar="N", default="1", help="Chips that share it; 4x4 along axes of a torus."
)
@click.option(
    "--sharding", metavar="NAME", help="How they split it, such as batch or column/gather-x."
)
@click.option(
    "--network",
    metavar="NAME",
    help="The interconnect, by default the chip's first; or two, such as nvlink,infiniband.",
)
@click.option("--memory", metavar="NAME", help="The memory level that feeds the unit; default hbm.")
@click.option("--unit", metavar="UNIT", help="matrix or vector; by default the operation's.")
@click.option("--flops", metavar="COUNT", help="leading or exact; by default the operation's.")
@click.option("--config", metavar="FILE", help="A config whose own chips can be named too.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def command(
    words: tuple[str, ...],
    operation: str | None,
    sharding: str | None,
    config: str | None,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401, texts that are handed on
) -> None:
    """Explain one operation on one chip.

    Which resource binds it, how far it is from its peak, from which sizes on it is compute-bound,
    what else would make it so, and where every number comes from.

    SIZES are BxDxF in the order of the operation's letters, or LETTER=SIZE words. CHIP, SIZES,
    DTYPES and an operation may be in any order.
    """
    from rooflines.catalogue.chips import chip_entries  # noqa: PLC0415, help does not wait for it
    from rooflines.explanation.answer import explain  # noqa: PLC0415, the same
    from rooflines.explanation.question import read_words  # noqa: PLC0415, the same

    if config is None:
        chips = chip_entries()
    else:
        from rooflines.config import load_config  # noqa: PLC0415, only where it is needed

        chips = load_config(config).chips  # type: ignore[assignment]  # a mapping either way
    known = read_words(words, chips)
    if operation is not None:
        known.take("operation", operation)
    answer = explain(
        known.chip or "",
        {**known.sizes} or known.product or "",
        known.dtypes or "",
        operation=known.operation,
        sharding=_long_form(sharding),
        chips=chips,
        **options,
    )
    click.echo(_json(answer) if as_json else _screen(answer))


def _long_form(sharding: str | None) -> Any:  # noqa: ANN401, a name or any YAML value
    """A sharding: a name, or the long form {split: S, then: all-reduce}."""
    if sharding is None or not sharding.lstrip().startswith("{"):
        return sharding
    import yaml  # noqa: PLC0415, only where it is needed

    try:
        return yaml.safe_load(sharding)
    except (yaml.YAMLError, ValueError, RecursionError):
        return sharding


def _json(answer: Explanation) -> str:
    import json  # noqa: PLC0415, only where it is needed

    return json.dumps(answer.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def _screen(answer: Explanation) -> str:
    """Coloured on a terminal unless NO_COLOR is set; ASCII where UTF-8 is not the encoding."""
    from rooflines.explanation.text import as_text  # noqa: PLC0415, as above

    colour = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return as_text(answer.sheet, colour=colour, ascii_only=not utf8)
