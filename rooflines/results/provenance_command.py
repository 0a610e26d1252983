"""The command that prints where files come from, and whether they are as they were written.

    python -m rooflines.provenance results/charts/compared/critical-of-layers-light.png
    python -m rooflines.provenance results

Exit status: 0 if everything is as it was written, 1 if something is not or has no record, 2 for a
mistake in the arguments.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rooflines.basics.errors import RooflinesError, printable
from rooflines.results.provenance import check_results, origin, unreadable
from rooflines.results.records import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence


def _print_check(folder: Path) -> bool:
    """Print what is wrong in a results folder; return whether nothing is."""
    checked = list(check_results(folder))
    for path, problem in checked:
        if problem:
            print(f"{printable(path)} {printable(problem)}")
    bad = sum(problem is not None for _, problem in checked)
    print(
        f"{printable(folder)}: {len(checked):,} outputs read, "
        + (f"{bad:,} of them not as they were written" if bad else "all as they were written")
    )
    return not bad


def main(arguments: Sequence[str] | None = None) -> int:
    """Print where files come from.

    Args:
        arguments: Those of the command line; by default those of this process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m rooflines.provenance",
        description="What made a file, and whether it is as it was written.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a table, chart or CSV; or a results folder, to check all that is in it",
    )
    parser.add_argument(
        "--check", action="store_true", help="say only whether they are as they were written"
    )
    options = parser.parse_args(arguments)
    whole = True
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name may have characters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for number, file in enumerate(options.files):
            if (file / FOLDER).is_dir():
                whole &= _print_check(file)
                continue
            result = origin(file)
            whole &= result.whole
            text = ("---\n" if number else "") + result.text().rstrip()
            print(
                printable(f"{file} {result.verdict}")
                if options.check
                else "\n".join(map(printable, text.split("\n")))
            )
    except RooflinesError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` has what it wants
        raise
    except OSError as error:
        print(unreadable(error.filename, error), file=sys.stderr)
        return 2
    return 0 if whole else 1


def command() -> NoReturn:
    """`python -m rooflines.provenance`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without an error
    sys.exit(main())
