"""What has a sheet is shown as text and, in a notebook, as a card."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rooflines.explanation.card import as_card
from rooflines.explanation.text import as_text

if TYPE_CHECKING:
    from rooflines.explanation.sheet import Sheet


class Shown(ABC):
    """An explanation; `str()` is a screen of text."""

    @property
    @abstractmethod
    def sheet(self) -> Sheet:
        """What is shown."""

    def __str__(self) -> str:
        """A screen of text, without colour."""
        return as_text(self.sheet)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A card for a notebook."""
        return as_card(self.sheet)
