"""Job log: a file per job, with its lines, its time or its traceback."""

from __future__ import annotations

import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.atomic import write_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


MAX_MESSAGE_BYTES = 32_768
"""Longest message of a failed job that a process sends, less than a pipe holds [byte]."""


def run_logged(function: str, path: str | Path, arguments: Sequence[object]) -> str:
    """Run a job; its log has the lines that it returns and its time, or its traceback.

    Args:
        function: Its function in this package, such as `run.jobs.write_part`.
        path: The log file; an existing one is overwritten.
        arguments: The function's arguments.

    Returns:
        The message of its failure; empty if it is done.
    """
    try:
        # Closed below: an error of a full disk in `close` must not hide the job's own.
        log = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        return str(write_error(path, error) or error)
    started_s = time.monotonic()
    try:
        module, _, name = function.rpartition(".")
        run: Callable[..., str | None] = getattr(import_module(f"rooflines.{module}"), name)
        lines = run(*arguments)
        log.write(f"{lines}\n" if isinstance(lines, str) and lines else "")
        log.write(f"done in {time.monotonic() - started_s:.2f} s\n")
    except RooflinesError as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001 - every error, also polars' panics, ends the job alone
        with suppress(OSError):
            traceback.print_exc(file=log)
        return f"{type(error).__name__}: {error}"
    finally:
        with suppress(OSError):
            log.close()
    return ""
