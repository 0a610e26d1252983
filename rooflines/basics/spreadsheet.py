"""Formula injection: text in a CSV file that a spreadsheet would run as a formula."""

from __future__ import annotations

import re

FORMULA = r"(^|;)(\s*[=+\-@＝＋－＠]|[\t\r\n])"  # noqa: RUF001, the wide forms are formulas where they are typed
"""Where text begins like a formula: at its start, or after a semicolon, which separates cells in
many languages."""

BEGINS = re.compile(FORMULA)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a CSV file could run this text."""
    return BEGINS.search(text) is not None
