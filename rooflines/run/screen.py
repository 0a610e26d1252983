"""A line on the screen that is written over as a run goes on, below all else that is written there."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Screen", "Ticker", "clear_line", "is_screen"]

CLEAR = "\r\x1b[K"
"""Takes back what stands on the last line."""


def is_screen(stream: TextIO) -> bool:
    """Whether what is written to a stream is seen by somebody, and a line of it can be taken back."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def clear_line(stream: TextIO | None) -> None:
    """Take back what another process shows on the last line of a screen, so that a message does not stand behind it."""
    with suppress(OSError, ValueError):
        if stream is not None and is_screen(stream):
            print(CLEAR, end="", file=stream, flush=True)


class Screen:
    """A screen whose last line is replaced.

    It stands in for the stream: what is written to it goes above the line. One line and no more, since what other processes write
    to the same screen can then never be taken back with it.

    Args:
        stream: The screen.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._shown = False

    def write(self, text: str) -> int:
        """Write text where the line stood."""
        with self._lock:
            self._take_back()
            return self._stream.write(text)

    def flush(self) -> None:
        """Let all that was written be seen."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def show(self, line: str) -> None:
        """Replace the line; an empty one takes it away. What does not fit in the terminal's width is left out."""
        with self._lock:
            self._take_back()
            if line:
                self._stream.write(line[: shutil.get_terminal_size().columns - 1])
                self._shown = True
            self._stream.flush()

    def _take_back(self) -> None:
        if self._shown:
            self._stream.write(CLEAR)
            self._shown = False


class Ticker:
    """Calls a function again and again, beside what else is done, until it is stopped.

    Args:
        call: The function.
        every_s: Time between two calls [s].
    """

    def __init__(self, call: Callable[[], None], every_s: float) -> None:
        self._call, self._every_s = call, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Call it no more, and wait for a call that is on its way."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            self._call()
