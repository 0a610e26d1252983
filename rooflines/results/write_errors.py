"""Messages for folders and files that cannot be written: disk full, read-only, not a folder."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path

from rooflines.basics.errors import RooflinesError

NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota of the disk is used up",
    errno.EFBIG: "a file may not grow that large",
}
"""Reasons why there is no room for a file."""

NOT_ALLOWED = {
    errno.EROFS: "it is on a file system that is read-only",
    errno.EACCES: "you may not",
    errno.EPERM: "you may not",
}
"""Reasons why a file may not be written."""

NO_FOLDER = (errno.EEXIST, errno.ENOTDIR)
"""Errors for a file where a folder is needed."""

OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""How libraries in Rust quote an error number of the system."""

PROBE_BYTES = 1 << 16
"""What is written to a folder to test whether it has room [byte]."""


def unwritable(path: object, error: Exception) -> RooflinesError | None:
    """What to do about a file that cannot be written.

    Args:
        path: The file or folder.
        error: What was raised, by Python or by a library that writes for it.

    Returns:
        The error to show; None for errors of another kind.
    """
    quoted = OS_ERROR.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(quoted[1]) if quoted else None
    again = "then type the same command again: what is finished stays"
    if number in NO_ROOM:
        fix = f"make room (`df -h` shows where there is some), {again}"
        return RooflinesError("", f"cannot be written: {NO_ROOM[number]}", fix, file=str(path))
    target = Path(str(path))
    above = (part for part in (target, *target.parents) if os.path.lexists(part))
    blocking = next((part for part in above if not part.is_dir()), None)
    if number in NO_FOLDER and blocking:
        return no_folder(blocking)
    if number in NOT_ALLOWED:
        fix = f"make the folder writable (`ls -ld` and `mount` show why it is not), {again}"
        return RooflinesError("", f"cannot be written: {NOT_ALLOWED[number]}", fix, file=str(path))
    return None


def no_folder(path: object) -> RooflinesError:
    """What to do about a file where a folder is needed."""
    return RooflinesError(
        "",
        "is not a folder, and a run needs one there",
        "move it away, then type the same command again",
        file=str(path),
    )


def refusal(folder: Path) -> OSError | None:
    """The error of writing a few bytes to a folder, which is created if missing; None on success.

    Libraries often report only that writing failed; this finds the reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".tmp") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
    except OSError as error:
        return error
    return None
