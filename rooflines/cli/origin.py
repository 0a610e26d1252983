"""`rooflines origin`: where files come from; `python -m rooflines.provenance` does the same."""

from __future__ import annotations

import click

EXAMPLES = """
\b
Examples:
  rooflines origin results/thresholds.parquet
  rooflines origin results/charts/roofline
  rooflines origin results --check
"""


@click.command(
    "origin", epilog=EXAMPLES, short_help="Print what made a file, and whether it is unchanged."
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Say only whether they are as they were written.")
def command(files: tuple[str, ...], *, check: bool) -> int:
    """Print what made a file, and verify that it is unchanged.

    FILE is a table, a chart or a CSV file; or a results folder, to check all that is in it. The
    exit status is 0 if everything is as it was written, else 1.
    """
    from rooflines.results.provenance_command import main  # noqa: PLC0415, help is fast

    return main([*(["--check"] if check else []), "--", *files])
