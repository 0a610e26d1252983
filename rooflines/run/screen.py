"""A status line at the bottom of a terminal, below everything else that is written there."""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

CLEAR = "\r\x1b[K"
"""Clears the current line of a terminal."""


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a line can be cleared."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Screen:
    """A terminal with a status line. It replaces the stream: text is written above the line.

    The status is one line only: more could not be cleared once other processes write between them.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._shown = False

    def write(self, text: str) -> int:
        """Write text in place of the status line."""
        with self._lock:
            self._clear()
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def show(self, line: str) -> None:
        """Replace the status line, cut to the terminal's width; an empty line removes it."""
        with self._lock:
            self._clear()
            if line:
                self._stream.write(line[: shutil.get_terminal_size().columns - 1])
                self._shown = True
            self._stream.flush()

    def _clear(self) -> None:
        if self._shown:
            self._stream.write(CLEAR)
            self._shown = False


class Ticker:
    """A thread that calls a function periodically until it is stopped.

    Args:
        call: The function.
        every_s: Time between two calls [s].
    """

    def __init__(self, call: Callable[[], None], every_s: float) -> None:
        self._call, self._every_s = call, every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a call in progress."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            self._call()
