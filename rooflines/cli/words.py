"""`rooflines list words`: forms of words in questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.answers.word_forms import WORD_FORMS
from rooflines.cli.output import WithExamples, prints_frame, table

if TYPE_CHECKING:
    from rooflines.cli.output import Printed


@click.command("words", cls=WithExamples)
@prints_frame
def command() -> Printed:
    """List the words that questions have, with their meaning, in any order and any case.

    Examples:
        rooflines list words
        rooflines list words --json
    """
    rows = [
        {
            "part": form.name,
            "form": form.form,
            "meaning": form.meaning,
            "example": f"rooflines {form.commands[0]} {form.example}",
            "commands": ", ".join(form.commands),
        }
        for form in WORD_FORMS
    ]
    return pl.DataFrame(rows), table(("part", "form", "meaning"), rows)
