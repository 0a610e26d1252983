"""An explanation: its values, and how it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.explanation import phrases
from rooflines.explanation.card import as_card
from rooflines.explanation.text import as_text
from rooflines.explanation.values import Answer

if TYPE_CHECKING:
    from rooflines.explanation.sheet import Sheet


class Explanation(Answer):
    """An operation, or a step of a model, explained; `str()` is a screen, `to_dict()` all of it."""

    @property
    def sheet(self) -> Sheet:
        """What is shown."""
        return phrases.sheet(self)

    def __str__(self) -> str:
        """A screen of text, without colour."""
        return as_text(self.sheet)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A card for a notebook."""
        return as_card(self.sheet)
