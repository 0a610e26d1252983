"""Tables in Markdown, and what is generated within a page: blocks, and values in a sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

END = "<!-- end -->"

VALUE = re.compile(r"<!--(\w+)-->.*?<!--/-->", re.DOTALL)
"""A value in a sentence, between comments that readers do not see: its name, and its text."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, without a line break at its end."""
    lines = [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]
    return "\n".join(lines)


def with_block(page: str, name: str, block: str) -> str:
    """A page with a block between `<!-- name -->` and the next `<!-- end -->`.

    Raises:
        ValueError: The page has no such markers.
    """
    start = f"<!-- {name} -->\n"
    before, found, rest = page.partition(start)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"no block {name!r}")
    return f"{before}{start}\n{block}\n\n{END}{after}"


def with_values(page: str, values: Mapping[str, str]) -> str:
    """A page with the current values between `<!--name-->` and `<!--/-->`.

    Raises:
        KeyError: The page names a value that there is not.
        ValueError: A value begins a line, which Markdown would take for a block of HTML.
    """
    if found := re.search(r"^ *<!--\w+-->", page, re.MULTILINE):
        raise ValueError(f"{found[0]} begins a line")
    return VALUE.sub(lambda found: f"<!--{found[1]}-->{values[found[1]]}<!--/-->", page)
