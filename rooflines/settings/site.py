"""What the site says of itself: `site:` of a config."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, quote
from rooflines.catalogue.forms import Entry, Text

SCHEMES = ("https://", "http://")
"""Beginnings of the addresses that a page links to."""


def _address(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(SCHEMES):
        problem = f"is {quote(value)}, which is no address of the web"
        raise RooflinesError("", problem, f"begin it with {SCHEMES[0]}")
    return value


Address = Annotated[
    str,
    BeforeValidator(_address),
    WithJsonSchema({"type": "string", "pattern": "^https?://"}),
]


class SiteConfig(Entry):
    """What the site says of itself and links to; what is left out is not shown."""

    title: Text | None = Field(None, description="its title, at the top of every page")
    author: Text | None = Field(None, description="who made it, at the end of every page")
    url: Address | None = Field(
        None, description="where its source or its home is, a link at the end of every page"
    )
    date: Text | None = Field(None, description="when it was made, at the end of every page")
    tables: Address | None = Field(
        None, description="where a copy of results/tables is published; the site lists its files"
    )
