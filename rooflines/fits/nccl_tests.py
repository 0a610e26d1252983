"""Output from nccl-tests: a line for each payload, in bytes and microseconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError, quote
from rooflines.fits.layouts import COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PER_US = 1e-6
"""Seconds per microsecond [s]."""

HEAD = 2**16
"""Characters within which the heading stands."""

HEADING = re.compile(r"#\s+(size\s+count\s+type\b.*\btime\s+algbw\s+busbw\b.*)")
"""Column names; `root` is not in old versions."""

BEGIN = re.compile(r"_perf\b|#\s*nThread \d")
"""Program name, or a program's first line."""

RANK = re.compile(r"#\s+Rank\s+(\d+)\s+")

LINE = re.compile(r"(?:^|\s)(\d+\s+\d+\s+[a-z]\w*\s.*)")
"""Size, count, type, and the other columns; a launcher may write the rank in front."""

PROGRAMS = COLLECTIVES
"""Collectives by program name, `<name>_perf`."""


UNMODELLED = re.compile(r"\b(broadcast|reduce|sendrecv|gather|scatter|hypercube|alltoallv)_perf\b")
"""Programs whose collectives are not modelled."""


def is_nccl_tests(text: str) -> bool:
    """True if a text is output from nccl-tests."""
    return HEADING.search(text[:HEAD]) is not None


def read_nccl_tests(text: str, file: str) -> pl.DataFrame:
    """Timings from one or several nccl-tests runs, out of place.

    Args:
        text: The output. It names the collective, or the file does.
        file: The file's name, such as `all_reduce_perf.txt`.

    Returns:
        collective, shards, bytes (the whole tensor; in an all-to-all one chip's part), seconds.

    Raises:
        RooflinesError: A run names no collective, or no ranks.
    """
    runs = ["\n".join(lines) for lines in _runs(text.splitlines())]
    return pl.concat(_read_run(run, file) for run in runs if HEADING.search(run))


def _runs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines by run: one begins where a table is printed and a program is named again."""
    run: list[str] = []
    printed = False
    for line in lines:
        if printed and BEGIN.search(line) and "concluded" not in line:
            yield run
            run, printed = [], False
        run.append(line)
        printed = printed or HEADING.search(line) is not None
    yield run


def _read_run(text: str, file: str) -> pl.DataFrame:
    """Timings in one run."""
    ranks = set(RANK.findall(text))
    if not ranks:
        raise RooflinesError(
            "",
            "is output of nccl-tests that names no ranks",
            "keep the lines `#  Rank  0 ...` of the output in the file",
        )
    (names,) = HEADING.findall(text)[:1]
    time = names.split().index("time")
    lines = [LINE.search(line) for line in text.splitlines() if "#" not in line]
    rows = [line[1].split() for line in lines if line]
    return pl.DataFrame(
        {
            "bytes": [row[0] for row in rows],  # of any length, which the reader checks
            "seconds": [_seconds(row[time : time + 1]) for row in rows],
        },
        schema={"bytes": pl.String, "seconds": pl.Float64},
    ).with_columns(
        collective=pl.lit(_collective(text, file)),
        shards=pl.lit(len(ranks), dtype=pl.Int64),
    )


def _seconds(cells: list[str]) -> float | None:
    """Time in a cell with microseconds [s]; None without a number."""
    try:
        return float(cells[0]) * PER_US
    except (IndexError, ValueError):
        return None


def _collective(text: str, name: str) -> str:
    """Collective that the text names, or the file's name."""
    if match := UNMODELLED.search(text) or UNMODELLED.search(name):
        problem = f"is output of nccl-tests of {match[1]}, which is not modelled"
        raise RooflinesError("", problem, f"run one of {', '.join(f'{p}_perf' for p in PROGRAMS)}")
    for place in (text, name):
        collectives = {
            collective
            for program, collective in PROGRAMS.items()
            if f"{program}_perf" in place or (place is name and program in place)
        }
        if len(collectives) == 1:
            return collectives.pop()
    raise RooflinesError(
        "",
        "is output of nccl-tests that does not name one collective: neither its text nor its name, "
        f"{quote(name)}",
        f"name the file after one, such as {next(iter(PROGRAMS))}_perf.txt",
    )
