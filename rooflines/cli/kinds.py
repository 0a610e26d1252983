"""`rooflines list kernels`: kinds of kernels, with their letters and an example each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.cli.output import WithExamples, prints_frame, table
from rooflines.kinds.collectives import COLLECTIVE_MEANINGS, COLLECTIVE_SYNONYMS
from rooflines.kinds.kind_table import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.cli.output import Printed
    from rooflines.kinds.kinds import KernelKind

COLUMNS = ("kernel", "letters", "options", "meaning")
"""Columns on a screen."""


@click.command("kernels", cls=WithExamples)
@prints_frame
def command() -> Printed:
    """List the kinds of kernels that can be asked alone, in chains, and in sweeps.

    Kinds between + are one fused kernel, between commas kernels one after another.

    Examples:
        rooflines list kernels
        rooflines list kernels --json
        rooflines explain h100 attention B=8 S=8192 N=32 K=8 H=128 bf16 decode
        rooflines explain mi300x rmsnorm 4096x8192 bf16 residual
        rooflines explain h100 all-reduce 64MiB --shards 8
        rooflines explain h100 "add + rmsnorm + quantise" B=4096 D=8192 bf16 out=fp8
        rooflines explain h100 "rmsnorm, matmul, swiglu, matmul" B=128 D=4096 F=14336
    """
    rows = [*map(_kind_row, KINDS.values()), *_collective_rows()]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame, table(COLUMNS, rows)


def _kind_row(kind: KernelKind) -> dict[str, str]:
    """Row for a kind."""
    choices = [value for values in kind.choices.values() for value in values]
    flags = [flag for flag in kind.flags if flag not in kind.letters]
    return {
        "kernel": kind.name,
        "letters": " ".join(kind.letters),
        "options": " ".join([*choices, *flags]),
        "meaning": kind.summary,
        "roles": " ".join(kind.roles),
        "flops": kind.flops,
        "vector_flops": kind.vector_flops,
        "synonyms": ", ".join(kind.synonyms),
        "example": f"rooflines explain h100 {kind.name} {kind.example}",
    }


def _collective_rows() -> Iterator[dict[str, str]]:
    """Rows for collectives."""
    for name, meaning in COLLECTIVE_MEANINGS.items():
        yield {
            "kernel": name,
            "letters": "bytes",
            "options": "",
            "meaning": meaning,
            "roles": "",
            "flops": "0",
            "vector_flops": "0",
            "synonyms": ", ".join(
                word for word, kind in COLLECTIVE_SYNONYMS.items() if kind == name
            ),
            "example": f"rooflines explain h100 {name} 64MiB --shards 8",
        }
