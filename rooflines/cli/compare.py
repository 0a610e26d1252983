"""`rooflines compare`: two chips, or two configs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rooflines.cli.differences import Differences

EXAMPLES = """
\b
Examples:
  rooflines compare h100-sxm b200
  rooflines compare my.yaml other.yaml
  rooflines compare h100-sxm mine --config mine.yaml
  rooflines compare h100-sxm b200 --csv
"""

CONFIG_NAMES = (".yaml", ".yml")
"""How the name of a config ends."""

MOST_SHOWN = 40
"""Differences that are shown [1]; CSV has all."""


@click.command("compare", epilog=EXAMPLES, short_help="Compare two chips or two configs.")
@click.argument("one", metavar="CHIP|CONFIG")
@click.argument("other", metavar="CHIP|CONFIG")
@click.option("--config", metavar="FILE", help="A config whose own chips can be named too.")
@click.option("--csv", "csv", is_flag=True, help="All differences as CSV.")
def command(one: str, other: str, config: str | None, *, csv: bool) -> None:
    """Compare two chips, or two configs: what differs, by how much, and which number is why.

    Chips: their numbers, and the critical batch of a matmul with D = F = 8192 in each dtype
    combination that both support. Configs: rows, and critical sizes.
    """
    from rooflines.basics.errors import RooflinesError  # noqa: PLC0415, help is fast
    from rooflines.cli.differences import of_chips, of_configs  # noqa: PLC0415, help is fast
    from rooflines.cli.output import as_csv  # noqa: PLC0415, the same

    if _is_config(one) and _is_config(other):
        if config is not None:
            problem, fix = "is for chips, but two configs are compared", "leave it out"
            raise RooflinesError("--config", problem, fix)
        differences = of_configs(one, other)
    else:
        differences = of_chips(one, other, config)
    click.echo(as_csv(differences.frame) if csv else _text(differences))


def _is_config(name: str) -> bool:
    """Whether a word names a config and not a chip."""
    with suppress(OSError):  # a name that no file can have
        return name.endswith(CONFIG_NAMES) or Path(name).is_file()
    return False


def _text(differences: Differences) -> str:
    """The summary, then the first differences."""
    from rooflines.cli.output import as_table, number, width  # noqa: PLC0415, as above

    frame = differences.frame
    names = ("what", *differences.names, "ratio", "because of")
    shown = [
        (
            row["what"],
            number(row["what"], row["one"]),
            number(row["what"], row["other"]),
            number("", row["ratio"]),
            row["because_of"] or "",
        )
        for row in frame.head(MOST_SHOWN).to_dicts()
    ]
    table = [as_table(names, shown, width())] if shown else []
    more = [f"... {frame.height - MOST_SHOWN:,} more: --csv"] if frame.height > MOST_SHOWN else []
    return "\n".join([*differences.summary, *(["", *table] if table else []), *more])
