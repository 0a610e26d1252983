"""Memos: values by all that they depend on, each computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Memo(dict[KeyT, ValueT]):
    """Values of a function by its argument, computed when first read.

    The function sees the key alone, so that a key without something that the value depends on
    gives a wrong value at once, not only after another key.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[[KeyT], ValueT]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: KeyT) -> ValueT:
        """Compute a value."""
        self[key] = value = self._function(key)
        return value
