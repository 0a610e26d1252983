"""Values as text for a page: escaped for HTML, as JSON that is safe in a script, and as numbers with a prefix and a unit."""

from __future__ import annotations

import html
import json
from string import Template
from typing import TYPE_CHECKING, Any

from rooflines.basics.text import si

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["as_json", "escaped", "filled", "link", "quantity"]

DIGITS = 4
"""Digits a page shows of a number that has a prefix; its title has them all."""


def escaped(value: object) -> str:
    """Text that is shown as it is, in HTML and in an attribute's value; nothing for None."""
    return "" if value is None else html.escape(str(value), quote=True)


def as_json(value: object) -> str:
    """Plain data as JSON that may stand in a script of any page: no `<` in it can end the script."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def quantity(value: float, unit: str) -> str:
    """A number with a prefix and a unit, such as 989 TFLOP/s.

    Args:
        value: The number [unit].
        unit: Its unit, without prefix; empty for a plain number.

    Returns:
        At most four digits of it; a plain number is written out.
    """
    if not unit:
        return f"{value:,.10g}"
    rounded = float(f"{value:.{DIGITS}g}")  # ties to even: 362.05 TFLOP/s is 362 TFLOP/s
    return si(rounded, unit, DIGITS)


def link(url: str | None, text: str) -> str:
    """A link to another site, or its text alone where the address is none of the web."""
    if url is None or not url.startswith(("https://", "http://")):
        return escaped(text)
    return f'<a href="{escaped(url)}" rel="noopener noreferrer">{escaped(text)}</a>'


def filled(template: str, values: Mapping[str, Any]) -> str:
    """A page's template with `$name` replaced; the values are HTML already.

    Raises:
        KeyError: The template names a value that is not given.
    """
    return Template(template).substitute(values)
