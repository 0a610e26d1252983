"""An explanation as a card of HTML, for a notebook: no scripts, no requests, no style sheet."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.text import seconds
from rooflines.explanation import phrases
from rooflines.explanation.origins import origins

if TYPE_CHECKING:
    from jinja2 import Template

    from rooflines.explanation.values import Answer

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


def as_card(answer: Answer) -> str:
    """An explanation as HTML; text takes the page's own colour, so light and dark both work."""
    longest = max(used.time_s for used in answer.uses)
    return _template().render(
        asked=phrases.asked(answer.row, answer.sizes, answer.cache_split),
        finding=phrases.finding(answer),
        facts=phrases.facts(answer),
        sections=phrases.sections(answer),
        name=answer.name,
        bars=[
            {
                "bound": used.bound,
                "binds": used.bound == answer.row["bound"],
                "time": seconds(used.time_s),
                "percent": f"{100 * used.time_s / longest:.4g}",
                "colour": COLOURS.get(used.bound, "#888888"),
                "text": phrases.work_at_rate(used),
            }
            for used in answer.uses
        ],
        origins=origins(answer.numbers),
        documents=answer.documents,
    )
