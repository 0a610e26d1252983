"""Standard streams that a shell has closed, as with `2>&-`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
"""The streams in the order of their file descriptors, and how each is opened."""


def open_closed_streams() -> None:
    """Open closed standard streams on the null device, for this process and those it starts.

    Python has None in place of a closed stream, and the next file or socket gets its number.
    """
    for number in range(len(STREAMS)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            os.set_inheritable(number, True)  # noqa: FBT003, its only parameter
    for name, mode in STREAMS.items():
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115, kept
