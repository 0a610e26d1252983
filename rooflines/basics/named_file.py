"""Files that a config names: a missing one is a mistake of the config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, printable

if TYPE_CHECKING:
    from pathlib import Path


def named_file(folder: Path, name: str, inside: str = "") -> Path:
    """The path of a file that a config names.

    Args:
        folder: Where relative paths start.
        name: The path as the config has it.
        inside: The file that counts where the path is that of a folder.

    Raises:
        RooflinesError: There is no such file, or it cannot be read.
    """
    path = folder / name
    try:
        if inside and path.is_dir():
            path /= inside
        if path.is_dir():
            problem = "is a directory"
        elif not path.exists():
            problem = "does not exist"
        else:
            if path.is_file():  # a pipe can be opened once only
                path.open("rb").close()
            return path
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    fix = f"correct the path; a relative one starts at {folder.absolute()}"
    raise RooflinesError("", f"names {printable(path)}, which {problem}", fix)
