"""Tables in Markdown, and generated blocks of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

END = "<!-- end -->"


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
