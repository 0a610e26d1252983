"""Comparison of results folders: a screen with the largest changes first, and their picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted
from rooflines.charts.change_pictures import changes_view
from rooflines.charts.kit.render import picture
from rooflines.cli import output
from rooflines.cli.picture_form import TABLE, picture_form
from rooflines.config.chart_fields import FORMATS
from rooflines.dictionary.columns import CHANGES
from rooflines.results.atomic import write_bytes
from rooflines.results.change_texts import COLUMNS, group_row, input_lines, table_lines
from rooflines.results.run_changes import RunChanges, compare_runs, has_results
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_GROUPS = 20
"""Maximum groups of changes on screen [1]."""

PAIR = 2
"""Folders in a comparison [1]."""


def results_folders(words: Sequence[str]) -> list[Path]:
    """Results folders that a comparison names; empty if it names none.

    Raises:
        RooflinesError: Some words are results folders and others are not, or they are not two.
    """
    folders = [Path(word) for word in words]
    with_results = [folder for folder in folders if has_results(folder)]
    if not with_results:
        return []
    fix = "give two folders that `rooflines run` wrote"
    if rest := [folder for folder in folders if folder not in with_results]:
        problem = f"is compared with the results in {with_results[0]}, and has none"
        raise RooflinesError("", problem, fix, file=str(rest[0]))
    if len(folders) != PAIR:
        problem = f"names {counted(len(folders), 'folder')} of results, not two"
        raise RooflinesError("compare", problem, fix)
    return folders


def compared_runs(
    folders: Sequence[Path], out: str | None, size: str | None, *, dark: bool, force: bool
) -> output.Printed:
    """Compare two results folders; write the picture or the table that is asked for.

    Args:
        folders: Both folders.
        out: File to write; None: none.
        size: Size of the picture; None: the format's.
        dark: Whether the picture is dark.
        force: Whether a file of that name is replaced.

    Raises:
        RooflinesError: A table cannot be read, the file exists, or there is nothing to draw.
    """
    form = picture_form(out, size, "changes.png", dark=dark)
    if out is not None:
        output.check_new(out, force=force)
    changes = compare_runs(*folders)
    if out is not None:
        _write(changes, out, form, size or FORMATS.get(form, ""), dark=dark)
    return changes.frame(), "\n".join(_lines(changes)), as_plain(changes)


def _write(changes: RunChanges, out: str, form: str, size: str, *, dark: bool) -> None:
    """Write the picture of changes, or all of them as Parquet."""
    if form == TABLE:
        write_parquet(changes.frame().lazy(), out, about([], CHANGES))
        return
    view = changes_view(changes)
    if view is None:
        problem = "has nothing to show: no number changed"
        raise RooflinesError("--out", problem, "leave it out")
    write_bytes(out, picture(view.spec(), form, size, dark=dark))


def _lines(changes: RunChanges) -> Iterator[str]:
    """Screen of a comparison."""
    before, after = changes.names
    sweeps = dict.fromkeys(table.sweep for table in changes.tables)
    in_both = f"{counted(len(sweeps), 'sweep')} in both"
    yield f"{before} -> {after}: {in_both}; ratio is {after} / {before}"
    inputs = [*input_lines(changes)] or ["none"]
    yield from ("", "Inputs that differ:", *(f"  {line}" for line in inputs))
    yield from ("", "Rows:", *(f"  {line}" for line in table_lines(changes)), "")
    if not changes.groups:
        yield "No threshold, time or cost differs in these rows."
        return
    shown = [group_row(group) for group in changes.groups[:MAX_GROUPS]]
    yield output.as_table(COLUMNS, [[*row.values()] for row in shown])
    if rest := len(changes.groups) - len(shown):
        yield f"{counted(rest, 'more group')} of rows changed; --csv has every changed number"


def as_plain(changes: RunChanges) -> dict[str, Any]:
    """Comparison as JSON: inputs, counts of rows, labels and groups."""
    return {
        "before": changes.names[0],
        "after": changes.names[1],
        "versions": [*changes.versions],
        "inputs": [change._asdict() for change in changes.inputs],
        "sweeps_removed": [*changes.removed],
        "sweeps_added": [*changes.added],
        "tables": [
            {
                "sweep": table.sweep,
                "table": table.kind,
                "shared": table.shared,
                "unchanged": table.unchanged,
                "removed": table.removed,
                "added": table.added,
                "paired": {name: [*values] for name, values in table.paired.items()},
                "labels": [change._asdict() for change in table.labels],
            }
            for table in changes.tables
        ],
        "groups": [group._asdict() for group in changes.groups],
    }
