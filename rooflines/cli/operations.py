"""`rooflines list operations`: named operations, as einsums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.cli.output import WithExamples, prints_frame, table
from rooflines.theory.operation import NAMED_OPERATIONS

if TYPE_CHECKING:
    from rooflines.cli.output import Printed


@click.command("operations", cls=WithExamples)
@prints_frame
def command() -> Printed:
    """List the named operations with their einsum, unit and FLOP count.

    Any other einsum with two operands is an operation too: `--operation 'BSD,DF->BSF'`.

    Examples:
        rooflines list operations
        rooflines list operations --json
    """
    rows = [
        {
            "operation": name,
            "einsum": f"{operation.x},{operation.w}->{operation.out}",
            "unit": operation.unit,
            "flops": operation.flops,
        }
        for name, operation in NAMED_OPERATIONS.items()
    ]
    return pl.DataFrame(rows), table(("operation", "einsum", "unit", "flops"), rows)
