"""An explanation as a card of HTML, for a notebook: no scripts, no requests, no style sheet."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.explanation.wording import seconds

if TYPE_CHECKING:
    from jinja2 import Template

    from rooflines.explanation.sheet import Sheet

COLOURS = {"compute": "#2a9d6f", "memory": "#c98a1b", "network": "#a45bc4"}
"""Colours of bars that have contrast on white and on black."""


@cache
def _template() -> Template:
    """The template; Jinja2 is imported when the first card is drawn."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415, as above

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("card.html")


def as_card(sheet: Sheet) -> str:
    """An explanation as HTML; text takes the page's own colour, so light and dark both work."""
    longest = max(bar.time_s for bar in sheet.bars)
    return _template().render(
        sheet=sheet,
        bars=[
            {
                "bound": bar.bound,
                "binds": bar.bound == sheet.bound,
                "time": seconds(bar.time_s),
                "percent": f"{100 * bar.time_s / longest:.4g}",
                "colour": COLOURS.get(bar.bound, "#888888"),
                "text": bar.text,
            }
            for bar in sheet.bars
        ],
        origins=[
            {
                "origin": origin,
                "documents": [
                    (source, sheet.documents.get(source, {})) for source in origin.sources
                ],
            }
            for origin in sheet.origins
        ],
    )
