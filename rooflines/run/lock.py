"""One run per folder: a lock of the system, which ends with the process that holds it.

The profile turns Snakemake's own lock off, which outlives a killed run.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from functools import cache
from pathlib import Path
from typing import TextIO

from rooflines.basics.errors import RooflinesError

STATE = Path(".snakemake") / "rooflines"
"""The folder for the state of runs, below the one that Snakemake works in."""


@cache
def acquire(folder: Path) -> TextIO:
    """Acquire the lock of a folder until this process ends, once for all workflows it imports.

    Args:
        folder: The folder for the state of runs, absolute.

    Returns:
        The lock file; closing it releases the lock. A file system without locks locks nothing.

    Raises:
        RooflinesError: Another run is active.
    """
    file = (folder / "alive").open("a+", encoding="utf-8", errors="replace")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        problem = f"is in use by another run ({file.read().strip()})"
        fix = "wait for it, or stop that process, or use another folder (--directory)"
        raise RooflinesError("", problem, fix, file=str(Path.cwd())) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
            raise
    file.truncate(0)
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    file.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n")
    file.flush()
    return file
