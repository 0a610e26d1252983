"""`rooflines explain`: one operation on one chip, explained."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("explain")
@click.argument("words", nargs=-1, required=True, metavar="CHIP SIZES DTYPES")
def command(words: tuple[str, ...]) -> None:
    """Explain one operation on one chip: what binds it, from which size on it is compute-bound."""
    click.echo(" ".join(words))
