"""JSON documents read as YAML would be, in a tenth of the time.

YAML 1.2 contains JSON. What the two read apart, or only YAML describes with a line, is left to it.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, NoReturn

MAX_JSON_DEPTH = 40
"""Maximum nesting depth [1]; deeper documents are left to YAML."""

MAX_JSON_VALUES = 250_000
"""Maximum of values, from above [1]; larger documents are left to YAML."""


YAML_REFUSES = "[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"
"""Characters that YAML refuses; compiled for the first document, since that takes 4 ms."""


def plain_json(text: str) -> dict[str, Any] | None:
    """Read an object from a JSON document.

    Returns:
        The object; None for any other text, or one that YAML may refuse.
    """
    if not text.startswith("{") or "\\u" in text or re.search(YAML_REFUSES, text):
        return None
    brackets = re.findall(r"[][{}]", text)
    depths = accumulate(1 if bracket in "[{" else -1 for bracket in brackets)
    if len(brackets) + text.count(",") > MAX_JSON_VALUES or max(depths) > MAX_JSON_DEPTH:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; a duplicate key is refused."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key is written twice")
    return mapping


def _refuse_constant(text: str) -> NoReturn:
    """Refuse NaN and infinities, which YAML reads as text."""
    raise ValueError(text)
