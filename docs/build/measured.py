"""docs/performance.md, and figures of other pages and files: from benchmarks/RESULTS.md."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from documents import DOCS, ROOT
from markdown_tables import table, with_block

from rooflines.basics.text import significant
from rooflines.config import load_config
from rooflines.run.plan import plan

PERFORMANCE, SCALING = DOCS / "performance.md", DOCS / "scaling.md"
FIRST = DOCS / "first-steps.md"
CONFIG = ROOT / "config" / "config.yaml"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"

BASE, BASELINE = "rooflines", "all columns, zstd(1)"
OPTIONS = {
    "rooflines-core": "`columns: core`",
    "rooflines-lz4": "`compression: lz4`",
    "rooflines-core-lz4": "`columns: core` and `compression: lz4`",
    "rooflines-estimates": "a `calibration`",
}
"""Configs by the name of their row in section 2."""

WHOLE = "the whole, with charts and site"
"""The run of the default config in section 9."""

OTHERS = {
    "duckdb": "DuckDB, zstd",
    "duckdb-lz4": "DuckDB, lz4",
    "pandas": "pandas, in blocks",
    "numpy-pyarrow": "numpy and pyarrow, in blocks",
}
"""Other programs, likewise."""

ROWS, PARTS = 10**12, 1000
"""The sweep that docs/scaling.md estimates."""

LARGE = 100
"""Cores of its cluster."""

Row = dict[str, str]


class Results(NamedTuple):
    """Results of the benchmarks: the text above the goals, and rows and notes by section."""

    head: str
    tables: dict[int, list[Row]]
    notes: dict[int, str]

    def row(self, section: int, **named: str) -> Row:
        """The row of a section with these values by column; `_` stands for a space in a name."""
        wanted = {name.replace("_", " "): value for name, value in named.items()}
        return next(row for row in self.tables[section] if wanted.items() <= row.items())


def number(text: str) -> float:
    """A number as the results print it."""
    return float(text.replace(",", ""))


@cache
def results() -> Results:
    """The results in the repository."""
    return results_of(RESULTS.read_text(encoding="utf-8"))


def results_of(text: str) -> Results:
    """The results of a report."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    tables: dict[int, list[Row]] = {}
    notes: dict[int, str] = {}
    for section in sections:
        title, _, body = section.partition("\n")
        found = re.match(r"(\d+)\. ", title)
        if found:
            names, _, *rows = [cells(line) for line in body.splitlines() if line.startswith("|")]
            tables[int(found[1])] = [dict(zip(names, row, strict=True)) for row in rows]
            notes[int(found[1])] = body.partition("|")[0].strip()
    return Results(head, tables, notes)


def cells(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def about(seconds: float) -> str:
    """A time to ten seconds, from a minute on to half a minute, in words."""
    if seconds < 55:  # noqa: PLR2004, from there on it is a minute
        return f"{max(10, round(seconds, -1)):.0f} seconds"
    minutes = round(seconds / 30) / 2
    return "a minute" if minutes == 1 else f"{minutes:g} minutes"


@cache
def default_rows() -> int:
    """Rows of the default config, of operations and of whole models [1]."""
    return sum(part.rows for part in plan(load_config()).parts)


def with_run_time(readme: str) -> str:
    """README with the rows of the default config, the time of its run, and that of the set-up."""
    seconds = number(results().row(9, run=WHOLE)["wall s"])
    (setup,) = re.findall(r"^\| Set up \| ([\d.]+) s", FIRST.read_text("utf-8"), re.MULTILINE)
    readme = re.sub(r"(?<=charts and a site, in about ).*", about(seconds), with_rows(readme))
    again = number(results().row(9, run="nothing to do")["wall s"])
    readme = re.sub(r"(?<=does nothing, in )[\d.]+(?= s;)", f"{again:.1f}", readme)
    return re.sub(r"(?<=on first use: about ).*?(?= more)", about(float(setup)), readme)


def with_rows(text: str) -> str:
    """A text with the current number of rows of the default config."""
    return re.sub(r"[\d.]+ million (?=rows, charts|rows together)", f"{_default_million()} ", text)


def _default_million() -> str:
    return _million(str(default_rows()))


def performance_page() -> str:
    """The text of docs/performance.md."""
    found = results()
    (cores,) = re.findall(r"(\d+) cores", found.head)
    whole = found.row(9, run=WHOLE)
    again = found.row(9, run="nothing to do")
    thresholds = found.row(6, what="solving")
    (solved,) = re.findall(r"^([\d,]+)", found.notes[6])
    writing = 1 - number(found.tables[3][0]["CPU ns per row"]) / number(_job()["CPU ns per row"])
    edit = found.row(7, run="an edit of one chip")
    return f"""\
# Performance

Measured on {cores} cores. [benchmarks/RESULTS.md](../benchmarks/RESULTS.md) has all figures with
the machine and the versions; `make bench` measures yours.

| run, startup included | time |
|---|---|
| the default config: {_default_million()} rows, charts and site | {_s(whole)} |
| the same, nothing to do | {_s(again)} |
{_growth()}
| an edit of one chip, of {_million(_most_parts()["rows"])} rows of 40 chips | {_s(edit)} |

{_million(solved)} exact thresholds take {number(thresholds["CPU s"]):.1f} s of CPU. Of the CPU time
of a row, {writing:.0%} are polars' Parquet writer. These options change it:

{_options()}

`columns: core` is a list; the others [follow from it](../config/README.md#core-columns).

The same rows by other programs, compared one by one:

{_others()}
"""


def with_measured(page: str) -> str:
    """docs/scaling.md with current figures between its markers."""
    return with_block(page, "measured", _estimate())


def _growth() -> str:
    """Runs of section 5, without the smallest."""
    rows = (
        f"| {_million(row['rows'])} rows, {row['columns']} columns, "
        f"{number(row['peak MiB of a process']):,.0f} MiB in the largest process | {_s(row)} |"
        for row in results().tables[5][1:]
        if row["columns"] in ("all", "core")
    )
    return "\n".join(rows)


def _options() -> str:
    """Section 2: options of a config against none."""
    base = results().row(2, who=BASE)
    rows = [
        (label, *_relative(results().row(2, who=name), base)) for name, label in OPTIONS.items()
    ]
    head = (f"against {BASELINE}", "CPU time of a row", "bytes of a row")
    return table(head, rows)


def _others() -> str:
    """Section 2: other programs against this one."""
    base = results().row(2, who=BASE)
    rows = [(label, *_relative(results().row(2, who=name), base)) for name, label in OTHERS.items()]
    return table((f"against rooflines, {BASELINE}", "CPU time of a row", "bytes of a row"), rows)


def _relative(row: Row, base: Row) -> tuple[str, str]:
    cpu = number(row["rows, CPU s"]) / number(base["rows, CPU s"])
    size = number(row["bytes per row"]) / number(base["bytes per row"])
    return f"{cpu:.2f} ×", f"{size:.2f} ×"


def _estimate() -> str:
    """The estimate for 10^12 rows, by what is stored of each row."""
    found = results()
    full, core = found.row(2, who=BASE), found.row(2, who="rooflines-core")
    start = number(full["start, CPU s"])
    computed = 1e3 / number(found.tables[3][0]["CPU ns per row"])
    speeds = [number(row["M rows per CPU s"]) * 1e6 for row in (full, core)] + [computed * 1e6]
    sizes = [number(row["bytes per row"]) for row in (full, core)]
    hours = [ROWS / speed / 3600 for speed in speeds]
    jobs = [ROWS / PARTS / speed for speed in speeds]
    rows: list[tuple[str, ...]] = [
        ("rows / CPU s, r", *(f"{speed / 1e6:.1f} M" for speed in speeds)),
        ("byte / row, b", *(f"{size:.1f}" for size in sizes), ""),
        ("core-hours, N / r / 3600", *(significant(each) for each in hours)),
        ("bytes in all, N · b", *(f"{ROWS * size / 1e12:.1f} TB" for size in sizes), "negligible"),
        ("bytes of a part, R · b", *(f"{ROWS / PARTS * size / 1e9:.1f} GB" for size in sizes), ""),
        ("time of a job, R / r", *(f"{job:,.0f} s" for job in jobs)),
        ("start of a job, as a share", *(f"{start / job:.1%}" for job in jobs)),
        (f"on {LARGE} cores", *(f"{hour / LARGE:.1f} h" for hour in hours)),
    ]
    head = ("", "all columns", "`columns: core`", "aggregated in the job")
    return table(head, rows)


def _job() -> Row:
    """What a job of section 3 does."""
    return next(row for row in results().tables[3] if row["of a job's"] == "100%")


def _most_parts() -> Row:
    """The run of section 5 that section 7 repeats after an edit."""
    (rows,) = re.findall(r"^([\d,]+) rows", results().notes[7])
    return results().row(5, rows=rows, columns="all")


def _million(text: str) -> str:
    return f"{significant(number(text) / 1e6)} million"


def _s(row: Row) -> str:
    return f"{number(row['wall s']):.1f} s"
